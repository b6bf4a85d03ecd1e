// map_mul_add: grid (1, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<u32>;
@group(0) @binding(1) var<storage, read> b1: array<u32>;
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
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
fn p_half_bits(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let size = b & 0x7fffffffu;
  let sign = (b >> 16u) & 0x8000u;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size >= 0x47800000u) { return sign | 0x7c00u; }
  if (size < 0x38800000u) { return sign | u32(abs(x) * 16777216.0); }
  return sign | ((size - 0x38000000u) >> 13u);
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  var word1 = 0u;
  let word = group * 256u + lane;
  if (word >= 50u) { return; }
  for (var j = 0u; j < 2u; j++) {
    let i = word * 2u + j;
    let v2 = b0[word];
    let v3 = unpack2x16float(v2 >> (j * 16u)).x;
    let v4 = b1[word];
    let v5 = unpack2x16float(v4 >> (j * 16u)).x;
    let v6 = p_half((v3 * v5));
    let v7 = p_half((v6 + bitcast<f32>(numbers[0u].x)));
    word1 |= (p_half_bits(v7) << (j * 16u));
    if (j == 1u) {
      b2[word] = word1;
      word1 = 0u;
    }
  }
}
