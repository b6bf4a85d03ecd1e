// rows_argmax: grid (8, 1, 1), writes b1
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
  let wanted = group * 8u + lane / 8u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 8u;
  var acc1 = (-p_inf());
  var acc2 = 4294967295u;
  let q0 = b0[row * 32u + position];
  let v3 = q0.x;
  let v4 = q0.y;
  let v5 = q0.z;
  let v6 = q0.w;
  let q1 = b0[row * 32u + position + 8u];
  let v7 = q1.x;
  let v8 = q1.y;
  let v9 = q1.z;
  let v10 = q1.w;
  let q2 = b0[row * 32u + position + 16u];
  let v11 = q2.x;
  let v12 = q2.y;
  let v13 = q2.z;
  let v14 = q2.w;
  let q3 = b0[row * 32u + position + 24u];
  let v15 = q3.x;
  let v16 = q3.y;
  let v17 = q3.z;
  let v18 = q3.w;
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
  if (((v7 > acc1 || p_isnan(v7)) && !p_isnan(acc1)) || ((v7 == acc1 || (p_isnan(v7) && p_isnan(acc1))) && position * 4u + 32u < acc2)) {
    acc1 = v7;
    acc2 = position * 4u + 32u;
  }
  if (((v8 > acc1 || p_isnan(v8)) && !p_isnan(acc1)) || ((v8 == acc1 || (p_isnan(v8) && p_isnan(acc1))) && position * 4u + 33u < acc2)) {
    acc1 = v8;
    acc2 = position * 4u + 33u;
  }
  if (((v9 > acc1 || p_isnan(v9)) && !p_isnan(acc1)) || ((v9 == acc1 || (p_isnan(v9) && p_isnan(acc1))) && position * 4u + 34u < acc2)) {
    acc1 = v9;
    acc2 = position * 4u + 34u;
  }
  if (((v10 > acc1 || p_isnan(v10)) && !p_isnan(acc1)) || ((v10 == acc1 || (p_isnan(v10) && p_isnan(acc1))) && position * 4u + 35u < acc2)) {
    acc1 = v10;
    acc2 = position * 4u + 35u;
  }
  if (((v11 > acc1 || p_isnan(v11)) && !p_isnan(acc1)) || ((v11 == acc1 || (p_isnan(v11) && p_isnan(acc1))) && position * 4u + 64u < acc2)) {
    acc1 = v11;
    acc2 = position * 4u + 64u;
  }
  if (((v12 > acc1 || p_isnan(v12)) && !p_isnan(acc1)) || ((v12 == acc1 || (p_isnan(v12) && p_isnan(acc1))) && position * 4u + 65u < acc2)) {
    acc1 = v12;
    acc2 = position * 4u + 65u;
  }
  if (((v13 > acc1 || p_isnan(v13)) && !p_isnan(acc1)) || ((v13 == acc1 || (p_isnan(v13) && p_isnan(acc1))) && position * 4u + 66u < acc2)) {
    acc1 = v13;
    acc2 = position * 4u + 66u;
  }
  if (((v14 > acc1 || p_isnan(v14)) && !p_isnan(acc1)) || ((v14 == acc1 || (p_isnan(v14) && p_isnan(acc1))) && position * 4u + 67u < acc2)) {
    acc1 = v14;
    acc2 = position * 4u + 67u;
  }
  if (((v15 > acc1 || p_isnan(v15)) && !p_isnan(acc1)) || ((v15 == acc1 || (p_isnan(v15) && p_isnan(acc1))) && position * 4u + 96u < acc2)) {
    acc1 = v15;
    acc2 = position * 4u + 96u;
  }
  if (((v16 > acc1 || p_isnan(v16)) && !p_isnan(acc1)) || ((v16 == acc1 || (p_isnan(v16) && p_isnan(acc1))) && position * 4u + 97u < acc2)) {
    acc1 = v16;
    acc2 = position * 4u + 97u;
  }
  if (((v17 > acc1 || p_isnan(v17)) && !p_isnan(acc1)) || ((v17 == acc1 || (p_isnan(v17) && p_isnan(acc1))) && position * 4u + 98u < acc2)) {
    acc1 = v17;
    acc2 = position * 4u + 98u;
  }
  if (((v18 > acc1 || p_isnan(v18)) && !p_isnan(acc1)) || ((v18 == acc1 || (p_isnan(v18) && p_isnan(acc1))) && position * 4u + 99u < acc2)) {
    acc1 = v18;
    acc2 = position * 4u + 99u;
  }
  shared_f32_0[lane] = acc1;
  shared_position_0[lane] = acc2;
  workgroupBarrier();
  for (var step = 4u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v19 = shared_f32_0[lane + step * 1u];
      let v20 = shared_position_0[lane + step * 1u];
      if (((v19 > acc1 || p_isnan(v19)) && !p_isnan(acc1)) || ((v19 == acc1 || (p_isnan(v19) && p_isnan(acc1))) && v20 < acc2)) {
        acc1 = v19;
        acc2 = v20;
      }
      shared_f32_0[lane] = acc1;
      shared_position_0[lane] = acc2;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  acc2 = shared_position_0[lane - position * 1u];
  workgroupBarrier();
  let v21 = i32(acc2);
  if (inside && position == 0u) {
    b1[row] = v21;
  }
}
