"""WGSL that few kernels call: the inverse functions of trigonometric and hyperbolic ones. Part of the prelude."""

TEXTS = (
    """fn p_asinh(x: f32) -> f32 {
  let a = abs(x);
  if (a < 1e-4) { return x; }
  if (a > 1e18) { return sign(x) * (log(a) + 0.6931471805599453); }
  return sign(x) * p_log1p(a + a * a / (1.0 + sqrt(1.0 + a * a)));
}""",
    """fn p_acosh(x: f32) -> f32 {
  if (x < 1.0) { return p_nan(); }
  if (x > 1e18) { return p_log(x) + 0.6931471805599453; }
  let t = x - 1.0;
  return p_log1p(t + sqrt(2.0 * t + t * t));
}""",
    """fn p_atanh(x: f32) -> f32 {
  if (abs(x) > 1.0) { return p_nan(); }
  if (abs(x) == 1.0) { return x * p_inf(); }
  return 0.5 * p_log1p(2.0 * x / (1.0 - x));
}""",
    # Cephes' atanf: reduction at tan(pi/8) and tan(3 pi/8); the builtins of some engines are good to 1e-4 only.
    """fn p_atan(x: f32) -> f32 {
  if (p_isnan(x)) { return x; }
  let a = abs(x);
  var y = 0.0;
  var t = a;
  if (a > 2.414213562373095) {
    y = 1.5707963267948966;
    t = -1.0 / a;
  } else if (a > 0.4142135623730950) {
    y = 0.7853981633974483;
    t = (a - 1.0) / (a + 1.0);
  }
  let z = t * t;
  y += (((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * t + t;
  return select(y, -y, x < 0.0);
}""",
    """fn p_atan2(y: f32, x: f32) -> f32 {
  if (p_isnan(x) || p_isnan(y)) { return p_nan(); }
  let negative = (bitcast<u32>(y) & 0x80000000u) != 0u;
  let behind = (bitcast<u32>(x) & 0x80000000u) != 0u;
  var a = 1.5707963267948966;
  if (y == 0.0) {
    a = 0.0;
  } else if (p_isinf(x) || p_isinf(y)) {
    a = select(select(0.0, 1.5707963267948966, p_isinf(y)), 0.7853981633974483, p_isinf(x) && p_isinf(y));
  } else if (x != 0.0) {
    a = p_atan(abs(y) / abs(x));
  }
  a = select(a, 3.141592653589793 - a, behind);
  return select(a, -a, negative);
}""",
    """fn p_asin(x: f32) -> f32 {
  if (abs(x) > 1.0 || p_isnan(x)) { return p_nan(); }
  return p_atan2(x, sqrt((1.0 - x) * (1.0 + x)));
}""",
    """fn p_acos(x: f32) -> f32 {
  if (abs(x) > 1.0 || p_isnan(x)) { return p_nan(); }
  return p_atan2(sqrt((1.0 - x) * (1.0 + x)), x);
}""",
)
