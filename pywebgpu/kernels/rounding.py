"""WGSL functions that bring a float32 to what fewer bits can hold, and to those bits. Part of the prelude."""

TEXTS = (
    """fn p_half(x: f32) -> f32 {
  if (p_isnan(x) || p_isinf(x)) { return x; }
  if (abs(x) >= 65520.0) { return select(p_inf(), -p_inf(), x < 0.0); }
  if (abs(x) < 6.103515625e-05) { return round(x * 16777216.0) * 5.9604644775390625e-08; }
  let b = bitcast<u32>(x);
  return bitcast<f32>((b + 0xfffu + ((b >> 13u) & 1u)) & 0xffffe000u);
}""",
    """fn p_bfloat(x: f32) -> f32 {
  if (p_isnan(x)) { return x; }
  let b = bitcast<u32>(x);
  return bitcast<f32>((b + 0x7fffu + ((b >> 16u) & 1u)) & 0xffff0000u);
}""",
    # The bits of what a float16 or a bfloat16 can hold. pack2x16float may round, or flush what is small.
    """fn p_half_bits(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let size = b & 0x7fffffffu;
  let sign = (b >> 16u) & 0x8000u;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size >= 0x47800000u) { return sign | 0x7c00u; }
  if (size < 0x38800000u) { return sign | u32(abs(x) * 16777216.0); }
  return sign | ((size - 0x38000000u) >> 13u);
}""",
    """fn p_bfloat_bits(x: f32) -> u32 {
  let b = bitcast<u32>(x) >> 16u;
  return select(b, b | 0x40u, p_isnan(x));
}""",
)
