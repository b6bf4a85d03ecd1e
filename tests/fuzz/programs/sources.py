"""Where a step may read a number from, and how it is changed between two calls. `$` is a number that keeps names apart."""

from dataclasses import dataclass, field

from tests.fuzz.programs.program import CLOSURE, GLOBALS, Program


@dataclass(frozen=True, slots=True)
class Source:
    """setup: statements. read: an expression inside the step. sets: statements, each of which changes the number."""

    name: str
    setup: str
    read: str
    sets: tuple[str, ...]
    modules: dict[str, str] = field(default_factory=dict)
    scopes: tuple[str, ...] = (GLOBALS, CLOSURE)


def _name(name: str, read: str, setup: str = "") -> Source:
    return Source(name, f"k$ = 0.5\n{setup}", read, ("k$ = 2.0", "k$ = -1.5", "k$ = 3"))


def _item(name: str, made: str, place: str, **more: str) -> Source:
    sets = tuple(f"box${place} = {value}" for value in ("2.0", "-1.5", "3"))
    return Source(name, f"box$ = {made}", more.get("read", f"box${place}"), sets)


def _function(name: str, *made: str, read: str = "f$()") -> Source:
    return Source(name, made[0], read, made[1:])


NAMES = (
    _name("name", "k$"),
    _name("name_in_a_lambda", "(lambda: k$)()"),
    _name("name_in_a_generator_expression", "sum(k$ for _ in range(1))"),
    _name("name_in_a_comprehension", "[k$ for _ in range(2)][1]"),
    _name("name_in_a_dict_comprehension", "{n: k$ for n in range(2)}[1]"),
    _name("name_in_a_helper", "f$()", "def f$():\n    return k$"),
    _name("name_in_a_lambda_outside", "f$()", "f$ = lambda: k$"),
    _name("name_in_a_helper_of_a_helper", "g$()", "def f$():\n    return k$\ndef g$():\n    return f$()"),
    _name("name_in_a_function_inside_a_helper", "f$()", "def f$():\n    def g():\n        return k$\n    return g()"),
    _name("name_in_a_method", "a$.f()", "class A$:\n    def f(self):\n        return k$\na$ = A$()"),
    _name("name_in_a_static_method", "A$.f()", "class A$:\n    @staticmethod\n    def f():\n        return k$"),
    _name("name_in_a_class_method", "A$.f()", "class A$:\n    @classmethod\n    def f(cls):\n        return k$"),
    _name("name_in_a_property", "a$.f", "class A$:\n    @property\n    def f(self):\n        return k$\na$ = A$()"),
    _name("name_in_call", "a$()", "class A$:\n    def __call__(self):\n        return k$\na$ = A$()"),
    _name("name_in_getattr", "_a$.any", "class A$:\n    def __getattr__(self, name):\n        return k$\n_a$ = A$()"),
    _name("name_in_getitem", "a$[1]", "class A$:\n    def __getitem__(self, at):\n        return k$\na$ = A$()"),
    _name("name_in_init", "A$().k", "class A$:\n    def __init__(self):\n        self.k = k$"),
    _name("name_in_iter", "sum(a$)", "class A$:\n    def __iter__(self):\n        yield k$\na$ = A$()"),
    _name("name_in_float", "float(a$)", "class A$:\n    def __float__(self):\n        return float(k$)\na$ = A$()"),
    _name("name_in_add", "(a$ + 1)", "class A$:\n    def __add__(self, b):\n        return k$ + b\na$ = A$()"),
    _name("name_in_radd", "(1 + a$)", "class A$:\n    def __radd__(self, b):\n        return k$ + b\na$ = A$()"),
    _name("name_in_bool", "(1.0 if a$ else 2.0)", "class A$:\n    def __bool__(self):\n        return k$ > 0\na$ = A$()"),
    _name("name_in_a_key", "max([1, 2], key=f$)", "def f$(n):\n    return n * k$"),
    _name("name_in_a_map", "sum(map(lambda n: n * k$, [1, 2]))"),
    _name("name_in_a_reduce", "functools.reduce(lambda a, b: a + b * k$, [1, 2])"),
    _name("name_in_a_generator", "next(f$())", "def f$():\n    yield k$"),
    _name("name_in_a_delegating_generator", "list(g$())[0]", "def f$():\n    yield k$\ndef g$():\n    yield from f$()"),
    _name("name_in_a_recursion", "f$(3)", "def f$(n):\n    return k$ if n == 0 else f$(n - 1)"),
    _name("name_in_a_coroutine", "g$()", "async def f$():\n    return k$\ndef g$():\n    try:\n        f$().send(None)\n"
          "    except StopIteration as stop:\n        return stop.value"),
    _name("name_in_a_context", "g$()", "@contextlib.contextmanager\ndef f$():\n    yield k$\ndef g$():\n"
          "    with f$() as k:\n        return k"),
    _name("name_in_a_handler", "f$()", "def f$():\n    try:\n        raise KeyError\n    except KeyError:\n        return k$"),
    _name("name_in_a_decorated_function", "f$()", "def twice$(g):\n    @functools.wraps(g)\n    def call():\n"
          "        return g() * 2\n    return call\n@twice$\ndef f$():\n    return k$"),
    _name("name_in_a_match", "f$()", "def f$():\n    match k$:\n        case float():\n            return k$\n"
          "        case _:\n            return 7.0"),
    _name("name_in_text", "float(f'{k$:.2f}')"),
    _name("name_in_a_default_of_a_lambda", "(lambda k=k$: k)()"),
    _name("name_in_a_function_of_a_dict", "table$['f']()", "table$ = {'f': lambda: k$}"),
    _name("name_in_a_function_of_a_list", "table$[0]()", "table$ = [lambda: k$]"),
    _name("name_in_a_partial", "f$()", "f$ = functools.partial(lambda n: k$ * n, 2)"),
    _name("name_in_a_class_body", "f$().n", "def f$():\n    class A:\n        n = k$\n    return A"),
    Source("name_by_eval", "k$ = 0.5", "eval('k$')", ("k$ = 2.0", "k$ = -1.5"), scopes=(GLOBALS,)),
    Source("name_by_globals", "k$ = 0.5", "globals()['k$']", ("k$ = 2.0", "k$ = -1.5"), scopes=(GLOBALS,)),
    Source("name_by_vars_of_a_module", "k$ = 0.5", "vars(sys.modules['program'])['k$']", ("k$ = 2.0",), scopes=(GLOBALS,)),
    Source("name_of_a_module", "k$ = 0.5", "sys.modules['program'].k$", ("k$ = 2.0",), scopes=(GLOBALS,)),
    Source("name_imported_inside", "k$ = 0.5\ndef f$():\n    from program import k$ as k\n    return k", "f$()",
           ("k$ = 2.0", "k$ = -1.5"), scopes=(GLOBALS,)),
    Source("name_by_exec", "k$ = 0.5\ndef f$():\n    found = {}\n    exec('k = k$', globals(), found)\n    return found['k']",
           "f$()", ("k$ = 2.0",), scopes=(GLOBALS,)),
    Source("name_that_shadows_a_builtin", "", "abs(-0.5)", ("abs = lambda n: 7.0",), scopes=(GLOBALS,)),
    Source("name_that_is_deleted", "k$ = 0.5\ndef f$():\n    try:\n        return k$\n    except NameError:\n        return 7.0",
           "f$()", ("del k$", "k$ = 2.0"), scopes=(GLOBALS,)),
)  # fmt: skip

