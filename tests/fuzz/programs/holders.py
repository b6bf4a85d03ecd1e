"""Values that a step reads a number from: objects with an attribute, containers with an item, and plain values.

Where they are is in homes.py. Any way of reading and any change may be drawn: one that Python refuses raises in each world.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    """before: statements, which make `make$(v)`. reads: expressions of `{a}` that give a number. changes: statements, of
    `{a}`, `{v}`, and `{put}`, which puts `make$({v})` there. groups: values, of one group in a program.
    """

    name: str
    before: str
    reads: tuple[str, ...]
    changes: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]


NUMBERS = (
    ("0.5", "2.0", "-1.5"),
    ("0.5", "2.0", "3"),
    ("1", "True", "1.0"),
    ("0.0", "-0.0", "0"),
    ("0.5", "np.float64(2.0)", "np.float32(0.5)"),
    ("2", "3", "5"),
)
ATTRIBUTE_READS = (
    "{a}.k", "{a}.k", "{a}.k", "getattr({a}, 'k')", "getattr({a}, 'k', 7.0)", "getattr({a}, 'K'.lower())",
    "vars({a})['k']", "{a}.__dict__['k']", "{a}.__dict__.get('k', 7.0)", "[*vars({a}).values()][-1]",
    "operator.attrgetter('k')({a})", "GET$({a})", "[*map(GET$, [{a}])][0]", "max([{a}], key=GET$).k", "sorted([{a}, {a}], key=GET$)[0].k",
    "GETS$({a})[0]", "CALL$({a})", "float('{{0.k}}'.format({a}))", "float('{{x.k}}'.format(x={a}))", "float(f'{{{a}.k}}')", "float(TEXT$.format({a}))",
    "float(format_$({a}))", "float('%(k)s' % vars({a}))", "float('{{k}}'.format_map(vars({a})))", "match_keyword$({a})", "match_order$({a})",
    "match_class$({a})", "match_dict$(vars({a}))", "object.__getattribute__({a}, 'k')", "{a}.__getattribute__('k')", "type({a}).__getattribute__({a}, 'k')",
    "functools.reduce(getattr, ['k'], {a})", "copy.copy({a}).k", "copy.deepcopy({a}).k", "(lambda a: a.k)({a})", "[o.k for o in [{a}]][0]",
    "next(o.k for o in ({a},))", "(2.0 if hasattr({a}, 'k') else 3.0)", "(2.0 if 'k' in vars({a}) else 3.0)", "type({a}).k", "{a}.__class__.k",
    "weakref.proxy({a}).k", "weakref.ref({a})().k", "types.MethodType(lambda s: s.k, {a})()", "functools.partial(getattr, {a})('k')", "getattr({a}, NAME$)",
    "dataclasses.asdict({a})['k']", "dataclasses.astuple({a})[0]", "dataclasses.replace({a}).k", "max(vars({a}).values())",
    "dict(vars({a}))['k']", "json.loads(json.dumps(vars({a})))['k']", "len(vars({a}))", "[getattr({a}, n) for n in vars({a})][0]",
    "next(v for n, v in vars({a}).items())", "eval_$({a})", "{a}.get()", "{a}.get()", "{a}.own()", "{a}.twice", "call_$({a}.get)", "float({a})", "abs({a})", "len({a})",
    "(1 + {a})", "{a}[0]", "({a} == 1)", "({a} < 1.0)", "(2.0 if {a} else 3.0)", "sum(iter({a}))", "{a}()", "float(format({a}, 'x'))", "hash({a}) % 7", "(0.5 in {a}) + 1.0",
    "round({a})", "len(str({a}))", "enter_$({a})", "len(dir({a})) % 7", "isinstance({a}, HasK$) + 1.0",
)  # fmt: skip
ATTRIBUTE_CHANGES = (
    "{a}.k = {v}", "{a}.k = {v}", "{a}.k = {v}", "setattr({a}, 'k', {v})", "vars({a})['k'] = {v}", "{a}.__dict__.update(k={v})", "object.__setattr__({a}, 'k', {v})",
    "type({a}).k = {v}", "A$.k = {v}", "B$.k = {v}", "del {a}.k", "del A$.k", "{put}", "{put}", "{a}.__class__ = C$", "{a}.__class__ = A$", "A$.k = property(lambda self: {v})",
    "A$.get = lambda self: {v}", "B$.own = lambda self: {v}", "A$.__match_args__ = ('other', 'k')", "A$.__float__ = lambda self: {v}", "A$.__len__ = lambda self: 3",
    "A$.__getattr__ = lambda self, name: {v}", "A$.__getattribute__ = lambda self, name: {v}", "A$.__eq__ = lambda self, other: True", "A$.__hash__ = lambda self: 5",
    "A$.__bool__ = lambda self: False", "A$.__call__ = lambda self: {v}", "A$.__iter__ = lambda self: iter([{v}])", "A$.__contains__ = lambda self, one: True",
    "A$.__format__ = lambda self, kind: str({v})", "A$.__copy__ = lambda self: types.SimpleNamespace(k={v})", "A$.__enter__ = lambda self: {v}",
    "A$.__str__ = lambda self: 'another'", "A$.__dir__ = lambda self: ['a']", "A$.__round__ = lambda self: 7", "A$.__bases__ = (C$,)", "A$.twice = {v}",
    "A$.__getitem__ = lambda self, at: [{v}, 1.0][at]", "{a}.other = {v}", "vars({a}).clear()", "{a}.__dict__ = {{'k': {v}}}", "A$.get.__code__ = (lambda self: 7.0).__code__",
    "A$.__init__ = lambda self, k: None", "{a}.get = lambda: {v}", "{a}.twice = {v}",
)  # fmt: skip
_BODY = """
    other = 4.0
    def get(self):
        return self.k
    @property
    def twice(self):
        return self.k * 2
    def __float__(self):
        return float(self.k)
    def __len__(self):
        return 1 + int(self.k > 1)
    def __getitem__(self, at):
        if at > 1:
            raise IndexError(at)
        return self.k + at
    def __add__(self, other):
        return self.k + other
    __radd__ = __add__
    def __eq__(self, other):
        return self.k == other
    def __hash__(self):
        return 3
    def __lt__(self, other):
        return self.k < (other if isinstance(other, (int, float)) else other.k)
    def __bool__(self):
        return self.k > 1
    def __call__(self):
        return self.k
    def __contains__(self, one):
        return self.k == one
    def __format__(self, kind):
        return str(self.k)
    def __enter__(self):
        return self.k
    def __exit__(self, *args):
        return None
    def __round__(self):
        return int(self.k)
    def __abs__(self):
        return abs(self.k)
