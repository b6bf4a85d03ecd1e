"""Sources of numbers where nobody thinks of looking: classes of libraries and of classes, slots, filters, handlers."""

from tests.cases import unknown_state
from tests.fuzz.programs import sources
from tests.fuzz.programs.sources import Source

# Of the classes of libraries whose parts are replaced, those by which neither library works itself.
NAMES = ("textwrap", "nullcontext", "counter", "chain_map", "user_dict", "template")


# What every program imports would be a local name before it is there.
_OBJECTS = unknown_state.OBJECTS_OF_LIBRARIES.replace("import contextlib, ", "import ")


def _library(name: str) -> Source:
    read, replaced = unknown_state.IN_LIBRARIES[name]
    return Source(f"library_{name}", _OBJECTS, read, (f"setattr({replaced})",))


LIBRARIES = tuple(map(_library, NAMES))

_META = "class M$(type):\n    def f(cls):\n        return 0.5\nclass N$(type):\n    def f(cls):\n        return 2.0\n"
_CAUGHT = "kind$ = ValueError\ndef f$():\n    try:\n        {}\n    except kind$:\n        return 0.5\n    except Exception:\n        return 2.0\n"
_SLOTS = "class A$:\n    __slots__ = ('k',)\nclass B$(A$):\n    __slots__ = ('k',)\nb$ = B$()\nb$.k = 1.0\nA$.k.__set__(b$, 0.5)"
_MODULE = (
    "m$ = types.ModuleType('m$')\nm$.k = 0.5\nclass M$(types.ModuleType):\n    def __getattribute__(self, name):\n"
    "        return 2.0 if name == 'k' else super().__getattribute__(name)"
)
_TWO = "class A$:\n    def f(self):\n        return 0.5\nclass B$:\n    def f(self):\n        return 2.0\n"
_ERROR = "warnings.filterwarnings('error', category=DeprecationWarning)"
_WARNS = "class F$(float):\n    pass\nclass A$:\n    def __float__(self):\n        return F$(0.5)\na$ = A$()\ndef f$():\n    try:\n        return float(a$)\n    except DeprecationWarning:\n        return 2.0\n"
_PROTOCOL = "@typing.runtime_checkable\nclass P$(typing.Protocol):\n    def go(self):\n        ...\nclass A$:\n    pass\na$ = A$()"

PLACES = (
    Source("class_of_a_class", f"{_META}class A$(metaclass=M$):\n    pass", "A$.f()", ("A$.__class__ = N$", "A$.__class__ = M$", "N$.f = lambda cls: 3.0")),
    Source("class_of_a_module", _MODULE, "m$.k", ("m$.__class__ = M$", "m$.__class__ = types.ModuleType", "m$.k = 3.0")),
    Source("class_of_an_object", f"{_TWO}a$ = A$()", "a$.f()", ("a$.__class__ = B$", "B$.f = lambda self: 3.0", "a$.__class__ = A$")),
    Source("bases_of_a_class", f"{_TWO}class C$(A$):\n    pass\na$ = C$()", "a$.f()", ("C$.__bases__ = (B$,)", "B$.f = lambda self: 3.0", "C$.__bases__ = (A$,)")),
    Source("slot_that_hides_another", _SLOTS, "A$.k.__get__(b$)", ("A$.k.__set__(b$, 2.0)", "A$.k.__set__(b$, 3.0)")),
    Source("slot_that_is_not_set", "class A$:\n    __slots__ = ('k',)\na$ = A$()", "getattr(a$, 'k', 0.5)", ("a$.k = 2.0", "a$.k = 3.0")),
    Source("errors_that_are_caught", _CAUGHT.format("int('a')"), "f$()", ("kind$ = KeyError", "kind$ = (KeyError, ValueError)")),
    Source("errors_of_a_raise_that_are_caught", _CAUGHT.format("raise ValueError(1)"), "f$()", ("kind$ = KeyError", "kind$ = ValueError")),
    Source("errors_that_are_suppressed", "kind$ = ValueError\ndef f$():\n    try:\n        with contextlib.suppress(kind$):\n            int('a')\n        return 0.5\n    except ValueError:\n        return 2.0",
           "f$()", ("kind$ = KeyError", "kind$ = ValueError")),
    Source("errors_of_a_group", "kind$ = ValueError\ndef f$():\n    try:\n        raise ExceptionGroup('a', [ValueError(1), KeyError(2)])\n    except* kind$ as group:\n        n = len(group.exceptions)\n"
           "    except* Exception:\n        pass\n    return n * 0.5", "f$()", ("kind$ = (ValueError, KeyError)", "kind$ = KeyError")),
    Source("warning_of_c_code", _WARNS, "f$()", (_ERROR, "warnings.simplefilter('ignore')")),
    Source("protocol_that_an_object_fits", _PROTOCOL, "(2.0 if isinstance(a$, P$) else 0.5)", ("a$.go = lambda: 1", "del a$.go", "A$.go = lambda self: 1")),
    Source("method_that_a_protocol_asks_for", "class A$:\n    pass\na$ = A$()", "(2.0 if isinstance(a$, collections.abc.Iterable) else 0.5)", ("A$.__iter__ = lambda self: iter(())", "A$.__iter__ = None")),
    Source("attribute_that_may_be_there", "class A$:\n    pass\na$ = A$()\ndef f$():\n    try:\n        return a$.k\n    except AttributeError:\n        return 0.5", "f$()", ("a$.k = 2.0", "del a$.k", "A$.k = 3.0")),
    Source("members_of_an_enum_by_value", "class E$(enum.Enum):\n    A = 0.5\n    B = 2.0", "E$(0.5).value", ("E$._value2member_map_[0.5] = E$.B", "E$.B._value_ = 3.0")),
    Source("what_a_pattern_names", "class A$:\n    __match_args__ = ('a', 'b')\n    a, b = 0.5, 2.0\na$ = A$()\ndef f$():\n    match a$:\n        case A$(k):\n            return k", "f$()",
           ("A$.__match_args__ = ('b',)", "a$.b = 3.0")),
    Source("keywords_of_a_partial_function", "def g$(k, m=1.0):\n    return k * m\np$ = functools.partial(g$, k=0.5)", "p$()", ("p$.keywords['k'] = 2.0", "p$.__setstate__((g$, (3.0,), {}, {}))")),
    Source("attribute_of_a_wrapper", "def f$():\n    return 0.5\n@functools.wraps(f$)\ndef g$():\n    return g$.__wrapped__()", "g$()", ("g$.__wrapped__ = lambda: 2.0", "g$.__wrapped__ = lambda: 3.0")),
    Source("attributes_of_the_attributes_of_a_descriptor", "class D$:\n    k = 0.5\n    def __get__(self, one, kind=None):\n        return self.k\nclass A$:\n    k = D$()\na$ = A$()", "a$.k",
           ("vars(A$)['k'].k = 2.0", "D$.__set__ = lambda *_: None", "vars(a$)['k'] = 3.0", "del D$.__set__")),
)  # fmt: skip

SOURCES = (*LIBRARIES, *PLACES)
PROGRAMS = tuple(map(sources.program, SOURCES))
