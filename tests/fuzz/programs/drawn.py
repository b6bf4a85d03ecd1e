"""Random programs out of the tables: a skeleton, parts that read and change this and that, and changes between calls.

A recipe is what was drawn, so a failing one is made smaller by leaving parts out.
"""

from __future__ import annotations

import random
import re
import textwrap
from dataclasses import dataclass, field, replace

import pywebgpu
from tests.fuzz.programs import composed, effects, modules, numbers, own, places, sources, state, training
from tests.fuzz.programs.program import CLOSURE, GLOBALS, Program


@dataclass(frozen=True, slots=True)
class Part:
    """setup: statements before the step. body: statements inside, which may set x. changes: between calls.

    writes: something may outlive the call. refuses: the step may be refused, as it needs a value on the host.
    """

    name: str
    setup: str
    body: str
    changes: tuple[str, ...] = ()
    modules: dict[str, str] = field(default_factory=dict)
    scopes: tuple[str, ...] = (GLOBALS, CLOSURE)
    alone: bool = False
    wrap: str = "{body}"
    outside: str = ""
    writes: bool = False
    refuses: bool = False
    knows: str = ""  # a name of the step's own that the body has in it
    argument: str = ""  # what the step is given by that name


@dataclass(frozen=True, slots=True)
class Recipe:
    seed: int
    skeleton: Part
    parts: tuple[Part, ...]
    changes: tuple[tuple[int, str], ...]
    scope: str
    call: str
    calls: int
    reading: str
    audit: str


def writes(one: Recipe) -> bool:
    """Whether a step may write to what outlives the call: that is for audits to see."""
    if any(re.search(r"\bh\d\.\w+ = ", part.wrap) for part in one.parts):
        return True
    texts = (one.skeleton.body, *[text for _, text in one.changes])
    return any(part.writes or part.name.startswith("effect") for part in one.parts) or any(
        "held.append" in text for text in texts
    )


def refuses(one: Recipe) -> bool:
    """Whether a step may need a value on the host."""
    return any(part.refuses for part in one.parts)


