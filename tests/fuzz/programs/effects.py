"""What a step may do to Python's objects, and what it may read of the world that is new at each call."""

from dataclasses import dataclass

from tests.fuzz.programs.program import CLOSURE, GLOBALS, Program


@dataclass(frozen=True, slots=True)
class Effect:
    """A statement inside a step that outlives the call. `n` in it is the step's number `x` is a tensor."""

    name: str
    setup: str
    statement: str
    scopes: tuple[str, ...] = (GLOBALS, CLOSURE)


EFFECTS = (
    Effect("list_append", "seen$ = []", "seen$.append(len(seen$))"),
    Effect("list_of_text", "seen$ = []", "seen$.append('call')"),
    Effect("list_insert", "seen$ = []", "seen$.insert(0, len(seen$))"),
    Effect("list_extend", "seen$ = []\ndef f$():\n    outer seen$\n    seen$ += [1, 2]", "f$()"),
    Effect("list_pop", "seen$ = list(range(20))", "seen$.pop()"),
    Effect("list_item", "seen$ = [0]", "seen$[0] += 1"),
    Effect("list_of_a_list", "seen$ = [[[]]]", "seen$[0][0].append(1)"),
    Effect("list_slice", "seen$ = [1, 2, 3]", "seen$[1:1] = [7]"),
    Effect("list_delete", "seen$ = list(range(20))", "del seen$[0]"),
    Effect("list_reverse", "seen$ = [1, 2, 3]", "seen$.reverse()"),
    Effect("list_sort", "seen$ = [3, 1, 2]", "seen$.sort(reverse=seen$[0] == 1)"),
    Effect("list_clear", "seen$ = []", "seen$.clear() if len(seen$) > 2 else seen$.append(1)"),
    Effect("dict_item", "seen$ = {}", "seen$[len(seen$)] = 1"),
    Effect("dict_count", "seen$ = {'n': 0}", "seen$['n'] += 1"),
    Effect("dict_update", "seen$ = {}", "seen$.update({str(len(seen$)): 1})"),
    Effect("dict_setdefault", "seen$ = {}", "seen$.setdefault(len(seen$), []).append(1)"),
    Effect("dict_pop", "seen$ = {n: n for n in range(20)}", "seen$.popitem()"),
    Effect("dict_or", "seen$ = {}", "seen$.__ior__({len(seen$): 1})"),
    Effect("default_dict", "seen$ = collections.defaultdict(int)", "seen$['n'] += 1"),
    Effect("default_dict_read", "seen$ = collections.defaultdict(list)", "seen$[len(seen$)]"),
    Effect("counter", "seen$ = collections.Counter()", "seen$.update(['a'])"),
    Effect("set_add", "seen$ = set()", "seen$.add(len(seen$))"),
    Effect("deque", "seen$ = collections.deque(maxlen=3)", "seen$.append(seen$[-1] + 1 if seen$ else 0)"),
    Effect("deque_rotate", "seen$ = collections.deque([1, 2, 3])", "seen$.rotate()"),
    Effect("heap", "seen$ = []", "heapq.heappush(seen$, -len(seen$))"),
    Effect("insort", "seen$ = []", "bisect.insort(seen$, -len(seen$))"),
    Effect("byte_array", "seen$ = bytearray(b'a')", "seen$.append(1)"),
    Effect("array", "seen$ = array.array('i', [0])", "seen$[0] += 1"),
    Effect("numpy_item", "seen$ = np.zeros(2)", "seen$[0] += 1"),
    Effect("numpy_in_place", "seen$ = np.zeros(2)", "np.add(seen$, 1, out=seen$)"),
    Effect("numpy_fill", "seen$ = np.zeros(2)", "seen$.fill(seen$[0] + 1)"),
    Effect("counter_of_a_name", "count$ = 0\ndef f$():\n    outer count$\n    count$ += 1", "f$()"),
    Effect("name_that_is_a_text", "text$ = ''\ndef f$():\n    outer text$\n    text$ += 'a'", "f$()"),
    Effect("name_that_is_a_tuple", "items$ = ()\ndef f$():\n    outer items$\n    items$ = (*items$, 1)", "f$()"),
    Effect("name_that_swaps", "a$, b$ = [1], [2]\ndef f$():\n    outer a$, b$\n    a$, b$ = b$, a$", "f$()"),
    Effect("attribute", "a$ = types.SimpleNamespace(n=0)", "a$.n += 1"),
    Effect("attribute_by_setattr", "a$ = types.SimpleNamespace(n=0)", "setattr(a$, 'n', a$.n + 1)"),
    Effect("attribute_by_vars", "a$ = types.SimpleNamespace(n=0)", "vars(a$)['n'] += 1"),
    Effect("attribute_by_object", "a$ = types.SimpleNamespace(n=0)", "object.__setattr__(a$, 'n', a$.n + 1)"),
    Effect("new_attributes", "a$ = types.SimpleNamespace()", "setattr(a$, f'n{len(vars(a$))}', 1)"),
    Effect("deleted_attribute", "a$ = types.SimpleNamespace(n=1, m=2)", "vars(a$).pop('n', None)"),
    Effect("class_attribute", "class A$:\n    n = 0\nseen$ = []\ndef f$():\n    A$.n += 1\n    return A$.n", "f$()"),
    Effect("class_attribute_that_is_a_list", "class A$:\n    seen = []\nseen$ = A$.seen", "A$.seen.append(1)"),
    Effect("slot", "class A$:\n    __slots__ = ('n',)\na$ = A$()\na$.n = 0", "a$.n += 1"),
    Effect("dataclass", "@dataclasses.dataclass\nclass A$:\n    n: int = 0\na$ = A$()", "a$.n += 1"),
    Effect("property", "class A$:\n    _n = 0\n    @property\n    def n(self):\n        return self._n\n    @n.setter\n"
           "    def n(self, value):\n        self._n = value\na$ = A$()", "a$.n += 1"),
    Effect("method", "class A$:\n    def __init__(self):\n        self.n = 0\n    def f(self):\n        self.n += 1\na$ = A$()", "a$.f()"),
    Effect("meter", "class A$:\n    def __init__(self):\n        self.total, self.count = 0.0, 0\n    def update(self, v):\n"
           "        self.total += v\n        self.count += 1\na$ = A$()", "a$.update(0.5)"),
    Effect("attribute_of_a_function", "def f$():\n    f$.n += 1\nf$.n = 0\ndef n$():\n    return f$.n", "f$()"),
    Effect("cell_of_a_factory", "def make$():\n    n = 0\n    def add():\n        nonlocal n\n        n += 1\n        return n\n"
           "    return add, lambda: n\nadd$, get$ = make$()", "add$()"),
    Effect("lru_cache", "calls$ = []\n@functools.lru_cache\ndef f$(n):\n    calls$.append(n)\n    return n", "f$(len(calls$))"),
    Effect("cached_property", "class A$:\n    @functools.cached_property\n    def n(self):\n        return 1\na$ = A$()",
           "a$.n, (a$.__dict__.pop('n') if len(vars(a$)) > 1 else 0)"),
    Effect("cache_of_tensors", "cache$ = {}\ndef f$(x):\n    if 'ones' not in cache$:\n        cache$['ones'] = torch.ones_like(x)\n"
           "    return cache$['ones']", "x = x + f$(x)"),
    Effect("cache_of_shapes", "cache$ = {}\ndef f$(x):\n    if x.shape not in cache$:\n        cache$[x.shape] = len(cache$) + 1\n"
           "    return cache$[x.shape]", "x = x * f$(x)"),
    Effect("print", "", "print('step')"),
    Effect("print_to_a_buffer", "_io$ = io.StringIO()\ndef text$():\n    return _io$.getvalue()\nseen$ = []",
           "print('a', file=_io$), seen$.append(_io$.tell())"),
    Effect("write_to_stdout", "", "sys.stdout.write('step')"),
    Effect("logging", "seen$ = []\nclass H$(logging.Handler):\n    def emit(self, record):\n        seen$.append(record.getMessage())\n"
           "_log$ = logging.getLogger('fuzz$')\n_log$.propagate = False\n_log$.handlers[:] = [H$()]", "_log$.warning('step %d', 1)"),
    Effect("warning", "seen$ = []\ndef show$(*args):\n    seen$.append(1)\ndef f$():\n    with warnings.catch_warnings():\n"
           "        warnings.simplefilter('always')\n        warnings.showwarning = lambda *a, **k: seen$.append(str(a[0]))\n"
           "        warnings.warn('user')", "f$()"),
    Effect("file", "_p$ = os.path.join(tempfile.mkdtemp(), 'log')\nopen(_p$, 'w').close()\nsize$ = []\ndef f$():\n"
           "    with open(_p$, 'a') as f:\n        f.write('a')\n    size$[:] = [os.path.getsize(_p$)]", "f$()"),
    Effect("file_alone", "_p$ = os.path.join(tempfile.mkdtemp(), 'log')\nclass S$:\n    @property\n    def __dict__(self):\n"
           "        return {'size': os.path.getsize(_p$) if os.path.exists(_p$) else 0}\nsize$ = S$()\ndef f$():\n"
           "    with open(_p$, 'a') as f:\n        f.write('a')", "f$()"),
    Effect("environment", "class S$:\n    @property\n    def __dict__(self):\n        return {'v': os.environ.get('FUZZ$', '')}\n"
           "seen$ = S$()", "os.environ['FUZZ$'] = os.environ.get('FUZZ$', '') + 'a'"),
    Effect("context_variable", "_v$ = contextvars.ContextVar('v$', default=0)\nclass S$:\n    @property\n    def __dict__(self):\n"
           "        return {'v': _v$.get()}\nseen$ = S$()", "_v$.set(_v$.get() + 1)"),
    Effect("iterator_of_a_list", "it$ = iter(range(100))", "x = x * next(it$)"),
    Effect("iterator_of_a_dict", "it$ = iter({n: n for n in range(50)}.items())", "x = x * next(it$)[0]"),
    Effect("count", "it$ = itertools.count()", "x = x * next(it$)"),
    Effect("cycle", "_it$ = itertools.cycle([1.0, 2.0, 3.0])", "x = x * next(_it$)"),
    Effect("generator", "def g$():\n    n = 0\n    while True:\n        yield n\n        n += 1\n_it$ = g$()", "x = x * next(_it$)"),
    Effect("generator_that_is_sent_to", "def g$():\n    n = 0\n    while True:\n        n += yield n\n_it$ = g$()\nnext(_it$)",
           "x = x * _it$.send(1)"),
    Effect("generator_of_tensors", "def g$():\n    n = 0\n    while True:\n        n += 1\n        yield data(n, 4)\n_it$ = g$()", "x = x * next(_it$)"),
    Effect("zip", "_it$ = zip(range(50), itertools.count(5))", "x = x * sum(next(_it$))"),
    Effect("map", "_it$ = map(lambda n: n * 2, range(50))", "x = x * next(_it$)"),
    Effect("enumerate_outside", "_it$ = enumerate(itertools.repeat(1.5))", "x = x * next(_it$)[0]"),
    Effect("iterator_in_a_for", "_it$ = iter(range(100))\ndef f$():\n    for n in _it$:\n        return n", "x = x * f$()"),
    Effect("iterator_of_two_items", "_it$ = iter(range(100))", "x = x * sum(itertools.islice(_it$, 2))"),
    Effect("iterator_of_a_class", "class I$:\n    n = 0\n    def __iter__(self):\n        return self\n    def __next__(self):\n"
           "        self.n += 1\n        return self.n\nit$ = I$()", "x = x * next(it$)"),
    Effect("callable_iterator", "_q$ = list(range(100))\n_it$ = iter(_q$.pop, None)", "x = x * next(_it$)"),
    Effect("lines_of_a_file", "_io$ = io.StringIO('1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\\n')", "x = x * float(_io$.readline())"),
    Effect("queue", "import queue as queue$\n_q$ = queue$.SimpleQueue()\nfor n in range(30):\n    _q$.put(n)", "x = x * _q$.get()"),
    Effect("random", "", "x = x * random.random()"),
    Effect("random_uniform", "", "x = x * random.uniform(0, 2) + random.randint(0, 5) + random.gauss(0, 1)"),
    Effect("random_choice", "", "x = x * random.choice([1.0, 2.0, 3.0])"),
    Effect("random_branch", "", "x = x * 2 if random.random() < 0.5 else x * 3"),
    Effect("random_shuffle", "seen$ = [1, 2, 3, 4]", "random.shuffle(seen$)"),
    Effect("random_bound", "draw$ = random.random", "x = x * draw$()"),
    Effect("random_of_an_instance", "r$ = random.Random(3)", "x = x * r$.random()"),
    Effect("random_bits", "", "x = x * (random.getrandbits(4) + 1)"),
    Effect("random_seed", "", "random.seed(random.random())"),
    Effect("random_in_a_helper", "def f$():\n    return random.random()", "x = x * f$()"),
    Effect("numpy_random", "", "x = x * float(np.random.rand())"),
    Effect("numpy_random_branch", "", "x = x * 2 if np.random.random() < 0.5 else x * 3"),
    Effect("numpy_normal", "", "x = x + torch.tensor(np.random.normal(size=4), dtype=torch.float32)"),
    Effect("numpy_generator", "r$ = np.random.default_rng(3)", "x = x * float(r$.random())"),
    Effect("numpy_integers", "r$ = np.random.default_rng(3)", "x = x[int(r$.integers(0, 3))] + x"),
    Effect("numpy_state", "r$ = np.random.RandomState(3)\nseen$ = []", "seen$.append(float(r$.rand()))"),
    Effect("numpy_permutation", "", "x = x[torch.tensor(np.random.permutation(3))]"),
    Effect("attribute_of_a_tensor", "w$ = data(0, 4)\nw$.user = 0", "w$.user += 1"),
    Effect("attribute_of_a_module", "m$ = linear()\nm$.calls = 0\nclass S$:\n    @property\n    def __dict__(self):\n"
           "        return {'calls': m$.calls}\nseen$ = S$()", "m$.calls += 1"),
    Effect("counter_of_a_module", "class M$(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.calls = 0\n"
           "    def forward(self, x):\n        self.calls += 1\n        return x * self.calls\nm$ = M$()", "x = m$(x)"),
    Effect("list_of_a_module", "class M$(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.seen = []\n"
           "    def forward(self, x):\n        self.seen.append(x.shape[0])\n        return x\nm$ = M$()", "x = m$(x)"),
    Effect("hook_that_counts", "m$ = linear()\nseen$ = []\nm$.register_forward_hook(lambda *a: seen$.append(1))", "x = m$(x).detach()"),
    Effect("hook_of_a_gradient_that_counts", "w$ = param(0)\nseen$ = []\nw$.register_hook(lambda g: seen$.append(1))",
           "w$.grad = None; (w$ * x).sum().backward()"),
    Effect("kept_tensors", "seen$ = []", "seen$.append(x * 2)"),
    Effect("last_tensor", "a$ = types.SimpleNamespace(last=None)", "a$.last = x * 2"),
    Effect("last_two_tensors", "a$ = [None, None]", "a$[:] = [a$[1], x * 2]"),
    Effect("running_mean_by_name", "mean$ = torch.zeros(3, 4)\ndef f$(x):\n    outer mean$\n    mean$ = mean$ * 0.9 + x * 0.1", "f$(x)"),
    Effect("running_mean_in_a_dict", "a$ = {'mean': torch.zeros(3, 4)}", "a$['mean'] = a$['mean'] * 0.9 + x * 0.1"),
    Effect("running_mean_in_place", "mean$ = torch.zeros(3, 4)", "mean$.mul_(0.9).add_(x, alpha=0.1)"),
    Effect("tensor_that_is_swapped", "a$ = [data(1, 4), data(2, 4)]", "a$[0], a$[1] = a$[1], a$[0]; x = x * a$[0]"),
    Effect("ring_buffer", "ring$, at$ = torch.zeros(4, 4), [0]", "ring$[at$[0] % 4] = x[0]; at$[0] += 1"),
    Effect("every_third_call", "n$ = [0]", "n$[0] += 1; x = x * 2 if n$[0] % 3 == 0 else x"),
    Effect("only_once", "a$ = {}", "x = x * 2 if a$.setdefault('done', x.shape) is not x.shape else x"),
    Effect("first_call_only", "first$ = [True]", "x = x * (5 if first$[0] else 1); first$[0] = False"),
    Effect("warm_up", "a$ = types.SimpleNamespace(n=0)", "a$.n += 1; x = x * min(1.0, a$.n / 8)"),
    Effect("moving_number", "a$ = types.SimpleNamespace(v=1.0)", "a$.v = a$.v * 0.9 + 0.05; x = x * a$.v"),
)  # fmt: skip

