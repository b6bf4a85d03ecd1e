"""Programs whose state is where nobody thinks of looking: what a compiled step reads changes between two calls.

Each is run as Python runs it and compiled without audits, call by call: three times, and three times after the change.
`call` is evaluated for each call, so what it writes out is new each time. replays: so many runs without Python, at
least, are wanted before the change: what is understood is guarded, and not refused. Short ones are in
unknown_places.txt; in counting_steps.txt those of which the second call is audited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PRELUDE = """
import abc, collections, enum, functools, operator, os, statistics, sys, types, typing, weakref
import collections.abc
from dataclasses import dataclass, field
import numpy as np
import pywebgpu as torch
from pywebgpu import nn, optim
from pywebgpu.nn import functional as F
x = torch.tensor([1.0, -2.0, 3.0])
"""


@dataclass(frozen=True)
class Case:
    """setup: defines `step` and what it needs. call: one call. change: what happens after the third."""

    name: str
    setup: str
    change: str
    call: str = "step(x)"
    replays: int = 0
    audit: str = "0"


# State on arguments

ARGUMENTS = (
    Case(
        "attribute_set_in_post_init",
        """
@dataclass
class C:
    a: float
    def __post_init__(self): self.b = self.a
c = C(2.0)
def step(x, c): return x * c.b
""",
        "c.b = 5.0",
        "step(x, c)",
        replays=2,
    ),
    Case(
        "attribute_set_in_post_init_of_new_objects",
        """
k = 2.0
@dataclass
class C:
    a: int
    def __post_init__(self): self.b = k
def step(x, c): return x * c.b
""",
        "k = 5.0",
        "step(x, C(1))",
        replays=2,
    ),
    Case(
        "class_variable",
        """
@dataclass
class C:
    a: float
    scale: typing.ClassVar[float] = 2.0
def step(x, c): return x * c.scale
""",
        "C.scale = 5.0",
        "step(x, C(1.0))",
        replays=2,
    ),
    Case(
        "class_attribute_of_named_tuple",
        """
class P(typing.NamedTuple):
    a: float
P.scale = 2.0
def step(x, p): return x * p.scale
""",
        "P.scale = 5.0",
        "step(x, P(1.0))",
        replays=2,
    ),
    Case(
        "property_of_named_tuple",
        """
Base = collections.namedtuple('Base', 'a b')
class P(Base):
    __slots__ = ()
    @property
    def scale(self): return self.a * 2
def step(x, p): return x * p.scale
""",
        "P.scale = property(lambda self: 7.0)",
        "step(x, P(1, 2))",
        replays=2,
    ),
    Case("attribute_of_a_tensor", "x.tag = 2.0\ndef step(x): return x * x.tag", "x.tag = 5.0", replays=2),
    Case(
        "attribute_that_a_tensor_gets",
        "def step(x): return x * getattr(x, 'tag', 1.0)",
        "x.tag = 5.0",
        replays=2,
    ),
    Case(
        "tensor_on_a_tensor",
        "x.tag = torch.ones(3)\ndef step(x): return x * x.tag",
        "x.tag = torch.full((3,), 4.0)",
        replays=2,
    ),
    Case(
        "object_on_a_tensor",
        "x.tag = types.SimpleNamespace(k=2.0)\ndef step(x): return x * x.tag.k",
        "x.tag.k = 4.0",
        replays=2,
    ),
    Case(
        "attribute_of_a_global_tensor",
        """
w = torch.ones(3)
def step(x):
    try: return x * w.tag
    except AttributeError: return x * w
""",
        "w.tag = 5.0",
        replays=2,
    ),
    Case(
        "class_of_a_tensor_subclass",
        """
class T(torch.Tensor):
    scale = 2.0
t = torch.ones(3).as_subclass(T)
def step(t): return (t * t.scale).as_subclass(torch.Tensor)
""",
        "T.scale = 5.0",
        "step(t)",
    ),
    Case(
        "method_of_a_tensor_subclass",
        """
class T(torch.Tensor):
    def grown(self): return self * 2.0
t = torch.ones(3).as_subclass(T)
def step(t): return t.grown().as_subclass(torch.Tensor)
""",
        "T.grown = lambda self: self * 3.0",
        "step(t)",
    ),
    Case(
        "attribute_of_a_dict",
        """
class D(dict): pass
d = D(a=1.0); d.scale = 2.0
def step(x, d): return x * d.scale
""",
        "d.scale = 5.0",
        "step(x, d)",
        replays=2,
    ),
    Case(
        "class_of_a_dict",
        """
class D(dict):
    scale = 2.0
def step(x, d): return x * d.scale
""",
        "D.scale = 5.0",
        "step(x, D(a=1.0))",
        replays=2,
    ),
    Case(
        "what_a_dict_does_for_missing_keys",
        """
class D(dict):
    def __missing__(self, key): return 2.0
def step(x, d): return x * d['k']
""",
        "D.__missing__ = lambda self, key: 5.0",
        "step(x, D())",
        replays=2,
    ),
    Case(
        "default_of_a_defaultdict",
        "d = collections.defaultdict(lambda: 2.0)\ndef step(x, d): return x * d.get('k', d.default_factory())",
        "d.default_factory = lambda: 5.0",
        "step(x, d)",
    ),
    Case(
        "attribute_of_a_list",
        """
