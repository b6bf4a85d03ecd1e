"""WGSL functions that expressions of ops may call. A kernel carries those that it calls, and what these call.

WGSL promises neither NaN nor infinity, so both are told by their bits and made from bits that no compiler folds.
"""

import importlib
import re
from functools import lru_cache
from typing import NamedTuple

from pywebgpu.kernels import overflow, rounding, trigonometry
from pywebgpu.ops import polynomials, random


def _polynomial(x: str, factors: tuple[float, ...]) -> str:
    text = f"{factors[0]}"
    for factor in factors[1:]:
        text = f"fma({text}, {x}, {factor})"
    return text


def _erf() -> str:
    return f"""fn p_erf(x: f32) -> f32 {{
  if (p_isnan(x)) {{ return x; }}
  let c = clamp(x, -4.0, 4.0);
  let s = c * c;
  return c * (({_polynomial("s", polynomials.ERF_P)}) / ({_polynomial("s", polynomials.ERF_Q)}));
}}"""


def _erfinv() -> str:
    return f"""fn p_erfinv(x: f32) -> f32 {{
  if (abs(x) > 1.0 || p_isnan(x)) {{ return p_nan(); }}
  if (abs(x) == 1.0) {{ return x * p_inf(); }}
  let w = -log((1.0 - x) * (1.0 + x));
  if (w < 5.0) {{
    let c = w - 2.5;
    return x * ({_polynomial("c", polynomials.ERFINV_CENTRE)});
  }}
  let t = sqrt(w) - 3.0;
  return x * ({_polynomial("t", polynomials.ERFINV_TAIL)});
}}"""


def _philox() -> str:
    rounds = "\n".join(
        "  x = vec4u(p_mulhi(M1, x.z) ^ x.y ^ k.x, M1 * x.z, p_mulhi(M0, x.x) ^ x.w ^ k.y, M0 * x.x);"
        + ("" if i == random.ROUNDS - 1 else "\n  k += vec2u(W0, W1);")
        for i in range(random.ROUNDS)
    )
    names = {"M0": random.M0, "M1": random.M1, "W0": random.W0, "W1": random.W1}
    for name, value in names.items():
        rounds = rounds.replace(name, f"{value:#x}u")
    return f"""fn p_philox4(block: u32, k0: u32, k1: u32, stream: u32, draw: u32) -> vec4u {{
  var x = vec4u(block, draw, stream, 0u);
  var k = vec2u(k0, k1);
{rounds}
  return x;
}}"""


