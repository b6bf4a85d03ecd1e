// matmul_32x32: grid (2, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_max(a: f32, b: f32) -> f32 {
  return select(select(max(a, b), b, p_isnan(b)), a, p_isnan(a));
}
var<workgroup> tile_a: array<f32, 512>;
var<workgroup> tile_b: array<f32, 512>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let batch = group / 2u;
  let first_m = (group / 1u) % 2u * 32u;
  let first_n = group % 1u * 32u;
  let own_m = lane / 16u * 2u;
  let own_n = lane % 16u * 2u;
  var r1 = f32(0);
  var r2 = f32(0);
  var r3 = f32(0);
  var r4 = f32(0);
  for (var first_k = 0u; first_k < 128u; first_k += 16u) {
    let v5 = lane + 0u;
    let v6 = v5 / 16u;
    let v7 = v5 % 16u;
    let m8 = first_m + v6;
    let k9 = first_k + v7;
    var v10 = f32(0);
    if (m8 < 64u && k9 < 128u) {
      let v11 = b0[m8 * 128u + k9];
      v10 = v11;
    }
    tile_a[v7 * 32u + v6] = v10;
    let v12 = lane + 256u;
    let v13 = v12 / 16u;
    let v14 = v12 % 16u;
    let m15 = first_m + v13;
    let k16 = first_k + v14;
    var v17 = f32(0);
    if (m15 < 64u && k16 < 128u) {
      let v18 = b0[m15 * 128u + k16];
      v17 = v18;
    }
    tile_a[v14 * 32u + v13] = v17;
    let v19 = lane + 0u;
    let v20 = v19 / 16u;
    let v21 = v19 % 16u;
    let m22 = first_n + v20;
    let k23 = first_k + v21;
    var v24 = f32(0);
    if (m22 < 32u && k23 < 128u) {
      let v25 = b1[m22 * 128u + k23];
      v24 = v25;
    }
    tile_b[v21 * 32u + v20] = v24;
    let v26 = lane + 256u;
    let v27 = v26 / 16u;
    let v28 = v26 % 16u;
    let m29 = first_n + v27;
    let k30 = first_k + v28;
    var v31 = f32(0);
    if (m29 < 32u && k30 < 128u) {
      let v32 = b1[m29 * 128u + k30];
      v31 = v32;
    }
    tile_b[v28 * 32u + v27] = v31;
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) {
      let v33 = tile_a[k * 32u + own_m + 0u];
      let v34 = tile_a[k * 32u + own_m + 1u];
      let v35 = tile_b[k * 32u + own_n + 0u];
      let v36 = tile_b[k * 32u + own_n + 1u];
      r1 += v33 * v35;
      r2 += v33 * v36;
      r3 += v34 * v35;
      r4 += v34 * v36;
    }
    workgroupBarrier();
  }
  if (first_m + own_m + 0u < 64u && first_n + own_n + 0u < 32u) {
    let m37 = first_m + own_m + 0u;
    let n38 = first_n + own_n + 0u;
    let v39 = b2[n38];
    let v40 = (r1 + v39);
    let v41 = p_max(v40, 0.0);
    b3[m37 * 32u + n38] = v41;
  }
  if (first_m + own_m + 0u < 64u && first_n + own_n + 1u < 32u) {
    let m42 = first_m + own_m + 0u;
    let n43 = first_n + own_n + 1u;
    let v44 = b2[n43];
    let v45 = (r2 + v44);
    let v46 = p_max(v45, 0.0);
    b3[m42 * 32u + n43] = v46;
  }
  if (first_m + own_m + 1u < 64u && first_n + own_n + 0u < 32u) {
    let m47 = first_m + own_m + 1u;
    let n48 = first_n + own_n + 0u;
    let v49 = b2[n48];
    let v50 = (r3 + v49);
    let v51 = p_max(v50, 0.0);
    b3[m47 * 32u + n48] = v51;
  }
  if (first_m + own_m + 1u < 64u && first_n + own_n + 1u < 32u) {
    let m52 = first_m + own_m + 1u;
    let n53 = first_n + own_n + 1u;
    let v54 = b2[n53];
    let v55 = (r4 + v54);
    let v56 = p_max(v55, 0.0);
    b3[m52 * 32u + n53] = v56;
  }
}
