"""From nothing to a compiler: tensors, gradients, fusion, kernels in WGSL and a training loop, in one file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# 1. The graph: a node is an operation with its inputs. Making one computes nothing.


@dataclass(eq=False)
class Node:
    op: str
    inputs: tuple[Node, ...]
    shape: tuple[int, ...]
    attrs: Any = None  # an axis, an order of axes, a number
    value: Any = None  # where its elements are, once they are somewhere


def order(roots: Iterable[Node]) -> list[Node]:
    """All nodes that the roots need, inputs first. A stack, because a graph may be deeper than Python recurses."""
    found: dict[Node, None] = {}
    stack = [(root, False) for root in roots]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            found[node] = None
        elif node not in found:
            stack.append((node, True))
            stack += [(one, False) for one in node.inputs if node.value is None]
    return list(found)


# 2. Operations. One that works element by element is a record: its text in WGSL, its meaning in NumPy, its gradient.


@dataclass(frozen=True)
class Pointwise:
    wgsl: str
    meaning: Callable[..., Any]
    gradient: Callable[..., tuple[Node, ...]]


POINTWISE = {
    "add": Pointwise("({0} + {1})", np.add, lambda g, out, a, b: (g, g)),
    "mul": Pointwise("({0} * {1})", np.multiply, lambda g, out, a, b: (mul(g, b), mul(g, a))),
    "neg": Pointwise("(-{0})", np.negative, lambda g, out, a: (pointwise("neg", g),)),
    "exp": Pointwise("exp({0})", np.exp, lambda g, out, a: (mul(g, out),)),
    "log": Pointwise("log({0})", np.log, lambda g, out, a: (mul(g, pointwise("recip", a)),)),
    "recip": Pointwise("(1.0 / {0})", np.reciprocal, lambda g, out, a: (pointwise("neg", mul(g, mul(out, out))),)),
    "tanh": Pointwise("tanh({0})", np.tanh, lambda g, out, a: (add(g, pointwise("neg", mul(g, mul(out, out)))),)),
}


def pointwise(op: str, *inputs: Node) -> Node:
    shape = np.broadcast_shapes(*(node.shape for node in inputs))
    return Node(op, tuple(expand(node, shape) for node in inputs), shape)


def constant(number: float) -> Node:
    return Node("constant", (), (), number)


def add(a: Node, b: Node) -> Node:
    return pointwise("add", a, b)


def mul(a: Node, b: Node) -> Node:
    return pointwise("mul", a, b)


# Views move no element: they only say where to look. `insert` adds an axis of size 1, `expand` repeats such axes.


def insert(node: Node, axis: int) -> Node:
    return Node("insert", (node,), (*node.shape[:axis], 1, *node.shape[axis:]), axis)


def expand(node: Node, shape: Sequence[int]) -> Node:
    while len(node.shape) < len(shape):
        node = insert(node, 0)
    return node if node.shape == tuple(shape) else Node("expand", (node,), tuple(shape))


def permute(node: Node, axes: Sequence[int]) -> Node:
    return Node("permute", (node,), tuple(node.shape[axis] for axis in axes), tuple(axes))


def total(node: Node, axis: int) -> Node:
    """The sum along an axis, which goes."""
    return Node("sum", (node,), node.shape[:axis] + node.shape[axis + 1 :], axis)


def matmul(a: Node, b: Node) -> Node:
    """(m, k) and (k, n): products of all with all, summed over k. Fusion sees to it that they are never stored."""
    return total(mul(insert(a, 2), insert(b, 0)), 1)


# 3. Gradients: the walk from the loss to what it was made of adds nodes to the same graph.


def gradients(loss: Node, wanted: Sequence[Node]) -> list[Node]:
    """Of a loss of shape (), the gradient with respect to each of these nodes."""
    grads = {loss: constant(1.0)}
    for node in reversed(order([loss])):
        g = grads.get(node)
        if g is None or not node.inputs or node.value is not None:
            continue
        for one, part in zip(node.inputs, gradient(node, g), strict=True):
            grads[one] = add(grads[one], part) if one in grads else part
    return [expand(grads[node], node.shape) for node in wanted]


def gradient(node: Node, g: Node) -> tuple[Node, ...]:
    """What comes to each input of a node to whose value `g` came."""
    source = node.inputs[0]
    match node.op:
        case "sum":
            return (expand(insert(g, node.attrs), source.shape),)
        case "insert":
            return (total(expand(g, node.shape), node.attrs),)
        case "permute":
            return (permute(g, np.argsort(node.attrs).tolist()),)
        case "expand":  # An element that was read several times gets the sum.
            g = expand(g, node.shape)
            for axis, (size, before) in enumerate(zip(node.shape, source.shape, strict=True)):
                g = g if size == before else insert(total(g, axis), axis)
            return (g,)
    return POINTWISE[node.op].gradient(g, node, *node.inputs)


# 4. The compiler: which nodes get a kernel, and the text of each.


@dataclass
class Kernel:
    wgsl: str
    inputs: list[Node]
    output: Node


def compile_graph(roots: Sequence[Node]) -> list[Kernel]:
    """One kernel for each sum and for each root. All else is computed inside of the kernels that read it."""
    nodes = [node for node in order(roots) if node.value is None]
    stored = {node for node in nodes if node.op == "sum"} | set(roots)
    return [Writer(stored).kernel(node) for node in nodes if node in stored]


@dataclass
class Writer:
    stored: set[Node]  # those that have a kernel: others are computed where they are read
    lines: list[str] = field(default_factory=list)
    names: dict[tuple[Node, tuple[str, ...]], str] = field(default_factory=dict)
    inputs: list[Node] = field(default_factory=list)

    def kernel(self, node: Node) -> Kernel:
        """An invocation an element of the result; a sum is a loop in it."""
        place = tuple(f"(i / {math.prod(node.shape[axis + 1 :])}u % {size}u)" for axis, size in enumerate(node.shape))
        if node.op == "sum":
            length = node.inputs[0].shape[node.attrs]
            inner = self.element(node.inputs[0], (*place[: node.attrs], "k", *place[node.attrs :]))
            loop = [f"for (var k = 0u; k < {length}u; k++) {{", *self.lines, f"sum += {inner};", "}"]
            body = ["var sum = 0.0;", *loop, "out[i] = sum;"]
        else:
            inner = self.computed(node, place)
            body = [*self.lines, f"out[i] = {inner};"]
        declared = ["@group(0) @binding(0) var<storage, read_write> out: array<f32>;"]
        declared += [f"@group(0) @binding({n}) var<storage> in{n}: array<f32>;" for n, _ in enumerate(self.inputs, 1)]
        head = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {"
        text = [*declared, head, f"let i = id.x; if (i >= {math.prod(node.shape)}u) {{ return; }}", *body, "}"]
        return Kernel("\n".join(text), self.inputs, node)

    def element(self, node: Node, place: tuple[str, ...]) -> str:
        """The expression of one element: read, if the node has a buffer, else computed here."""
        if node.value is None and node not in self.stored:
            return self.computed(node, place)
        if node not in self.inputs:
            self.inputs.append(node)
        at = " + ".join(f"{n} * {math.prod(node.shape[axis + 1 :])}u" for axis, n in enumerate(place)) or "0u"
        return f"in{self.inputs.index(node) + 1}[{at}]"

    def computed(self, node: Node, place: tuple[str, ...]) -> str:
        """Views change the place that is asked for; the rest is a line each, once for each place."""
        source = node.inputs[0] if node.inputs else node
        match node.op:
            case "constant":
                return f"f32({node.attrs!r})"
            case "insert":
                return self.element(source, place[: node.attrs] + place[node.attrs + 1 :])
            case "expand":
                at = zip(source.shape, place, strict=True)
                return self.element(source, tuple("0u" if size == 1 else index for size, index in at))
            case "permute":
                return self.element(source, tuple(place[axis] for axis in np.argsort(node.attrs)))
        if (node, place) not in self.names:
            text = POINTWISE[node.op].wgsl.format(*(self.element(one, place) for one in node.inputs))
            name = self.names[node, place] = f"v{len(self.names)}"
            self.lines.append(f"let {name} = {text};")
        return self.names[node, place]


# 5. Devices: they know kernels and buffers, and nothing of operations. The host says what a kernel should compute.


class Host:
    """NumPy in the place of a GPU."""

    def upload(self, array: Any) -> Any:
        return np.asarray(array, "float32")

    def run(self, kernels: Sequence[Kernel]) -> None:
        for kernel in kernels:
            kernel.output.value = self.meaning(kernel.output)

    def read(self, value: Any) -> Any:
        return value

    def meaning(self, node: Node) -> Any:
        if node.value is not None:
            return node.value
        inputs = [self.meaning(one) for one in node.inputs]
        if node.op == "constant":
            return np.float32(node.attrs)
        if node.op == "expand":
            return np.broadcast_to(inputs[0], node.shape)
        along = {"insert": np.expand_dims, "permute": np.transpose, "sum": np.sum}.get(node.op)
        return along(inputs[0], node.attrs) if along else POINTWISE[node.op].meaning(*inputs)


class Gpu:
    """WebGPU through wgpu-py."""

    def __init__(self) -> None:
        import wgpu  # here, because the host needs none

        self.usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
        self.device = wgpu.gpu.request_adapter_sync().request_device_sync()
        self.pipelines: dict[str, Any] = {}  # by text: the second step of a loop compiles nothing

    def upload(self, array: Any) -> Any:
        return self.device.create_buffer_with_data(data=np.ascontiguousarray(array, "float32"), usage=self.usage)

    def run(self, kernels: Sequence[Kernel]) -> None:
        """All kernels in one submit."""
        encoder = self.device.create_command_encoder()
        for kernel in kernels:
            kernel.output.value = self.device.create_buffer(size=4 * math.prod(kernel.output.shape), usage=self.usage)
            pipeline = self.pipelines.get(kernel.wgsl) or self.make(kernel.wgsl)
            buffers = [kernel.output.value, *(node.value for node in kernel.inputs)]
            entries = [{"binding": at, "resource": {"buffer": buffer}} for at, buffer in enumerate(buffers)]
            layout = pipeline.get_bind_group_layout(0)
            dispatch = encoder.begin_compute_pass()
            dispatch.set_pipeline(pipeline)
            dispatch.set_bind_group(0, self.device.create_bind_group(layout=layout, entries=entries))
            dispatch.dispatch_workgroups(-(-math.prod(kernel.output.shape) // 64))
            dispatch.end()
        self.device.queue.submit([encoder.finish()])

    def make(self, wgsl: str) -> Any:
        stage = {"module": self.device.create_shader_module(code=wgsl), "entry_point": "main"}
        return self.pipelines.setdefault(wgsl, self.device.create_compute_pipeline(layout="auto", compute=stage))

    def read(self, value: Any) -> Any:
        return np.frombuffer(self.device.queue.read_buffer(value), "float32")


# 6. Training: the loss, its gradients and the new parameters are roots of one graph.


def leaf(device: Host | Gpu, array: Any) -> Node:
    return Node("leaf", (), np.shape(array), value=device.upload(array))


def train(device: Host | Gpu, steps: int = 200, rate: float = 0.5) -> list[float]:
    """Learns whether two numbers have the same sign. The losses."""
    random = np.random.default_rng(0)
    points = random.uniform(-1, 1, (64, 2))
    x, signs = leaf(device, points), leaf(device, np.sign(points[:, :1] * points[:, 1:]))
    weights = [leaf(device, random.normal(0, 1, shape)) for shape in ((2, 16), (16,), (16, 1), (1,))]
    minus_rate = leaf(device, -rate)  # What may change from step to step is a leaf: its number is in no kernel's text.
    losses = []
    for _ in range(steps):
        w1, b1, w2, b2 = weights
        logits = add(matmul(pointwise("tanh", add(matmul(x, w1), b1)), w2), b2)
        wrong = pointwise("log", add(constant(1.0), pointwise("exp", pointwise("neg", mul(signs, logits)))))
        loss = mul(total(total(wrong, 0), 0), constant(1 / 64))
        updated = [add(w, mul(minus_rate, g)) for w, g in zip(weights, gradients(loss, weights), strict=True)]
        device.run(compile_graph([loss, *updated]))
        losses.append(float(device.read(loss.value).reshape(())))
        weights = [Node("leaf", (), node.shape, value=node.value) for node in updated]
    return losses


if __name__ == "__main__":
    print(*(f"{loss:.3f}" for loss in train(Host())[::20]))