_TEXTS = (
    "var<private> p_bits: vec2u = vec2u(0x7f800000u, 0x7fc00000u);",
    "fn p_inf() -> f32 { return bitcast<f32>(p_bits.x); }",
    "fn p_nan() -> f32 { return bitcast<f32>(p_bits.y); }",
    "fn p_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }",
    "fn p_isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }",
    """fn p_max(a: f32, b: f32) -> f32 {
  return select(select(max(a, b), b, p_isnan(b)), a, p_isnan(a));
}""",
    """fn p_min(a: f32, b: f32) -> f32 {
  return select(select(min(a, b), b, p_isnan(b)), a, p_isnan(a));
}""",
    "fn p_sign(x: f32) -> f32 { return select(sign(x), 0.0, p_isnan(x)); }",
    # By magnitudes: some drivers take the remainder of negative numbers as if they had no sign.
    """fn p_divide(a: i32, b: i32) -> i32 {
  let q = i32(u32(abs(a)) / max(u32(abs(b)), 1u));
  return select(q, -q, (a < 0) != (b < 0));
}""",
    """fn p_floordiv(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  let q = p_divide(a, b);
  return q - select(0, 1, (a - q * b != 0) && ((a < 0) != (b < 0)));
}""",
    "fn p_quotient(a: u32, b: u32) -> u32 { return a / max(b, 1u); }",
    "fn p_fmod(a: i32, b: i32) -> i32 { return a - p_divide(a, b) * b; }",
    "fn p_rest(a: u32, b: u32) -> u32 { return a % max(b, 1u); }",
    """fn p_modulo(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  let r = a - p_divide(a, b) * b;
  return r + select(0, b, r != 0 && ((r < 0) != (b < 0)));
}""",
    # Long division of the mantissas, eight bits a step: exact, where a - trunc(a / b) * b is not.
    """fn p_fmod_f32(a: f32, b: f32) -> f32 {
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  if (x >= 0x7f800000u || y == 0u || y > 0x7f800000u) { return p_nan(); }
  if (x < y) { return a; }
  let e = max(y >> 23u, 1u);
  let n = (y & 0x7fffffu) | select(0u, 0x800000u, y >= 0x800000u);
  var m = ((x & 0x7fffffu) | select(0u, 0x800000u, x >= 0x800000u)) % n;
  var left = max(x >> 23u, 1u) - e;
  while (left > 0u && m > 0u) {
    let s = min(left, 8u);
    m = (m << s) % n;
    left -= s;
  }
  let sign = bitcast<u32>(a) & 0x80000000u;
  if (m == 0u) { return bitcast<f32>(sign); }
  let up = min(countLeadingZeros(m) - 8u, e - 1u);
  return bitcast<f32>(((m << up) + ((e - up - 1u) << 23u)) | sign);
}""",
    """fn p_floordiv_f32(a: f32, b: f32) -> f32 {
  if (b == 0.0) { return a * select(p_inf(), -p_inf(), (bitcast<u32>(b) & 0x80000000u) != 0u); }
  let r = p_fmod_f32(a, b);
  let q = (a - r) / b;
  let q1 = select(q, q - 1.0, r != 0.0 && (r < 0.0) != (b < 0.0));
  let low = floor(q1);
  return select(low, low + 1.0, q1 - low > 0.5);
}""",
    """fn p_remainder(a: f32, b: f32) -> f32 {
  let r = p_fmod_f32(a, b);
  return select(r, r + b, r != 0.0 && ((r < 0.0) != (b < 0.0)));
}""",
    "fn p_shl_i32(a: i32, b: i32) -> i32 { return select(a << (u32(b) & 31u), 0, b < 0 || b > 31); }",
    "fn p_shr_i32(a: i32, b: i32) -> i32 { return a >> min(u32(b), 31u); }",
    "fn p_shl_u32(a: u32, b: u32) -> u32 { return select(a << (b & 31u), 0u, b > 31u); }",
    "fn p_shr_u32(a: u32, b: u32) -> u32 { return select(a >> (b & 31u), 0u, b > 31u); }",
    """fn p_log(x: f32) -> f32 {
  if (x == 0.0) { return -p_inf(); }
  if (x < 0.0 || p_isnan(x)) { return p_nan(); }
  if (p_isinf(x)) { return x; }
  if (x < 1.1754944e-38) { return log(x * 8388608.0) - 15.942385152878742; }
  return log(x);
}""",
    "fn p_exp(x: f32) -> f32 { return select(exp(x), x, p_isnan(x)); }",
    "fn p_exp2(x: f32) -> f32 { return select(exp2(x), x, p_isnan(x)); }",
    """fn p_expm1(x: f32) -> f32 {
  if (abs(x) > 0.5) { return exp(x) - 1.0; }
  return x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0 *
    (1.0 + x / 8.0)))))));
}""",
    """fn p_log1p(x: f32) -> f32 {
  if (abs(x) > 0.5 || p_isnan(x)) { return p_log(1.0 + x); }
  let s = x / (2.0 + x);
  let z = s * s;
  return 2.0 * s * (1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 +
    z / 13.0))))));
}""",
    """fn p_logaddexp(a: f32, b: f32) -> f32 {
  let high = p_max(a, b);
  let low = min(a, b);
  if (p_isnan(high) || p_isinf(high) || p_isinf(low)) { return high; }
  return high + p_log1p(exp(low - high));
}""",
    """fn p_sigmoid(x: f32) -> f32 {
  if (p_isnan(x)) { return x; }
  return select(1.0 / (1.0 + exp(-max(x, -88.0))), 0.0, x < -88.0);
}""",
    """fn p_tanh(x: f32) -> f32 {
  if (p_isnan(x)) { return x; }
  let e = p_expm1(2.0 * clamp(x, -9.1, 9.1));
  return select(e / (e + 2.0), sign(x) * (1.0 - 2.0 / (exp(2.0 * min(abs(x), 9.1)) + 1.0)), abs(x) > 0.5);
}""",
    """fn p_sinh(x: f32) -> f32 {
  let a = abs(x);
  if (a > 20.0) { return sign(x) * 0.5 * exp(a); }
  let e = p_expm1(a);  // Of |x|: below 0 it goes to -1, and e + 1 would keep few bits.
  return sign(x) * 0.5 * (e + e / (e + 1.0));
}""",
    """fn p_cosh(x: f32) -> f32 {
  let e = p_exp(abs(x));
  return 0.5 * e + 0.5 / e;
}""",
    """fn p_hypot(x: f32, y: f32) -> f32 {
  let a = abs(x);
  let b = abs(y);
  if (p_isinf(a) || p_isinf(b)) { return p_inf(); }
  let m = p_max(a, b);
  if (m == 0.0 || p_isnan(m)) { return m; }
  let r = min(a, b) / m;
  return m * sqrt(1.0 + r * r);
}""",
    *trigonometry.TEXTS,
    _erf(),
    _erfinv(),
    """fn p_pow_f32(a: f32, b: f32) -> f32 {
  if (b == 0.0 || a == 1.0) { return 1.0; }
  if (p_isnan(a) || p_isnan(b)) { return p_nan(); }
  let whole = floor(b) == b;
  let odd = whole && abs(b) < 16777216.0 && (i32(b) & 1) != 0;
  if (a == 0.0) {
    let m = select(0.0, p_inf(), b < 0.0);
    return select(m, -m, odd && (bitcast<u32>(a) & 0x80000000u) != 0u);
  }
  if (whole && abs(b) <= 16.0) {
    var base = select(a, 1.0 / a, b < 0.0);
    var n = u32(abs(b));
    var r = 1.0;
    while (n > 0u) {
      if ((n & 1u) != 0u) { r *= base; }
      base *= base;
      n >>= 1u;
    }
    return r;
  }
  if (a < 0.0 && !whole && !p_isinf(a) && !p_isinf(b)) { return p_nan(); }
  if (p_isinf(b)) {
    if (abs(a) == 1.0) { return 1.0; }
    return select(0.0, p_inf(), (abs(a) > 1.0) == (b > 0.0));
  }
  if (p_isinf(a)) {
    let m = select(p_inf(), 0.0, b < 0.0);
    return select(m, -m, a < 0.0 && odd);
  }
  var m = pow(abs(a), b);
  if (abs(a) < 1.1754944e-38) { m = pow(abs(a) * 8388608.0, b) * exp2(-23.0 * b); }
  return select(m, -m, a < 0.0 && odd);
}""",
    # Dekker's: fma is two operations on some engines.
    """fn p_product_error(a: f32, b: f32, product: f32) -> f32 {
  let first = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  let second = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let left = a - first;
  let right = b - second;
  return ((first * second - product) + first * right + left * second) + left * right;
}""",
    """fn p_pow_i32(a: i32, b: i32) -> i32 {
  if (b < 0) { return select(0, select(1, select(1, -1, (b & 1) != 0), a == -1), abs(a) == 1); }
  var base = a;
  var n = b;
  var r = 1;
  while (n > 0) {
    if ((n & 1) != 0) { r *= base; }
    base *= base;
    n >>= 1u;
  }
  return r;
}""",
    "fn p_pow_u32(a: u32, b: u32) -> u32 { return u32(p_pow_i32(i32(a), i32(b))); }",
    # The first bad index is kept for the error that the next read raises.
    """fn p_index_fault(i: i32, n: i32) -> i32 {
  if (atomicExchange(&fault[0], 1u) == 0u) {
    atomicStore(&fault[1], u32(i));
    atomicStore(&fault[2], u32(n));
  }
  return 0;
}""",
    """fn p_index(i: i32, n: i32) -> i32 {
  if (i < -n || i >= n) { return p_index_fault(i, n); }
  return select(i, i + n, i < 0);
}""",
    """fn p_index_strict(i: i32, n: i32) -> i32 {
  if (i < 0 || i >= n) { return p_index_fault(i, n); }
  return i;
}""",
    *overflow.TEXTS,
    """fn p_mulhi(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let left = (a >> 16u) * (b & 0xffffu);
  let right = (a & 0xffffu) * (b >> 16u);
  let middle = (low >> 16u) + (left & 0xffffu) + (right & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (left >> 16u) + (right >> 16u) + (middle >> 16u);
}""",
    _philox(),
    """fn p_philox(i: u32, k0: u32, k1: u32, stream: u32, draw: u32) -> u32 {
  return p_philox4(i / 4u, k0, k1, stream, draw)[i % 4u];
}""",
    # Rounded by bits: quantizeToF16 flushes small numbers on some engines, and makes 65519 infinite on others.
    *rounding.TEXTS,
)

