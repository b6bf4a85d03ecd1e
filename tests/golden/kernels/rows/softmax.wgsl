// rows_max_sum: grid (32, 1, 1), writes b1
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_exp(x: f32) -> f32 { return select(exp(x), x, p_isnan(x)); }
var<private> p_bits: vec2u = vec2u(0x7f800000u, 0x7fc00000u);
fn p_inf() -> f32 { return bitcast<f32>(p_bits.x); }
fn p_max(a: f32, b: f32) -> f32 {
  return select(select(max(a, b), b, p_isnan(b)), a, p_isnan(a));
}
var<workgroup> shared_f32_0: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let wanted = group * 2u + lane / 32u;
  let inside = wanted < 64u;
  let row = min(wanted, 63u);
  let position = lane % 32u;
  var acc1 = (-p_inf());
  for (var column = position; column < 128u; column += 32u) {
    let v2 = b0[row * 128u + column];
    acc1 = p_max(acc1, v2);
  }
  shared_f32_0[lane] = acc1;
  workgroupBarrier();
  for (var step = 16u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v3 = shared_f32_0[lane + step * 1u];
      acc1 = p_max(acc1, v3);
      shared_f32_0[lane] = acc1;
    }
    workgroupBarrier();
  }
  acc1 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v4 = acc1;
  var acc5 = 0.0;
  for (var column = position; column < 128u; column += 32u) {
    let v6 = b0[row * 128u + column];
    let v7 = (v6 - v4);
    let v8 = p_exp(v7);
    acc5 = (acc5 + v8);
  }
  shared_f32_0[lane] = acc5;
  workgroupBarrier();
  for (var step = 16u; step > 0u; step >>= 1u) {
    if (position < step) {
      let v9 = shared_f32_0[lane + step * 1u];
      acc5 = (acc5 + v9);
      shared_f32_0[lane] = acc5;
    }
    workgroupBarrier();
  }
  acc5 = shared_f32_0[lane - position * 1u];
  workgroupBarrier();
  let v10 = acc5;
  if (inside) {
    for (var column = position; column < 128u; column += 32u) {
      let v11 = b0[row * 128u + column];
      let v12 = (v11 - v4);
      let v13 = p_exp(v12);
      let v14 = (v13 / v10);
      b1[row * 128u + column] = v14;
    }
  }
}
