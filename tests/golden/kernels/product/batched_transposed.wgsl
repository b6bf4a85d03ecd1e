// matmul_16x16: grid (4, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
var<workgroup> tile_m: array<vec4<f32>, 64>;
var<workgroup> tile_n: array<vec4<f32>, 64>;
@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let batch = group / 1u;
  let first_m = group / 1u % 1u * 16u;
  let first_n = group % 1u * 16u;
  let block = lane;
  let slice = lane / 16u;
  let own_m = first_m + block / 4u * 4u;
  let own_n = first_n + block % 4u * 4u;
  var r0 = vec4<f32>();
  var r1 = vec4<f32>();
  var r2 = vec4<f32>();
  var r3 = vec4<f32>();
  for (var first_k = 0u; first_k < 5u; first_k += 16u) {
    for (var at = lane; at < 64u; at += 16u) {
      let k_position = at % 16u;
      let four = at / 16u;
      let k = first_k + k_position;
      var four_of = vec4<f32>();
      if (k < 5u) {
        let m1 = min(first_m + four * 4u, 8u);
        let m2 = min(first_m + four * 4u + 1u, 8u);
        let m3 = min(first_m + four * 4u + 2u, 8u);
        let m4 = min(first_m + four * 4u + 3u, 8u);
        let v5 = b0[batch * 45u + m1 * 5u + k];
        let v6 = b0[batch * 45u + m2 * 5u + k];
        let v7 = b0[batch * 45u + m3 * 5u + k];
        let v8 = b0[batch * 45u + m4 * 5u + k];
        four_of = vec4<f32>(v5, v6, v7, v8);
      }
      tile_m[k_position * 4u + four] = four_of;
    }
    for (var at = lane; at < 64u; at += 16u) {
      let k_position = at % 16u;
      let four = at / 16u;
      let k = first_k + k_position;
      var four_of = vec4<f32>();
      if (k < 5u) {
        let n9 = min(first_n + four * 4u, 6u);
        let n10 = min(first_n + four * 4u + 1u, 6u);
        let n11 = min(first_n + four * 4u + 2u, 6u);
        let n12 = min(first_n + four * 4u + 3u, 6u);
        let v13 = b1[batch * 35u + n9 * 5u + k];
        let v14 = b1[batch * 35u + n10 * 5u + k];
        let v15 = b1[batch * 35u + n11 * 5u + k];
        let v16 = b1[batch * 35u + n12 * 5u + k];
        four_of = vec4<f32>(v13, v14, v15, v16);
      }
      tile_n[k_position * 4u + four] = four_of;
    }
    workgroupBarrier();
    for (var at = 0u; at < 16u; at += 4u) {
      let k = at;
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
  var results = array<vec4<f32>, 4>(r0, r1, r2, r3);
  for (var at = slice; at < 16u; at++) {
    let m = own_m + at / 4u;
    let n = own_n + at % 4u;
    if (m < 9u && n < 7u) {
      let v25 = results[at / 4u][at % 4u];
      b2[batch * 63u + m * 7u + n] = v25;
    }
  }
}
