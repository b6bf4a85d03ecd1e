"""Programs that add operators: torch.library, torch.ops; and marks of torch.jit. See programs.py."""

import importlib
import typing

from tests.cases.programs import program


def told(say, *calls):
    """Says what calls raise."""
    for call in calls:
        try:
            call()
        except Exception as error:
            say(type(error).__name__)
        else:
            say("nothing")


def scaled(torch):
    """An operator with a gradient of its own."""

    def run(x: torch.Tensor, k: float = 2.0, *, flag: bool = False) -> torch.Tensor:
        return torch.from_numpy(x.detach().cpu().numpy() * k).to(x.device)

    run.__annotations__ = {"x": torch.Tensor, "k": float, "flag": bool, "return": torch.Tensor}
    operator = torch.library.custom_op("operators_of_tests::scaled", run, mutates_args=())

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.k = inputs[1]

    operator.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=setup_context)
    operator.register_fake(lambda x, k=2.0, *, flag=False: torch.empty_like(x))
    return operator


@program
def an_operator_has_its_own_gradient(torch, x, say):
    operator = scaled(torch)
    a = x(3).requires_grad_()
    (operator(a, 3.0) * operator(a)).sum().backward()
    say(a.grad, torch.ops.operators_of_tests.scaled(a.detach(), k=5.0, flag=True))
    packet = torch.ops.operators_of_tests.scaled
    say(str(packet), str(packet.default), packet.overloads(), packet.default.name(), operator(a).grad_fn.name())
    told(say, operator, lambda: operator(a, 1.0, True), lambda: packet.other, lambda: torch.ops.operators_of_tests.no)
    say(torch.library.opcheck(operator, (a,), test_utils=("test_schema", "test_autograd_registration")))
    graph = importlib.import_module(f"{torch.__name__}.fx").symbolic_trace(lambda a: packet(a) + packet.default(a, 1.0))
    say(graph.code, str(graph.graph), graph(x(2)))


@program
def an_operator_without_a_gradient_says_so(torch, x, say):
    def run(x):
        return x * 2

    run.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    operator = torch.library.custom_op("operators_of_tests::doubled", run, mutates_args=())
    a = x(3).requires_grad_()
    told(say, lambda: operator(a).sum().backward(), lambda: torch.library.opcheck(operator, (a,)))


@program
def an_operator_takes_and_gives_lists(torch, x, say):
    def run(xs, n):
        return [each * n for each in xs]

    run.__annotations__ = {"xs": list[torch.Tensor], "n": int, "return": list[torch.Tensor]}
    operator = torch.library.custom_op("operators_of_tests::each", run, mutates_args=())
    operator.register_autograd(lambda ctx, grads: ([g * 10 for g in grads], None))
    a = x(2).requires_grad_()
    first, second = operator([a, a * 2], 3)
    (first + second).sum().backward()
    say(first, second, a.grad)


@program
def an_operator_changes_its_argument(torch, x, say):
    def run(x, n):
        x.mul_(n)

    run.__annotations__ = {"x": torch.Tensor, "n": int, "return": None}
    operator = torch.library.custom_op("operators_of_tests::grown", run, mutates_args={"x"})
    a = x(3)
    version = a._version
    operator(a, 4)
    say(a, a._version > version, operator._opoverload._schema.is_mutable)


@program
def a_library_has_operators(torch, x, say):
    with torch.library._scoped_library("operators_of_a_library", "FRAGMENT") as library:
        say(library.define("pair(Tensor[] xs, int[2] s=1, *, Tensor? b=None) -> (Tensor, Tensor)"))
        library.define("over.one(Tensor x) -> Tensor")
        library.define("over.two(Tensor x, float[] k) -> Tensor")
        library.impl("pair", lambda xs, s=1, b=None: (sum(xs), xs[0] * 2), "CompositeImplicitAutograd")
        library.impl("over.one", lambda x: x + 1, "CompositeImplicitAutograd")
        library.impl("over.two", lambda x, k: x * sum(k), "CompositeImplicitAutograd")
        a = x(2).requires_grad_()
        first, second = torch.ops.operators_of_a_library.pair([a, a * 3])
        (first + second).sum().backward()
        own = torch.ops.operators_of_a_library.over
        say(a.grad, sorted(own.overloads()), own.one(a), own.two(a, [1.0, 2.0]), own(a, [2.0]))
        told(say, lambda: library.define("over.one(Tensor x) -> Tensor"), lambda: library.define("no schema"))
    told(say, lambda: torch.ops.operators_of_a_library.pair, lambda: torch.ops.load_library("/nowhere/library.so"))


@program
def schemas_are_made_of_annotations(torch, x, say):
    T, Optional = torch.Tensor, typing.Optional

    def schema(mutated=(), **annotations):
        names = [name for name in annotations if name != "returns"]
        space = {}
        exec(f"def run({', '.join(names)}): pass", space)
        run = space["run"]
        run.__annotations__ = {name: annotations[name] for name in names} | {"return": annotations["returns"]}
        return torch.library.infer_schema(run, mutates_args=mutated)

    say(schema(a=T, b=int, c=float, d=bool, e=str, returns=T))
    say(schema(a=Optional[T], b=list[int], c=typing.Sequence[float], d=Optional[bool], returns=tuple[T, T]))
    say(schema({"a"}, a=T, d=torch.dtype, e=torch.device, returns=None))
    told(
        say, lambda: schema(a=dict, returns=T), lambda: schema({"z"}, a=T, returns=T), lambda: schema(a=T, returns=set)
    )


@program
def operators_of_pytorch_have_its_names(torch, x, say):
    aten = torch.ops.aten
    say(aten._to_copy(x(2), dtype=torch.float64), aten.view(x(4), [2, 2]), aten.add.Tensor(x(2), 1))
    say(aten.slice.Tensor(x(4), 0, 1, 3), aten._softmax(x(3), 0, False), aten.sym_size.int(x(2, 3), 1))
    say(aten.alias(x(2)), aten._unsafe_view(x(4), [2, 2]), aten.mm(x(2, 2), x(2, 2)), str(aten.add.Tensor))
    graph = importlib.import_module(f"{torch.__name__}.fx").symbolic_trace(lambda a: aten.add.Tensor(a, 1))
    say(graph.code)
    told(say, lambda: aten.no_such_operator)


@program
def marks_of_scripts_say_nothing(torch, x, say):
    jit = torch.jit

    @jit.script_if_tracing
    def double(x):
        return x * 2

    @jit.unused
    def unused(x):
        return x

    say(double(x(2)), unused(1), jit.annotate(int, 3), jit.is_scripting(), jit.is_tracing())
    say(jit.isinstance([1, 2], typing.List[int]), jit.isinstance({"a": 1}, typing.Dict[str, str]))  # noqa: UP006
    say(jit.isinstance((1, "a"), typing.Tuple[int, str]), jit.isinstance(None, typing.Optional[int]))  # noqa: UP006, UP045
    say(issubclass(jit.ScriptModule, torch.nn.Module), jit.Final is typing.Final, jit.Attribute(1, int).value)
    internal = importlib.import_module(f"{torch.__name__}._jit_internal")
    chosen = internal.boolean_dispatch("both", 1, False, lambda x, both: (x, x), lambda x, both=False: x, "m", "f")
    say(internal.BroadcastingList2[int], chosen(1), chosen(2, both=True), chosen(3, True))
