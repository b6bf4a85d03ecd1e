// map_mul_add: grid (1, 1, 1), writes b2
@group(0) @binding(0) var<storage, read> b0: array<u32>;
@group(0) @binding(1) var<storage, read> b1: array<u32>;
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
@group(0) @binding(3) var<uniform> numbers: array<vec4<u32>, 1>;
fn p_half(x: f32) -> f32 {
  let b = bitcast<u32>(x);
  let size = b & 0x7fffffffu;
  let near = (b + 0xfffu + ((b >> 13u) & 1u)) & 0xffffe000u;
  let small = bitcast<u32>(round(x * 16777216.0) * 5.9604644775390625e-08);
  let large = (b & 0x80000000u) | 0x7f800000u;
  let found = select(select(near, small, size < 0x38800000u), large, size >= 0x477ff000u);
  return select(bitcast<f32>(found), x, size >= 0x7f800000u);
}
fn p_half_bits(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let size = b & 0x7fffffffu;
  let near = (size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u;
  let found = select(near, u32(round(abs(x) * 16777216.0)), size < 0x38800000u);
  let large = select(0x7c00u, 0x7e00u, size > 0x7f800000u);
  return ((b >> 16u) & 0x8000u) | select(found, large, size >= 0x47800000u);
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
