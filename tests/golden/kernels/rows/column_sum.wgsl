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
  let inside_9 = position + 288u < 300u;
  let strip_9 = min(position + 288u, 299u);
  let v2 = b0[position * 64u + row];
  let v3 = b0[position * 64u + row + 2048u];
  let v4 = b0[position * 64u + row + 4096u];
  let v5 = b0[position * 64u + row + 6144u];
  let v6 = b0[position * 64u + row + 8192u];
  let v7 = b0[position * 64u + row + 10240u];
  let v8 = b0[position * 64u + row + 12288u];
  let v9 = b0[position * 64u + row + 14336u];
  let v10 = b0[position * 64u + row + 16384u];
  let v11 = b0[strip_9 * 64u + row];
  acc1 = (acc1 + (v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9 + v10));
  if (inside_9) {
    acc1 = (acc1 + v11);
  }
  shared_f32_0[lane] = acc1;
  workgroupBarrier();
  for (var step = 16u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v12 = shared_f32_0[lane + step * 8u];
      acc1 = (acc1 + v12);
      shared_f32_0[lane] = acc1;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 8u];
  workgroupBarrier();
  let v13 = acc1;
  if (inside && position == 0u) {
    b1[row] = v13;
  }
}