class L(list): pass
def made(k):
    l = L([1.0]); l.scale = k; return l
k = 2.0
def step(x, l): return x * l.scale
""",
        "k = 5.0",
        "step(x, made(k))",
        replays=2,
    ),
    Case(
        "attribute_of_a_tuple",
        """
class L(tuple): pass
l = L([1.0]); l.scale = 2.0
def step(x, l): return x * l.scale
""",
        "l.scale = 5.0",
        "step(x, l)",
        replays=2,
    ),
    Case(
        "attribute_of_an_int",
        """
class N(int): pass
n = N(3); n.scale = 2.0
def step(x, n): return x * n.scale
""",
        "n.scale = 5.0",
        "step(x, n)",
        replays=2,
    ),
    Case(
        "attribute_of_a_str",
        """
class S(str): pass
s = S('a'); s.scale = 2.0
def step(x, s): return x * s.scale
""",
        "s.scale = 5.0",
        "step(x, s)",
        replays=2,
    ),
    Case(
        "attribute_of_a_float",
        """
class R(float): pass
r = R(3.0); r.scale = 2.0
def step(x, r): return x * r.scale
""",
        "r.scale = 5.0",
        "step(x, r)",
        replays=2,
    ),
    Case(
        "slot_of_a_str",
        """
class S(bytes): pass
class Q(tuple):
    @property
    def scale(self): return TABLE[self[0]]
TABLE = {'a': 2.0}
def step(x, s): return x * s.scale
""",
        "TABLE['a'] = 5.0",
        "step(x, Q('a'))",
        replays=2,
    ),
    Case(
        "attribute_of_an_array",
        """
class A(np.ndarray): pass
a = np.ones(3).view(A); a.scale = 2.0
def step(x, a): return x * a.scale
""",
        "a.scale = 5.0",
        "step(x, a)",
    ),
    Case(
        "attribute_of_an_int_enum",
        """
class E(enum.IntEnum):
    A = 1
E.A.scale = 2.0
def step(x, e): return x * e.scale
""",
        "E.A.scale = 5.0",
        "step(x, E.A)",
        replays=2,
    ),
    Case(
        "attribute_of_a_str_enum",
        """
class E(str, enum.Enum):
    A = 'a'
    @property
    def scale(self): return TABLE[self.value]
TABLE = {'a': 2.0}
def step(x, e): return x * e.scale
""",
        "TABLE['a'] = 5.0",
        "step(x, E.A)",
        replays=2,
    ),
    Case(
        "attribute_of_a_key",
        """
class K:
    scale = 2.0
key = K()
def step(x, d): return sum(x * k.scale for k in d)
""",
        "key.scale = 5.0",
        "step(x, {key: 1})",
        replays=2,
    ),
    Case(
        "attribute_of_a_key_that_is_a_str",
        """
class S(str): pass
key = S('a'); key.scale = 2.0
def step(x, d):
    for k in d: x = x * k.scale
    return x
""",
        "key.scale = 5.0",
        "step(x, {key: 1})",
        replays=2,
    ),
    Case(
        "array_of_objects",
        """
a = np.array([[2.0], None], dtype=object)
def step(x, a): return x * a[0][0]
""",
        "a[0][0] = 5.0",
        "step(x, a)",
    ),
    Case(
        "array_of_lists",
        """
a = np.empty(1, dtype=object); a[0] = [2.0]
def step(x): return x * a[0][0]
""",
        "a[0][0] = 5.0",
    ),
    Case(
        "names_of_a_structured_array",
        """
a = np.array([(2.0, 5.0)], dtype=[('p', 'f8'), ('q', 'f8')])
def step(x, a): return x * float(a['p'][0])
""",
        "a = a.astype([('q', 'f8'), ('p', 'f8')]); a.dtype.names = ('q', 'p')",
        "step(x, a)",
    ),
    Case(
        "strides_of_an_array",
        """
a = np.ones((2, 2))
def step(x, a): return x * float(a.strides[0])
""",
        "a = np.asfortranarray(a)",
        "step(x, a)",
        replays=2,
    ),
    Case(
        "named_tuples_alike",
        """
def step(x, p): return x * type(p).scale
class P(typing.NamedTuple):
    a: int
class Q(typing.NamedTuple):
    a: int
P.scale, Q.scale = 2.0, 3.0
p = P(1)
""",
        "p = Q(1)",
        "step(x, p)",
        replays=2,
    ),
    Case(
        "state_deep_in_an_argument",
        """
class Leaf: pass
leaf = Leaf(); leaf.k = 2.0
class Holder:
    def __init__(self): self.parts = {'a': [leaf]}
holder = Holder()
def step(x, h): return x * h.parts['a'][0].k
""",
        "leaf.k = 5.0",
        "step(x, holder)",
        replays=2,
    ),
    Case(
        "slots_of_an_argument",
        """
class C:
    __slots__ = ('scale', '__dict__')
c = C(); c.scale = 2.0
def step(x, c): return x * c.scale
""",
        "c.scale = 5.0",
        "step(x, c)",
        replays=2,
    ),
    Case(
        "slots_of_a_dataclass",
        """
@dataclass
class C:
    __slots__ = ('a', 'hidden')
    a: int
c = C(1); c.hidden = 2.0
def step(x, c): return x * c.hidden
""",
        "c.hidden = 5.0",
        "step(x, c)",
        replays=2,
    ),
)

# Names that code reads without naming them

NAMES = (
    Case(
        "match_of_attributes",
        """
