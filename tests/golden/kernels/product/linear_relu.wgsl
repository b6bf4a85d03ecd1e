// matmul_16x16: grid (8, 1, 1), writes b3
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_max(a: f32, b: f32) -> f32 {
  return select(select(max(a, b), b, p_isnan(b)), a, p_isnan(a));
}
var<workgroup> tile_m: array<vec4<f32>, 128>;
var<workgroup> tile_n: array<vec4<f32>, 128>;
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let batch = group / 8u;
  let first_m = group / 2u % 4u * 16u;
  let first_n = group % 2u * 16u;
  let block = lane % 16u;
  let slice = lane / 16u;
  let own_m = first_m + block / 4u * 4u;
  let own_n = first_n + block % 4u * 4u;
  var r0 = vec4<f32>();
  var r1 = vec4<f32>();
  var r2 = vec4<f32>();
  var r3 = vec4<f32>();
  for (var first_k = 0u; first_k < 128u; first_k += 32u) {
    {
      let at = lane;
      let k_position = at % 32u;
      let four = at / 32u;
      let k = first_k + k_position;
      var four_of = vec4<f32>();
      let m1 = first_m + four * 4u;
      let m2 = first_m + four * 4u + 1u;
      let m3 = first_m + four * 4u + 2u;
      let m4 = first_m + four * 4u + 3u;
      let v5 = b0[m1 * 128u + k];
      let v6 = b0[m2 * 128u + k];
      let v7 = b0[m3 * 128u + k];
      let v8 = b0[m4 * 128u + k];
      four_of = vec4<f32>(v5, v6, v7, v8);
      tile_m[k_position * 4u + four] = four_of;
    }
    {
      let at = lane;
      let k_position = at % 32u;
      let four = at / 32u;
      let k = first_k + k_position;
      var four_of = vec4<f32>();
      let n9 = first_n + four * 4u;
      let n10 = first_n + four * 4u + 1u;
      let n11 = first_n + four * 4u + 2u;
      let n12 = first_n + four * 4u + 3u;
      let v13 = b1[n9 * 128u + k];
      let v14 = b1[n10 * 128u + k];
      let v15 = b1[n11 * 128u + k];
      let v16 = b1[n12 * 128u + k];
      four_of = vec4<f32>(v13, v14, v15, v16);
      tile_n[k_position * 4u + four] = four_of;
    }
    workgroupBarrier();
    for (var at = 0u; at < 4u; at += 4u) {
      let k = slice * 4u + at;
      let v17 = tile_m[k * 4u + (own_m - first_m) / 4u];
      let v18 = tile_n[k * 4u + (own_n - first_n) / 4u];
      r0 += v17.x * v18;
      r1 += v17.y * v18;
      r2 += v17.z * v18;
      r3 += v17.w * v18;
      let v19 = tile_m[(k + 1u) * 4u + (own_m - first_m) / 4u];
      let v20 = tile_n[(k + 1u) * 4u + (own_n - first_n) / 4u];
      r0 += v19.x * v20;
      r1 += v19.y * v20;
      r2 += v19.z * v20;
      r3 += v19.w * v20;
      let v21 = tile_m[(k + 2u) * 4u + (own_m - first_m) / 4u];
      let v22 = tile_n[(k + 2u) * 4u + (own_n - first_n) / 4u];
      r0 += v21.x * v22;
      r1 += v21.y * v22;
      r2 += v21.z * v22;
      r3 += v21.w * v22;
      let v23 = tile_m[(k + 3u) * 4u + (own_m - first_m) / 4u];
      let v24 = tile_n[(k + 3u) * 4u + (own_n - first_n) / 4u];
      r0 += v23.x * v24;
      r1 += v23.y * v24;
      r2 += v23.z * v24;
      r3 += v23.w * v24;
    }
    workgroupBarrier();
  }
  tile_m[lane] = r0;
  workgroupBarrier();
  for (var half = 4u; half > 0u; half >>= 1u) {
    if (slice < half) {
      tile_m[lane] += tile_m[lane + half * 16u];
    }
    workgroupBarrier();
  }
  r0 = tile_m[block];
  workgroupBarrier();
  tile_m[lane] = r1;
  workgroupBarrier();
  for (var half = 4u; half > 0u; half >>= 1u) {
    if (slice < half) {
      tile_m[lane] += tile_m[lane + half * 16u];
    }
    workgroupBarrier();
  }
  r1 = tile_m[block];
  workgroupBarrier();
  tile_m[lane] = r2;
  workgroupBarrier();
  for (var half = 4u; half > 0u; half >>= 1u) {
    if (slice < half) {
      tile_m[lane] += tile_m[lane + half * 16u];
    }
    workgroupBarrier();
  }
  r2 = tile_m[block];
  workgroupBarrier();
  tile_m[lane] = r3;
  workgroupBarrier();
  for (var half = 4u; half > 0u; half >>= 1u) {
    if (slice < half) {
      tile_m[lane] += tile_m[lane + half * 16u];
    }
    workgroupBarrier();
  }
  r3 = tile_m[block];
  workgroupBarrier();
  var results = array<vec4<f32>, 4>(r0, r1, r2, r3);
  for (var at = slice; at < 16u; at += 8u) {
    let m = own_m + at / 4u;
    let n = own_n + at % 4u;
    let v25 = results[at / 4u][at % 4u];
    let v26 = b2[n];
    let v27 = (v25 + v26);
    let v28 = p_max(v27, 0.0);
    b3[m * 32u + n] = v28;
  }
}
