// map_mul: grid (1, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 60u) { return; }
  let v1 = b0[i];
  let v2 = b1[(i % 5u)];
  let v3 = (v1 * v2);
  b2[i] = v3;
}
