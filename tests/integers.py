"""Functions of whole numbers, as expressions of two tensors (3, 3) and a number: what may need more bits than it has.

On webgpu each equals PyTorch's or raises OverflowError: int64 has 32 bits there.
"""

from typing import Any

EXPRESSIONS = (
    # One element at a time
    "x + y", "x - y", "x * y", "-x", "x.abs()", "x.square()", "x ** (n % 6)", "x ** (y % 5)", "2 ** (y % 70)",
    "x << (n % 40)", "x << (y % 70)", "x.clone().__ilshift__(3)", "x >> (n % 40)", "x >> (y % 70)", "x // -1",
    "x // (n % 5 + 1)", "x // torch.where(y == 0, 1, y)",
    "torch.div(x, torch.where(y == 0, 1, y), rounding_mode='trunc')", "x % (n % 1000 + 1)",
    "x % torch.where(y == 0, 1, y)", "torch.fmod(x, -1)", "torch.gcd(x, y)", "torch.lcm(x, y)", "~x - 1", "x & y",
    "x | y", "x ^ y", "x.sign() + y", "torch.sgn(x)", "x.clamp(-(10**10), abs(n))", "torch.relu(x) + y",
    "torch.maximum(x, y) + 1", "torch.where(x > n * 3, x, y)", "torch.where(x == 10**10 + n, x, y)", "x * (y > 0)",
    "x + n", "x * (n % 7 - 3)", "n - x", "torch.rsub(x, n)", "x * 2**20", "torch.add(x, y, alpha=n % 4000)",
    "torch.sub(x, y, alpha=7)", "torch.addcmul(x, x, y, value=n % 4)", "x + (y - x) * 2", "x * x - y * y",
    "(x - y).abs()", "x.flip(0) + x", "x.roll(1) - x", "x[:, :1] * y[:1]", "torch.heaviside(x, y) + x",
    # Sums and products
    "x.sum(n % 2, keepdim=True) + y * 0", "x.sum() + y * 0", "(x * y).sum(0)", "x.prod(n % 2, keepdim=True) + y * 0",
    "x.cumsum(n % 2)", "x.cumprod(n % 2)", "x.diff(dim=0)", "x.trace()", "x.amax() - x.amin()", "x.cummax(0)[0] + y",
    "(x > y).sum(n % 2, keepdim=True) + y", "x.sort(1)[0] + n", "x.nansum()", "torch.stack([x, y]).prod(0)", "x @ y",
    "x @ y[0]", "torch.dot(x[0], y[0])", "torch.outer(x[0], y[0])", "torch.addmm(x, x, y, beta=3, alpha=2)",
    "torch.einsum('ij,kj->ik', x, y)", "torch.einsum('ij,k->ik', x, y[0])", "torch.kron(x[:2], y[:2])",
    "torch.linalg.cross(x, y)", "torch.linalg.matrix_power(x, 3)", "torch.vander(x[0], 4)",
    "torch.tensordot(x, y, 1)", "torch.nn.functional.avg_pool1d(x, 2)", "torch.nn.functional.linear(x, y)",
    "torch.block_diag(x, y) * 3",
    # Rows by number
    "x.index_add(0, y[:, 0] % 3, y)", "x.index_add(0, y[:, 0] % 3, y, alpha=4)", "x.scatter_add(0, y % 3, y)",
    "x.scatter_reduce(1, y % 3, y, 'prod')", "x.scatter_reduce(1, y % 3, y, 'mean')",
    "x.scatter(0, y % 3, 5, reduce='add')", "x.index_reduce(0, y[:, 0] % 3, y, 'prod')",
    "x.index_put((y[0] % 3,), y, accumulate=True)", "x.clone().put_(y % 9, y, accumulate=True)",
    "torch.bincount((x % 5).flatten(), minlength=5) * n", "x.flatten()[(x % 3) * 3 + y % 3]",
    "x.gather(0, y % 3) + y", "torch.nn.functional.one_hot(x[0] % 5, 5) * x[0][:, None]",
    "x.repeat_interleave(2, 0) + y.repeat(2, 1)", "torch.cat([y[:1], x.diff(dim=0)])", "x.unique() * 2",
    # In place, and through views
    "x.clone().mul_(y)", "x.clone().add_(y, alpha=3)", "x.clone().pow_(3)", "x.clone().neg_()", "x.clone().abs_()",
    "x.clone().cumsum_(0)", "x.clone().addcmul_(x, y)", "x.clone().index_add_(0, y[:, 0] % 3, y)",
    "WRITE(x.clone(), y)",
    # Other dtypes: what becomes int64, and what wraps
    "(x.float() * y).long()", "(x / 7).floor().long()", "(x * 1.0).to(torch.int64)", "x.half().long()",
    "x.bfloat16().long()", "(x / 0.0).long()", "(x * 0.5).round().long()", "x.int() + y", "x.int().sum()",
    "x.int().prod()", "x.int().cumsum(0)", "x.int() * y.int()", "x.int() ** 3", "x.int() << 3",
    "x.cumsum(0, dtype=torch.int32)", "x.sum(0, dtype=torch.int32)", "x.short() * y.short()", "-x.to(torch.uint8)",
    "x.to(torch.uint8).sum()", "x.to(torch.uint32).long()", "x.to(torch.uint32).long() + y",
    "x.int().view(torch.uint32).long()", "(x > 0).cumsum(0) * y",
    "torch.arange(1, 14, device=x.device).cumprod(0)[-1] * (x % 2 + 1)",
    "torch.arange(3, 12, device=x.device).reshape(3, 3) * y",
)  # fmt: skip
# Those that raise, too, for a number on the way to one that fits.
ON_THE_WAY = (
    "x ** (n % 6)", "2 ** (y % 70)", "torch.lcm(x, y)", "torch.addcmul(x, x, y, value=n % 4)", "x @ y[0]",
    "x.prod(n % 2, keepdim=True) + y * 0", "torch.dot(x[0], y[0])", "torch.linalg.matrix_power(x, 3)",
    "torch.nn.functional.avg_pool1d(x, 2)", "x.scatter_reduce(1, y % 3, y, 'mean')", "x.clone().pow_(3)",
    "x.int().prod()",
)  # fmt: skip
TOP, LOW = 2**31 - 1, -(2**31)
# x, y and n.
SMALL = ([1, 2, 3, -4, 5, 0, 7, -8, 9], [7, -1, 2, 3, 6, 1, 0, 4, 2], 5)
NUMBERS = (
    SMALL,
    ([0] * 9, [0, LOW, TOP, 1, -1, 2, LOW, 0, 5], 33),
    ([TOP, 1, LOW, -1, TOP - 1, 0, 7, -TOP, 2], [1, 2, -1, 3, TOP, LOW, 1, 0, TOP], 2**31 - 2),
    ([LOW] * 9, [-1, LOW, 2, 0, 1, TOP, 1, -2, 3], 1000),
    ([65536, 46341, -65536, 30000, 46340, 1, 0, -3, 2], [65536, 46341, 32768, -46341, 46340, 9, 8, 7, 6], 2),
    ([2**20, -(2**20), 2**16, 2**15, 2**11, 1, 2, 3, 4], [2**11, 2**11, -(2**15), 2**16, 2**10, 1, 2, 3, 4], -7),
)


def value(torch: Any, expression: str, data: Any, device: str) -> Any:
    """The result of an expression on elements, a tensor."""
    x, y, n = data
    tensors = [torch.tensor(part, device=device).reshape(3, 3) for part in (x, y)]
    return evaluated(torch, expression, *tensors, n)


def evaluated(torch: Any, expression: str, x: Any, y: Any, n: int) -> Any:
    return eval(expression, {"torch": torch, "x": x, "y": y, "n": n, "WRITE": _write})


def _write(x: Any, y: Any) -> Any:
    """x, written through views of it."""
    x[1:].mul_(y[1:])
    x.T[::2] += y[::2]
    return x