_NAME, _DECLARED = re.compile(r"\bp_\w+"), re.compile(r"(?:fn|var<private>) (p_\w+)")


class Helper(NamedTuple):
    """calls: names of other helpers. faults: whether it uses the device's own words."""

    text: str
    calls: tuple[str, ...]
    faults: bool


def names_in(text: str) -> tuple[str, ...]:
    """The helpers that a piece of WGSL names. Asked once for each piece, not for each kernel."""
    return tuple(sorted(set(_NAME.findall(text))))


def _helper(text: str) -> tuple[str, Helper]:
    name = _DECLARED.findall(text)[0]
    return name, Helper(text, tuple(other for other in names_in(text) if other != name), "fault[" in text)


RARE = "gamma", "inverses", "marks"  # modules of those that few kernels call
HELPERS = dict(map(_helper, _TEXTS))


def find(name: str) -> Helper:
    """The helper of a name; those that few kernels call are read when one does."""
    if name not in HELPERS:
        for module in RARE:
            HELPERS.update(map(_helper, importlib.import_module(f"pywebgpu.kernels.{module}").TEXTS))
    return HELPERS[name]


@lru_cache(1024)
def declarations(names: frozenset[str]) -> tuple[str, bool]:
    """The text of helpers and of those that they call, callees first; whether one uses the device's own words."""
    order: dict[str, Helper] = {}
    stack = [(name, False) for name in sorted(names, reverse=True)]
    while stack:
        name, ready = stack.pop()
        if ready:
            order[name] = find(name)
        elif name not in order:
            stack.append((name, True))
            stack.extend((callee, False) for callee in find(name).calls)
    return "".join(helper.text + "\n" for helper in order.values()), any(helper.faults for helper in order.values())
