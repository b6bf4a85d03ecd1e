"""Gradients that users write or ask for in other ways: Function, checkpoint, gradcheck, jacobian, vjp."""

from tests.cases.autograd import leaf
from tests.cases.case import Case, numbers, script

CASES: list[Case] = []


def scaled_square(torch):
    """x -> x * x * scale, whose gradient is tripled on purpose: what users write is what runs."""

    class ScaledSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * scale

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * 2 * x * ctx.scale * g, None

    return ScaledSquare


@script(CASES)
def function(torch):
    x = leaf(torch, 1.0, 2.0)
    y = scaled_square(torch).apply(x, 0.5)
    y.sum().backward()
    return y, x.grad, y.requires_grad


@script(CASES)
def function_in_a_graph(torch):
    x = leaf(torch, 1.0, 2.0)
    (scaled_square(torch).apply(x.exp(), 2.0).sin() + x).sum().backward()
    return x.grad


@script(CASES)
def function_twice_differentiable(torch):
    x = leaf(torch, 1.0, 2.0)
    (g,) = torch.autograd.grad(scaled_square(torch).apply(x, 1.0).sum(), x, create_graph=True)
    return g, torch.autograd.grad((g * g).sum(), x)


@script(CASES)
def function_of_plain_input(torch):
    return scaled_square(torch).apply(torch.ones(2), 3.0).requires_grad