WRITES = "it writes to what outlives the call"

# Expressions of the world that are others at each call, so that only "it moved" can be compared.
MOVING: dict[str, str] = {
    "time": "time.time() * 1e4 % 1e6",
    "perf_counter": "time.perf_counter() * 1e6 % 1e6",
    "perf_counter_ns": "time.perf_counter_ns() % 1000003",
    "monotonic": "time.monotonic_ns() % 1000003",
    "process_time": "time.process_time_ns() % 1000003",
    "datetime": "datetime.datetime.now().microsecond",
    "utc": "datetime.datetime.now(datetime.timezone.utc).timestamp() * 1e4 % 1e6",
    "urandom": "int.from_bytes(os.urandom(2), 'big')",
    "uuid": "__import__('uuid').uuid4().int % 1000003",
    "secrets": "__import__('secrets').randbelow(1000003)",
    "system_random": "random.SystemRandom().random()",
    "time_by_a_name": "clock() % 1000003",
    "time_in_a_default": "since() * 1e6 % 1e6",
    "seed_of_numpy": "float(np.random.default_rng().random())",
    "random_of_a_new_instance": "random.Random().random()",
}


def effect(one: Effect) -> Program:
    setup = f"{one.setup}\ndef step(x):\n    {one.statement}\n    return x * 2".replace("$", "")
    return Program(f"effect_{one.name}", setup, scopes=one.scopes, audited=WRITES)