# How the statements of a part may stand in the program: what is put outside, and what stands inside.
WRAPS: tuple[tuple[str, str], ...] = (
    ("", "{body}"),
    ("", "{body}"),
    ("", "{body}"),
    ("def h$(x):\n{deep}\n    return x", "x = h$(x)"),
    ("def h$(x):\n    def inner(y):\n        x = y\n{deeper}\n        return x\n    return inner(x)", "x = h$(x)"),
    ("def make$():\n    def f(x):\n{deeper}\n        return x\n    return f\nh$ = make$()", "x = h$(x)"),
    ("class H$:\n    def __call__(self, x):\n{deeper}\n        return x\nh$ = H$()", "x = h$(x)"),
    ("class H$:\n    def f(self, x):\n{deeper}\n        return x\nh$ = H$()", "x = h$.f(x)"),
    ("class H$:\n    @staticmethod\n    def f(x):\n{deeper}\n        return x", "x = H$.f(x)"),
    ("class B$:\n    def f(self, x):\n{deeper}\n        return x\nclass H$(B$):\n    def f(self, x):\n        return super().f(x)\nh$ = H$()", "x = h$.f(x)"),
    ("class H$(nn.Module):\n    def forward(self, x):\n{deeper}\n        return x\nh$ = H$()", "x = h$(x)"),
    ("def d$(f):\n    @functools.wraps(f)\n    def call(*args):\n        return f(*args)\n    return call\n@d$\ndef h$(x):\n{deep}\n    return x", "x = h$(x)"),
    ("def h$(x):\n{deep}\n    return x\nt$ = {{'h': h$}}", "x = t$['h'](x)"),
    ("def h$(x):\n{deep}\n    return x\nt$ = [h$]", "for f in t$:\n    x = f(x)"),
    ("def h$(n, x):\n{deep}\n    return x\np$ = functools.partial(h$, 1)", "x = p$(x)"),
    ("def h$(x):\n{deep}\n    yield x", "x = next(h$(x))"),
    ("@contextlib.contextmanager\ndef h$(x):\n{deep}\n    yield x", "with h$(x) as x:\n    pass"),
    ("@compile\ndef h$(x):\n{deep}\n    return x", "x = h$(x)"),
    ("def h$(x, n=2):\n    if n:\n        return h$(x, n - 1)\n{deep}\n    return x", "x = h$(x)"),
    ("", "try:\n{deep}\nfinally:\n    x = x * 1"),
    ("", "try:\n{deep}\nexcept ValueError:\n    x = x * 2"),
    ("", "if x.shape:\n{deep}"),
    ("", "for _ in range(2):\n{deep}"),
    ("", "def inner(x):\n{deep}\n    return x\nx = inner(x)"),
    ("", "with contextlib.nullcontext():\n{deep}"),
    ("", "x = [f(x) for f in [lambda x: x * 1]][0]\n{body}"),
)  # fmt: skip
# Where the step's own names are known.
KNOWING = (
    *[wrap for wrap in WRAPS if not wrap[0]],
    ("def h$(x, {name}):\n{deep}\n    return x", "x = h$(x, {name})"),
    ("def h$(x, *, {name}=7.0):\n{deep}\n    return x", "x = h$(x, {name}={name})"),
    ("class H$:\n    def f(self, x):\n        {name} = self.{name}\n{deeper}\n        return x\nh$ = H$()", "h$.{name} = {name}\nx = h$.f(x)"),
    ("@dataclasses.dataclass\nclass H$:\n    {name}: typing.Any\n    def f(self, x):\n        {name} = self.{name}\n{deeper}\n        return x", "x = H$({name}).f(x)"),
    ("@compile\ndef h$(x, {name}):\n{deep}\n    return x", "x = h$(x, {name})"),
    ("def h$({name}, x):\n{deep}\n    return x", "x = functools.partial(h$, {name})(x)"),
    ("def h$({name}, x):\n{deep}\n    return x", "x = h$(*[{name}], **{{'x': x}})"),
    ("def make$({name}):\n    def f(x):\n{deeper}\n        return x\n    return f", "x = make$({name})(x)"),
    ("class H$(nn.Module):\n    def forward(self, x, {name}):\n{deeper}\n        return x\nh$ = H$()", "x = h$(x, {name})"),
    ("def h$(x, {name}):\n{deep}\n    yield x", "x = next(h$(x, {name}))"),
)  # fmt: skip
# What may be done with a number, so that x keeps its shape and stays small.
TAME = (
    "times", "isinstance", "type", "class", "bool", "not", "comparison", "equality", "chained_comparison", "min_max", "sorted", "sum",
    "in_a_list", "key_of_a_dict", "repr", "format", "abs", "negative", "add_both_ways", "sub_both_ways", "divide_both_ways",
    "modulo", "floor_division", "divmod", "sin", "copysign", "tensor_of", "full", "full_like", "add_alpha", "lerp", "where",
    "compare_a_tensor", "leaky", "partial", "map", "walrus", "unpacked", "by_keyword", "bisect", "default_of", "int_float_mix", "hash",
    "numpy_float", "numpy_sqrt", "tensor_of_a_list", "fill", "round", "int", "floor", "str", "json", "isclose", "sqrt", "numpy_array",
)  # fmt: skip
VALUES = ("0.5", "0.5", "0.5", "2.0", "-1.5", "3.0", "0.25", "0.0", "1.0", "2", "1", "-0.0", "True", "0.125", "7.5")
DRAWING = ("drawn",)


def recipe(seed: int, *, wide: bool = True) -> Recipe:
    """wide: out of all tables, not only of what programs mostly have."""
    draw = random.Random(seed)
    skeleton = draw.choice((inference, plain, plain, training_step, training_step, gradient))(draw)
    parts = tuple(wrapped(draw, part(draw, n, wide=wide), n) for n in range(1, 1 + draw.choice((1, 1, 2, 2, 3, 4))))
    scopes = [scope for scope in (GLOBALS, CLOSURE) if all(scope in one.scopes for one in parts)]
    calls = draw.randint(6, 12)
    texts = [text for one in (skeleton, *parts) for text in one.changes]
    count = min(len(texts), draw.choice((0, 1, 2, 3, 4, 5))) if texts else 0
    changes = tuple(sorted((draw.randint(2, calls), draw.choice(texts)) for _ in range(count)))
    reading = draw.choice(("at once", "late", "late", "at the end"))
    made = Recipe(seed, skeleton, parts, changes, draw.choice(scopes), given(draw, calls), calls, reading, "")
    return replace(made, audit=draw.choice(("first", "first", "") if writes(made) else ("0", "0", "0", "0", "0", "1")))


def given(draw: random.Random, calls: int) -> str:
    """The call: a tensor, and a number that changes at times."""
    values, now = [], draw.choice(VALUES)
    for _ in range(calls + 1):
        now = draw.choice(VALUES) if draw.random() < 0.3 else now
        values.append(now)
    numbers_ = f"[{', '.join(values)}][n]"
    x = draw.choice(
        (
            "data(n)",
            "data(n)",
            "data(1)",
            "data(n, 3 + n % 2, 4)",
            "data(n, 4, 3).t()",
            "data(n, 5, 4)[1:4]",
            "data(n, 20, 4)[n:n + 3]",
        )
    )
    return draw.choice((f"step({x}, 1.0)", f"step({x}, {numbers_})", f"step({x}, k={numbers_})", f"step({x}, n / 8)"))


