// map_sin_exp_mul: grid (32, 1, 1), writes b1, b2, b3
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
@group(0) @binding(4) var<uniform> numbers: array<vec4<u32>, 1>;
fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn p_exp(x: f32) -> f32 { return select(exp(x), x, p_isnan(x)); }
fn p_mulhi(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let left = (a >> 16u) * (b & 0xffffu);
  let right = (a & 0xffffu) * (b >> 16u);
  let middle = (low >> 16u) + (left & 0xffffu) + (right & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (left >> 16u) + (right >> 16u) + (middle >> 16u);
}
var<private> two_over_pi: array<u32, 7> = array<u32, 7>(
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
}
var<private> p_bits: vec2u = vec2u(0x7f800000u, 0x7fc00000u);
fn p_nan() -> f32 { return bitcast<f32>(p_bits.y); }
fn p_isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn p_sincos(x: f32) -> vec2f {
  if (p_isnan(x) || p_isinf(x)) { return vec2f(p_nan(), p_nan()); }
  let q = p_quadrant(x);
  let z = q.x * q.x;
  let s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * q.x + q.x;
  let c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
  let odd = q.y == 1.0 || q.y == 3.0;
  let sine = select(s, c, odd) * select(1.0, -1.0, q.y >= 2.0) * select(1.0, -1.0, x < 0.0);
  let cosine = select(c, s, odd) * select(1.0, -1.0, q.y == 1.0 || q.y == 2.0);
  return vec2f(sine, cosine);
}
fn p_sin(x: f32) -> f32 { return p_sincos(x).x; }
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  let group = w.x;
  let i = group * 256u + lane;
  if (i >= 8192u) { return; }
  let v1 = b0[i];
  let v2 = p_sin(v1);
  let v3 = p_exp(v1);
  let v4 = (v1 * bitcast<f32>(numbers[0u].x));
  b1[i] = v2;
  b2[i] = v3;
  b3[i] = v4;
}
