// rows_sum: grid (8, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
var<workgroup> shared_f32_0: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 8u + lane % 8u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane / 8u;
  var acc1 = 0.0;
  for (var column = position; column < 300u; column += 32u) {
    let v2 = b0[column * 64u + row];
    acc1 = (acc1 + v2);
  }
  shared_f32_0[lane] = acc1;
  workgroupBarrier();
  for (var step = 16u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v3 = shared_f32_0[lane + step * 8u];
      acc1 = (acc1 + v3);
      shared_f32_0[lane] = acc1;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 8u];
  workgroupBarrier();
  let v4 = acc1;
  if (inside && position == 0u) {
    b1[row] = v4;
  }
}
