"""Programs that trace functions and change their graphs: torch.fx. See programs.py."""

import copy
import importlib
import math
import operator
import pickle

from tests.cases.programs import program


def fx_of(torch):
    return importlib.import_module(f"{torch.__name__}.fx")


def show(say, module):
    """Says a graph as text and as code."""
    module.graph.lint()
    say(str(module.graph), module.code)


def modules(torch):
    """Modules to trace, by name, with the shapes of their arguments."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 3)
            self.scale = nn.Parameter(torch.ones(4))
            self.register_buffer("shift", torch.arange(4.0))

        def forward(self, x, gain: float = 2.0):
            h = F.gelu(self.first(x)) * self.scale + self.shift
            return self.second(h) * gain + x

    class Containers(nn.Module):
        def forward(self, x):
            a, b = torch.split(x, 2, 1)
            c = torch.cat([a, b], dim=-1)
            return {"sum": c.sum(-1, keepdim=True), "parts": [a, (b, x.shape[0])], "slice": x[0, 1:, None]}

    class Functional(nn.Module):
        def forward(self, x):
            y = F.dropout(F.relu(x), 0.5, self.training)
            y = F.layer_norm(y, (4,)) + F.softmax(x, dim=-1) + F.linear(x, torch.eye(4))
            y = torch.where(y > 0, y, -y) + F.interpolate(y[None], scale_factor=2.0)[0, :, ::2]
            return F.mse_loss(torch.einsum("ij,kj->ik", y, x), F.pad(x, (0, -2)).sum() + y.transpose(0, 1)[:2, :2])

    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))
            self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

        def forward(self, x):
            h = self.layers(x).flatten(2)
            for block in self.blocks:
                h = h + block(h)
            return torch.flatten(h, 1).mean(dim=1)

    class Operators(nn.Module):
        def forward(self, x, y):
            z = x + 1 - 2 * y / 3 // 1 % 5**x
            z = (z > 0) | (z <= y) & ~(x != y)
            return abs(-x) @ y.T, +z, x.reshape(-1)[2], 3 - x, torch.neg(x) << 1, x.T, x.new_zeros(2)

    class Constants(nn.Module):
        def forward(self, x):
            return (
                x + torch.tensor([1.0, 2.0]) + math.inf * 0.0 + math.sqrt(x.size(0)),
                None,
                "text",
                x.to(torch.float64),
            )

    class Attributes(nn.Module):
        def __init__(self):
            super().__init__()
            self.held = torch.ones(2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows, columns = x.shape
            return x.view(columns, rows).mul(self.held[0]).type_as(x).add(x.size(1), alpha=2).contiguous()

    return {
        "block": (Block, (2, 3)), "containers": (Containers, (2, 4)), "functional": (Functional, (2, 4)),
        "deep": (Deep, (1, 1, 4, 4)), "operators": (Operators, (2, 2), (2, 2)), "constants": (Constants, (2, 2)),
        "attributes": (Attributes, (2, 3)),
    }  # fmt: skip


def traced(torch, name):
    torch.manual_seed(0)
    module = modules(torch)[name][0]().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape))
    return module, fx_of(torch).symbolic_trace(module)


def of_module(name):
    def run(torch, x, say):
        _, graph = traced(torch, name)
        show(say, graph)

    run.__name__ = f"the_graph_of_{name}"
    program(run)


for _name in ("block", "containers", "functional", "deep", "operators", "constants", "attributes"):
    of_module(_name)


@program
def a_graph_computes_what_its_module_does(torch, x, say):
    fx = fx_of(torch)
    for name in ("block", "containers", "deep", "attributes"):
        module, graph = traced(torch, name)
        inputs = [x(*shape) for shape in modules(torch)[name][1:]]
        copies = (graph, copy.deepcopy(graph), pickle.loads(pickle.dumps(graph)), fx.Transformer(graph).transform())
        flat = [str(out) if isinstance(out, dict) else out for out in (each(*inputs) for each in copies)]
        expected = module(*inputs)
        say(all(out == flat[0] if isinstance(out, str) else bool((out == flat[0]).all()) for out in flat))
        say(str(expected) == flat[0] if isinstance(expected, dict) else bool((expected == flat[0]).all()))
        say([each.code == graph.code for each in copies], fx.Interpreter(graph).run(*inputs) is not None)


@program
def gradients_flow_through_a_graph(torch, x, say):
    _, graph = traced(torch, "block")
    graph(x(2, 3)).square().sum().backward()
    say(*(p.grad for p in graph.parameters()), [name for name, _ in graph.named_parameters()])


@program
def nodes_are_added_moved_and_erased(torch, x, say):
    fx = fx_of(torch)
    graph = fx.Graph()
    a = graph.placeholder("a")
    b = graph.placeholder("b", default_value=3)
    c = graph.call_function(torch.add, (a, b))
    d = graph.call_method("relu", (c,))
    graph.output((d, [c, {"k": a}]))
    module = fx.GraphModule(torch.nn.Module(), graph)
    show(say, module)
    with graph.inserting_after(c):
        e = graph.call_function(operator.mul, (c, 2), name="twice")
    say([node.name for node in c.users], str(d.args), e.all_input_nodes == [c])
    d.replace_input_with(c, e)
    c.replace_all_uses_with(e, delete_user_cb=lambda user: user.op == "output")
    module.recompile()
    show(say, module)
    say(module(x(2))[0], c < d, e.prev is c, [node.op for node in reversed(graph.nodes)])
    say(graph.find_nodes(op="call_function", target=torch.add) == [c], graph.output_node().name)
    graph.erase_node(c)


@program
def unused_nodes_go(torch, x, say):
    fx = fx_of(torch)

    def run(x):
        y = x * 2
        _ = y.sum()
        z = x + 1
        z[0] = 3
        return y

    module = fx.symbolic_trace(run)
    say(module.graph.eliminate_dead_code(), module.graph.eliminate_dead_code())
    module.recompile()
    show(say, module)


@program
def names_are_free(torch, x, say):
    fx = fx_of(torch)
    graph = fx.Graph()
    graph.placeholder("x")
    for name in ("add", "add_1", "add", "and", "list", "x", "Snake_case", "camelCase", "0x", "a b", "add_1"):
        graph.create_node("call_function", torch.add, (1, 2), name=name)
    say([node.name for node in graph.nodes])
    graph.output(None)
    show(say, fx.GraphModule({}, graph))


@program
def a_pattern_is_replaced(torch, x, say):
    fx = fx_of(torch)

    def run(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w2, w1]).sum()
        return x + torch.max(m1) + torch.max(m2) + torch.cat([x, x]).sum()

    module = fx.symbolic_trace(run)
    matches = fx.replace_pattern(
        module, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]).mean() * 4
    )
    say(len(matches), [match.anchor.name for match in matches])
    say([[(own.name, node.name) for own, node in match.nodes_map.items()] for match in matches[:1]])
    show(say, module)
    say(module(x(2), x(2), x(2)))


@program
def an_interpreter_does_otherwise(torch, x, say):
    fx = fx_of(torch)

    class Swapped(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return (
                torch.neg(*args, **kwargs) if target is torch.sigmoid else super().call_function(target, args, kwargs)
            )

        def call_method(self, target, args, kwargs):
            return args[0].sigmoid() if target == "neg" else super().call_method(target, args, kwargs)

    class Rewritten(Swapped, fx.Transformer):
        pass

    module = fx.symbolic_trace(lambda x: torch.sigmoid(x).neg())
    say(Swapped(module).run(x(3)), Rewritten(module).transform().code)
    partial = fx.Interpreter(module, garbage_collect_values=False)
    say(partial.run(x(3)), [node.name for node in partial.env])
    fx.Interpreter(module).run()


@program
def arguments_may_have_values(torch, x, say):
    fx = fx_of(torch)

    def run(x, flag, items):
        total = 0
        for item in items["list"]:
            total = total + item
        return x * total if flag else {"no": x}

    module = fx.symbolic_trace(run, concrete_args={"flag": True, "items": {"list": [fx.PH, fx.PH]}})
    show(say, module)
    say(module(x(2), True, {"list": [1, 2]}))
    show(say, fx.symbolic_trace(lambda *args, **kwargs: args[0] + kwargs["k"]))


@program
def shapes_are_noted(torch, x, say):
    shape_prop = importlib.import_module(f"{torch.__name__}.fx.passes.shape_prop")
    _, module = traced(torch, "deep")
    result = shape_prop.ShapeProp(module).propagate(x(1, 1, 4, 4))
    say(result)
    for node in module.graph.nodes:
        meta = node.meta["tensor_meta"]
        say(node.name, [*meta.shape], meta.dtype, [*meta.stride], meta.requires_grad, node.meta["type"].__name__)


@program
def a_function_stays_a_call(torch, x, say):
    space = {"torch": torch}
    exec(
        "fx = __import__(torch.__name__ + '.fx', fromlist=['wrap'])\n"
        "@fx.wrap\ndef leaf(a, b):\n    return a + b.sum()\n"
        "fx.wrap('len')\n"
        "def run(x):\n    return leaf(x, x * 2) * len(x)\n"
        "module = fx.symbolic_trace(run)\n",
        space,
    )
    show(say, space["module"])
    say(space["module"](x(3)))
    show(say, fx_of(torch).symbolic_trace(space["module"]))


@program
def a_tracer_says_what_is_a_leaf(torch, x, say):
    fx = fx_of(torch)

    class Whole(fx.Tracer):
        def is_leaf_module(self, m, path):
            return path == "layers" or super().is_leaf_module(m, path)

    class Through(fx.Tracer):
        def is_leaf_module(self, m, path):
            return False

    module, _ = traced(torch, "deep")
    say(str(Whole().trace(module)))
    say([node.op for node in Through().trace(torch.nn.ReLU()).nodes])


@program
def what_depends_on_values_is_refused(torch, x, say):
    def through(x):
        for item in x:
            x = x + item
        return x

    for function in (lambda x: x if x.sum() > 0 else -x, through, len, lambda x: torch.ones(x.shape)):
        try:
            fx_of(torch).symbolic_trace(lambda x, function=function: function(x))
        except (ValueError, RuntimeError, TypeError) as error:
            say(type(error).__name__, function is len or str(error)[:20])


@program
def a_used_node_stays(torch, x, say):
    graph = fx_of(torch).symbolic_trace(lambda x: x + 1).graph
    graph.erase_node(next(iter(graph.nodes)))


@program
def arguments_of_nodes_cannot_change(torch, x, say):
    graph = fx_of(torch).symbolic_trace(lambda x: torch.cat([x, x])).graph
    next(node for node in graph.nodes if node.op == "call_function").args[0].append(1)


@program
def submodules_come_and_go(torch, x, say):
    _, module = traced(torch, "deep")
    say(module.add_submodule("a.b", torch.nn.ReLU()), module.delete_submodule("layers.0"), module.delete_submodule("q"))
    say([name for name, _ in module.named_modules()])
    module.delete_all_unused_submodules()
    say([name for name, _ in module.named_modules()])
    module.graph.lint()


@program
def code_is_changed_as_it_is_made(torch, x, say):
    _, module = traced(torch, "block")
    with module.graph.on_generate_code(lambda before: lambda body: ["x = x * 2\n", *body]):
        module.recompile()
        say(module.code)
    module.recompile()
    say(module.code)


@program
def types_stand_in_code(torch, x, say):
    fx = fx_of(torch)
    typing = importlib.import_module("typing")

    def run(x: list[torch.Tensor], y: typing.Optional[int], z: typing.Dict[str, torch.Tensor]) -> tuple[int, ...]:
        return x

    show(say, fx.symbolic_trace(run))
