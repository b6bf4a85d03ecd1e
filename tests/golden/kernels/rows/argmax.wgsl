// rows_argmax: grid (32, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<i32>;
var<private> p_bits: vec2u = vec2u(0x7f800000u, 0x7fc00000u);
fn p_inf() -> f32 { return bitcast<f32>(p_bits.x); }
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
var<workgroup> shared_f32_0: array<f32, 64>;
var<workgroup> shared_position_0: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 2u + lane / 32u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 32u;
  var acc1 = (-p_inf());
  var acc2 = 4294967295u;
  for (var column = position; column < 128u; column += 32u) {
    let v3 = b0[row * 128u + column];
    if (((v3 > acc1 || p_isnan(v3)) && !p_isnan(acc1)) || ((v3 == acc1 || (p_isnan(v3) && p_isnan(acc1))) && column < acc2)) {
      acc1 = v3;
      acc2 = column;
    }
  }
  shared_f32_0[lane] = acc1;
  shared_position_0[lane] = acc2;
  workgroupBarrier();
  for (var step = 16u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v4 = shared_f32_0[lane + step * 1u];
      let v5 = shared_position_0[lane + step * 1u];
      if (((v4 > acc1 || p_isnan(v4)) && !p_isnan(acc1)) || ((v4 == acc1 || (p_isnan(v4) && p_isnan(acc1))) && v5 < acc2)) {
        acc1 = v4;
        acc2 = v5;
      }
      shared_f32_0[lane] = acc1;
      shared_position_0[lane] = acc2;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  acc2 = shared_position_0[lane - position * 1u];
  workgroupBarrier();
  let v6 = i32(acc2);
  if (inside && position == 0u) {
    b1[row] = v6;
  }
}
