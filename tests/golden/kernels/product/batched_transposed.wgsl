// matmul_16x16: grid (4, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
var<workgroup> tile_a: array<f32, 256>;
var<workgroup> tile_b: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let batch = group / 1u;
  let first_m = (group / 1u) % 1u * 16u;
  let first_n = group % 1u * 16u;
  let own_m = lane / 16u * 1u;
  let own_n = lane % 16u * 1u;
  var r1 = f32(0);
  for (var first_k = 0u; first_k < 5u; first_k += 16u) {
    let v2 = lane + 0u;
    let v3 = v2 / 16u;
    let v4 = v2 % 16u;
    let m5 = first_m + v3;
    let k6 = first_k + v4;
    var v7 = f32(0);
    if (m5 < 9u && k6 < 5u) {
      let v8 = b0[batch * 45u + m5 * 5u + k6];
      v7 = v8;
    }
    tile_a[v4 * 16u + v3] = v7;
    let v9 = lane + 0u;
    let v10 = v9 / 16u;
    let v11 = v9 % 16u;
    let m12 = first_n + v10;
    let k13 = first_k + v11;
    var v14 = f32(0);
    if (m12 < 7u && k13 < 5u) {
      let v15 = b1[batch * 35u + m12 * 5u + k13];
      v14 = v15;
    }
    tile_b[v11 * 16u + v10] = v14;
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) {
      let v16 = tile_a[k * 16u + own_m + 0u];
      let v17 = tile_b[k * 16u + own_n + 0u];
      r1 += v16 * v17;
    }
    workgroupBarrier();
  }
  if (first_m + own_m + 0u < 9u && first_n + own_n + 0u < 7u) {
    let m18 = first_m + own_m + 0u;
    let n19 = first_n + own_n + 0u;
    b2[batch * 63u + m18 * 7u + n19] = r1;
  }
}