FUNCTIONS = (
    _function("function_that_is_replaced", "def f$():\n    return 0.5", "def f$():\n    return 2.0", "f$ = lambda: -1.5"),
    _function("default", "def f$(k=0.5):\n    return k", "f$.__defaults__ = (2.0,)", "f$.__defaults__ = (-1.5,)"),
    _function("default_by_name", "def f$(*, k=0.5):\n    return k", "f$.__kwdefaults__ = {'k': 2.0}",
              "f$.__kwdefaults__['k'] = -1.5"),
    _function("default_of_a_helper_that_is_a_list", "def f$(k=[0.5]):\n    return k[0]", "f$.__defaults__[0][0] = 2.0"),
    _function("code", "def f$():\n    return 0.5", "f$.__code__ = (lambda: 2.0).__code__"),
    _function("attribute_of_a_function", "def f$():\n    return f$.k\nf$.k = 0.5", "f$.k = 2.0", "f$.k = -1.5"),
    _function("cell", "def make$(k):\n    def set(value):\n        nonlocal k\n        k = value\n    return lambda: k, set\n"
              "f$, set$ = make$(0.5)", "set$(2.0)", "set$(-1.5)"),
    _function("cell_by_its_content", "def make$(k):\n    return lambda: k\nf$ = make$(0.5)",
              "f$.__closure__[0].cell_contents = 2.0"),
    _function("partial", "f$ = functools.partial(float, 0.5)", "f$ = functools.partial(float, 2.0)"),
    _function("keyword_of_a_partial", "f$ = functools.partial(lambda k: k, k=0.5)", "f$.keywords['k'] = 2.0"),
    _function("bound_method", "class A$:\n    def f(self):\n        return self.k\na$, b$ = A$(), A$()\na$.k, b$.k = 0.5, 2.0\n"
              "f$ = a$.f", "f$ = b$.f", "b$.k = 7.0"),
    _function("method_of_an_instance", "class A$:\n    def f(self):\n        return 0.5\na$ = A$()", "a$.f = lambda: 2.0",
              "del a$.f", read="a$.f()"),
    _function("method_of_a_class", "class A$:\n    def f(self):\n        return 0.5\na$ = A$()", "A$.f = lambda self: 2.0",
              read="a$.f()"),
    _function("method_of_a_base", "class A$:\n    def f(self):\n        return 0.5\nclass B$(A$):\n    def f(self):\n"
              "        return super().f() * 2\nb$ = B$()", "A$.f = lambda self: 2.0", read="b$.f()"),
    _function("method_that_is_added_to_a_class", "class A$:\n    def f(self):\n        return 0.5\nclass B$(A$):\n    pass\n"
              "b$ = B$()", "B$.f = lambda self: 2.0", "del B$.f", read="b$.f()"),
    _function("call_of_a_class", "class A$:\n    def __call__(self):\n        return 0.5\na$ = A$()",
              "A$.__call__ = lambda self: 2.0", read="a$()"),
    _function("static_method", "class A$:\n    @staticmethod\n    def f():\n        return 0.5",
              "A$.f = staticmethod(lambda: 2.0)", read="A$.f()"),
    _function("class_of_an_instance", "class A$:\n    k = 0.5\nclass B$:\n    k = 2.0\na$ = A$()", "a$.__class__ = B$", read="a$.k"),
    _function("bases_of_a_class", "class A$:\n    k = 0.5\nclass B$:\n    k = 2.0\nclass C$(A$):\n    pass\nc$ = C$()",
              "C$.__bases__ = (B$,)", read="c$.k"),
    _function("function_in_a_dict", "table$ = {'f': lambda: 0.5}", "table$['f'] = lambda: 2.0", read="table$['f']()"),
    _function("function_in_a_list", "table$ = [lambda: 0.5]", "table$[0] = lambda: 2.0", "table$.insert(0, lambda: 7.0)",
              read="table$[0]()"),
    _function("function_in_an_attribute", "a$ = types.SimpleNamespace(f=lambda: 0.5)", "a$.f = lambda: 2.0", read="a$.f()"),
    _function("cache", "store$ = [0.5]\n@functools.lru_cache\ndef f$():\n    return store$[0]",
              "store$[0] = 2.0", "f$.cache_clear()"),
    _function("single_dispatch", "@functools.singledispatch\ndef f$(n):\n    return 0.5", "f$.register(int, lambda n: 2.0)",
              read="f$(1)"),
    _function("function_of_the_library", "", "F.user$ = lambda: 2.0", "F.user$ = lambda: -1.5",
              "del F.user$", read="getattr(F, 'user$', lambda: 0.5)()"),
)  # fmt: skip

