"""WGSL that few kernels call: divisors; the logarithm of the gamma function and its derivatives, by series from 6 on,
recurrences and reflection."""

from collections.abc import Iterable

# Sums of 1/n^2k over all n, of which the functions of the circle at pi r are series: engines' sin and tan are good to
# 1e-4 near 0 only.
ZETA = (
    1.6449340668, 1.0823232337, 1.017343062, 1.0040773562, 1.0009945751, 1.0002460866, 1.0000612481, 1.0000152823,
    1.0000038173, 1.000000954,
)  # fmt: skip


def _series(weights: Iterable[float]) -> str:
    """The sum of weights times powers of q, from the highest on."""
    text, *others = [f"{weight:.10f}" for weight in reversed([*weights])]
    for weight in others:
        text = f"({weight} + q * {text})"
    return text


TEXTS = (
    """fn p_gcd_u32(a: u32, b: u32) -> u32 {
  var x = a;
  var y = b;
  while (y != 0u) { let r = x % y; x = y; y = r; }
  return x;
}""",
    "fn p_gcd(a: i32, b: i32) -> i32 { return i32(p_gcd_u32(u32(abs(a)), u32(abs(b)))); }",
    f"""fn p_log_sine(r: f32) -> f32 {{
  let q = r * r;
  return log(3.1415926536 * abs(r)) - q * {_series(zeta / (k + 1) for k, zeta in enumerate(ZETA))};
}}""",
    f"""fn p_cotangent(r: f32) -> f32 {{
  let q = r * r;
  return 1.0 / r - 2.0 * r * {_series(ZETA)};
}}""",
    f"""fn p_cosecant_squared(r: f32) -> f32 {{
  let q = r * r;
  return 1.0 / q + 2.0 * {_series((2 * k + 1) * zeta for k, zeta in enumerate(ZETA))};
}}""",
    """fn p_lgamma(v: f32) -> f32 {
  if (p_isnan(v)) { return v; }
  if (abs(v) > 3.4e38 || (v <= 0.0 && v == floor(v))) { return p_inf(); }
  var x = select(v, 1.0 - v, v < 0.5);
  var f = 1.0;
  while (x < 7.0) { f *= x; x += 1.0; }
  let z = 1.0 / (x * x);
  let r = (x - 0.5) * log(x) - x + 0.9189385332 + (0.0833333333 - z * (0.0027777778 - z * 0.00079365079)) / x - log(f);
  return select(r, 1.1447298858 - p_log_sine(v - round(v)) - r, v < 0.5);
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
  return select(r, r - p_cotangent(v - round(v)), v < 0.5);
}""",
    """fn p_trigamma(v: f32) -> f32 {
  var x = select(v, 1.0 - v, v < 0.5);
  var s = 0.0;
  while (x < 6.0) { s += 1.0 / (x * x); x += 1.0; }
  let z = 1.0 / (x * x);
  let r = 1.0 / x + 0.5 * z + z / x * (0.1666666667 - z * (0.0333333333 - z * 0.0238095238)) + s;
  return select(r, p_cosecant_squared(v - round(v)) - r, v < 0.5);
}""",
)
