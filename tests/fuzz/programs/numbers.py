"""What a step may do with a float that it is given, or with a number of another kind: it is what Python has."""

from tests.fuzz.programs.program import Program

# Expressions of a tensor x and a number k, which is a float in most calls.
USES: dict[str, str] = {
    "times": "x * k",
    "isinstance": "x * 2 if isinstance(k, float) else x",
    "isinstance_of_two": "x * 2 if isinstance(k, (int, float)) else x",
    "type": "x * 2 if type(k) is float else x * 3",
    "type_that_makes": "x * type(k)(2)",
    "class": "x * 2 if k.__class__ is float else x * 3",
    "number_abc": "x * 2 if isinstance(k, __import__('numbers').Real) else x * 3",
    "int": "x * int(k)",
    "float": "x * float(k)",
    "bool": "x * 2 if k else x * 3",
    "not": "x * (not k)",
    "complex": "x * complex(k).real",
    "round": "x * round(k)",
    "round_to_digits": "x * round(k, 1)",
    "floor": "x * math.floor(k) + math.ceil(k) + math.trunc(k)",
    "abs": "x * abs(k)",
    "negative": "x * -k + +k",
    "add_both_ways": "(x + k) + (k + x) + (k + 1) + (1 + k)",
    "sub_both_ways": "(x - k) - (k - x) + (k - 1) + (1 - k)",
    "divide_both_ways": "x / (k * k + 1) + k / (x * x + 1) + 1 / (k * k + 1)",
    "power": "x * (k * k + 1) ** 0.5 + 2.0 ** k",
    "power_of_a_tensor": "(x * x + 1) ** k",
    "power_to_a_tensor": "(k * k + 1) ** x",
    "modulo": "x * (k % 0.3) + 7 % (k * k + 1)",
    "floor_division": "x * (k // 0.3) + 7 // (k * k + 1)",
    "divmod": "x * divmod(k, 0.3)[0] + divmod(k, 0.3)[1]",
    "divmod_by": "x * divmod(7.0, k * k + 1)[1]",
    "comparison": "x * 2 if k > 1 else x * 3",
    "equality": "x * 2 if k == 2.0 else x * 3",
    "inequality": "x * 2 if k != 2.0 else x * 3",
    "chained_comparison": "x * 2 if 0 < k < 1 else x * 3",
    "comparison_with_another": "x * 2 if k > k * 2 else x * 3",
    "min_max": "x * min(k, 1.0) + max(k, 0.1)",
    "sorted": "x * sorted([k, 1.0, 0.1])[1]",
    "sum": "x * sum([k, k, 1])",
    "fsum": "x * math.fsum([k, 0.1])",
    "in_a_list": "x * 2 if k in [0.5, 3.0] else x * 3",
    "in_a_set": "x * 2 if k in {0.5, 3.0} else x * 3",
    "index_in_a_list": "x * [0.5, 2.0, -1.5, 3.0, 0.25, 0.0].index(k)",
    "count_in_a_list": "x * [k, 2.0].count(2.0)",
    "key_of_a_dict": "x * {0.5: 2.0, 2.0: 3.0}.get(k, 5.0)",
    "key_of_a_new_dict": "x * list({k: 1, 2.0: 3})[0]",
    "hash": "x * (hash(k) % 7)",
    "repr": "x * len(repr(k))",
    "str": "x * float(str(k))",
    "format": "x * float(f'{k:.1f}')",
    "percent_format": "x * float('%.1f' % k)",
    "method_format": "x * float('{:.1f}'.format(k))",
    "hex": "x * float.fromhex(k.hex())",
    "is_integer": "x * 2 if k.is_integer() else x * 3",
    "as_integer_ratio": "x * k.as_integer_ratio()[0]",
    "real": "x * k.real + k.imag + k.conjugate()",
    "sqrt": "x * math.sqrt(abs(k))",
    "exp": "x * math.exp(k) + math.log(abs(k) + 1)",
    "sin": "x * math.sin(k) + math.cos(k) * math.tanh(k) + math.atan2(k, 2)",
    "copysign": "x * math.copysign(1.0, k)",
    "isfinite": "x * 2 if math.isfinite(k) and not math.isnan(k) else x * 3",
    "isclose": "x * 2 if math.isclose(k, 0.5) else x * 3",
    "frexp": "x * math.frexp(k)[0] + math.modf(k)[0]",
    "pow": "x * math.pow(abs(k), 1.5) + math.hypot(k, 1)",
    "numpy_sqrt": "x * float(np.sqrt(abs(k)))",
    "numpy_float": "x * np.float64(k)",
    "numpy_float32": "x * float(np.float32(k))",
    "numpy_array": "x * float(np.array([k, 1.0]).sum())",
    "numpy_full": "x + torch.tensor(np.full(4, k), dtype=torch.float32)",
    "numpy_clip": "x * float(np.clip(k, 0, 1))",
    "numpy_isscalar": "x * 2 if np.isscalar(k) else x * 3",
    "tensor_of": "x * torch.tensor(k)",
    "tensor_of_a_list": "x + torch.tensor([k, 1.0, k, 2.0])",
    "full": "x + torch.full((4,), k)",
    "full_like": "x + torch.full_like(x, k)",
    "fill": "x.clone().fill_(k)",
    "add_alpha": "x.add(x, alpha=k)",
    "clamp": "x.clamp(-abs(k), abs(k))",
    "lerp": "x.lerp(x * 2, k)",
    "where": "torch.where(x > k, x, k)",
    "compare_a_tensor": "(x > k).float() + (k < x).float()",
    "dropout_rate": "F.dropout(x, min(abs(k), 0.9), training=False)",
    "leaky": "F.leaky_relu(x, k)",
    "masked_fill": "x.masked_fill(x > 0, k)",
    "linspace": "x + torch.linspace(0, k, 4)",
    "arange": "x * torch.arange(0, abs(k) + 1).sum()",
    "range": "x * sum(range(int(abs(k)) + 2))",
    "slice": "x[: int(abs(k)) + 1]",
    "index": "x[int(abs(k)) % 3]",
    "index_operator": "x * operator.index(int(k))",
    "shape": "x.repeat(int(abs(k)) + 1, 1)",
    "shape_of_zeros": "torch.zeros(int(abs(k)) + 1) + k",
    "list_repeat": "x * len([1] * int(abs(k)))",
    "match_class": "match_class(x, k)",
    "match_value": "match_value(x, k)",
    "match_guard": "match_guard(x, k)",
    "returned": "(x, k)",
    "returned_in_a_dict": "{'k': k, 'half': k / 2, 'x': x}",
    "returned_as_int": "(x, int(k))",
    "returned_comparison": "(x, k > 1)",
    "returned_text": "(x, f'{k}')",
    "returned_type": "(x, type(k).__name__, type(k * 2).__name__, type(k > 1).__name__)",
    "returned_numpy": "(x, np.float64(k))",
    "returned_key": "{k: x}",
    "returned_alone": "k * 2",
    "kept_in_a_dataclass": "x * dataclasses.astuple(Config(k))[0]",
    "json": "x * json.loads(json.dumps({'k': k}))['k']",
    "pickle": "x * pickle.loads(pickle.dumps(k))",
    "copy": "x * copy.deepcopy([k])[0]",
    "decimal": "x * float(decimal.Decimal(k))",
    "fraction": "x * float(fractions.Fraction(k))",
    "struct": "x * __import__('struct').unpack('d', __import__('struct').pack('d', k))[0]",
    "array": "x * array.array('d', [k])[0]",
    "partial": "functools.partial(operator.mul, k)(x)",
    "map": "x * sum(map(abs, [k, -k]))",
    "lru_cache": "x * cached(k)",
    "getattr_operator": "x * k.__mul__(2.0) + k.__add__(1)",
    "operator_function": "x * operator.add(k, 1) + operator.truediv(1, abs(k) + 1)",
    "int_float_mix": "x * (k + True) + (k == 1)",
    "default_of": "x * (k or 7.0) + (k and 3.0)",
    "bytes": "x * len(bytes(int(abs(k))))",
    "bit_length": "x * int(k).bit_length()",
    "exception": "guarded(x, k)",
    "assertion": "asserted(x, k)",
    "walrus": "x * (n := k * 2) + n",
    "in_place": "in_place(x, k)",
    "unpacked": "x * (lambda a, *b: a + sum(b))(*[k, k])",
    "by_keyword": "x * (lambda *, a: a)(**{'a': k})",
    "bisect": "x * bisect.bisect([0.1, 1.0, 2.5], k)",
    "statistics": "x * __import__('statistics').fmean([k, 1.0])",
    "itertools": "x * list(itertools.accumulate([k, k]))[1]",
}

