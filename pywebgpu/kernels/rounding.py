"""WGSL functions that bring a float32 to what fewer bits can hold, and to those bits. Part of the prelude."""

TEXTS = (
    # Without conditions: epilogues of products on subgroup matrices round each result several times.
    """fn p_half(x: f32) -> f32 {
  let b = bitcast<u32>(x);
  let size = b & 0x7fffffffu;
  let near = (b + 0xfffu + ((b >> 13u) & 1u)) & 0xffffe000u;
  let small = bitcast<u32>(round(x * 16777216.0) * 5.9604644775390625e-08);
  let large = (b & 0x80000000u) | 0x7f800000u;
  let found = select(select(near, small, size < 0x38800000u), large, size >= 0x477ff000u);
  return select(bitcast<f32>(found), x, size >= 0x7f800000u);
}""",
    """fn p_bfloat(x: f32) -> f32 {
  if (p_isnan(x)) { return x; }
  let b = bitcast<u32>(x);
  return bitcast<f32>((b + 0x7fffu + ((b >> 16u) & 1u)) & 0xffff0000u);
}""",
    # The bits of the float16 or bfloat16 that is nearest. pack2x16float may round in another way, or flush what is
    # small, and a driver takes unpack2x16float of it, and f32(f16(x)), for what they are made of.
    """fn p_half_bits(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let size = b & 0x7fffffffu;
  let near = (size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u;
  let found = select(near, u32(round(abs(x) * 16777216.0)), size < 0x38800000u);
  let large = select(0x7c00u, 0x7e00u, size > 0x7f800000u);
  return ((b >> 16u) & 0x8000u) | select(found, large, size >= 0x47800000u);
}""",
    """fn p_bfloat_bits(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  return select((b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u, (b >> 16u) | 0x40u, p_isnan(x));
}""",
)