class C: pass
c = C(); c.scale = 2.0
def step(x):
    match c:
        case C(scale=s): return x * s
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "match_of_positions",
        """
class C:
    __match_args__ = ('scale',)
c = C(); c.scale = 2.0
def step(x):
    match c:
        case C(s): return x * s
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "match_of_other_positions",
        """
class C:
    __match_args__ = ('a',)
c = C(); c.a, c.b = 2.0, 5.0
def step(x):
    match c:
        case C(s): return x * s
""",
        "C.__match_args__ = ('b',)",
        replays=2,
    ),
    Case(
        "format_of_an_attribute",
        """
class C: pass
c = C(); c.scale = 2.0
def step(x): return x * float("{0.scale}".format(c))
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "format_map_of_an_attribute",
        """
class C: pass
c = C(); c.scale = 2.0
template = "{c.scale}"
def step(x): return x * float(template.format_map({'c': c}))
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "attrgetter_from_outside",
        """
class C: pass
c = C(); c.scale = 2.0
get = operator.attrgetter('scale')
def step(x): return x * get(c)
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "deep_attrgetter_from_outside",
        """
class C: pass
c = C(); c.inner = C(); c.inner.scale = 2.0
get = operator.attrgetter('inner.scale')
def step(x): return x * get(c)
""",
        "c.inner.scale = 5.0",
        replays=2,
    ),
    Case(
        "methodcaller_from_outside",
        """
class C:
    def scale(self): return 2.0
c = C()
get = operator.methodcaller('scale')
def step(x): return x * get(c)
""",
        "c.scale = lambda: 5.0",
        replays=2,
    ),
    Case(
        "getattr_by_another_name",
        """
class C: pass
c = C(); c.scale = 2.0
read, name = getattr, 'sc' + 'ale'
def step(x): return x * read(c, name)
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "attrgetter_by_another_name",
        """
from operator import attrgetter as reader
class C: pass
c = C(); c.scale = 2.0
def step(x): return x * reader('scale')(c)
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "partial_getattr",
        """
class C: pass
c = C(); c.scale = 2.0
read = functools.partial(getattr, c, 'scale')
def step(x): return x * read()
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "partial_vars",
        """
class C: pass
c = C(); c.scale = 2.0
read = functools.partial(vars, c)
def step(x): return x * read()['scale']
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "getattribute_by_another_name",
        """
class C: pass
c = C(); c.scale = 2.0
read = object.__getattribute__
def step(x): return x * read(c, 'scale')
""",
        "c.scale = 5.0",
        replays=2,
    ),
    Case(
        "fields_as_a_dict",
        """
import dataclasses
@dataclass
class C:
    scale: float = 2.0
c = C()
def step(x): return x * dataclasses.asdict(c)['scale']
""",
        "c.scale = 5.0",
    ),
    Case(
        "a_copy_of_an_object",
        """
import copy
class C: pass
c = C(); c.scale = 2.0
def step(x): return x * vars(copy.copy(c))['scale']
""",
        "c.scale = 5.0",
    ),
    Case(
        "descriptor_that_reads_another_name",
        """
class D:
    def __get__(self, owner, kind): return owner.__dict__['hidden']
class C:
    scale = D()
c = C(); c.hidden = 2.0
def step(x): return x * c.scale
""",
        "c.hidden = 5.0",
        replays=2,
    ),
    Case(
        "getattr_of_a_class",
        """
class C:
    def __getattr__(self, name): return self.table[name]
c = C(); c.table = {'scale': 2.0}
def step(x): return x * c.scale
""",
        "c.table['scale'] = 5.0",
        replays=2,
    ),
)

# State of the package

