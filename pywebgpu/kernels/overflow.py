"""WGSL functions of int64 in 32 bits, which leave a note where that does not hold the result: see ops/checks.py. Part
of the prelude."""


def _note(name: str) -> str:
    first, second = (int.from_bytes(name.encode().ljust(8, b"\0")[start : start + 4], "little") for start in (0, 4))
    return f"p_overflow({first:#x}u, {second:#x}u);"


TEXTS = (
    # A note has the op's name, four letters a word, then a 1.
    """fn p_overflow(first: u32, second: u32) {
  if (atomicExchange(&fault[0], 1u) == 0u) {
    atomicStore(&fault[1], first);
    atomicStore(&fault[2], second);
    atomicStore(&fault[3], 1u);
  }
}""",
    f"""fn p_add_checked(a: i32, b: i32) -> i32 {{
  let r = a + b;
  if (((a ^ r) & (b ^ r)) < 0) {{ {_note("add")} }}
  return r;
}}""",
    f"""fn p_sub_checked(a: i32, b: i32) -> i32 {{
  let r = a - b;
  if (((a ^ b) & (a ^ r)) < 0) {{ {_note("sub")} }}
  return r;
}}""",
    # A product in float32 is off by less than the 4096 between its bound and 2^31, and takes a third of the time.
    """fn p_product_fits(a: i32, b: i32) -> bool {
  if (abs(f32(a) * f32(b)) < 2147479552.0) { return true; }
  let x = u32(abs(a));
  let y = u32(abs(b));
  return p_mulhi(x, y) == 0u && x * y <= select(0x7fffffffu, 0x80000000u, (a < 0) != (b < 0));
}""",
    f"""fn p_mul_checked(a: i32, b: i32) -> i32 {{
  if (!p_product_fits(a, b)) {{ {_note("mul")} }}
  return a * b;
}}""",
    f"""fn p_neg_checked(a: i32) -> i32 {{
  if (bitcast<u32>(a) == 0x80000000u) {{ {_note("neg")} }}
  return -a;
}}""",
    f"""fn p_abs_checked(a: i32) -> i32 {{
  if (bitcast<u32>(a) == 0x80000000u) {{ {_note("abs")} }}
  return abs(a);
}}""",
    f"""fn p_shl_checked(a: i32, b: i32) -> i32 {{
  let r = p_shl_i32(a, b);
  if (a != 0 && b >= 0 && b < 64 && (b > 31 || (r >> (u32(b) & 31u)) != a)) {{ {_note("shift")} }}
  return r;
}}""",
    f"""fn p_floordiv_checked(a: i32, b: i32) -> i32 {{
  if (bitcast<u32>(a) == 0x80000000u && b == -1) {{ {_note("div")} }}
  return p_floordiv(a, b);
}}""",
    f"""fn p_pow_checked(a: i32, b: i32) -> i32 {{
  var base = a;
  var n = b;
  var r = 1;
  var fits = true;
  while (n > 0) {{
    if ((n & 1) != 0) {{
      fits = fits && p_product_fits(r, base);
      r *= base;
    }}
    n >>= 1u;
    fits = fits && (n == 0 || p_product_fits(base, base));
    base *= base;
  }}
  if (!fits) {{ {_note("pow")} }}
  return select(r, p_pow_i32(a, b), b < 0);
}}""",
    # Infinities and NaN are no number of any size: PyTorch does not say either what they become.
    f"""fn p_whole_f32(x: f32) -> i32 {{
  let is_finite = (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
  if (is_finite && !(x >= -2147483648.0 && x < 2147483648.0)) {{ {_note("cast")} }}
  return i32(x);
}}""",
    f"""fn p_whole_u32(x: u32) -> i32 {{
  if (x > 0x7fffffffu) {{ {_note("cast")} }}
  return i32(x);
}}""",
    f"""fn p_sum_checked(total: i32, high: i32, shift: u32, count: i32) -> i32 {{
  let apart = (total >> shift) - high;
  if (apart < 0 || apart >= count) {{ {_note("sum")} }}
  return total;
}}""",
    f"""fn p_long_sum_checked(total: i32, top: i32, middle: i32, low: i32, count: i32) -> i32 {{
  let carried = middle + (low >> 8u);
  let high = top + (carried >> 8u);
  let apart = (total >> 8u) - (((clamp(high, -512, 512) << 16u) | ((carried & 255) << 8u)) | (low & 255));
  if (apart < 0 || apart >= count) {{ {_note("sum")} }}
  return total;
}}""",
    *(
        f"""fn p_{name}_near(value: i32, size: f32, limit: f32) -> i32 {{
  let bits = bitcast<u32>(size) & 0x7fffffffu;
  if (bits >= bitcast<u32>(limit) && bits <= 0x7f800000u) {{ {_note(name)} }}
  return value;
}}"""
        for name in ("sum", "prod", "matmul")
    ),
)