"""
_BASE = f"""
class B$:
    def own(self):
        return self.k * 3
{_BODY}
class C$(B$):
    k = 5.0
    __match_args__ = ('other',)
"""
# What the ways of reading name.
_WAYS = """
GET$, GETS$, CALL$ = operator.attrgetter('k'), operator.attrgetter('k', '__class__'), operator.methodcaller('__getattribute__', 'k')
NAME$, TEXT$, format_$ = 'k', '{0.k}', '{0.k}'.format
def match_keyword$(a):
    match a:
        case object(k=v):
            return v
    return 7.0
def match_order$(a):
    match a:
        case A$(v):
            return v
    return 7.0
def match_class$(a):
    match a:
        case C$():
            return 2.0
        case A$(k=0.5 | 2):
            return 3.0
    return 7.0
def match_dict$(a):
    match a:
        case {'k': v, **rest}:
            return v
    return 7.0
def eval_$(a):
    return eval('a.k')
def call_$(f):
    return f()
def enter_$(a):
    with a as k:
        return k
@typing.runtime_checkable
class HasK$(typing.Protocol):
    k: object
"""


def _object(name: str, made: str) -> Holder:
    """made: statements that make the class A$ out of B$, and `make$`."""
    changes = ATTRIBUTE_CHANGES
    if made.startswith(("A$ = torch.", "A$ = nn.")):  # Where all tensors answer so, no library goes on.
        changes = tuple([text for text in changes if not text.startswith("A$.__getattribute__")])
    return Holder(name, _BASE + made + _WAYS, ATTRIBUTE_READS, changes, NUMBERS)


_INIT = "    __match_args__ = ('k',)\n    def __init__(self, k):\n        self.k = k\nmake$ = A$"
_LATER = "\ndef make$(k):\n    a = {}\n    a.k = k\n    return a"
OBJECTS = (
    _object("object", f"class A$(B$):\n{_INIT}"),
    _object("object_of_a_class_with_k", f"class A$(B$):\n    k = 1.0\n    __match_args__ = ('k',)\n{_LATER.format('A$()')}"),
    _object("object_without_k", "class A$(B$):\n    k = 1.0\n    __match_args__ = ('k',)\ndef make$(k):\n    A$.k = k\n    return A$()"),
    _object("slots", "class A$:\n    __slots__ = ('k',)\n    __match_args__ = ('k',)\n    def __init__(self, k):\n        self.k = k\n    get = B$.get\n    own = B$.own\nmake$ = A$"),
    _object("data_class", "@dataclasses.dataclass(eq=False)\nclass A$(B$):\n    k: object = None\nmake$ = A$"),
    _object("data_class_of_slots", "@dataclasses.dataclass(slots=True)\nclass A$:\n    k: object = None\nmake$ = A$"),
    _object("data_class_by_init", f"@dataclasses.dataclass(eq=False)\nclass A$(B$):\n    n: int = 1\n    def __post_init__(self):\n        self.k = self.n\n{_LATER.format('A$()')}"),
    _object("data_class_with_a_class_variable", "@dataclasses.dataclass(eq=False)\nclass A$(B$):\n    n: int = 1\n    k: typing.ClassVar[object] = 1.0\ndef make$(k):\n    A$.k = k\n    return A$()"),
    _object("named_tuple", "class A$(typing.NamedTuple):\n    k: object = None\n    other = 3.0\nmake$ = A$"),
    _object("named_tuple_of_a_class", f"class A$(B$, collections.namedtuple('A$', 'n')):\n    __match_args__ = ('k',)\n{_LATER.format('A$(1)')}"),
    _object("dict", f"class A$(dict):\n    __match_args__ = ('k',)\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$()')}"),
    _object("list", f"class A$(list):\n    __match_args__ = ('k',)\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$([0.5])')}"),
    _object("int", f"class A$(int):\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$(1)')}"),
    _object("float", f"class A$(float):\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$(0.5)')}"),
    _object("text", f"class A$(str):\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$(1)')}"),
    _object("array", f"class A$(np.ndarray):\n    get = B$.get\n    own = B$.own\n{_LATER.format('np.zeros(2).view(A$)')}"),
    _object("int_enum", f"class A$(enum.IntEnum):\n    ONE = 1\n    TWO = 2\n{_LATER.format('A$.ONE')}"),
    _object("enum", f"class A$(enum.Enum):\n    ONE = 1\n    TWO = 2\n{_LATER.format('A$.ONE')}"),
    _object("error", "class A$(ValueError, B$):\n    def __init__(self, k):\n        self.k = k\nmake$ = A$"),
    _object("function", f"A$ = types.FunctionType{_LATER.format('(lambda: 1.0)')}"),
    _object("partial", f"A$ = functools.partial{_LATER.format('functools.partial(abs, -1.0)')}"),
    _object("namespace", "A$ = types.SimpleNamespace\ndef make$(k):\n    return types.SimpleNamespace(k=k)"),
    _object("class", "A$ = type\ndef make$(k):\n    return type('A$', (B$,), {'k': k})"),
    _object("metaclass", "class M$(type):\n    k = 1.0\nA$ = M$\ndef make$(k):\n    M$.k = k\n    return M$('A$', (B$,), {})"),
    _object("module_of_python", f"A$ = types.ModuleType{_LATER.format('types.ModuleType(str())')}"),
    _object("module", f"class A$(B$, nn.Module):\n    __call__ = B$.__call__\n{_LATER.format('A$()')}"),
    _object("tensor", f"A$ = torch.Tensor{_LATER.format('data(1, 4)')}"),
    _object("tensor_subclass", f"class A$(torch.Tensor):\n    get = B$.get\n    own = B$.own\n{_LATER.format('data(1, 4).as_subclass(A$)')}"),
    _object("parameter", f"A$ = nn.Parameter{_LATER.format('param(1)')}"),
    _object("distribution", f"class A$(B$, torch.distributions.Normal):\n    pass\n{_LATER.format('A$(0.0, 1.0)')}"),
    _object("generic", "T = typing.TypeVar('T')\nclass A$(B$, typing.Generic[T]):\n    def __init__(self, k):\n        self.k = k\nmake$ = A$[int]"),
    _object("abstract", "class A$(B$, abc.ABC):\n    def __init__(self, k):\n        self.k = k\nmake$ = A$"),
    _object("getattr", "class A$(B$):\n    def __init__(self, k):\n        self.table = {'k': k}\n    def __getattr__(self, name):\n        if name == 'table':\n            raise AttributeError(name)\n"
            "        return self.table[name]\n    def __setattr__(self, name, value):\n        if name == 'k':\n            self.table['k'] = value\n        else:\n            object.__setattr__(self, name, value)\nmake$ = A$"),
    _object("descriptor", "class D$:\n    def __get__(self, owner, kind=None):\n        return self if owner is None else owner._k\n    def __set__(self, owner, value):\n        owner._k = value\n"
            "class A$(B$):\n    k = D$()\n    def __init__(self, k):\n        self.k = k\nmake$ = A$"),
    _object("user_dict", f"class A$(collections.UserDict):\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$()')}"),
    _object("date", f"class A$(datetime.date):\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$(2000, 1, 1)')}"),
    _object("decimal", f"class A$(decimal.Decimal):\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$(2)')}"),
    _object("counter", f"class A$(collections.Counter):\n    get = B$.get\n    own = B$.own\n{_LATER.format('A$()')}"),
    _object("lock", "class A$(B$):\n    def __init__(self, k):\n        self.k, self.lock = k, threading.Lock()\nmake$ = A$"),
    _object("thread_local", "class A$(threading.local):\n    get = B$.get\n    own = B$.own\n    def __init__(self, k):\n        self.k = k\nmake$ = A$"),
)  # fmt: skip

ITEM_READS = (
    "{a}[K$]", "{a}[K$]", "{a}.get(K$, 7.0)", "{a}.__getitem__(K$)", "operator.getitem({a}, K$)", "operator.itemgetter(K$)({a})", "ITEM$({a})",
    "[*map(ITEM$, [{a}])][0]", "max([{a}], key=ITEM$)[K$]", "[*{a}.values()][0]", "next(iter({a}.items()))[1]", "max({a}.values())", "({a} | {{}})[K$]",
    "dict({a})[K$]", "{{**{a}}}[K$]", "[*{a}][-1]", "sum({a}[:2])", "{a}[-1]", "(lambda *a: a[0])(*{a})", "(lambda **a: a['k'])(**{a})", "len({a})", "(2.0 if {a} else 3.0)",
    "(2.0 if K$ in {a} else 3.0)", "(2.0 if 0.5 in {a} else 3.0)", "float('{{0[k]}}'.format({a}))", "float('{{0[1]}}'.format({a}))", "float('%(k)s' % {a})", "float('{{k}}'.format(**{a}))",
    "float('{{k}}'.format_map({a}))", "float(string.Template('${{k}}').substitute({a}))", "match_dict$({a})", "match_list$({a})", "json.loads(json.dumps({a}))[K$]", "copy.copy({a})[K$]",
    "copy.deepcopy({a})[K$]", "collections.ChainMap({{}}, {a})[K$]", "types.MappingProxyType({a})[K$]", "collections.OrderedDict({a})[K$]", "sorted({a})[0]", "min({a})", "{a}.index(0.5)",
    "{a}.count(0.5)", "next(reversed({a}))", "[*enumerate({a})][1][1]", "[*zip({a}, {a})][1][0]", "[*itertools.chain({a})][1]", "[*itertools.islice({a}, 2)][1]", "functools.reduce(operator.add, {a})",
    "tuple({a})[1]", "len({{*{a}}})", "({a} == [1.0, 0.5]) + 1.0", "({a} == {{'k': 0.5}}) + 1.0", "{a}.copy()[K$]", "[v for v in {a}][1]", "{{n: v for n, v in {a}.items()}}['k']",
    "float(np.asarray({a})[1])", "float(np.sum({a}))", "float({a}[1])", "float(max({a}))", "float(sum(map(float, {a})))", "{a}.maps[-1]['k']", "float(repr({a}[K$]))", "bisect.bisect({a}, 0.7)",
    "len(pickle.dumps({a})) % 7", "float(torch_sum$({a}))", "sum(memoryview({a}))", "float(bytes({a})[1])", "{a}.most_common(1)[0][1]", "float(len(str({a})))",
)  # fmt: skip
ITEM_CHANGES = (
    "{a}[K$] = {v}", "{a}[K$] = {v}", "{a}[K$] = {v}", "{a}.update({{K$: {v}}})", "{a}.__setitem__(K$, {v})", "operator.setitem({a}, K$, {v})", "{a}.pop(K$)", "{a}[K$] = {a}.pop(K$)",
    "{a}.setdefault('n', {v})", "{a} |= {{K$: {v}}}", "{a}.append({v})", "{a}.insert(0, {v})", "{a}.extend([{v}, 1.0])", "{a}.reverse()", "{a}.sort()", "{a}[:] = [{v}, {v}]", "{a}[1:] = []", "del {a}[K$]",
    "{a}.clear()", "{put}", "{put}", "{a}.move_to_end(K$)", "{a}.default_factory = lambda: {v}", "{a}.rotate()", "{a}.fill({v})", "{a} *= 2", "{a}.maps.insert(0, {{K$: {v}}})", "{a}['other'] = {v}",
    "{a}.__init__({{K$: {v}}})", "{a}.shape = (1, -1)", "{a}.dtype = 'i8'", "{a}.flags.writeable = False", "{a}.add({v})", "{a}.data[K$] = {v}",
)  # fmt: skip
_ITEM_WAYS = """
ITEM$ = operator.itemgetter(K$)
def match_dict$(a):
    match a:
        case {'k': v}:
            return v
    return 7.0
