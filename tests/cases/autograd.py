"""Gradients as programs meet them: backward, grad, hooks, modes, in-place writes."""

from tests.cases.case import Case, numbers, script

CASES: list[Case] = []


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


@script(CASES)
def backward_accumulates(torch):
    a = leaf(torch, 1.0, 2.0, 3.0)
    (a * a).sum().backward()
    first = a.grad.clone()
    (a * 2).sum().backward()
    return first, a.grad


@script(CASES)
def backward_keeps_the_grad_object(torch):
    a = leaf(torch, 1.0, 2.0)
    (a * a).sum().backward()
    held = a.grad
    (a * 3).sum().backward()
    return held is a.grad, held


@script(CASES)
def backward_with_gradient(torch):
    a = leaf(torch, 1.0, 2.0, 3.0)
    (a * a).backward(torch.tensor([1.0, 0.0, -2.0]))
    b = leaf(torch, 1.0, 2.0)
    (b * 3).backward(gradient=torch.ones(2))
    return a.grad, b.grad


@script(CASES)
def backward_of_several(torch):
    a = leaf(torch, 1.0, 2.0)
    torch.autograd.backward([(a * a).sum(), (a * 3).sum()])
    return a.grad


@script(CASES)
def backward_retains_the_graph(torch):
    a = leaf(torch, 2.0)
    y = (a**3).sum()
    y.backward(retain_graph=True)
    y.backward()
    return a.grad


@script(CASES)
def backward_into_inputs(torch):
    a, b = leaf(torch, 2.0), leaf(torch, 3.0)
    (a * b).sum().backward(inputs=[a])
    return a.grad, b.grad


@script(CASES)
def diamond(torch):
    a = leaf(torch, 0.5, -1.5)
    b = a.exp()
    c, d = b * 2, b.sin()
    (c * d + b).sum().backward()
    return a.grad


@script(CASES)
def same_input_twice(torch):
    a = leaf(torch, 2.0, 3.0)
    (a * a + a / a + torch.maximum(a, a)).sum().backward()
    return a.grad


@script(CASES)
def deep_chain(torch):
    a = leaf(torch, 0.3)
    x = a
    for _ in range(2000):
        x = x * 0.999 + 0.0001
    x.sum().backward()
    return x, a.grad


@script(CASES)
def wide_sum(torch):
    leaves = [leaf(torch, float(n)) for n in range(60)]
    total = sum((x * x for x in leaves), torch.zeros(1))
    total.sum().backward()
    return [x.grad for x in leaves]


@script(CASES)
def grad_of_inputs(torch):
    a, b = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    found = torch.autograd.grad((a * b).sum(), (a, b))
    single = torch.autograd.grad((a * a).sum(), a)
    return found, single, a.grad is None


@script(CASES)
def grad_of_intermediate(torch):
    a = leaf(torch, 1.0, 2.0)
    b = a * 3
    return torch.autograd.grad((b * b).sum(), [b, a])


@script(CASES)
def grad_outputs(torch):
    a = leaf(torch, 1.0, 2.0)
    return torch.autograd.grad([a * a, a * 2], [a], grad_outputs=[torch.tensor([1.0, 3.0]), torch.ones(2)])


@script(CASES)
def grad_allow_unused(torch):
    a, b = leaf(torch, 1.0), leaf(torch, 2.0)
    unused = torch.autograd.grad((a * 2).sum(), [a, b], allow_unused=True)
    zeros = torch.autograd.grad((a * 2).sum(), [a, b], allow_unused=True, materialize_grads=True)
    return unused, zeros


@script(CASES)
def no_grad_modes(torch):
    a = leaf(torch, 1.0)
    with torch.no_grad():
        b, inside = a * 2, torch.is_grad_enabled()
        with torch.enable_grad():
            c = a * 3
    with torch.inference_mode():
        d = a * 4
    with torch.set_grad_enabled(False):
        e = a * 5
    return [x.requires_grad for x in (b, c, d, e)], inside, torch.is_grad_enabled(), d.is_inference()


@script(CASES)
def no_grad_as_decorator(torch):
    @torch.no_grad()
    def f(x):
        return x * 2

    @torch.inference_mode()
    def g(x):
        return x * 2

    @torch.set_grad_enabled(False)
    def h(x):
        return x * 2

    a = leaf(torch, 1.0)
    made = [function(a).requires_grad for function in (f, g, h)]
    return made, torch.is_grad_enabled(), f.__name__


@script(CASES)
def no_grad_leaves_after_error(torch):
    try:
        with torch.no_grad():
            raise ValueError("on purpose")
    except ValueError:
        pass
    return torch.is_grad_enabled()


@script(CASES)
def update_under_no_grad(torch):
    w = leaf(torch, 1.0, 2.0)
    for _ in range(3):
        (w * w).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    return w, w.is_leaf