@script(CASES)
def function_with_several_outputs(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b, a + b

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            return g * b + h, g * a + h

    a, b = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    c, d = Both.apply(a, b)
    (c * 2 + d.exp()).sum().backward()
    return a.grad, b.grad


@script(CASES)
def function_whose_other_output_is_dropped(torch):
    """The second derivative goes through a saved output that the program did not keep."""

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x.exp(), x.sin()
            ctx.save_for_backward(a, b)
            return a, b

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            return g * a * b + h * b

    x = leaf(torch, 0.5, 1.0)
    y = Both.apply(x)[0]
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    return g, torch.autograd.grad((g * g).sum(), x)


@script(CASES)
def recording_is_off_in_inference_mode_whatever_is_switched_on(torch):
    x, found = leaf(torch, 1.0, 2.0), []
    with torch.inference_mode():
        with torch.enable_grad():
            found.append((x * 2).requires_grad)
        with torch.set_grad_enabled(True):
            found.append((x * 2).requires_grad)
        with torch.inference_mode(False):
            found.append((x * 2).requires_grad)
    return found, (x * 2).requires_grad


@script(CASES)
def function_needs_input_grad(torch):
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            _, b = ctx.saved_tensors
            return g * b, None

    a = leaf(torch, 2.0)
    Product.apply(a, torch.tensor([5.0])).sum().backward()
    return seen, a.grad


@script(CASES)
def function_marks_integers(torch):
    class Order(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            order = x.argsort()
            ctx.mark_non_differentiable(order)
            ctx.order = order
            return x[order], order

        @staticmethod
        def backward(ctx, g, _):
            out = torch.zeros_like(g)
            out[ctx.order] = g
            return out

    x = leaf(torch, 3.0, 1.0, 2.0)
    values, order = Order.apply(x)
    (values * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    return values, order, order.requires_grad, x.grad


@script(CASES)
def straight_through(torch):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(torch, 0.4, 1.6)
    (Round.apply(x) * x).sum().backward()
    return x.grad


def network(torch, x, w):
    return torch.nn.functional.gelu(x @ w).exp().mean(-1, keepdim=True) * x


@script(CASES, tolerance="model")
def checkpoint(torch):
    from_library = torch.utils.checkpoint.checkpoint
    x, w = numbers(torch, "x", 3, 4).requires_grad_(), numbers(torch, "w", 4, 4).requires_grad_()
    y = from_library(lambda a, b: network(torch, a, b), x, w, use_reentrant=False)
    y.sum().backward()
    return y, x.grad, w.grad


@script(CASES, tolerance="model")
def checkpoint_of_layers(torch):
    from_library = torch.utils.checkpoint.checkpoint
    x, w = numbers(torch, "x", 3, 4).requires_grad_(), numbers(torch, "w", 4, 4).requires_grad_()
    y = x
    for _ in range(3):
        y = from_library(lambda a: network(torch, a, w), y, use_reentrant=False)
    y.square().sum().backward()
    return y, x.grad, w.grad


@script(CASES)
def checkpoint_runs_twice(torch):
    calls = []

    def f(a):
        calls.append(1)
        return a.sin() * a

    x = leaf(torch, 1.0, 2.0)
    y = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    before = len(calls)
    y.sum().backward()
    return before, len(calls), x.grad


@script(CASES)
def checkpoint_repeats_its_draws(torch):
    torch.manual_seed(3)
    x = torch.ones(200, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda a: torch.nn.functional.dropout(a, 0.5), x, use_reentrant=False)
    y.sum().backward()
    return torch.equal(x.grad, y.detach())


@script(CASES)
def checkpoint_draws_once(torch):
    """What is drawn after a checkpoint, and after its recomputation, is what would be drawn without it."""
    found = []
    for call in (torch.utils.checkpoint.checkpoint, lambda f, x, **_: f(x)):
        torch.manual_seed(3)
        x = torch.ones(20, requires_grad=True)
        y = call(lambda a: torch.nn.functional.dropout(a, 0.5), x, use_reentrant=False)
        after = torch.rand(5)
        y.sum().backward()
        found.append(torch.cat([after, torch.rand(5)]))
    return torch.equal(*found)


GRADCHECKED = {
    "pointwise": lambda torch, x: x.sin() * x.exp() / (x * x + 1),
    "reduction": lambda torch, x: x.softmax(-1).std() + x.logsumexp(0).sum(),
    "matmul": lambda torch, x: (x @ x.t()).tanh(),
    "indexing": lambda torch, x: x[:, [0, 0, 1]] * x.flip(0),
    "several": lambda torch, x: (x * 2, x.cumsum(-1)),
}
for name, fn in GRADCHECKED.items():

    def checked(torch, name=name, fn=fn):
        x = numbers(torch, name, 2, 3).to(torch.float64).requires_grad_()
        return torch.autograd.gradcheck(lambda x: fn(torch, x), (x,)), torch.autograd.gradgradcheck(
            lambda x: fn(torch, x), (x,)
        )

    CASES.append(Case(f"gradcheck_{name}", checked, grad=False, devices=("cpu",)))


@script(CASES, devices=("cpu",))
def gradcheck_finds_a_wrong_gradient(torch):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: scaled_square(torch).apply(x, 1.0), (x,), raise_exception=False)


@script(CASES, tolerance="model")
def jacobian_and_hessian(torch):
    x = numbers(torch, "x", 3)
    functional = torch.autograd.functional
    return functional.jacobian(lambda x: x.exp() * x.sum(), x), functional.hessian(lambda x: (x**3).sum() * x[0], x)


@script(CASES, tolerance="model")
def vector_products(torch):
    x, v = numbers(torch, "x", 3), numbers(torch, "v", 3)
    functional = torch.autograd.functional
    return functional.vjp(lambda x: x.sin() * x, x, v), functional.jvp(lambda x: x.sin() * x, x, v)


@script(CASES)
def anomaly_and_saved_hooks_names(torch):
    x = leaf(torch, 1.0)
    y = (x * 2).exp()
    return y.grad_fn is not None, isinstance(type(y.grad_fn).__name__, str)


@script(CASES)
def cleared_gradients(torch):
    x = leaf(torch, 1.0)
    optimizer = torch.optim.SGD([x], lr=0.1)
    (x * 2).sum().backward()
    optimizer.zero_grad()
    none = x.grad
    (x * 2).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    return none, x.grad


@script(CASES, tolerance="model")
def training_loop(torch):
    torch.manual_seed(0)
    w, b = numbers(torch, "w", 4, 3).requires_grad_(), torch.zeros(3, requires_grad=True)
    x, y = numbers(torch, "x", 8, 4), torch.arange(8) % 3
    losses = []
    for rate in (0.1, 0.2, 0.3, 0.1):
        loss = torch.nn.functional.cross_entropy(x @ w + b, y)
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= rate * p.grad
                p.grad.zero_()
    return losses, w, b