PACKAGE = (
    Case(
        "scale_of_a_distribution",
        """
dist = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
def step(x): return dist.log_prob(x)
""",
        "dist.scale = torch.full((3,), 4.0)",
        replays=2,
    ),
    Case(
        "written_scale_of_a_distribution",
        """
dist = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
def step(x): return dist.log_prob(x)
""",
        "dist.scale.fill_(4.0)",
        replays=2,
    ),
    Case(
        "scale_of_a_transform",
        """
move = torch.distributions.transforms.AffineTransform(1.0, 2.0)
def step(x): return move(x)
""",
        "move.scale = 5.0",
    ),
    Case(
        "transform_of_a_distribution",
        """
T = torch.distributions.transforms
dist = torch.distributions.TransformedDistribution(
    torch.distributions.Normal(torch.zeros(3), torch.ones(3)), [T.AffineTransform(1.0, 2.0)])
def step(x): return dist.log_prob(x)
""",
        "dist.transforms[0].scale = 5.0",
    ),
    Case(
        "growth_interval_of_a_scaler",
        """
w = nn.Parameter(torch.ones(3))
o = optim.SGD([w], lr=0.1)
s = torch.amp.GradScaler('cpu', init_scale=4.0, growth_interval=100)
def step(x):
    o.zero_grad()
    s.scale((w * x).sum()).backward()
    s.step(o); s.update()
    return s._scale.clone(), w.detach().clone()
""",
        "s.set_growth_interval(4)",
        replays=1,
    ),
    Case(
        "growth_factor_of_a_scaler",
        """
w = nn.Parameter(torch.ones(3))
o = optim.SGD([w], lr=0.1)
s = torch.amp.GradScaler('cpu', init_scale=4.0, growth_interval=1)
def step(x):
    o.zero_grad()
    s.scale((w * x).sum()).backward()
    s.step(o); s.update()
    return s._scale.clone(), w.detach().clone()
""",
        "s.set_growth_factor(8.0)",
        replays=1,
    ),
    Case(
        "matmul_precision",
        """
def step(x): return x * (2.0 if torch.get_float32_matmul_precision() == 'highest' else 3.0)
torch.set_float32_matmul_precision('highest')
""",
        "torch.set_float32_matmul_precision('high')",
        replays=2,
    ),
    Case(
        "switch_of_a_backend",
        "def step(x): return x * (2.0 if torch.backends.cudnn.benchmark else 3.0)\n"
        "torch.backends.cudnn.benchmark = False",
        "torch.backends.cudnn.benchmark = True",
        replays=2,
    ),
    Case(
        "switch_of_attention",
        "def step(x): return x * (2.0 if torch.backends.cuda.flash_sdp_enabled() else 3.0)\n"
        "torch.backends.cuda.enable_flash_sdp(False)",
        "torch.backends.cuda.enable_flash_sdp(True)",
    ),
    Case(
        "hooks_of_every_module",
        """
m = nn.Linear(3, 2)
nn.init.constant_(m.weight, 0.5); nn.init.constant_(m.bias, 0.25)
def step(x): return m(x).detach()
""",
        "handle = nn.modules.module.register_module_forward_hook(lambda module, given, out: out * 2)",
        replays=2,
    ),
    Case(
        "method_of_tensor",
        "def step(x): return x.relu()",
        "patch(torch.Tensor, 'relu', lambda self: self * 2)",
        replays=2,
    ),
    Case(
        "operator_of_tensor",
        "def step(x): return x + 1",
        "patch(torch.Tensor, '__add__', lambda self, other: self * 2)",
        replays=2,
    ),
    Case(
        "function_of_the_package",
        "def step(x): return torch.relu(x)",
        "patch(torch, 'relu', lambda x: x * 2)",
        replays=2,
    ),
    Case(
        "forward_of_a_layer",
        "m = nn.ReLU()\ndef step(x): return m(x)",
        "patch(nn.ReLU, 'forward', lambda self, x: x * 2)",
        replays=2,
    ),
    Case(
        "call_of_every_layer",
        "m = nn.ReLU()\ndef step(x): return m(x)",
        "patch(nn.Module, '__call__', lambda self, x: x * 2)",
        replays=2,
    ),
    Case(
        "option_of_a_loss",
        "loss = nn.MSELoss()\ny = torch.zeros(3)\ndef step(x): return loss(x, y)",
        "loss.reduction = 'sum'",
        replays=2,
    ),
    Case(
        "option_of_a_layer",
        "m = nn.LeakyReLU(0.5)\ndef step(x): return m(x)",
        "m.negative_slope = 0.25",
        replays=2,
    ),
    Case(
        "gamma_of_a_schedule",
        """
w = nn.Parameter(torch.ones(3))
o = optim.SGD([w], lr=0.1)
s = optim.lr_scheduler.ExponentialLR(o, 0.9)
def step(x):
    o.zero_grad(); (w * x).sum().backward(); o.step(); s.step()
    return w.detach().clone()
""",
        "s.gamma = 0.5",
        replays=1,
    ),
)

# Files that the package reads and writes

FILES = (
    Case(
        "a_file_that_is_loaded",
        """
path = os.path.join(folder, 'k.pt')
torch.save(torch.tensor([2.0]), path)
def step(x): return x * torch.load(path)
""",
        "torch.save(torch.tensor([5.0]), path)",
    ),
    Case(
        "events_that_are_written",
        """
import tempfile
from pywebgpu.utils.tensorboard import SummaryWriter
folder = tempfile.mkdtemp(dir=folder)
writer = SummaryWriter(folder)
def step(x):
    writer.add_scalar('k', 1.0, 1)
    return x * 2
def size():
    writer.flush()
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
""",
        "pass",
        "(step(x), size())",
    ),
)

# Signatures: types and bits, not equality