@script(CASES)
def update_through_data(torch):
    w = leaf(torch, 1.0, 2.0)
    for _ in range(3):
        (w * w).sum().backward()
        w.data -= 0.1 * w.grad
        w.grad.zero_()
    return w, w.grad


@script(CASES)
def detach_cuts(torch):
    a = leaf(torch, 2.0)
    b = a * 3
    (b.detach() * b).sum().backward()
    return a.grad, b.detach().requires_grad, b.detach().is_leaf


@script(CASES)
def detach_in_place(torch):
    a = leaf(torch, 2.0)
    b = (a * 3).detach_()
    return b.requires_grad, b.is_leaf, b.grad_fn is None


@script(CASES)
def leaf_flags(torch):
    a = leaf(torch, 1.0)
    b, c = a + 1, torch.ones(2)
    return [(x.is_leaf, x.requires_grad, x.grad_fn is None) for x in (a, b, c, c.requires_grad_(), a.detach())]


@script(CASES)
def integers_have_no_gradient(torch):
    a = leaf(torch, 1.0, 2.0)
    return [x.requires_grad for x in (a.argmax(), a > 1, a.long(), a.round(), a.int().float())]


@script(CASES)
def retain_grad(torch):
    a = leaf(torch, 2.0)
    b = a * 3
    b.retain_grad()
    c = b * b
    c.sum().backward()
    return a.grad, b.grad, b.retains_grad


@script(CASES)
def tensor_hooks(torch):
    a = leaf(torch, 2.0)
    seen = []
    b = a * 3
    b.register_hook(lambda g: seen.append(g.clone()))
    handle = b.register_hook(lambda g: g * 10)
    (b * b).sum().backward()
    handle.remove()
    first = a.grad.clone()
    a.grad = None
    (a * 3).sum().backward()
    return seen, first, a.grad


@script(CASES)
def leaf_hooks(torch):
    a = leaf(torch, 2.0)
    a.register_hook(lambda g: g + 1)
    a.register_hook(lambda g: g * 2)
    (a * 5).sum().backward()
    return a.grad


@script(CASES)
def post_accumulate_hook(torch):
    a = leaf(torch, 2.0)
    seen = []

    def update(p):
        seen.append(p.grad.clone())
        p.grad = None

    a.register_post_accumulate_grad_hook(update)
    (a * 5).sum().backward()
    return seen, a.grad


@script(CASES)
def grad_can_be_set(torch):
    a = leaf(torch, 1.0, 2.0)
    a.grad = torch.tensor([10.0, 20.0])
    (a * a).sum().backward()
    return a.grad


@script(CASES)
def shared_graph(torch):
    a = leaf(torch, 1.0, 2.0)
    b = a.exp()
    (g,) = torch.autograd.grad(b.sum(), a, retain_graph=True)
    (b * b).sum().backward()
    return g, a.grad


@script(CASES)
def value_read_before_backward(torch):
    a = leaf(torch, 1.0, 2.0)
    loss = (a.exp() * a).sum()
    value = loss.item()
    loss.backward()
    return value, a.grad


@script(CASES)
def value_read_in_the_middle(torch):
    a = leaf(torch, 1.0, 2.0)
    b = a.tanh()
    seen = b.tolist()
    c = b * b
    seen.append(c.sum().item())
    c.sum().backward()
    return seen, a.grad


@script(CASES)
def in_place_on_intermediate(torch):
    a = leaf(torch, 1.0, 2.0, 3.0)
    b = a * 2
    b.add_(1).mul_(a)
    b[0] = 5.0
    b[1:] *= 3
    b.sum().backward()
    return b, a.grad


@script(CASES)
def in_place_through_view(torch):
    a = leaf(torch, 1.0, 2.0, 3.0, 4.0)
    b = a * 1
    b.view(2, 2)[0].mul_(a[2:])
    (b * b).sum().backward()
    return b, a.grad


@script(CASES)
def written_value_gets_the_gradient(torch):
    a, v = leaf(torch, 1.0, 2.0, 3.0), leaf(torch, 10.0, 20.0)
    buffer = torch.zeros(3)
    buffer[1:] = v * a[:2]
    (buffer * buffer).sum().backward()
    return buffer, a.grad, v.grad, buffer.requires_grad


@script(CASES)
def copy_gets_the_gradient(torch):
    a = leaf(torch, 1.0, 2.0)
    b = torch.zeros(2, 2)
    b.copy_(a)
    (b * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    return a.grad


@script(CASES)
def relu_in_place(torch):
    a = leaf(torch, -1.0, 2.0)
    b = a * 1
    torch.nn.functional.relu(b, inplace=True)
    b.sum().backward()
    return a.grad


@script(CASES)
def loop_over_rows(torch):
    a = numbers(torch, "rows", 4, 3).requires_grad_()
    state = torch.zeros(3)
    for row in a:
        state = (state * 0.5 + row).tanh()
    state.sum().backward()
    return state, a.grad
