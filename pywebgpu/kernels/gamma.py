"""WGSL of the logarithm of the gamma function and its derivatives: series from 6 on, recurrences and reflection."""

TEXTS = (
    """fn p_lgamma(v: f32) -> f32 {
  if (p_isnan(v)) { return v; }
  if (abs(v) > 3.4e38 || (v <= 0.0 && v == floor(v))) { return p_inf(); }
  var x = select(v, 1.0 - v, v < 0.5);
  var f = 1.0;
  while (x < 7.0) { f *= x; x += 1.0; }
  let z = 1.0 / (x * x);
  let r = (x - 0.5) * log(x) - x + 0.9189385332 + (0.0833333333 - z * (0.0027777778 - z * 0.00079365079)) / x - log(f);
  return select(r, 1.1447298858 - log(abs(sin(3.1415926536 * (v - round(v))))) - r, v < 0.5);
}""",
    """fn p_digamma(v: f32) -> f32 {
  if (p_isnan(v) || abs(v) > 3.4e38) { return select(v, p_nan(), v < 0.0); }
  if (v == 0.0) { return select(-p_inf(), p_inf(), (bitcast<u32>(v) >> 31u) == 1u); }
  if (v < 0.0 && v == floor(v)) { return p_nan(); }
  var x = select(v, 1.0 - v, v < 0.5);
  var s = 0.0;
  while (x < 6.0) { s += 1.0 / x; x += 1.0; }
  let z = 1.0 / (x * x);
  let r = log(x) - 0.5 / x - z * (0.0833333333 - z * (0.0083333333 - z * 0.0039682540)) - s;
  return select(r, r - 3.1415926536 / tan(3.1415926536 * (v - round(v))), v < 0.5);
}""",
    """fn p_trigamma(v: f32) -> f32 {
  var x = select(v, 1.0 - v, v < 0.5);
  var s = 0.0;
  while (x < 6.0) { s += 1.0 / (x * x); x += 1.0; }
  let z = 1.0 / (x * x);
  let r = 1.0 / x + 0.5 * z + z / x * (0.1666666667 - z * (0.0333333333 - z * 0.0238095238)) + s;
  let m = 3.1415926536 / sin(3.1415926536 * (v - round(v)));
  return select(r, m * m - r, v < 0.5);
}""",
)