SIGNATURES = (
    Case(
        "keys_1_and_true",
        "d = {1: 2.0}\ndef step(x, d): return x * (2.0 if type(next(iter(d))) is int else 3.0)",
        "d = {True: 2.0}",
        "step(x, d)",
        replays=2,
    ),
    Case(
        "keys_1_and_a_float",
        "d = {1: 2.0}\ndef step(x, d): return x * (2.0 if type(next(iter(d))) is int else 3.0)",
        "d = {1.0: 2.0}",
        "step(x, d)",
        replays=2,
    ),
    Case(
        "zeros_as_keys",
        "d = {0.0: 2.0}\ndef step(x, d): return x * (2.0 if str(next(iter(d))) == '0.0' else 3.0)",
        "d = {-0.0: 2.0}",
        "step(x, d)",
        replays=2,
    ),
    Case(
        "keys_in_tuples",
        "d = {(1, 2): 2.0}\ndef step(x, d): return x * (2.0 if str(next(iter(d))) == '(1, 2)' else 3.0)",
        "d = {(True, 2): 2.0}",
        "step(x, d)",
        replays=2,
    ),
    Case(
        "zeros_of_complex_numbers",
        "c = complex(-1, 0.)\ndef step(x, c): return x * (2.0 if str(c) == '(-1+0j)' else 3.0)",
        "c = complex(-1, -0.)",
        "step(x, c)",
        replays=2,
    ),
    Case(
        "ranges_of_equal_items",
        "r = range(0, 3, 2)\ndef step(x, r): return x * float(r.stop)",
        "r = range(0, 4, 2)",
        "step(x, r)",
        replays=2,
    ),
    Case(
        "slices",
        "r = slice(0, 3)\ndef step(x, r): return x * (2.0 if type(r.start) is int else 3.0)",
        "r = slice(False, 3)",
        "step(x, r)",
    ),
    Case(
        "sets_of_equal_items",
        "r = frozenset([1])\ndef step(x, r): return x * (2.0 if type(next(iter(r))) is int else 3.0)",
        "r = frozenset([True])",
        "step(x, r)",
    ),
    Case(
        "numbers_of_numpy",
        "k = 2.0\ndef step(x, k): return x * (2.0 if isinstance(k, np.generic) else 3.0)",
        "k = np.float64(2.0)",
        "step(x, k)",
    ),
    Case(
        "bools_in_numpy",
        "k = 1\ndef step(x, k): return x * (2.0 if type(k) is int else 3.0)",
        "k = True",
        "step(x, k)",
        replays=2,
    ),
)

# Others

OTHERS = (
    Case(
        "a_module_that_is_swapped",
        """
m = types.ModuleType('swapped_module'); m.S = 2.0
sys.modules['swapped_module'] = m
def step(x):
    from swapped_module import S
    return x * S
""",
        "n = types.ModuleType('swapped_module'); n.S = 5.0; sys.modules['swapped_module'] = n",
        replays=2,
    ),
    Case(
        "a_module_that_is_swapped_and_imported_whole",
        """
m = types.ModuleType('swapped_module'); m.S = 2.0
sys.modules['swapped_module'] = m
def step(x):
    import swapped_module
    return x * swapped_module.S
""",
        "n = types.ModuleType('swapped_module'); n.S = 5.0; sys.modules['swapped_module'] = n",
        replays=2,
    ),
    Case(
        "a_finalizer",
        """
class C: pass
c = C()
end = weakref.finalize(c, int)
def step(x): return x * (2.0 if end.alive else 3.0)
""",
        "end.detach()",
    ),
    Case(
        "subclasses",
        """
class C: pass
def step(x): return x * (1.0 + len(C.__subclasses__()))
""",
        "class D(C): pass",
    ),
    Case(
        "a_protocol",
        """
@typing.runtime_checkable
class P(typing.Protocol):
    scale: float
class C: pass
c = C()
def step(x): return x * (2.0 if isinstance(c, P) else 3.0)
""",
        "setattr(C, 'scale', 1.0)",
    ),
    Case(
        "a_protocol_of_an_object",
        """
@typing.runtime_checkable
class P(typing.Protocol):
    scale: float
class C: pass
c = C()
def step(x): return x * (2.0 if isinstance(c, P) else 3.0)
""",
        "c.scale = 1.0",
    ),
    Case(
        "a_registered_class",
        """
class A(abc.ABC): pass
class C: pass
c = C()
def step(x): return x * (2.0 if isinstance(c, A) else 3.0)
""",
        "A.register(C)",
        replays=2,
    ),
    Case(
        "a_hook_of_subclasses",
        """
class A(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other): return getattr(other, 'is_one', False)
class C:
    is_one = False
c = C()
def step(x): return x * (2.0 if isinstance(c, A) else 3.0)
""",
        "C.is_one = True",
    ),
    Case(
        "a_mean_of_free_numbers",
        "k = 2.0\ndef step(x, k): return x * statistics.mean([k, 1.0])",
        "k = 5.0",
        "step(x, k)",
    ),
    Case(
        "a_sum_of_fractions",
        "import fractions\nk = 2.0\ndef step(x, k): return x * float(fractions.Fraction(k))",
        "k = 5.0",
        "step(x, k)",
    ),
    Case(
        "text_of_free_numbers",
        "import json\ntext = json.dumps\nk = 2.0\ndef step(x, k): return x * float(text(k))",
        "k = 5.0",
        "step(x, k)",
    ),
    Case(
        "types_by_another_name",
        "kind = type\nk = 2.0\ndef step(x, k): return x * (k if kind(k) is float else 7.0)",
        "k = 5.0",
        "step(x, k)",
    ),
    Case(
        "a_decimal_by_another_name",
        "from decimal import Decimal as D\nk = 2.0\ndef step(x, k): return x * float(D(k))",
        "k = 5.0",
        "step(x, k)",
    ),
    Case(
        "a_quasi_newton_step",
        """
w = nn.Parameter(torch.ones(3))
o = optim.LBFGS([w], lr=0.5, max_iter=2)
def step(x):
    def closure():
        o.zero_grad()
        loss = ((w - x) ** 2).sum()
        loss.backward()
        return loss
    o.step(closure)
    return w.detach().clone()
""",
        "pass",
    ),
    Case(
        "an_average_of_models",
        """
m = nn.Linear(3, 1)
nn.init.constant_(m.weight, 0.5); nn.init.constant_(m.bias, 0.25)
o = optim.SGD(m.parameters(), lr=0.1)
a = optim.swa_utils.AveragedModel(m)
def step(x):
    o.zero_grad()
    m(x).sum().backward()
    o.step()
    a.update_parameters(m)
    return a.module.weight.detach().clone(), m.weight.detach().clone()
""",
        "pass",
    ),
)

