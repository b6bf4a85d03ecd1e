// pack_gaps: grid (1, 1, 1), writes b0
@group(0) @binding(0) var<storage, read_write> b0: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  var gaps = array<vec2<u32>, 1>(vec2<u32>(134u, 58u));
  let gap = gaps[group];
  for (var i = lane; i < gap.y; i += 64u) {
    b0[gap.x + i] = 0.0;
  }
}