HELPERS = """
@dataclasses.dataclass
class Config:
    k: float
@functools.lru_cache
def cached(k):
    return k * 2
def match_class(x, k):
    match k:
        case int():
            return x * 2
        case float():
            return x * 3
    return x * 5
def match_value(x, k):
    match k:
        case 0.5:
            return x * 2
        case 3.0 | 2.0:
            return x * 3
        case _:
            return x * 5
def match_guard(x, k):
    match {"k": k}:
        case {"k": n} if n > 1:
            return x * n
        case {"k": n}:
            return x - n
def guarded(x, k):
    try:
        return x * (1 / k)
    except ZeroDivisionError:
        return x * 7
def asserted(x, k):
    try:
        assert k > 0, f"user: {k}"
    except AssertionError as error:
        return x * len(str(error))
    return x
def in_place(x, k):
    k += 1
    k *= 2
    k -= 0.5
    k /= 3
    k **= 2
    return x * k
"""

FLOATS = "0, 0.5, 0.5, 0.5, 2.0, 2.0, -1.5, 3.0, 0.25, 0.25, 0.0"
KINDS = "0, 0.5, 0.5, 0.5, 2, 2, True, 2.0, np.float64(0.5), np.float32(2.0), 0.5"
SPECIALS = "0, 1.0, 1.0, 1.0, -0.0, 0.0, math.nan, math.inf, -math.inf, math.nan, 1e300"
ON_KINDS = (
    "times", "isinstance", "type", "class", "int", "bool", "repr", "match_class", "match_value", "returned", "returned_type",
    "equality", "key_of_a_dict", "tensor_of", "full", "power", "floor_division", "sorted", "power_of_a_tensor", "json",
)  # fmt: skip
ON_SPECIALS = (
    "times", "comparison", "equality", "min_max", "copysign", "isfinite", "repr", "returned", "bool", "sorted",
    "in_a_list", "in_a_set", "key_of_a_new_dict", "match_value",
)  # fmt: skip


