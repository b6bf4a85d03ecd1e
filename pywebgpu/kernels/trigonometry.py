"""WGSL functions of angles: the builtins of some engines are good to four digits only. Part of the prelude."""

TEXTS = (
    # x = quadrant * pi/2 + r with |r| <= pi/4: Cody and Waite's split where it is exact, else Payne and Hanek's product
    # of the mantissa with 96 bits of 2/pi. The builtins of some engines are good to 2e-4 only, and not far from 0.
    """var<private> two_over_pi: array<u32, 7> = array<u32, 7>(
  0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u, 0u);
fn p_quadrant(x: f32) -> vec2f {
  let a = abs(x);
  if (a < 30000.0) {
    let n = round(a * 0.6366197723675814);
    return vec2f(((a - n * 1.5703125) - n * 4.837512969970703e-4) - n * 7.549789954891882e-8, n % 4.0);
  }
  let bits = bitcast<u32>(a);
  let e = (bits >> 23u) - 126u;
  let m = (bits << 8u) | 0x80000000u;
  let i = e >> 5u;
  let s = e & 31u;
  var high = select(0u, two_over_pi[max(i, 1u) - 1u], i > 0u);
  var middle = two_over_pi[i];
  var low = two_over_pi[i + 1u];
  if (s > 0u) {
    high = (high << s) | (middle >> (32u - s));
    middle = (middle << s) | (low >> (32u - s));
    low = (low << s) | (two_over_pi[i + 2u] >> (32u - s));
  }
  let product = m * middle;
  let below = product + p_mulhi(m, low);
  let above = m * high + p_mulhi(m, middle) + select(0u, 1u, below < product);
  var q = above >> 30u;
  var rest = i32(above & 0x3fffffffu);
  if ((above & 0x20000000u) != 0u) {
    rest -= 0x40000000;
    q += 1u;
  }
  return vec2f((f32(rest) + f32(below) * 2.3283064365386963e-10) * 1.462918079267159e-9, f32(q % 4u));
}""",
    """fn p_sincos(x: f32) -> vec2f {
  if (p_isnan(x) || p_isinf(x)) { return vec2f(p_nan(), p_nan()); }
  let q = p_quadrant(x);
  let z = q.x * q.x;
  let s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * q.x + q.x;
  let c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
  let odd = q.y == 1.0 || q.y == 3.0;
  let sine = select(s, c, odd) * select(1.0, -1.0, q.y >= 2.0) * select(1.0, -1.0, x < 0.0);
  let cosine = select(c, s, odd) * select(1.0, -1.0, q.y == 1.0 || q.y == 2.0);
  return vec2f(sine, cosine);
}""",
    "fn p_sin(x: f32) -> f32 { return p_sincos(x).x; }",
    "fn p_cos(x: f32) -> f32 { return p_sincos(x).y; }",
    """fn p_tan(x: f32) -> f32 {
  let p = p_sincos(x);
  return p.x / p.y;
}""",
)
