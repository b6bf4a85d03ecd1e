"""Where a value may be that a step reads: behind names, arguments, attributes, containers and functions.

Any of these may have any of the values in holders.py, read in any way, changed in any way.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Home:
    """before: statements. put: a statement that puts the value `{v}` there, the first and any later one.
    place: an expression for it between the calls. read: the same inside the step, where it is another one.
    argument: what the step is given as `a$`, where it is given anything.
    """

    name: str
    place: str
    put: str = ""
    before: str = ""
    read: str = ""
    argument: str = ""

    @property
    def puts(self) -> str:
        return self.put or f"{self.place} = {{v}}"


def _given(name: str, argument: str, read: str, before: str = "") -> Home:
    """A name between the calls, that the step gets inside of an argument made anew for each call."""
    return Home(f"given_{name}", "_c$", before=before, read=read, argument=argument)


def _kept(name: str, before: str, place: str, read: str, *, put: str = "") -> Home:
    """An object that each call gets, with the value inside."""
    return Home(f"given_{name}", place, put, before, read, "_b$")


_TUPLE = "P$ = collections.namedtuple('P$', 'c')\n"
_DATA = "@dataclasses.dataclass\nclass P$:\n    c: object = None\n"
_KEY = "@dataclasses.dataclass(eq=False)\nclass P$:\n    c: object = None\n"
_SLOT = "class P$:\n    __slots__ = ('c',)\n"
_ARRAY = "_b$ = np.empty(2, object)\n"

HOMES = (
    Home("name", "_c$"),
    Home("list", "_b$[0]", before="_b$ = [None]"),
    Home("deep", "_b$['a'][0][1]", before="_b$ = {'a': ([None, None],)}"),
    Home("tuple", "_b$[0]", "_b$ = ({v},)"),
    Home("named_tuple", "_b$.c", "_b$ = P$({v})", _TUPLE),
    Home("key_of_a_dict", "next(iter(_b$))", "_b$ = {{{v}: 1.0}}"),
    Home("key_in_a_key", "next(iter(_b$))[0]", "_b$ = {{({v}, 1): 1.0}}"),
    Home("attribute_of_a_key", "next(iter(_b$)).c", before=f"{_KEY}_b$ = {{P$(): 1.0}}"),
    Home("set", "next(iter(_b$))", "_b$ = {{{v}}}"),
    Home("frozen_set", "next(iter(_b$))", "_b$ = frozenset([{v}])"),
    Home("deque", "_b$[0]", before="_b$ = collections.deque([None])"),
    Home("view_of_a_dict", "_b$['c']", before="_b$ = {'c': None}\n_v$ = types.MappingProxyType(_b$)", read="_v$['c']"),
    Home("values_of_a_dict", "_b$['c']", before="_b$ = {'c': None}\n_v$ = _b$.values()", read="next(iter(_v$))"),
    Home("object_array", "_b$[0]", before=_ARRAY),
    Home("array_of_arrays", "_b$[0][1]", before=f"{_ARRAY}_b$[0] = np.empty(2, object)"),
    Home("metadata_of_a_dtype", "_b$.metadata['c']", "_b$ = np.dtype('f4', metadata={{'c': {v}}})"),
    Home("attribute", "_b$.c", before="_b$ = types.SimpleNamespace(c=None)"),
    Home("slot", "_b$.c", before=f"{_SLOT}_b$ = P$()"),
    Home("class", "P$.c", before="class P$:\n    c = None"),
    Home("class_of_an_object", "P$.c", before="class P$:\n    c = None\n_b$ = P$()", read="_b$.c"),
    Home("metaclass", "M$.c", before="class M$(type):\n    c = None\nclass P$(metaclass=M$):\n    pass", read="P$.c"),
    Home("class_of_a_named_tuple", "P$.c", before="class P$(typing.NamedTuple):\n    n: int = 1\n_b$ = P$()", read="_b$.c"),
    Home("class_variable", "P$.c", before="@dataclasses.dataclass\nclass P$:\n    c: typing.ClassVar = None\n_b$ = P$()", read="_b$.c"),
    Home("dict_in_a_class", "P$.t['c']", before="class P$:\n    t = {'c': None}\n_b$ = P$()", read="_b$.t['c']"),
    Home("attribute_of_a_tensor", "_b$.user", before="_b$ = data(1, 4)"),
    Home("attribute_of_a_parameter", "_b$.user", before="_b$ = param(1)"),
    Home("attribute_of_a_weight", "_b$.weight.user", before="_b$ = linear(1)"),
    Home("class_of_a_tensor", "P$.user", before="class P$(torch.Tensor):\n    user = None\n_b$ = data(1, 4).as_subclass(P$)", read="_b$.user"),
    Home("attribute_of_a_module", "_b$.c", before="_b$ = linear(1)"),
    Home("module_of_python", "_b$.c", before="_b$ = types.ModuleType('user$')"),
    Home("module_by_name", "sys.modules['fuzz_new'].c", before="sys.modules['fuzz_new'] = types.ModuleType('fuzz_new')",
         read="importlib.import_module('fuzz_new').c"),
    Home("attribute_of_a_function", "f$.c", before="def f$():\n    return f$.c", read="f$()"),
    Home("attribute_of_a_partial", "_b$.c", before="_b$ = functools.partial(data, 1)"),
    Home("attribute_of_an_error", "_b$.c", before="_b$ = ValueError('user')"),
    Home("argument_of_an_error", "_b$.args[0]", "_b$ = ValueError({v})"),
    Home("note_of_an_error", "_b$.__cause__.c", before="_b$ = ValueError()\n_b$.__cause__ = KeyError()"),
    Home("default", "f$.__defaults__[0]", "f$.__defaults__ = ({v},)", "def f$(c=None):\n    return c", "f$()"),
    Home("default_by_keyword", "f$.__kwdefaults__['c']", before="def f$(*, c=None):\n    return c", read="f$()"),
    Home("cell", "f$()", "f$ = (lambda c: lambda: c)({v})"),
    Home("cell_that_is_set", "f$.__closure__[0].cell_contents", before="f$ = (lambda c: lambda: c)(None)", read="f$()"),
    Home("partial", "f$.args[0]", "f$ = functools.partial(lambda c: c, {v})", read="f$()"),
    Home("partial_by_keyword", "f$.keywords['c']", before="f$ = functools.partial(lambda c: c, c=None)", read="f$()"),
    Home("partial_of_a_method", "_b$.c", before="class P$:\n    c = None\n    def f(self):\n        return self.c\n_b$ = P$()\nf$ = functools.partial(_b$.f)", read="f$()"),
    Home("bound_method", "f$.__self__.c", before="class P$:\n    c = None\n    def f(self):\n        return self.c\nf$ = P$().f", read="f$()"),
    Home("bound_builtin", "_b$['c']", before="_b$ = {'c': None}\nf$ = _b$.get", read="f$('c')"),
    Home("bound_getitem", "_b$[0]", before="_b$ = [None]\nf$ = _b$.__getitem__", read="f$(0)"),
    Home("property", "_b$._c", before="class P$:\n    c = property(lambda self: self._c)\n_b$ = P$()", read="_b$.c"),
    Home("attribute_of_a_property", "P$.__dict__['p'].c",
         before="class Q$(property):\n    def __get__(self, owner, kind=None):\n        return self.c\nclass P$:\n    p = Q$()", read="P$().p"),
    Home("attribute_of_a_static_method", "P$.__dict__['p'].c",
         before="class P$:\n    @staticmethod\n    def p():\n        return P$.__dict__['p'].c", read="P$.p()"),
    Home("getattr", "_b$._t['c']", before="class P$:\n    def __init__(self):\n        self._t = {'c': None}\n    def __getattr__(self, name):\n"
         "        return self.__dict__['_t'][name]\n_b$ = P$()", read="_b$.c"),
    Home("super", "P$.c", before="class P$:\n    c = None\nclass Q$(P$):\n    c = 1\n_b$ = Q$()\n_s$ = super(Q$, _b$)", read="_s$.c"),
    Home("slice", "_b$.start", "_b$ = slice({v}, None)"),
    Home("slice_in_a_tuple", "_b$[0].stop", "_b$ = (slice({v}),)"),
    Home("alias", "_b$.__args__[0]", "_b$ = types.GenericAlias(list, ({v},))"),
    Home("cell_of_nothing", "_b$.cell_contents", "_b$ = types.CellType({v})"),
    Home("context_variable", "_b$.get()", "_b$.set({v})", "_b$ = contextvars.ContextVar('b$', default=None)"),
    Home("default_of_a_context_variable", "_b$.get()", "_b$ = contextvars.ContextVar('b$', default={v})"),
    Home("thread_local", "_b$.c", before="_b$ = threading.local()"),
    Home("enum", "_b$.A.value", "_b$ = enum.Enum('E$', {{'A': {v}}})"),
    Home("attribute_of_an_enum", "_b$.A.c", before="_b$ = enum.Enum('E$', 'A B')"),
    Home("weak_reference", "_b$", before="_b$ = None", read="weakref.ref(_b$)()"),
    Home("weak_reference_outside", "_k$", "_k$ = {v}; _b$ = weakref.ref(_k$)", read="_b$()"),
    Home("weak_values", "_k$", "_k$ = {v}; _b$ = weakref.WeakValueDictionary(c=_k$)", read="_b$['c']"),
    Home("finalizer", "_b$.peek()[2][0]", "_b$ = weakref.finalize(F, type, {v})"),
    Home("user_dict", "_b$['c']", before="_b$ = collections.UserDict()"),
    Home("user_list", "_b$[0]", before="_b$ = collections.UserList([None])"),
    Home("chain_map", "_b$.maps[1]['c']", before="_b$ = collections.ChainMap({}, {'c': None})", read="_b$['c']"),
    Home("dict_subclass", "_b$['c']", before="class P$(dict):\n    def __missing__(self, key):\n        return self['c']\n_b$ = P$()", read="_b$['any']"),
    Home("attribute_of_a_dict", "_b$.c", before="class P$(dict):\n    pass\n_b$ = P$()"),
    Home("attribute_of_a_list", "_b$.c", before="class P$(list):\n    pass\n_b$ = P$()"),
    Home("attribute_of_a_tuple", "_b$.c", before="class P$(tuple):\n    pass\n_b$ = P$()"),
    Home("attribute_of_a_set", "_b$.c", before="class P$(set):\n    pass\n_b$ = P$()"),
    Home("attribute_of_an_int", "_b$.c", before="class P$(int):\n    pass\n_b$ = P$(3)"),
    Home("attribute_of_a_float", "_b$.c", before="class P$(float):\n    pass\n_b$ = P$(0.5)"),
    Home("attribute_of_a_text", "_b$.c", before="class P$(str):\n    pass\n_b$ = P$('a')"),
    Home("attribute_of_bytes", "_b$.c", before="class P$(bytes):\n    pass\n_b$ = P$(b'a')"),
    Home("attribute_of_an_array", "_b$.c", before="class P$(np.ndarray):\n    pass\n_b$ = np.zeros(2).view(P$)"),
    Home("attribute_of_a_date", "_b$.c", before="class P$(datetime.date):\n    pass\n_b$ = P$(2000, 1, 1)"),
    Home("zone_of_a_time", "_b$.tzinfo.c", before="class P$(datetime.tzinfo):\n    c = None\n_b$ = datetime.datetime(2000, 1, 1, tzinfo=P$())"),
    Home("attribute_of_a_distribution", "_b$.user", before="_b$ = torch.distributions.Normal(0.0, 1.0)"),
    Home("attribute_of_an_optimizer", "_b$.user", before="_b$ = optim.SGD([param(0)], lr=0.1)"),
    Home("option_of_an_optimizer", "_b$.param_groups[0]['user']", before="_b$ = optim.SGD([param(0)], lr=0.1)"),
    Home("state_of_an_optimizer", "_b$.state['user']", before="_b$ = optim.SGD([param(0)], lr=0.1)"),
    Home("attribute_of_a_schedule", "_b$.user", before="_b$ = optim.lr_scheduler.StepLR(optim.SGD([param(0)], lr=0.1), 3)"),
    Home("attribute_of_a_scaler", "_b$.user", before="_b$ = torch.amp.GradScaler('cpu')"),
    Home("attribute_of_a_function_of_the_library", "F.user$", put="F.user$ = {v}"),
    Home("attribute_of_a_class_of_the_library", "nn.Linear.user$", read="linear(1).user$"),
    Home("attribute_of_all_tensors", "torch.Tensor.user$", read="torch.ones(2).user$"),
    Home("builtin", "user$", before="import builtins", put="builtins.user$ = {v}", read="user$"),
    _given("alone", "_c$", "a$"),
    _given("in_a_list", "[1, _c$]", "a$[1]"),
    _given("in_a_dict", "{'a': {'b': _c$}}", "a$['a']['b']"),
    _given("in_a_tuple", "(_c$, 1)", "a$[0]"),
    _given("in_a_named_tuple", "P$(_c$)", "a$.c", _TUPLE),
    _given("in_a_data_class", "P$(_c$)", "a$.c", _DATA),
    _given("as_a_key", "{_c$: 1.0}", "next(iter(a$))"),
    _given("in_a_key", "{(_c$, 1): 1.0}", "next(iter(a$))[0]"),
    _given("in_a_set", "{_c$}", "next(iter(a$))"),
    _given("in_a_deque", "collections.deque([_c$])", "a$[0]"),
    _given("in_an_object_array", "np.array([_c$, None], dtype=object)", "a$[0]"),
    _given("in_a_slice", "slice(_c$)", "a$.stop"),
    _given("by_a_tensor", "f$(_c$)", "a$.user", "def f$(c):\n    b = data(1, 4)\n    b.user = c\n    return b"),
    _given("by_a_function", "lambda: _c$", "a$()"),
    _given("by_a_partial", "functools.partial(lambda c: c, _c$)", "a$()"),
    _given("by_a_method", "f$(_c$)", "a$()", "class P$:\n    def f(self):\n        return self.c\ndef f$(c):\n    b = P$()\n    b.c = c\n    return b.f"),
    _given("by_a_view", "types.MappingProxyType({'c': _c$})", "a$['c']"),
    _given("by_an_error", "ValueError(_c$)", "a$.args[0]"),
    _given("by_a_module", "f$(_c$)", "a$.c", "_m$ = linear(1)\ndef f$(c):\n    _m$.c = c\n    return _m$"),
    _kept("object", "class P$:\n    pass\n_b$ = P$()", "_b$.c", "a$.c"),
    _kept("data_class_with_another_attribute", "@dataclasses.dataclass\nclass P$:\n    n: int = 1\n    def __post_init__(self):\n        self.c = None\n_b$ = P$()", "_b$.c", "a$.c"),
    _kept("data_class_with_a_class_variable", "@dataclasses.dataclass\nclass P$:\n    n: int = 1\n    c: typing.ClassVar = None\n_b$ = P$()", "P$.c", "a$.c"),
    _kept("data_class_with_slots", "@dataclasses.dataclass(slots=True)\nclass P$:\n    c: object = None\n_b$ = P$()", "_b$.c", "a$.c"),
    _kept("data_class_that_is_frozen", "@dataclasses.dataclass(frozen=True)\nclass P$:\n    n: int = 1\n_b$ = P$()", "_b$.c", "a$.c", put="object.__setattr__(_b$, 'c', {v})"),
    _kept("data_class_by_a_property", "@dataclasses.dataclass\nclass P$:\n    n: int = 1\n    @property\n    def c(self):\n        return _t$[0]\n_t$ = [None]\n_b$ = P$()", "_t$[0]", "a$.c"),
    _kept("named_tuple_of_a_class", "class P$(typing.NamedTuple):\n    n: int = 1\n_b$ = P$()", "P$.c", "a$.c"),
    _kept("named_tuple_with_attributes", "class P$(collections.namedtuple('P$', 'n')):\n    pass\n_b$ = P$(1)", "_b$.c", "a$.c"),
    _kept("tensor", "_b$ = data(1, 4)", "_b$.user", "a$.user"),
    _kept("view_of_a_tensor", "_b$ = data(1, 4)[1:]", "_b$.user", "a$.user"),
    _kept("base_of_a_view", "_k$ = data(1, 4)\n_b$ = _k$[1:]", "_k$.user", "a$._base.user"),
    _kept("parameter", "_b$ = param(1)", "_b$.user", "a$.user"),
    _kept("class_of_a_tensor", "class P$(torch.Tensor):\n    user = None\n_b$ = data(1, 4).as_subclass(P$)", "P$.user", "a$.user"),
    _kept("tensor_of_a_class", "class P$(torch.Tensor):\n    user = None\n_b$ = data(1, 4).as_subclass(P$)", "_b$.user", "a$.user"),
    _kept("dict_with_attributes", "class P$(dict):\n    pass\n_b$ = P$(a=1)", "_b$.c", "a$.c"),
    _kept("class_of_a_dict", "class P$(dict):\n    c = None\n_b$ = P$(a=1)", "P$.c", "a$.c"),
    _kept("list_with_attributes", "class P$(list):\n    pass\n_b$ = P$([1])", "_b$.c", "a$.c"),
    _kept("class_of_a_list", "class P$(list):\n    c = None\n_b$ = P$([1])", "P$.c", "a$.c"),
    _kept("tuple_with_attributes", "class P$(tuple):\n    pass\n_b$ = P$([1])", "_b$.c", "a$.c"),
    _kept("int_with_attributes", "class P$(int):\n    pass\n_b$ = P$(1)", "_b$.c", "a$.c"),
    _kept("class_of_an_int", "class P$(int):\n    c = None\n_b$ = P$(1)", "P$.c", "a$.c"),
    _kept("text_with_attributes", "class P$(str):\n    pass\n_b$ = P$('a')", "_b$.c", "a$.c"),
    _kept("class_of_a_text", "class P$(str):\n    c = None\n_b$ = P$('a')", "P$.c", "a$.c"),
    _kept("float_with_attributes", "class P$(float):\n    pass\n_b$ = P$(0.5)", "_b$.c", "a$.c"),
    _kept("class_of_a_float", "class P$(float):\n    c = None\n_b$ = P$(0.5)", "P$.c", "a$.c"),
    _kept("complex_with_attributes", "class P$(complex):\n    pass\n_b$ = P$(0.5)", "_b$.c", "a$.c"),
    _kept("bytes_with_attributes", "class P$(bytes):\n    pass\n_b$ = P$(b'a')", "_b$.c", "a$.c"),
    _kept("set_with_attributes", "class P$(set):\n    pass\n_b$ = P$()", "_b$.c", "a$.c"),
    _kept("array_with_attributes", "class P$(np.ndarray):\n    pass\n_b$ = np.zeros(2).view(P$)", "_b$.c", "a$.c"),
    _kept("class_of_an_array", "class P$(np.ndarray):\n    c = None\n_b$ = np.zeros(2).view(P$)", "P$.c", "a$.c"),
    _kept("int_enum", "class P$(enum.IntEnum):\n    A = 1\n    B = 2\n_b$ = P$.A", "P$.A.c", "a$.c"),
    _kept("text_enum", "class P$(enum.StrEnum):\n    A = 'a'\n_b$ = P$.A", "P$.A.c", "a$.c"),
    _kept("flag", "class P$(enum.IntFlag):\n    A = 1\n_b$ = P$.A", "P$.A.c", "a$.c"),
    _kept("key_of_a_dict", f"{_KEY}_k$ = P$()\n_b$ = {{_k$: 1.0}}", "_k$.c", "next(iter(a$)).c"),
    _kept("text_as_a_key", "class P$(str):\n    pass\n_k$ = P$('a')\n_b$ = {_k$: 1.0}", "_k$.c", "next(iter(a$)).c"),
    _kept("int_as_a_key", "class P$(int):\n    pass\n_k$ = P$(1)\n_b$ = {_k$: 1.0}", "_k$.c", "next(iter(a$)).c"),
    _kept("object_array", f"{_ARRAY}", "_b$[0]", "a$[0]"),
    _kept("array_of_objects", f"{_KEY}{_ARRAY}_b$[0] = P$()", "_b$[0].c", "a$[0].c"),
    _kept("default_factory", "_b$ = collections.defaultdict(lambda: _t$[0])\n_t$ = [None]", "_t$[0]", "a$['new']"),
    _kept("module", "_b$ = linear(1)", "_b$.c", "a$.c"),
    _kept("optimizer", "_b$ = optim.SGD([param(0)], lr=0.1)", "_b$.user", "a$.user"),
    _kept("group_of_an_optimizer", "_b$ = optim.SGD([param(0)], lr=0.1).param_groups[0]", "_b$['user']", "a$['user']"),
    _kept("distribution", "_b$ = torch.distributions.Normal(0.0, 1.0)", "_b$.user", "a$.user"),
    _kept("class", "class P$:\n    c = None\n_b$ = P$", "P$.c", "a$.c"),
    _kept("function", "def _b$():\n    return 1", "_b$.c", "a$.c"),
    _kept("module_of_python", "_b$ = types.ModuleType('user$')", "_b$.c", "a$.c"),
    _kept("itself_twice", "_b$ = types.SimpleNamespace(c=None)", "_b$.c", "a$.c"),
    _kept("generator_of_numbers", "_b$ = torch.Generator()", "_b$.user", "a$.user"),
)  # fmt: skip