# Common programs, which are replayed from the second call on, whatever else stands around them

TRAINER = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, width), nn.Linear(width, 3)])
        self.norm, self.drop = nn.LayerNorm(3), nn.Dropout(0.0)
        self.register_buffer('offset', torch.zeros(3))
    def forward(self, x):
        for layer in self.layers: x = F.gelu(layer(x))
        return self.norm(self.drop(x)) + self.offset
torch.manual_seed(0)
"""
COMMON = (
    Case(
        "a_trainer_with_a_config",
        TRAINER
        + """
@dataclass
class Config:
    lr: float = 0.1
    betas: tuple = (0.9, 0.99)
    clip: float = 1.0
class Trainer:
    def __init__(self, config):
        self.config, self.model, self.history, self.epoch = config, Model(4), [], 0
        self.optimizer = optim.AdamW(self.model.parameters(), lr=config.lr, betas=config.betas)
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10)
    def step(self, x):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), torch.zeros(3))
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()
trainer = Trainer(Config())
step = trainer.step
def call():
    trainer.epoch += 1
    trainer.history.append(float(step(x)))
    return trainer.history[-1]
""",
        "pass",
        "call()",
        replays=2,
    ),
    Case(
        "a_schedule_outside",
        TRAINER
        + """
m = Model(4)
o = optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
s = optim.lr_scheduler.StepLR(o, 2)
def step(x):
    o.zero_grad()
    loss = m(x).square().sum()
    loss.backward()
    o.step()
    return loss.detach()
def call():
    out = step(x)
    s.step()
    return out
""",
        "pass",
        "call()",
        replays=2,
    ),
    Case(
        "batches_that_are_named_tuples",
        TRAINER
        + """