def moving(name: str, read: str) -> Program:
    """Each call gives another number than the one before; 1 in 1000 may do so by chance and is not looked at."""
    setup = f"""
        from time import perf_counter_ns as clock
        def since(start=[time.perf_counter()]):
            return time.perf_counter() - start[0]
        _last = [None]
        def moved(value):
            was, _last[0] = _last[0], value
            return was != _last[0]
        def step(x):
            k = {read}
            return x * 0 + k, k
        """
    return Program(f"moving_{name}", setup, call="[(moved(step(data(n))[1])), time.sleep(0.0002)]")


def moving_tensor(name: str, read: str) -> Program:
    setup = f"""
        from time import perf_counter_ns as clock
        def since(start=[time.perf_counter()]):
            return time.perf_counter() - start[0]
        _last = [None]
        def moved(value):
            was, _last[0] = _last[0], value.tolist()
            return was != _last[0]
        def step(x):
            return x * 0 + {read}
        """
    return Program(f"moving_tensor_{name}", setup, call="[(moved(step(data(n)))), time.sleep(0.0002)]")


ORDERS = (
    Program("identity_number_of_an_object", "box = [object()]\ndef step(x):\n    return x * (id(box[0]) == _known[0])\n_known = [id(box[0])]",
            {4: "box[0] = [1]", 6: "_known[0] = id(box[0])"}),
    Program("number_of_references", "box = []\nkept = []\ndef step(x):\n    return x * (sys.getrefcount(box) > 3)", {4: "kept += [box, box, box]", 6: "kept.clear()"}),
    Program("number_of_the_process", "def step(x):\n    return x * (os.getpid() > 0)", replays=0),
    Program("frames", "def step(x):\n    return x * len(inspect_depth())\ndef inspect_depth():\n    return [1] * (sys._getframe(1).f_code.co_name == 'step')"),
    Program("collector", "def step(x):\n    return x * (2 if gc.isenabled() else 3)", {4: "gc.disable()", 6: "gc.enable()"}),
    Program("modules_that_are_loaded", "def step(x):\n    return x * (2 if 'fuzz_new' in sys.modules else 3)", {4: "sys.modules['fuzz_new'] = sys", 6: "del sys.modules['fuzz_new']"}),
    Program("threads", "_stop = []\ndef step(x):\n    return x * (threading.active_count() % 2)",
            {4: "e = threading.Event(); t = threading.Thread(target=e.wait); t.start(); _stop.extend([e, t])", 6: "_stop[0].set(); _stop[1].join()"}),
)  # fmt: skip

PROGRAMS = (
    *(effect(one) for one in EFFECTS),
    *(moving(name, read) for name, read in MOVING.items()),
    *(moving_tensor(name, read) for name, read in MOVING.items()),
    *ORDERS,
)