CONTAINERS = (
    _item("list", "[1.0, 0.5]", "[1]"),
    _item("list_in_lists", "[[[[[0.5]]]]]", "[0][0][0][0][0]"),
    _item("long_list", "[0.5] * 1000", "[700]"),
    _item("sum_of_a_list", "[0.5, 1.0]", "[0]", read="sum(box$)"),
    _item("dict", "{'k': 0.5}", "['k']"),
    _item("dict_by_get", "{'other': 1.0}", "['k']", read="box$.get('k', 0.5)"),
    _item("dict_in_dicts", "{'a': {'b': {'c': {'d': 0.5}}}}", "['a']['b']['c']['d']"),
    _item("dict_of_lists", "{'a': [{'b': 0.5}]}", "['a'][0]['b']"),
    _item("dict_by_number", "{1: 0.5}", "[1]"),
    _item("dict_by_values", "{1: 0.5, 2: 1.0}", "[1]", read="sum(box$.values())"),
    _item("large_dict", "{n: 0.5 for n in range(1000)}", "[700]"),
    _item("ordered_dict", "collections.OrderedDict(k=0.5)", "['k']"),
    _item("default_dict", "collections.defaultdict(float, k=0.5)", "['k']"),
    _item("chain_map", "collections.ChainMap({}, {'k': 0.5})", ".maps[1]['k']", read="box$['k']"),
    _item("user_dict", "collections.UserDict(k=0.5)", "['k']"),
    _item("counter", "collections.Counter(k=1)", "['k']"),
    _item("deque", "collections.deque([0.5])", "[0]"),
    _item("array", "array.array('d', [0.5])", "[0]"),
    _item("numpy_array", "np.array([0.5, 1.0])", "[0]", read="float(box$[0])"),
    _item("numpy_scalar", "[np.float64(0.5)]", "[0]", read="box$[0]"),
    _item("large_numpy_array", "np.full(5000, 0.5)", "[4000]", read="float(box$[4000])"),
    _item("namespace", "types.SimpleNamespace(k=0.5)", ".k"),
    _item("namespace_in_namespaces", "types.SimpleNamespace(a=types.SimpleNamespace(b=types.SimpleNamespace(k=0.5)))", ".a.b.k"),
    _item("attribute_by_name", "types.SimpleNamespace(k=0.5)", ".k", read="getattr(box$, 'k')"),
    _item("attribute_by_vars", "types.SimpleNamespace(k=0.5)", ".k", read="vars(box$)['k']"),
    _item("attribute_by_dict", "types.SimpleNamespace(k=0.5)", ".__dict__['k']", read="box$.k"),
    _item("attribute_by_getter", "types.SimpleNamespace(k=0.5)", ".k", read="operator.attrgetter('k')(box$)"),
    _item("item_by_getter", "{'k': 0.5}", "['k']", read="operator.itemgetter('k')(box$)"),
    _item("attribute_or_default", "types.SimpleNamespace()", ".k", read="getattr(box$, 'k', 0.5)"),
    _item("attribute_that_may_be_there", "types.SimpleNamespace()", ".k", read="(2.5 if hasattr(box$, 'k') else 0.5)"),
    _item("item_that_may_be_there", "{}", "['k']", read="(2.5 if 'k' in box$ else 0.5)"),
    Source("tuple", "box$ = (0.5, 1)", "box$[0]", ("box$ = (2.0, 1)", "box$ = (-1.5, 1)")),
    Source("set", "box$ = {0.5}", "max(box$)", ("box$.add(2.0)", "box$ |= {3.0}")),
    Source("frozen_set", "box$ = frozenset([0.5])", "max(box$)", ("box$ = frozenset([2.0])",)),
    Source("length", "box$ = [1]", "len(box$)", ("box$.append(2)", "box$.pop()", "box$.extend([1, 2])")),
    Source("emptiness", "box$ = []", "(2.0 if box$ else 0.5)", ("box$.append(2)", "box$.clear()")),
    Source("order_of_a_dict", "box$ = {'a': 0.5, 'b': 2.0}", "next(iter(box$.values()))", ("box$['a'] = box$.pop('a')",)),
    Source("order_of_a_list", "box$ = [0.5, 2.0]", "box$[0]", ("box$.reverse()", "box$.sort()")),
    Source("view_of_a_dict", "_d$ = {'k': 0.5}\nbox$ = types.MappingProxyType(_d$)", "box$['k']", ("_d$['k'] = 2.0",)),
    Source("heap", "box$ = [2.0, 3.0]", "heapq.nsmallest(1, box$)[0]", ("heapq.heappush(box$, 0.5)",)),
    Source("text", "box$ = '0.5'", "float(box$)", ("box$ = '2.0'", "box$ = '-1.5'")),
    Source("bytes", "box$ = bytearray([1, 2])", "box$[0]", ("box$[0] = 3", "box$[0] = 4")),
    Source("memory_view", "_b$ = bytearray([1, 2])\nbox$ = memoryview(_b$)", "box$[0]", ("_b$[0] = 3",)),
    Source("decimal", "box$ = decimal.Decimal('0.5')", "float(box$)", ("box$ = decimal.Decimal('2')",)),
    Source("fraction", "box$ = fractions.Fraction(1, 2)", "float(box$)", ("box$ = fractions.Fraction(2)",)),
    Source("complex", "box$ = 0.5 + 1j", "box$.real", ("box$ = 2.0 + 1j",)),
    Source("range", "box$ = range(1, 4)", "sum(box$)", ("box$ = range(1, 5)",)),
    Source("int_that_becomes_float", "k$ = 2", "(k$ if isinstance(k$, int) else 7.0)", ("k$ = 2.0", "k$ = True")),
    Source("none_that_becomes_a_number", "k$ = None", "(0.5 if k$ is None else k$)", ("k$ = 2.0", "k$ = None")),
    Source("sign_of_zero", "k$ = 0.0", "math.copysign(1.0, k$)", ("k$ = -0.0", "k$ = 0.0")),
    Source("nan", "k$ = 1.0", "k$", ("k$ = math.nan", "k$ = math.inf", "k$ = 0.5")),
    Source("cycle", "box$ = [0.5]\nbox$.append(box$)", "box$[1][1][0]", ("box$[0] = 2.0",)),
)  # fmt: skip