def part(draw: random.Random, n: int, *, wide: bool) -> Part:
    old = (a_number, a_number, a_number, an_effect, a_module, a_module, a_tensor, an_argument)
    made = draw.choice((*old, *[*[a_composition] * 8, *[an_own_object] * 4] * wide))(draw)
    return numbered(made, n)


def numbered(one: Part, n: int) -> Part:
    change = lambda text: text.replace("$", str(n))  # noqa: E731
    named = {change(name): change(text) for name, text in one.modules.items()}
    return replace(
        one,
        setup=change(one.setup),
        body=change(one.body),
        changes=tuple(map(change, one.changes)),
        modules=named,
        knows=change(one.knows),
        argument=change(one.argument),
    )


def wrapped(draw: random.Random, one: Part, n: int) -> Part:
    texts = draw.choice(KNOWING if one.knows else WRAPS)
    outside, inside = (text.replace("$", str(n)).replace("{name}", one.knows) for text in texts)
    return replace(one, wrap=inside, outside=outside)


SOFT = "x = x / (1 + x.abs())"


def a_number(draw: random.Random) -> Part:
    one = draw.choice((*sources.SOURCES, *places.SOURCES))
    use = re.sub(r"(?<!['.])\bk\b(?!['=])", "number", numbers.USES[draw.choice(TAME)])
    body = f"number = {one.read}\nx = {use}\n{SOFT}"
    return Part(f"source {one.name}", one.setup, body, one.sets, one.modules, one.scopes)


def an_argument(draw: random.Random) -> Part:
    return Part("argument", "", f"x = {numbers.USES[draw.choice(TAME)]}\n{SOFT}", knows="k")


def a_composition(draw: random.Random) -> Part:
    one = composed.drawn(draw, pywebgpu)
    use = "times" if one.is_tensor else draw.choice((*TAME, *["times"] * 20))
    use = re.sub(r"(?<!['.])\bk\b(?!['=])", "number", numbers.USES[use])
    body = "\n".join(filter(None, (f"number = {one.read}", one.edit, f"x = {use}", SOFT)))
    knows = "a$" if one.argument else ""
    setup = f"import importlib\n{one.setup}"
    of_tensors = any(word in one.name for word in ("tensor", "parameter", "distribution"))
    return Part(
        one.name,
        setup,
        body,
        one.changes,
        alone=True,
        writes=bool(one.edit),
        refuses=of_tensors,
        knows=knows,
        argument=one.argument,
    )


def an_own_object(draw: random.Random) -> Part:
    one = draw.choice(own.ALL)
    body = f"{one.statement}\n{SOFT}"
    return Part(
        f"own {one.name}", one.setup, body, one.sets, one.modules, alone=True, writes=one.writes, refuses=one.refuses
    )


def an_effect(draw: random.Random) -> Part:
    one = draw.choice(effects.EFFECTS)
    return Part(f"effect {one.name}", one.setup, f"{one.statement}\n{SOFT}", scopes=one.scopes)


def a_module(draw: random.Random) -> Part:
    one = draw.choice(modules.EDITS)
    return Part(f"module {one.name}", one.setup.strip("\n"), f"x = m$(x)\n{SOFT}", one.edits)


def a_tensor(draw: random.Random) -> Part:
    name = draw.choice([*state.HAPPENS])
    change = lambda text: re.sub(r"\b(w|_v|_u|_w|_v2)\b", r"\1$", text)  # noqa: E731
    setup = change("w = data(0, 4)\n_v = w[1:]\n_w = _u = _v2 = None")
    body = "x = x + 1 if w$ is None else (x[-3:] * w$).detach().float()\n" + SOFT
    return Part(f"tensor {name}", setup, body, tuple(map(change, state.HAPPENS[name])), alone=name in DRAWING)


# Skeletons: their body has `{parts}` in it.


def inference(draw: random.Random) -> Part:
    return Part("inference", "", "with torch.no_grad():\n{deep}\n    return x")


def plain(draw: random.Random) -> Part:
    results = ("x.detach()", "x.detach(), k", "{'x': x.detach(), 'k': k * 2}", "[x.detach(), x.detach().sum()]", "None")
    return Part("plain", "", "{parts}\nreturn " + draw.choice(results))


def gradient(draw: random.Random) -> Part:
    setup = "p = param(0)"
    body = draw.choice(
        (
            "y = x * p\nx = y\n{parts}\n(g,) = torch.autograd.grad((x * p).sum() + y.sum(), p)\nreturn g",
            "p.grad = None\nx = x * p\n{parts}\n(x * p).sum().backward()\nreturn p.grad.clone()",
            "x = x * p\n{parts}\n(x * p).sum().backward()\nwith torch.no_grad():\n    p.sub_(0.1 * p.grad)",
        )
    )
    changes = ("p.grad = None", "p.data.mul_(0.5)", "p = param(3)", "p.data = data(5, 4)")
    return Part("gradient", setup, body, changes)


