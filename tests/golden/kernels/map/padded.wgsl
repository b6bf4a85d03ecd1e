// map_add: grid (1, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
@group(0) @binding(2) var<uniform> numbers: array<vec4<u32>, 1>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 60u) { return; }
  var v1 = 0.0;
  if ((i % 10u) - 1u <= 6u) {
    let v2 = b0[(i / 10u) * 7u + (i % 10u) - 1u];
    v1 = v2;
  }
  let v3 = (v1 + bitcast<f32>(numbers[0u].x));
  b1[i] = v3;
}
