"""How often an invocation goes round the loops of a kernel, at most, by the kernel's IR alone.

Numbers are intervals: exact where they follow from the workgroup and the invocation, all of u32 where they come from
memory. llvmpipe counts the rounds of all loops together, so those of an inner loop count anew in each of its outer's.
"""

from collections.abc import Iterator, Mapping
from math import prod

from pywebgpu.kernels import ir
from pywebgpu.support import symbolic
from pywebgpu.support.symbolic import Sym

Interval = tuple[int, int]  # from, to
Env = dict[str, Interval]
ANY = (0, (1 << 32) - 1)
HALVING = 32  # rounds of a search: each halves what is left of 32 bits


def most_rounds(kernel: ir.Function) -> int:
    """Of some invocations of some workgroups, the largest count of the rounds of all loops."""
    groups = prod(kernel.grid)
    lanes, numbers = {0, 1, kernel.lanes - 1}, {0, groups // 2, groups - 1}
    return max(
        _rounds(kernel.body, {"lane": (lane, lane), "group": (group, group)})
        for lane in lanes
        for group in numbers
    )  # fmt: skip


def _rounds(block: ir.Block, env: Env) -> int:
    total = 0
    for one in block:
        match one:
            case ir.Declare(_, ir.Var(name="group")):
                pass  # It is known.
            case ir.Declare(_, ir.Var() as target, value):
                env[target.name] = ANY if value is None else _value(value, env)
            case ir.Assign(ir.Var() as target, value, sign):
                env[target.name] = _value(value, env) if sign == "=" else ANY
            case ir.If(branches):
                total += _branches([body for _, body in branches], env)
            case ir.Scope(body):
                total += _rounds(body, env)
            case ir.Loop():
                total += _loop(one, env)
    return total


def _branches(bodies: list[ir.Block], env: Env) -> int:
    """The longest of them; after it variables are what any of them, or none, left."""
    most, after = 0, [dict(env)]
    for body in bodies:
        inner = dict(env)
        most = max(most, _rounds(body, inner))
        after.append(inner)
    for name in env:
        env[name] = min(one[name][0] for one in after), max(one[name][1] for one in after)
    return most


def _loop(loop: ir.Loop, env: Env) -> int:
    if loop.head is not None:
        _rounds([loop.head[0]], env)
    steps = _steps(loop)
    before = dict(env)
    for name in _assigned(loop.body):
        env[name] = ANY
    begin = loop.head[0].value if loop.head is not None else None
    count = _count(loop.condition, begin, steps, before, env)
    for name, step in steps.items():
        low, high = before.get(name, ANY)
        env[name] = low, min(high + step * count, ANY[1])
    inner = _rounds(loop.body, dict(env))
    return count * (1 + inner)


def _count(condition: ir.Expr, begin: ir.Expr | None, steps: Mapping[str, int], before: Env, env: Env) -> int:
    """Of a loop that goes on while left < right: how many steps lead there."""
    assert isinstance(condition, ir.Call)
    if condition.intrinsic.template != "{0} < {1}" or not steps:
        return HALVING
    left, right = condition.args
    start = {**env, **{name: (before.get(name, ANY)[0],) * 2 for name in steps}}
    after = {**start, **{name: (start[name][0] + step,) * 2 for name, step in steps.items()}}
    first, step = _value(left, start)[0], _value(left, after)[0] - _value(left, start)[0]
    if step <= 0:
        return HALVING
    counts = [-(-(_value(right, env)[1] - first) // step)]
    if begin is not None:  # A bound that is told from where the loop begins.
        counts += [-(-length // step) for length in _lengths(right, begin)]
    return max(min(counts), 0)


def _lengths(end: ir.Expr, begin: ir.Expr) -> Iterator[int]:
    """How far from where a loop begins it ends at most, where that is written so."""
    if isinstance(end, ir.Call) and end.intrinsic.template == "min({0}, {1})":
        for part in end.args:
            yield from _lengths(part, begin)
    if isinstance(end, ir.Call) and end.intrinsic.template == "{0} + {1}":
        of, length = end.args
        if isinstance(of, ir.Var) and isinstance(begin, ir.Var) and of.name == begin.name:
            yield int(length.value) if isinstance(length, ir.Const) else ANY[1]


def _steps(loop: ir.Loop) -> dict[str, int]:
    """Variables that grow by a constant in each round."""
    assigns = [loop.head[1]] if loop.head else [one for one in loop.body if isinstance(one, ir.Assign)]
    return {
        one.target.name: int(one.value.value)
        for one in assigns
        if isinstance(one.target, ir.Var) and one.sign == "+=" and isinstance(one.value, ir.Const)
    }


def _assigned(block: ir.Block) -> Iterator[str]:
    for one in block:
        if isinstance(one, ir.Assign) and isinstance(one.target, ir.Var):
            yield one.target.name
        for body in ir.blocks(one):
            yield from _assigned(body)


def _value(of: ir.Expr, env: Env) -> Interval:
    match of:
        case ir.Const():
            return (int(of.value),) * 2 if of.type.kind in ("u32", "i32") else ANY
        case ir.Var():
            return env.get(of.name, ANY)
        case ir.Index():
            return _index(of.at, env)
        case ir.Call():
            return _call(of, env)
    return ANY


def _call(of: ir.Call, env: Env) -> Interval:
    if of.type != ir.U32 or len(of.args) not in (1, 2, 3):
        return ANY
    args = [_value(one, env) for one in of.args]
    (a, b), (c, d) = args[0], args[-1]
    match of.intrinsic.template:
        case "{0} + {1}":
            found = a + c, b + d
        case "{0} - {1}":
            found = max(a - d, 0), max(b - c, 0)
        case "{0} * {1}":
            found = a * c, b * d
        case "{0} / {1}":
            found = a // max(d, 1), b // max(c, 1)
        case "{0} % {1}" if c == d:
            found = _remainder((a, b), c)
        case "min({0}, {1})":
            found = min(a, c), min(b, d)
        case "max({0}, {1})":
            found = max(a, c), max(b, d)
        case "select({0}, {1}, {2})":
            found = min(a, args[1][0]), max(b, args[1][1])
        case "u32({0})":
            found = a, b
        case _:
            found = ANY
    return min(found[0], ANY[1]), min(found[1], ANY[1])


def _index(at: Sym, env: Env) -> Interval:
    low = high = at.const
    for atom, factor in at.terms:
        a, b = _atom(atom, env)
        low, high = low + factor * (a if factor > 0 else b), high + factor * (b if factor > 0 else a)
    return max(low, at.low, 0), min(high, at.high)


def _atom(atom: symbolic.Atom, env: Env) -> Interval:
    match atom:
        case symbolic.Var(name, low, high):
            a, b = env.get(name, ANY)
            return max(a, low), min(b, high)
        case symbolic.Quotient(of, by):
            a, b = _index(of, env)
            return a // by, b // by
        case symbolic.Remainder(of, by):
            return _remainder(_index(of, env), by)


def _remainder(of: Interval, by: int) -> Interval:
    a, b = of
    by = max(by, 1)
    return (a % by, b % by) if b - a < by and a % by <= b % by else (0, by - 1)
