// map_mul_add: grid (1, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
@group(0) @binding(3) var<uniform> numbers: array<vec4<u32>, 1>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
var<private> p_bits: vec2u = vec2u(0x7f800000u, 0x7fc00000u);
fn p_inf() -> f32 { return bitcast<f32>(p_bits.x); }
fn p_half(x: f32) -> f32 {
  if (p_isnan(x) || p_isinf(x)) { return x; }
  if (abs(x) >= 65520.0) { return select(p_inf(), -p_inf(), x < 0.0); }
  if (abs(x) < 6.103515625e-05) { return round(x * 16777216.0) * 5.9604644775390625e-08; }
  let b = bitcast<u32>(x);
  return bitcast<f32>((b + 0xfffu + ((b >> 13u) & 1u)) & 0xffffe000u);
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 100u) { return; }
  let v1 = b0[i];
  let v2 = b1[i];
  let v3 = p_half((v1 * v2));
  let v4 = p_half((v3 + bitcast<f32>(numbers[0u].x)));
  b2[i] = p_half(v4);
}
