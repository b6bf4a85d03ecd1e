// rows_argmax: grid (16, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b1: array<i32>;
var<private> p_bits: vec2u = vec2u(0x7f800000u, 0x7fc00000u);
fn p_inf() -> f32 { return bitcast<f32>(p_bits.x); }
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
var<workgroup> shared_f32_0: array<f32, 64>;
var<workgroup> shared_position_0: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 4u + lane / 16u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 16u;
  var acc1 = (-p_inf());
  var acc2 = 4294967295u;
  let q0 = b0[row * 32u + position];
  let v3 = q0.x;
  let v4 = q0.y;
  let v5 = q0.z;
  let v6 = q0.w;
  let q1 = b0[row * 32u + position + 16u];
  let v7 = q1.x;
  let v8 = q1.y;
  let v9 = q1.z;
  let v10 = q1.w;
  if (((v3 > acc1 || p_isnan(v3)) && !p_isnan(acc1)) || ((v3 == acc1 || (p_isnan(v3) && p_isnan(acc1))) && position * 4u < acc2)) {
    acc1 = v3;
    acc2 = position * 4u;
  }
  if (((v4 > acc1 || p_isnan(v4)) && !p_isnan(acc1)) || ((v4 == acc1 || (p_isnan(v4) && p_isnan(acc1))) && position * 4u + 1u < acc2)) {
    acc1 = v4;
    acc2 = position * 4u + 1u;
  }
  if (((v5 > acc1 || p_isnan(v5)) && !p_isnan(acc1)) || ((v5 == acc1 || (p_isnan(v5) && p_isnan(acc1))) && position * 4u + 2u < acc2)) {
    acc1 = v5;
    acc2 = position * 4u + 2u;
  }
  if (((v6 > acc1 || p_isnan(v6)) && !p_isnan(acc1)) || ((v6 == acc1 || (p_isnan(v6) && p_isnan(acc1))) && position * 4u + 3u < acc2)) {
    acc1 = v6;
    acc2 = position * 4u + 3u;
  }
  if (((v7 > acc1 || p_isnan(v7)) && !p_isnan(acc1)) || ((v7 == acc1 || (p_isnan(v7) && p_isnan(acc1))) && position * 4u + 64u < acc2)) {
    acc1 = v7;
    acc2 = position * 4u + 64u;
  }
  if (((v8 > acc1 || p_isnan(v8)) && !p_isnan(acc1)) || ((v8 == acc1 || (p_isnan(v8) && p_isnan(acc1))) && position * 4u + 65u < acc2)) {
    acc1 = v8;
    acc2 = position * 4u + 65u;
  }
  if (((v9 > acc1 || p_isnan(v9)) && !p_isnan(acc1)) || ((v9 == acc1 || (p_isnan(v9) && p_isnan(acc1))) && position * 4u + 66u < acc2)) {
    acc1 = v9;
    acc2 = position * 4u + 66u;
  }
  if (((v10 > acc1 || p_isnan(v10)) && !p_isnan(acc1)) || ((v10 == acc1 || (p_isnan(v10) && p_isnan(acc1))) && position * 4u + 67u < acc2)) {
    acc1 = v10;
    acc2 = position * 4u + 67u;
  }
  shared_f32_0[lane] = acc1;
  shared_position_0[lane] = acc2;
  workgroupBarrier();
  for (var step = 8u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v11 = shared_f32_0[lane + step * 1u];
      let v12 = shared_position_0[lane + step * 1u];
      if (((v11 > acc1 || p_isnan(v11)) && !p_isnan(acc1)) || ((v11 == acc1 || (p_isnan(v11) && p_isnan(acc1))) && v12 < acc2)) {
        acc1 = v11;
        acc2 = v12;
      }
      shared_f32_0[lane] = acc1;
      shared_position_0[lane] = acc2;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  acc2 = shared_position_0[lane - position * 1u];
  workgroupBarrier();
  let v13 = i32(acc2);
  if (inside && position == 0u) {
    b1[row] = v13;
  }
}
