// map_write_slice: grid (1, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 64u) { return; }
  var v1: f32;
  if (((i / 8u) - 2u <= 1u && (i % 8u) <= 6u) && (i % 8u) % 2u == 0u) {
    let v2 = b0[(i / 2u) - 8u];
    v1 = v2;
  }
  else {
    let v3 = b1[i];
    v1 = v3;
  }
  b2[i] = v1;
}