def match_list$(a):
    match a:
        case [_, v, *rest]:
            return v
    return 7.0
def torch_sum$(a):
    return sum(float(v) for v in a)
"""


def _items(name: str, key: str, made: str, *groups: tuple[str, ...], before: str = "") -> Holder:
    text = f"K$ = {key}\n{before}\ndef make$(v):\n    return {made}\n{_ITEM_WAYS}"
    return Holder(name, text, ITEM_READS, ITEM_CHANGES, groups or NUMBERS)


CONTAINERS = (
    _items("dict_", "'k'", "{'k': v}"),
    _items("dict_of_more", "'k'", "{'a': 1.0, 'k': v, 1: 2.0}"),
    _items("dict_by_a_number", "1", "{1: v}"),
    _items("dict_by_a_tuple", "(1, 'k')", "{(1, 'k'): v}"),
    _items("list_", "1", "[1.0, v]"),
    _items("tuple_", "1", "(1.0, v)"),
    _items("ordered_dict", "'k'", "collections.OrderedDict(k=v, n=1.0)"),
    _items("default_dict", "'k'", "collections.defaultdict(lambda: 4.0, k=v)"),
    _items("default_dict_without", "'k'", "collections.defaultdict(lambda: v)"),
    _items("counter_", "'k'", "collections.Counter(k=v)", ("2", "3", "5")),
    _items("chain_map", "'k'", "collections.ChainMap({}, {'k': v})"),
    _items("user_dict_", "'k'", "collections.UserDict(k=v)"),
    _items("user_list", "1", "collections.UserList([1.0, v])"),
    _items("deque", "1", "collections.deque([1.0, v])"),
    _items("array_of_numbers", "1", "array.array('d', [1.0, v])"),
    _items("array_of_numpy", "1", "np.array([1.0, v])"),
    _items("array_of_half", "1", "np.array([1.0, v], dtype='f2')"),
    _items("array_of_swapped_bytes", "1", "np.array([1.0, v], dtype='>f4')"),
    _items("array_of_objects", "1", "np.array([1.0, v], dtype=object)"),
    _items("array_that_is_a_view", "1", "np.array([0.0, 1.0, v, 2.0])[1:]"),
    _items("array_of_two_dimensions", "1", "np.array([[1.0], [v]])[:, 0]"),
    _items("record", "'k'", "np.zeros(1, dtype=[('k', 'f8')])[0]"),
    _items("bytes", "1", "bytearray([1, int(v)])", ("2", "3", "5")),
    _items("memory", "1", "memoryview(bytearray([1, int(v)]))", ("2", "3", "5")),
    _items("set_", "1", "{1.0, v}"),
    _items("subclass_of_a_dict", "'k'", "D$(k=v)", before="class D$(dict):\n    pass"),
    _items("subclass_with_missing", "'k'", "D$(n=v)", before="class D$(dict):\n    def __missing__(self, key):\n        return self.get('n', 5.0)"),
    _items("subclass_with_getitem", "'k'", "D$(k=v)", before="class D$(dict):\n    def __getitem__(self, key):\n        return dict.__getitem__(self, key) * 2"),
    _items("subclass_of_a_list", "1", "D$([1.0, v])", before="class D$(list):\n    pass"),
    _items("view_of_a_dict", "'k'", "types.MappingProxyType({'k': v})"),
    _items("simple_class", "'k'", "D$(v)", before="class D$:\n    def __init__(self, v):\n        self.d = {'k': v}\n    def __getitem__(self, key):\n        return self.d[key]\n"
           "    def __setitem__(self, key, v):\n        self.d[key] = v\n    def __contains__(self, key):\n        return key in self.d\n    def keys(self):\n        return self.d.keys()"),
    _items("subclass_of_a_mapping", "'k'", "D$(v)", before="class D$(collections.abc.MutableMapping):\n    def __init__(self, v):\n        self.d = {'k': v}\n    def __getitem__(self, key):\n"
           "        return self.d[key]\n    def __setitem__(self, key, v):\n        self.d[key] = v\n    def __delitem__(self, key):\n        del self.d[key]\n    def __iter__(self):\n        return iter(self.d)\n"
           "    def __len__(self):\n        return len(self.d)"),
    _items("parameter_list", "1", "[1.0, v][0:2]"),
    _items("module_dict", "'k'", "{**nn.ModuleDict({'k': linear(1)}), 'k': v}"),
    _items("tensors", "1", "[torch.tensor(1.0), torch.tensor(float(v))]"),
)  # fmt: skip

# Values that Python calls equal, or that have the same text: only their types or bits tell them apart.
TWINS: dict[str, tuple[tuple[str, ...], ...]] = {
    "number": (("1", "True", "1.0"), ("0", "False", "0.0", "-0.0"), ("1.0", "np.float64(1.0)", "np.float32(1.0)"), ("1", "np.int64(1)", "np.int32(1)", "np.bool_(True)")),
    "complex": (("0j", "complex(-0.0, 0.0)", "complex(0.0, -0.0)", "0.0"), ("1+0j", "1.0", "complex(1, -0.0)")),
    "key": (("{1: 2.0}", "{True: 2.0}", "{1.0: 2.0}"), ("{0.0: 1}", "{-0.0: 1}", "{0: 1}"), ("{(1, 2): 1}", "{(True, 2): 1}", "{(1.0, 2): 1}"), ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}")),
    "item": (("[1]", "[True]", "[1.0]"), ("(0.0,)", "(-0.0,)"), ("(1, 2)", "[1, 2]"), ("[(1,)]", "[(True,)]"), ("{'k': 1}", "{'k': True}", "{'k': 1.0}")),
    "set": (("{1}", "{True}", "{1.0}"), ("frozenset([1])", "frozenset([True])", "{1}"), ("{0.0}", "{-0.0}")),
    "range": (("range(0)", "range(1, 1)", "range(5, 2)"), ("range(0, 3, 2)", "range(0, 4, 2)"), ("range(1)", "range(0, 1, 5)")),
    "slice": (("slice(1)", "slice(True)", "slice(1.0)"), ("slice(0.0)", "slice(-0.0)")),
    "text": (("'a'", "T$('a')", "b'a'"), ("T$('a')", "U$('a')"), ("b'a'", "bytearray(b'a')")),
    "int_class": (("I$(1)", "J$(1)", "1"), ("E$.ONE", "1", "F$.ONE")),
    "float_class": (("L$(0.5)", "0.5", "np.float64(0.5)"), ("L$(0.0)", "L$(-0.0)")),
    "decimal": (("decimal.Decimal('1')", "decimal.Decimal('1.0')", "decimal.Decimal('1.00')"), ("decimal.Decimal('0')", "decimal.Decimal('-0')"), ("fractions.Fraction(1)", "1", "decimal.Decimal(1)")),
    "tuple_class": (("P$(1, 2)", "Q$(1, 2)", "(1, 2)"), ("torch.Size([1, 2])", "(1, 2)")),
    "dict_class": (("{'a': 1}", "collections.OrderedDict(a=1)", "collections.Counter(a=1)", "collections.defaultdict(int, a=1)"), ("collections.defaultdict(int)", "collections.defaultdict(float)", "{}")),
    "list_class": (("[1]", "V$([1])"), ("collections.deque([1])", "collections.deque([1], maxlen=3)")),
    "array": (("np.array([1.0])", "np.array([1])", "np.array([True])"), ("np.array([0.0])", "np.array([-0.0])"), ("np.zeros((2, 2))", "np.zeros((2, 2), order='F')", "np.zeros((2, 2)).T"),
              ("np.array([1.0])", "np.array([1.0]).view(N$)", "np.ma.array([1.0])"), ("np.array(1.0)", "np.float64(1.0)"), ("np.array([1, 2], 'i4')", "np.array([1, 2], '>i4')"),
              ("np.array([1], object)", "np.array([True], object)", "np.array([1.0], object)"), ("np.array([math.nan])", "np.array([-math.nan])")),
    "data_class": (("R$(1)", "R$(True)", "R$(1.0)"), ("R$(0.0)", "R$(-0.0)"), ("R$(1)", "S$(1)")),
    "nan": (("math.nan", "-math.nan"), ("(math.nan,)", "(-math.nan,)"), ("math.inf", "1e999", "float('inf')")),
    "none": (("None", "...", "NotImplemented"), ("()", "[]", "{}", "None"), ("''", "b''", "None", "0")),
    "date": (("datetime.timedelta(days=1)", "datetime.timedelta(hours=24)", "datetime.timedelta(days=2)"),
             ("datetime.datetime(2000, 1, 1, fold=0)", "datetime.datetime(2000, 1, 1, fold=1)"), ("datetime.date(2000, 1, 1)", "datetime.datetime(2000, 1, 1)")),
    "dtype": (("torch.float32", "torch.float64", "'float32'"), ("np.dtype('f4')", "np.dtype('>f4')", "np.float32"), ("torch.device('cpu')", "'cpu'")),
    "class": (("int", "bool", "float"), ("list[int]", "list[bool]", "typing.List[int]"), ("int | str", "str | int", "typing.Union[int, str]")),
    "tensor": (("torch.tensor(1.0)", "torch.tensor(1)", "torch.tensor(True)"), ("torch.ones(4)", "nn.Parameter(torch.ones(4))", "torch.ones(4).requires_grad_()"),
               ("torch.ones(2, 2)", "torch.ones(2, 2).t()", "torch.ones(4, 1)[::2].expand(2, 2)"), ("torch.zeros(3, 0)", "torch.zeros(0, 3)"), ("torch.ones(4)", "torch.ones(4).as_subclass(W$)")),
    "memory": (("memoryview(b'ab')", "memoryview(bytearray(b'ab'))", "b'ab'"),),
    "enum": (("E$.ONE", "F$.ONE", "E$.TWO"), ("G$.A", "G$.A | G$.B", "G$(0)")),
}  # fmt: skip
_CLASSES = """
class T$(str): pass
class U$(str): pass
class I$(int): pass
class J$(int): pass
class L$(float): pass
class V$(list): pass
class N$(np.ndarray): pass
class W$(torch.Tensor): pass
class E$(enum.IntEnum): ONE = 1; TWO = 2
class F$(enum.IntEnum): ONE = 1; TWO = 2
class G$(enum.Flag): A = 1; B = 2
P$, Q$ = collections.namedtuple('P$', 'a b'), collections.namedtuple('Q$', 'c d')
R$, S$ = dataclasses.make_dataclass('R$', ['k']), dataclasses.make_dataclass('S$', ['k'])
def make$(v):
    return v