class Batch(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor
m = Model(4)
def step(batch):
    with torch.no_grad(): return F.l1_loss(m(batch.x), batch.y)
""",
        "pass",
        "step(Batch(x * 2, x.abs()))",
        replays=2,
    ),
    Case(
        "batches_that_are_dicts_and_dataclasses",
        TRAINER
        + """
@dataclass
class Batch:
    x: torch.Tensor
    size: int = 3
    extra: dict = field(default_factory=dict)
m = Model(4)
@torch.no_grad()
def step(batch, more): return m(batch.x) * batch.size + more['y']
""",
        "pass",
        "step(Batch(x * 2), {'y': x})",
        replays=2,
    ),
    Case(
        "a_scaler_with_autocast",
        TRAINER
        + """
m = Model(4)
o = optim.Adam(m.parameters(), lr=0.1)
s = torch.amp.GradScaler('cpu', init_scale=4.0)
def step(x):
    o.zero_grad(set_to_none=True)
    with torch.autocast('cpu', dtype=torch.bfloat16): loss = m(x).float().square().mean()
    s.scale(loss).backward()
    s.unscale_(o)
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    s.step(o); s.update()
    return loss.detach()
""",
        "pass",
        replays=1,
    ),
    Case(
        "a_loss_object_and_an_enum",
        TRAINER
        + """
class Mode(enum.Enum):
    TRAIN = 'train'
    EVAL = 'eval'
class Kind(enum.IntEnum):
    A = 1
m, criterion = Model(4), nn.SmoothL1Loss(beta=0.5)
def step(x, mode, kind=Kind.A):
    if mode is Mode.TRAIN: return criterion(m(x), x * kind).detach()
    return m(x).detach()
""",
        "pass",
        "step(x, Mode.TRAIN)",
        replays=2,
    ),
    Case(
        "an_average_by_hand",
        TRAINER
        + """
import copy
m = Model(4)
ema = copy.deepcopy(m)
o = optim.RMSprop(m.parameters(), lr=0.01)
def update(decay=0.9):
    with torch.no_grad():
        for a, b in zip(ema.parameters(), m.parameters()): a.lerp_(b, 1 - decay)
def step(x):
    o.zero_grad()
    loss = m(x).square().sum()
    loss.backward()
    o.step()
    update()
    return loss.detach(), next(ema.parameters()).detach().clone()
""",
        "pass",
        replays=1,
    ),
    Case(
        "a_distribution_that_is_drawn_from",
        """
dist = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
torch.manual_seed(0)
def step(x): return dist.log_prob(x) + dist.sample()
""",
        "pass",
        replays=2,
    ),
    Case(
        "a_namespace_of_options",
        TRAINER
        + """
import argparse
args = argparse.Namespace(scale=2.0, depth=2, names=['a', 'b'])
m = Model(4)
def step(x, args):
    for _ in range(args.depth): x = m(x) * args.scale
    return x.detach()
""",
        "args.unread = 1",
        "step(x, args)",
        replays=2,
    ),
    Case(
        "a_partial_and_a_cached_property",
        TRAINER
        + """
class Task:
    def __init__(self): self.m = Model(4)
    @functools.cached_property
    def loss(self): return functools.partial(F.mse_loss, reduction='sum')
    @property
    def scale(self): return 2.0
task = Task()
task.loss
def step(x): return task.loss(task.m(x), x).detach() * task.scale
""",
        "pass",
        replays=2,
    ),
    Case(
        "modes_of_modules_set_by_steps_in_turn",
        """
m = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
nn.init.ones_(m[0].weight)
nn.init.zeros_(m[0].bias)
x = torch.tensor([[1.0, -2.0, 3.0], [0.5, 1.0, 2.0]])
def evaluate(x):
    m.eval()
    with torch.no_grad(): return m(x)
def step(x):
    m.train()
    m[1].eval()
    return m(x).detach()
""",
        "m[0].weight.data.mul_(2)",
        "[step(x), m[1].training, evaluate(x), m.training]",
        replays=2,
    ),
    Case(
        "step_number_that_warms_a_rate_up",
        """
n = 0
m = nn.Linear(3, 3)
nn.init.ones_(m.weight)
nn.init.zeros_(m.bias)
o = optim.SGD(m.parameters(), lr=0.01)
def step(x, n):
    for group in o.param_groups: group['lr'] = 0.1 * min(1.0, (n + 1) / 100)
    o.zero_grad()
    loss = m(x).square().mean()
    loss.backward()
    o.step()
    return loss.detach()
def call():
    global n
    n += 1
    return [step(x, 2 * n), step(x, 2 * n + 1)]
""",
        "pass",
        "call()",
        replays=3,
    ),
    Case(
        "batches_as_objects",
        """
class Batch(collections.UserDict):
    def __getattr__(self, name): return self.data[name]
class Pair:
    def __init__(self, x, y): self.x, self.y = x, y
def step(batch, pair): return (batch['x'] * batch.y).sum() + pair.x * pair.y
""",
        "x = x * 2",
        "step(Batch(x=x, y=x + 1), Pair(x, x))",
        replays=1,
    ),
    Case(
        "timer_behind_a_flag",
        """
import time
timed = verbose = False
def step(x):
    start = time.perf_counter() if timed else 0.0
    if verbose: print(x, time.time() - start, os.getcwd())
    return x * 2
""",
        "pass",
        replays=2,
    ),
    Case(
        "losses_in_a_dict_and_a_rate_that_changes",
        TRAINER
        + """
m = Model(4)
weights = {'mse': 1.0, 'l1': 0.5}
losses = {'mse': F.mse_loss, 'l1': F.l1_loss}
o = optim.Adam(m.parameters())
n = 0
def step(x, rate):
    for group in o.param_groups: group['lr'] = rate
    o.zero_grad()
    loss = sum(weights[name] * losses[name](m(x), x) for name in losses)
    loss.backward()
    o.step()
    return {'loss': loss.detach(), 'rate': rate}
def call():
    global n
    n += 1
    return list(step(x, 0.1 / n).values())
""",
        "pass",
        "call()",
        replays=1,
    ),
    Case(
        "betas_that_the_step_changes",
        """
w = nn.Parameter(torch.ones(3))
o = optim.Adam([w], lr=0.1)
def step(x):
    group = o.param_groups[0]
    group['betas'] = (group['betas'][0] * 0.99, 0.999)
    o.zero_grad()
    (w * x).sum().backward()
    o.step()
    return w.detach().clone()
""",
        "o.param_groups[0]['betas'] = (0.5, 0.9)",
        "[step(x), o.param_groups[0]['betas'], type(o.param_groups[0]['betas'][0]).__name__]",
        replays=1,
    ),
    Case(
        "betas_that_are_passed",
        """
w = nn.Parameter(torch.ones(3))
o = optim.Adam([w], lr=0.1)
n = 0
def step(x, k):
    for group in o.param_groups: group['betas'] = (k, 0.999)
    o.zero_grad()
    (w * x).sum().backward()
    o.step()
    return w.detach().clone()
def call():
    global n
    n += 1
    return step(x, 0.5 + n / 40), o.param_groups[0]['betas']
""",
        "o.param_groups[0]['betas'] = [0.7, 0.9]",
        "call()",
        replays=1,
    ),
)


def _short(file: str, audit: str) -> Iterator[Case]:
    for text in (Path(__file__).parent / file).read_text().split("\n## ")[1:]:
        name, *lines = text.splitlines()
        marked = {mark: "\n".join(line[3:] for line in lines if line.startswith(mark)) for mark in ("#:", "#>")}
        setup = "\n".join(line for line in lines if not line.startswith(("#:", "#>")))
        yield Case(name, setup, marked["#>"], marked["#:"] or "step(x)", audit=audit)


# By name: what a step calls of a class in a library that it does not name; the class and the part that is replaced.
IN_LIBRARIES = {
    "textwrap": ("len(textwrap.fill('a b c d e f', 4))", "textwrap.TextWrapper, '_wrap_chunks', lambda *_: ['x']"),
    "contextlib": ("entered(cm())", "contextlib._GeneratorContextManager, '__enter__', lambda _: 5.0"),
    "nullcontext": ("entered(contextlib.nullcontext(2.0))", "contextlib.nullcontext, '__enter__', lambda _: 5.0"),
    "exit_stack": (
        "contextlib.ExitStack().enter_context(cm())",
        "contextlib._BaseExitStack, 'enter_context', lambda *_: 5.0",
    ),
    "counter": ("1 + ct['q']", "collections.Counter, '__missing__', lambda *_: 5"),
    "chain_map": ("chained['a']", "collections.ChainMap, '__getitem__', lambda *_: 5.0"),
    "user_dict": ("user['a']", "collections.UserDict, '__getitem__', lambda *_: 5.0"),
    "flag": ("int(E.A | E.B)", "enum.IntFlag, '__or__', lambda *_: 7"),
    "mixin": ("mapping.get('a')", "collections.abc.Mapping, 'get', lambda *_: 5.0"),
    "template": (
        "len(string.Template('$a').substitute(a='zz'))",
        "string.Template, 'substitute', lambda *_, **__: 'z'",
    ),
}
OBJECTS_OF_LIBRARIES = """
import contextlib, string, textwrap
@contextlib.contextmanager
def cm(): yield 2.0
def entered(c):
    with c as k: return k
ct = collections.Counter("aab")
chained, user = collections.ChainMap({"a": 2.0}), collections.UserDict(a=2.0)
class E(enum.IntFlag): A = 1; B = 2
class Mapping(collections.abc.Mapping):
    def __getitem__(self, k): return 2.0
    def __iter__(self): return iter("a")
    def __len__(self): return 1
mapping = Mapping()
"""
LIBRARIES = tuple(
    Case(
        f"class_of_a_library_{name}",
        f"""
{OBJECTS_OF_LIBRARIES}
def step(x): return x * {call}
""",
        f"patch({change})",
        replays=2,
    )
    for name, (call, change) in IN_LIBRARIES.items()
)

# By name: what a step reads, and what changes it.
SWITCHES = {
    "conversions": (
        "torch.__future__.get_overwrite_module_params_on_conversion()",
        "torch.__future__.set_overwrite_module_params_on_conversion(True)",
    ),
    "exchanges": (
        "torch.__future__.get_swap_module_params_on_conversion()",
        "torch.__future__.set_swap_module_params_on_conversion(True)",
    ),
    "printing": ("torch.get_printoptions()['precision']", "torch.set_printoptions(precision=7)"),
    "options_by_their_older_name": ("torch._tensor_str.PRINT_OPTS.precision", "torch.set_printoptions(precision=7)"),
    "determinism": (
        "torch.are_deterministic_algorithms_enabled() + 1.0",
        "torch.use_deterministic_algorithms(True, warn_only=True)",
    ),
    "warnings": ("torch.is_warn_always_enabled() + 1.0", "torch.set_warn_always(True)"),
    "levels": (
        "torch.autograd.forward_ad._current_level + 2.0",
        "patch(torch.autograd.forward_ad._levels, 'entered', [[]])",
    ),
    "casts": ("torch.is_autocast_cache_enabled()", "torch.set_autocast_cache_enabled(False)"),
    "safe_globals": (
        "len(torch.serialization.get_safe_globals())",
        "torch.serialization.add_safe_globals([collections.Counter])",
    ),
    "trees": (
        "len(torch.utils._pytree.tree_leaves([P(), 1]))",
        "torch.utils._pytree.register_pytree_node(P, lambda p: ([1, 2, 3], None), lambda leaves, _: P())",
    ),
    "submodules": (
        "len(nn.Sequential(nn.ReLU())._modules['0']._get_name())",
        "nn.modules.module.register_module_module_registration_hook(lambda *_: nn.Identity())",
    ),
    "buffers": (
        "buffered().b",
        "nn.modules.module.register_module_buffer_registration_hook(lambda m, n, b: b * 5)",
    ),
    "operators": ("torch.ops.of_steps.twice(x)", "patch(torch.ops.of_steps, 'twice', lambda x: x * 5)"),
    "new_attribute": ("scaled(o)", "o.scale = 3.0"),
    "new_attribute_of_a_schedule": ("scaled(schedule)", "schedule.scale = 3.0"),
    "new_attribute_of_a_distribution": ("scaled(d)", "d.scale = 3.0"),
}
OF_THE_PACKAGE = tuple(
    Case(
        f"switch_of_the_package_{name}",
        f"""
import pywebgpu.utils._pytree
class P: pass
def buffered():
    m = nn.Module()
    m.register_buffer("b", torch.ones(3))
    return m
def scaled(thing):
    try: return thing.scale
    except AttributeError: return 1.0
w = nn.Parameter(torch.ones(3))
o = optim.SGD([w], lr=0.1)
schedule = optim.lr_scheduler.StepLR(o, 3)
d = torch.distributions.Bernoulli(torch.full((3,), 0.5))
if not hasattr(torch.ops.of_steps, "twice"):
    library = torch.library.Library("of_steps", "DEF")
    library.define("twice(Tensor a) -> Tensor")
    library.impl("twice", lambda a: a * 2, "CompositeImplicitAutograd")
def step(x): return x * (1 + {read})
""",
        change,
        replays=2,
    )
    for name, (read, change) in SWITCHES.items()
)

CHECKED_LATE = Case(
    "error_of_a_distribution_that_is_caught",
    """
d = torch.distributions.Bernoulli(torch.full((3,), 0.5))
def step(x):
    try: return d.log_prob(x)
    except ValueError: return x
""",
    "x.abs_().clamp_(max=1)",
)

ALL = (
    *ARGUMENTS,
    *LIBRARIES,
    *OF_THE_PACKAGE,
    CHECKED_LATE,
    *NAMES,
    *PACKAGE,
    *FILES,
    *SIGNATURES,
    *OTHERS,
    *COMMON,
    *_short("unknown_places.txt", "0"),
    *_short("counting_steps.txt", "first"),
)