def training_step(draw: random.Random) -> Part:
    rule = draw.choice([training.SGD, training.ADAMW, *training.RULES.values()])
    made = [
        made for name, made in training.SCHEDULES.items() if name != "one_cycle_of_momentum"
    ]  # Not each rule has one.
    schedule = draw.choice(["", "", "", *made])
    first = draw.choice(
        (
            "opt.zero_grad()",
            "opt.zero_grad()",
            "pass",
            "opt.zero_grad(set_to_none=False)",
            "for p in params: p.grad = None",
        )
    )
    after = draw.choice(
        (
            "pass",
            "pass",
            "torch.nn.utils.clip_grad_norm_(params, 0.5)",
            "for p in params: p.grad.mul_(k)",
            "opt.param_groups[0]['lr'] *= 0.9",
        )
    )
    last = draw.choice(("pass", "pass", "opt.zero_grad()", "held.append(k)", "sched.step()" if schedule else "pass"))
    setup = f"m = mlp()\nparams = list(m.parameters())\nopt = {rule}\n_g = _v = _kept = None\nheld = []"
    setup += f"\nsched = optim.lr_scheduler.{schedule}" if schedule else ""
    body = f"{first}\n{{parts}}\nloss = m(x).square().mean()\nloss.backward()\n{after}\nopt.step()\n{last}\nreturn loss.detach()"
    own = {**training.GRADIENTS, **training.OPTIMIZERS}
    taken = [(name, text) for name, texts in own.items() for text in texts if draw.random() < 0.1]
    changes = [text for name, text in taken if name != "state_in_place"]  # Each library keeps its own.
    more = ["sched.step()", "sched.step()"] if schedule else []
    alone = any(name.startswith("group") for name, _ in taken)  # PyTorch saves no parameter that is in no group.
    return Part("training", setup, body, (*changes, *more), alone=alone)


def program(one: Recipe) -> Program:
    """The text of what was drawn."""
    setup = [
        one.skeleton.setup,
        *[text for part in one.parts for text in (part.setup, part.outside and filled(part.outside, part.body))],
    ]
    parts = "\n".join(filled(part.wrap, part.body) for part in one.parts) or "pass"
    body = filled(one.skeleton.body.replace("{parts}", "{body}"), parts)
    given_ = [part for part in one.parts if part.argument]
    names = "".join(f", {part.knows}=None" for part in given_)
    text = "\n".join(filter(None, setup)) + f"\n@compile\ndef step(x, k=1.0{names}):\n" + textwrap.indent(body, "    ")
    call = one.call[:-1] + "".join(f", {part.knows}={part.argument}" for part in given_) + ")"
    changes: dict[int, str] = {}
    for at, change in one.changes:
        changes[at] = f"{changes[at]}\n{change}" if at in changes else change
    given = {name: source for part in one.parts for name, source in part.modules.items()}
    alone = "draws differ, or what may be saved" if any(part.alone for part in (one.skeleton, *one.parts)) else ""
    return Program(f"seed {one.seed}", text, changes, call, given, (one.scope,), one.calls, alone)


def filled(template: str, body: str) -> str:
    """A template with statements in it, as deep as it wants them."""
    for name, depth in (("{body}", 0), ("{deep}", 4), ("{deeper}", 8)):
        template = template.replace(name, textwrap.indent(body, " " * depth))
    return template.replace("{{", "{").replace("}}", "}")


def smaller(one: Recipe) -> list[Recipe]:
    """What is left where one thing is left out."""
    found = [replace(one, parts=one.parts[:n] + one.parts[n + 1 :]) for n in range(len(one.parts))]
    found += [replace(one, changes=one.changes[:n] + one.changes[n + 1 :]) for n in range(len(one.changes))]
    found += [
        replace(one, parts=(*one.parts[:n], replace(part, wrap="{body}", outside=""), *one.parts[n + 1 :]))
        for n, part in enumerate(one.parts)
        if part.wrap != "{body}"
    ]
    if one.skeleton.name != "plain":
        found.append(replace(one, skeleton=Part("plain", "", "{parts}\nreturn x.detach()")))
    if one.calls > 2:
        found.append(replace(one, calls=one.calls - 1, changes=tuple(c for c in one.changes if c[0] < one.calls)))
    found += [replace(one, scope=GLOBALS)] if one.scope != GLOBALS else []
    found += [replace(one, call="step(data(n))")] if one.call != "step(data(n))" else []
    found += [replace(one, reading="at once")] if one.reading != "at once" else []
    return found