def first$(v):
    return next(iter(v))
def kind$(v):
    match v:
        case bool(): return 2.0
        case int(): return 3.0
        case float(): return 4.0
        case str(): return 5.0
        case {'k': bool()} | [bool()]: return 6.0
        case {}: return 7.0
        case [first, *_]: return 8.0
    return 9.0
"""
TWIN_READS = (
    "len(repr({a})) * 0.1", "len(str({a})) * 0.1", "len(type({a}).__name__) * 0.1", "kind$({a})", "isinstance({a}, (bool, tuple, str)) + 1.0", "hasattr({a}, '__dict__') + 1.0",
    "len(repr(first$({a}))) * 0.1", "len(type(first$({a})).__name__) * 0.1", "kind$(first$({a}))", "math.copysign(1.0, {a})", "math.copysign(1.0, first$({a}))", "math.copysign(1.0, {a}.real)",
    "math.copysign(1.0, {a}.imag)", "{a}.start + 1.0", "{a}.stop + 1.0", "{a}.step + 1.0", "len(repr({a}.stop)) * 0.1", "len(repr({a}.k)) * 0.1", "math.copysign(1.0, {a}.k)", "{a}.strides[0] * 0.1",
    "len({a}.dtype.str) * 0.1", "float({a}.flags.f_contiguous)", "{a}.fold + 1.0", "({a}.maxlen or 7.0)", "len(repr({a}.default_factory)) * 0.1", "len(f'{{{a}}}') * 0.1", "len('%r' % ({a},)) * 0.1",
    "len(json.dumps({a})) * 0.1", "(2.0 if {a} is True else 3.0)", "(2.0 if {a} is None else 3.0)", "(2.0 if type({a}) is int else 3.0)", "({a}.__class__ is float) + 1.0", "issubclass({a}, int) + 1.0",
    "len({a}.__args__) * 1.0", "len(repr({a}.__args__)) * 0.1", "{a}.is_floating_point + 1.0", "{a}.requires_grad + 1.0", "len(str({a}.dtype)) * 0.1", "{a}.stride()[0] * 0.1", "({a}.shape[0] + 1) * 0.5",
    "{a}.readonly + 1.0", "{a} * 2", "{a} + 1.0", "operator.index({a})", "float({a})", "np.signbit({a}[0]) + 1.0", "next(iter({a}.values())) * 1.0", "len(repr([*{a}])) * 0.1", "len(pickle.dumps({a})) * 0.01",
    "{a}.value * 1.0", "len({a}.name) * 0.1", "len(type({a}).__mro__) * 0.1", "{a}.days + 1.0", "{a}.as_tuple().exponent + 4.0",
)  # fmt: skip
PLAIN = tuple(Holder(f"twin_{name}", _CLASSES, TWIN_READS, ("{put}",), groups) for name, groups in TWINS.items())

HOLDERS = (OBJECTS, OBJECTS, CONTAINERS, PLAIN)