CLASSES = (
    Source("class_attribute", "class A$:\n    k = 0.5\na$ = A$()", "a$.k", ("A$.k = 2.0", "a$.k = -1.5", "del a$.k")),
    Source("class_attribute_by_class", "class A$:\n    k = 0.5", "A$.k", ("A$.k = 2.0", "A$.k = -1.5")),
    Source("inherited_attribute", "class A$:\n    k = 0.5\nclass B$(A$):\n    pass\nb$ = B$()", "b$.k", ("A$.k = 2.0", "B$.k = 3.0")),
    Source("attribute_of_a_metaclass", "class M$(type):\n    k = 0.5\nclass A$(metaclass=M$):\n    pass", "A$.k", ("M$.k = 2.0",)),
    Source("instance_attribute", "class A$:\n    def __init__(self):\n        self.k = 0.5\na$ = A$()", "a$.k", ("a$.k = 2.0",)),
    Source("instance_that_is_replaced", "class A$:\n    def __init__(self, k):\n        self.k = k\na$ = A$(0.5)", "a$.k",
           ("a$ = A$(2.0)", "a$ = A$(-1.5)")),
    Source("attribute_behind_a_property", "class A$:\n    _k = 0.5\n    @property\n    def k(self):\n        return self._k\na$ = A$()",
           "a$.k", ("a$._k = 2.0", "A$._k = -1.5", "A$.k = property(lambda self: 7.0)")),
    Source("cached_property", "class A$:\n    n = 0.5\n    @functools.cached_property\n    def k(self):\n        return self.n\na$ = A$()",
           "a$.k", ("a$.n = 2.0", "del a$.k", "a$.__dict__['k'] = 7.0")),
    Source("descriptor", "class D$:\n    k = 0.5\n    def __get__(self, owner, kind=None):\n        return self.k\nclass A$:\n"
           "    k = d = D$()\na$ = A$()", "a$.k", ("A$.__dict__['d'].k = 2.0", "D$.k = 1", "A$.__dict__['d'].k = 3.0")),
    Source("attribute_by_getattr", "class A$:\n    def __init__(self):\n        self.table = {'k': 0.5}\n"
           "    def __getattr__(self, name):\n        try:\n            return self.__dict__['table'][name]\n"
           "        except KeyError:\n            raise AttributeError(name)\na$ = A$()", "a$.k", ("a$.table['k'] = 2.0",)),
    Source("slot", "class A$:\n    __slots__ = ('k',)\na$ = A$()\na$.k = 0.5", "a$.k", ("a$.k = 2.0", "a$.k = -1.5")),
    Source("slot_of_a_base", "class B$:\n    __slots__ = ('k',)\nclass A$(B$):\n    __slots__ = ()\na$ = A$()\na$.k = 0.5", "a$.k",
           ("a$.k = 2.0",)),
    Source("dataclass", "@dataclasses.dataclass\nclass A$:\n    k: float = 0.5\na$ = A$()", "a$.k", ("a$.k = 2.0", "a$ = A$(-1.5)")),
    Source("frozen_dataclass", "@dataclasses.dataclass(frozen=True)\nclass A$:\n    k: float = 0.5\na$ = A$()", "a$.k",
           ("a$ = A$(2.0)", "object.__setattr__(a$, 'k', -1.5)", "a$ = dataclasses.replace(a$, k=3.0)")),
    Source("dataclass_with_slots", "@dataclasses.dataclass(slots=True)\nclass A$:\n    k: float = 0.5\na$ = A$()", "a$.k",
           ("a$.k = 2.0",)),
    Source("dataclass_in_a_dataclass", "@dataclasses.dataclass\nclass A$:\n    k: float = 0.5\n@dataclasses.dataclass\nclass B$:\n"
           "    a: A$ = dataclasses.field(default_factory=A$)\nb$ = B$()", "b$.a.k", ("b$.a.k = 2.0", "b$.a = A$(-1.5)")),
    Source("named_tuple", "A$ = collections.namedtuple('A$', 'k n')\na$ = A$(0.5, 1)", "a$.k",
           ("a$ = A$(2.0, 1)", "a$ = a$._replace(k=-1.5)")),
    Source("enum", "class E$(enum.Enum):\n    A = 0.5\n    B = 2.0\ne$ = E$.A", "e$.value", ("e$ = E$.B", "e$ = E$.A")),
    Source("int_enum", "class E$(enum.IntEnum):\n    A = 1\n    B = 2\ne$ = E$.A", "e$", ("e$ = E$.B", "e$ = 2")),
    Source("flag", "class E$(enum.Flag):\n    A = 1\n    B = 2\ne$ = E$.A", "(2.0 if E$.B in e$ else 0.5)", ("e$ |= E$.B",)),
    Source("str_enum", "class E$(enum.StrEnum):\n    A = '0.5'\n    B = '2'\ne$ = E$.A", "float(e$)", ("e$ = E$.B",)),
    Source("object_in_a_list_of_objects", "class A$:\n    def __init__(self, k):\n        self.k = k\nbox$ = [A$(0.5), A$(1.0)]",
           "sum(a.k for a in box$)", ("box$[1].k = 2.0", "box$.append(A$(3.0))", "box$.pop(0)")),
    Source("length_of_an_object", "class A$:\n    n = 1\n    def __len__(self):\n        return self.n\na$ = A$()", "len(a$)", ("a$.n = 3",)),
    Source("equality_of_objects", "class A$:\n    n = 1\n    def __eq__(self, other):\n        return self.n == other.n\n"
           "    __hash__ = None\na$, b$ = A$(), A$()", "(2.0 if a$ == b$ else 0.5)", ("a$.n = 3", "b$.n = 3")),
    Source("identity_of_objects", "a$ = [1]\nb$ = a$", "(2.0 if a$ is b$ else 0.5)", ("b$ = [1]", "b$ = a$")),
    Source("type_of_an_object", "class A$:\n    pass\nclass B$(A$):\n    pass\na$ = B$()",
           "(2.0 if isinstance(a$, B$) else 0.5)", ("a$ = A$()", "a$ = B$()")),
    Source("abstract_class", "class A$(abc.ABC):\n    pass\na$ = 1", "(2.0 if isinstance(a$, A$) else 0.5)", ("A$.register(int)",)),
    Source("weak_reference", "class A$:\n    k = 0.5\na$ = A$()\n_ref$ = weakref.ref(a$)", "(_ref$().k if _ref$() else 7.0)",
           ("if a$: a$.k = 2.0", "a$ = None")),
    Source("simple_inheritance_of_dict", "class A$(dict):\n    def __getattr__(self, name):\n        if name in self:\n            return self[name]\n"
           "        raise AttributeError(name)\na$ = A$(k=0.5)",
           "a$.k", ("a$['k'] = 2.0", "a$.update(k=-1.5)")),
    Source("list_subclass", "class A$(list):\n    scale = 1.0\na$ = A$([0.5])", "a$[0] * a$.scale", ("a$.scale = 2.0", "a$[0] = 3.0")),
    Source("float_subclass", "class A$(float):\n    pass\na$ = A$(0.5)", "a$", ("a$ = A$(2.0)", "a$ = 2.0")),
)  # fmt: skip

