// map_add: grid (32769, 2, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
@group(0) @binding(2) var<uniform> numbers: array<vec4<u32>, 1>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x + w.y * 32769u;
  if (group >= 65537u) { return; }
  let i = group * 256u + lane;
  if (i >= 16777217u) { return; }
  let v1 = b0[i];
  let v2 = (v1 + bitcast<f32>(numbers[0u].x));
  b1[i] = v2;
}