def program(kind: str, use: str, values: str) -> Program:
    helpers = (
        HELPERS
        if any(name in USES[use] for name in ("match_", "Config", "cached", "guarded", "asserted", "in_place("))
        else ""
    )
    setup = f"_K = [{values}]\n{helpers}\ndef step(x, k):\n    return {USES[use]}"
    alone = "its own text of a number" if use == "returned_numpy" else ""
    return Program(f"{kind}_{use}", setup, call="step(data(n), _K[n])", alone=alone)


PASSED = (
    Program("float_passed_by_keyword", "_K = [0, .5, .5, .5, 2., 2., -1.5, 3., 1., 1., 0.]\ndef step(x, *, k=1.0):\n    return x * k",
            call="step(data(n), k=_K[n]) if n % 3 else step(data(n))"),
    Program("float_passed_in_a_list", "_K = [0, .5, .5, .5, 2., 2., -1.5, 3., 1., 1., 0.]\ndef step(x, box):\n    return x * box[0] + box[1]['k']",
            call="step(data(n), [_K[n], {'k': _K[n] * 2}])"),
    Program("float_kept_by_a_list", "_K = [0, .5, .5, .5, 2., 2., -1.5, 3., 1., 1., 0.]\nkept = []\ndef step(x, k):\n    kept.append(k)\n    return x * k",
            call="step(data(n), _K[n])"),
    Program("float_kept_by_an_attribute", "_K = [0, .5, .5, .5, 2., 2., -1.5, 3., 1., 1., 0.]\na = types.SimpleNamespace(k=None)\ndef step(x, k):\n    a.k = k * 2\n    return x * k",
            call="step(data(n), _K[n])"),
    Program("float_kept_by_a_name", "_K = [0, .5, .5, .5, 2., 2., -1.5, 3., 1., 1., 0.]\nlast = None\ndef step(x, k):\n    outer last\n    last = k\n    return x * k",
            call="step(data(n), _K[n])"),
    Program("float_kept_by_a_module", "_K = [0, .5, .5, .5, 2., 2., -1.5, 3., 1., 1., 0.]\nclass M(nn.Module):\n    k = 0.0\n    def forward(self, x, k):\n        self.k = k\n        return x * self.k\nm = M()\ndef step(x, k):\n    return m(x, k)",
            call="step(data(n), _K[n])"),
    Program("float_and_its_twin", "_K = [0, .5, .5, .5, 2., 2., -1.5, 3., 1., 1., 0.]\ndef step(x, a, b):\n    return x * 2 if a == b else x * 3",
            call="step(data(n), _K[n], 0.5)"),
    Program("two_floats_that_change_in_turn", "def step(x, a, b):\n    return x * a + b", call="step(data(n), 1.0 + n % 2, 1.0 + n % 3)"),
    Program("float_that_changes_at_each_call", "def step(x, k):\n    return x * k + k", call="step(data(n), n / 4)", replays=2),
    Program("float_that_does_not_change", "def step(x, k):\n    return x * k + k", call="step(data(n), 0.25)", replays=4),
    Program("int_that_changes_at_each_call", "def step(x, k):\n    return x * k + k", call="step(data(n), n)"),
    Program("rate_of_a_training_loop",
            "w = param(0)\ndef step(x, rate):\n    loss = (w * x).square().mean()\n    (g,) = torch.autograd.grad(loss, w)\n"
            "    with torch.no_grad():\n        w.sub_(rate * g)\n    return loss.detach()", call="step(data(n), 0.5 / n)", replays=2),
)  # fmt: skip

PROGRAMS = (
    *(program("float", use, FLOATS) for use in USES),
    *(program("kinds", use, KINDS) for use in ON_KINDS),
    *(program("special", use, SPECIALS) for use in ON_SPECIALS),
    *PASSED,
)