_HELPER = "k = 0.5\ndef f():\n    return k\ndef g(n):\n    return n * k\nclass A:\n    k = 0.5\n    def f(self):\n        return self.k\na = A()\n"

MODULES = (
    Source("name_of_another_module", "", "helper$.k", ("helper$.k = 2.0", "helper$.k = -1.5"), {"helper$": _HELPER}),
    Source("function_of_another_module", "", "helper$.f()", ("helper$.k = 2.0", "helper$.f = lambda: 7.0"), {"helper$": _HELPER}),
    Source("function_from_another_module", "from helper$ import f as f$", "f$()", ("helper$.k = 2.0",), {"helper$": _HELPER}),
    Source("name_from_another_module", "from helper$ import k as k$", "k$", ("k$ = 2.0", "helper$.k = 7.0"), {"helper$": _HELPER}),
    Source("import_inside", "def f$():\n    import helper$\n    return helper$.k", "f$()", ("helper$.k = 2.0",), {"helper$": _HELPER}),
    Source("import_from_inside", "def f$():\n    from helper$ import k\n    return k", "f$()", ("helper$.k = 2.0",), {"helper$": _HELPER}),
    Source("import_by_name", "import importlib", "importlib.import_module('helper$').k", ("helper$.k = 2.0",), {"helper$": _HELPER}),
    Source("module_by_sys", "", "sys.modules['helper$'].k", ("helper$.k = 2.0",), {"helper$": _HELPER}),
    Source("method_of_another_module", "", "helper$.a.f()", ("helper$.a.k = 2.0", "helper$.A.f = lambda self: 7.0"), {"helper$": _HELPER}),
    Source("class_of_another_module", "", "helper$.A().f()", ("helper$.A.k = 2.0",), {"helper$": _HELPER}),
    Source("function_through_two_modules", "", "outer$.f()", ("helper$.k = 2.0",),
           {"helper$": _HELPER, "outer$": "import helper$\ndef f():\n    return helper$.f()\n"}),
    Source("callback_of_another_module", "k$ = 0.5", "helper$.call(lambda: k$)", ("k$ = 2.0",), {"helper$": "def call(f):\n    return f()\n"}),
    Source("name_by_getattr_of_a_module", "", "helper$.k", ("helper$.table['k'] = 2.0",),
           {"helper$": "table = {'k': 0.5}\ndef __getattr__(name):\n    if name == 'k':\n        return table['k']\n"
                       "    raise AttributeError(name)\n"}),
    Source("environment", "os.environ['FUZZ$'] = '0.5'", "float(os.environ['FUZZ$'])",
           ("os.environ['FUZZ$'] = '2.0'", "os.environ['FUZZ$'] = '-1.5'")),
    Source("environment_by_getenv", "", "float(os.getenv('FUZZ$', '0.5'))", ("os.environ['FUZZ$'] = '2.0'",)),
    Source("environment_by_get", "", "float(os.environ.get('FUZZ$', '0.5'))", ("os.environ['FUZZ$'] = '2.0'",)),
    Source("environment_that_may_be_there", "", "(2.0 if 'FUZZ$' in os.environ else 0.5)", ("os.environ['FUZZ$'] = '2.0'",)),
    Source("context_variable", "v$ = contextvars.ContextVar('v$', default=0.5)", "v$.get()", ("v$.set(2.0)", "v$.set(-1.5)")),
    Source("thread_local", "t$ = threading.local()\nt$.k = 0.5", "t$.k", ("t$.k = 2.0",)),
    Source("buffer_in_memory", "_io$ = io.StringIO('0.5')", "float(_io$.getvalue())", ("_io$ = io.StringIO('2.0')",)),
    Source("file_that_may_be_there", "_p$ = os.path.join(tempfile.mkdtemp(), 'k')", "(2.0 if os.path.exists(_p$) else 0.5)",
           ("open(_p$, 'w').close()",)),
    Source("file_content", "_p$ = os.path.join(tempfile.mkdtemp(), 'k')\ndef put$(k):\n    with open(_p$, 'w') as f:\n"
           "        f.write(k)\ndef get$():\n    with open(_p$) as f:\n        return float(f.read())\nput$('0.5')",
           "get$()", ("put$('2.0')", "put$('-1.5')")),
    Source("working_folder", "_was$ = os.getcwd()", "len(os.getcwd())", ("os.chdir(tempfile.gettempdir())", "os.chdir(_was$)")),
    Source("recursion_limit", "_was$ = sys.getrecursionlimit()", "(sys.getrecursionlimit() - _was$)",
           ("sys.setrecursionlimit(_was$ + 1)", "sys.setrecursionlimit(_was$)")),
    Source("log_level", "_log$ = logging.getLogger('fuzz$')\n_log$.setLevel(logging.INFO)", "_log$.getEffectiveLevel()",
           ("_log$.setLevel(logging.DEBUG)", "_log$.setLevel(logging.ERROR)")),
)  # fmt: skip

SOURCES = (*NAMES, *FUNCTIONS, *CONTAINERS, *CLASSES, *MODULES)


def program(source: Source) -> Program:
    """A step that reads the number, which changes between two audits and right before one."""
    sets = source.sets
    changes = {at: sets[n % len(sets)].replace("$", "") for n, at in enumerate((4, 6, 7, 9))}
    setup = f"{source.setup}\ndef step(x):\n    number = {source.read}\n    return x * number"
    modules = {name.replace("$", ""): text.replace("$", "") for name, text in source.modules.items()}
    return Program(source.name, setup.replace("$", ""), changes, modules=modules, scopes=source.scopes)


PROGRAMS = tuple(program(source) for source in SOURCES)
