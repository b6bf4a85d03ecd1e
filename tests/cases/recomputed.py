"""Gradients of checkpointed parts and of user-written functions, in the ways that they meet each other."""

import contextlib

from tests.cases.case import Case, script

CASES: list[Case] = []


def square(torch):
    return torch.tensor([[0.1, 0.2], [0.3, -0.4]], requires_grad=True)


def checkpoint(torch, function, *args, **options):
    return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=False, **options)


@script(CASES)
def nested(torch):
    x = square(torch)
    y = checkpoint(torch, lambda a: checkpoint(torch, lambda b: b.sin() * 2, a.exp()) * a, x)
    y.sum().backward()
    return y, x.grad


@script(CASES)
def keywords_and_nests(torch):
    x = square(torch)
    y = checkpoint(torch, lambda a, k=None, n=1: (a * k * n, {"sum": a + k}, 3), x, k=x * 2, n=5)
    (y[0].sum() + y[1]["sum"].pow(2).sum()).backward()
    return y, x.grad


@script(CASES)
def tensors_that_the_function_holds(torch):
    x, w = square(torch), square(torch)
    h = w.exp()
    y = checkpoint(torch, lambda a: a @ h, x)
    (y.sum() + h.sum()).backward()
    return y, x.grad, w.grad


@script(CASES)
def grad_of_held_tensors(torch):
    x, w = square(torch), square(torch)
    return torch.autograd.grad(checkpoint(torch, lambda a: (a @ w).tanh(), x).sum(), [x, w])


@script(CASES)
def second_gradients(torch):
    x, w = square(torch), square(torch)
    y = checkpoint(torch, lambda a: (a @ w).tanh(), x * 2)
    g, h = torch.autograd.grad(y.sum(), [x, w], create_graph=True)
    (g.pow(2).sum() + h.sum()).backward()
    return g, h, x.grad, w.grad


@script(CASES)
def chain(torch):
    x, w = square(torch), square(torch)
    y = x
    for _ in range(6):
        y = checkpoint(torch, lambda a: (a @ w).tanh(), y)
    y.sum().backward()
    return y, x.grad, w.grad


@script(CASES)
def retained_and_freed(torch):
    x = square(torch)
    y = checkpoint(torch, lambda a: a.exp() * a, x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    try:
        y.sum().backward()
    except RuntimeError:
        return x.grad, "freed"
    return x.grad, "not freed"


@script(CASES)
def hooks_run_once(torch):
    x, w, seen = square(torch), square(torch), []
    w.register_hook(lambda g: seen.append(1))
    x.register_hook(lambda g: g * 2)
    checkpoint(torch, lambda a: (a @ w).tanh(), x).sum().backward()
    return x.grad, w.grad, seen


@script(CASES)
def without_gradients(torch):
    y = checkpoint(torch, lambda a: a * 2, torch.ones(2))
    with torch.no_grad():
        z = checkpoint(torch, lambda a: a * 2, square(torch))
    return y, z, y.requires_grad, z.requires_grad


@script(CASES)
def writes_inside(torch):
    def f(a):
        b = a * 1
        b.add_(1)
        b[0] = 3.0
        return b * a

    x = square(torch)
    y = checkpoint(torch, f, x)
    y.sum().backward()
    return y, x.grad


@script(CASES)
def value_read_between(torch):
    x = square(torch)
    y = checkpoint(torch, lambda a: a.exp() * a, x)
    value = y.sum().item()
    (y * 2).sum().backward()
    return value, x.grad


@script(CASES)
def sequential(torch):
    model, x = torch.nn.Sequential(*[torch.nn.Tanh() for _ in range(5)]), square(torch)
    y = torch.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False)
    y.sum().backward()
    return y, x.grad


@script(CASES, tolerance="model")
def layer_trained_through_it(torch):
    layer, seen = torch.nn.Linear(2, 2), []
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.zero_()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        checkpoint(torch, layer, square(torch)).pow(2).sum().backward()
        optimizer.step()
        seen.append(layer.weight.detach().clone())
    return seen


@script(CASES)
def function_with_setup_context(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x * w, (x + w).exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output[1])

        @staticmethod
        def backward(ctx, g, h):
            x, w, e = ctx.saved_tensors
            return g * w + h * e, g * x + h * e

    x, w = square(torch), square(torch)
    a, b = Both.apply(x, w)
    (g,) = torch.autograd.grad((a * b).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    return a, b, g, x.grad, w.grad


@script(CASES)
def function_that_writes_its_input(torch):
    class Increase(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = square(torch)
    y = x * 2
    z = Increase.apply(y)
    (z * z).sum().backward()
    return z, y, x.grad, z is y


def square_function(torch, decorate=lambda f: f):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @decorate
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    return Square


@script(CASES)
def saved_input_overwritten(torch):
    y = square(torch) * 1
    z = square_function(torch).apply(y)
    y.add_(1)
    try:
        z.sum().backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


@script(CASES)
def function_differentiable_once(torch):
    x = square(torch)
    function = square_function(torch, torch.autograd.function.once_differentiable)
    (g,) = torch.autograd.grad(function.apply(x).sum(), x, create_graph=True)
    try:
        g.sum().backward()
    except RuntimeError as error:
        return g, "once_differentiable" in str(error)
    return g, False


@script(CASES)
def gradients_left_out(torch):
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g is None, h is None))
            return g

    x = square(torch)
    Two.apply(x)[0].sum().backward()
    return seen, x.grad


@script(CASES, tolerance="model")
def derivatives_of_functions(torch):
    functional = torch.autograd.functional
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    scaled = lambda a, b: (a * b).sum() * a  # noqa: E731
    cubes = lambda a: (a**3).sum()  # noqa: E731
    return (
        functional.jacobian(scaled, (x, y)),
        functional.hessian(lambda a, b: (a**2 * b).sum(), (x, y)),
        functional.vhp(cubes, x, y),
        functional.hvp(cubes, x, y),
        functional.vjp(scaled, (x, y), torch.ones(2)),
        functional.jvp(scaled, (x, y), (y, x)),
    )


@script(CASES)
def contexts_of_both_computations(torch):
    seen = []

    @contextlib.contextmanager
    def noted(name):
        seen.append(name)
        try:
            yield
        finally:  # PyTorch leaves the second computation by an error, once it has what it needs.
            seen.append(f"after {name}")

    x = square(torch)
    y = checkpoint(torch, lambda a: a.sin() * a, x, context_fn=lambda: (noted("call"), noted("again")))
    seen.append("backward")
    y.sum().backward()
    return seen, x.grad


@script(CASES)
def contexts_of_a_reentrant_call_are_refused(torch):
    contexts = torch.utils.checkpoint.noop_context_fn
    plain = torch.utils.checkpoint.checkpoint(torch.sin, square(torch), use_reentrant=True, context_fn=contexts)
    try:
        other = lambda: contexts()  # noqa: E731
        torch.utils.checkpoint.checkpoint(torch.sin, square(torch), use_reentrant=True, context_fn=other)
    except ValueError as error:
        return plain, str(error)


@script(CASES)
def variables_without_their_history(torch):
    x = square(torch)
    y, z, n = torch.utils.checkpoint.detach_variable((x * 2, torch.ones(2), 3))
    return y, y.is_leaf, z, n


@script(CASES)
def switches_of_checkpoints_may_be_set(torch):
    module, x = torch.utils.checkpoint, square(torch)
    with module.set_checkpoint_early_stop(False), module.set_checkpoint_debug_enabled(None):
        y = checkpoint(torch, lambda a: a.exp() * a, x)
    y.sum().backward()
    return y, x.grad
