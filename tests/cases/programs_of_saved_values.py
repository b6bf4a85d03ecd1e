"""Programs with hooks for what backward needs, and for several gradients: torch.autograd.graph. See programs.py."""

from tests.cases.programs import program
from tests.cases.programs_of_refusals import attempt


@program
def saved_values_are_given_to_hooks(torch, x, say):
    graph, functional, log = torch.autograd.graph, torch.nn.functional, []
    a, b = x(3).requires_grad_(), x(3).requires_grad_()

    def pack(value):
        log.append(value.shape)
        return value.clone()

    for function in (
        lambda: a * b, lambda: a.exp(), lambda: a.sin(), lambda: a + 1, lambda: a * 2, lambda: a**2, lambda: a / b,
        lambda: a.view(1, 3) @ torch.ones(3, 2), lambda: a.clone(), lambda: a.softmax(0), lambda: a.log_softmax(0),
        lambda: a.var(), lambda: functional.linear(a[None], torch.ones(2, 3, requires_grad=True)),
        lambda: functional.mse_loss(a, b), lambda: functional.cross_entropy(a[None], torch.tensor([1])),
        lambda: functional.conv1d(a.view(1, 1, 3), torch.ones(1, 1, 2)), lambda: torch.cat([a, b]),
        lambda: a * torch.ones(2, 3),
    ):  # fmt: skip
        a.grad = None
        log.clear()
        with graph.saved_tensors_hooks(pack, lambda kept: kept):
            y = function()
        say(len(log) > 0)
        y.sum().backward()
        say(a.grad)


@program
def hooks_change_what_was_saved(torch, x, say):
    graph = torch.autograd.graph
    a = x(3).requires_grad_()
    with graph.saved_tensors_hooks(lambda kept: kept * 2, lambda kept: kept / 2 + 1):
        y = (a * a).sum()
    y.backward(retain_graph=True)
    y.backward()
    say(a.grad)
    attempt(say, y.backward)
    with graph.saved_tensors_hooks(lambda kept: 3, lambda kept: kept):
        z = a.exp().sum()
    attempt(say, z.backward)
    with graph.disable_saved_tensors_hooks("not here"):
        attempt(say, lambda: graph.saved_tensors_hooks(lambda kept: kept, lambda kept: kept).__enter__())
    with graph.save_on_cpu():
        w = (a**3).sum()
    (g,) = torch.autograd.grad(w, a, create_graph=True)
    say(g, torch.autograd.grad(g.sum(), a))


@program
def functions_hand_theirs_to_hooks(torch, x, say):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, p):
            ctx.save_for_backward(p)
            return p * p

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    a = x(3).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept.clone() * 10, lambda kept: kept):
        y = Square.apply(a).sum()
    say(torch.autograd.grad(y, a))


@program
def hooks_wait_for_several_gradients(torch, x, say):
    graph = torch.autograd.graph
    a, b, c = (x(2).requires_grad_() for _ in range(3))
    d = a * b
    handle = graph.register_multi_grad_hook((a, b, c, d), lambda found: say("all", [g is None for g in found]))
    (d * 2).sum().backward()
    (a * b * c).sum().backward()
    handle.remove()
    with graph.register_multi_grad_hook((a, b), lambda g: say("any", g), mode="any"):
        (a * b).sum().backward()
        (a + b).sum().backward()
    a.sum().backward()
    y = a * b
    say(isinstance(y.grad_fn, graph.Node), isinstance(3, graph.Node), graph.get_gradient_edge(y).output_nr)
    attempt(say, lambda: graph.register_multi_grad_hook((a,), say, mode="x"))
    e = a.exp()
    graph.increment_version([e])
    attempt(say, lambda: e.sum().backward())


@program
def saved_values_may_be_written(torch, x, say):
    a = x(3).requires_grad_()
    w = torch.nn.Parameter(x(3))
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        b = a * 1
        c = b.sin()
        b.mul_(3)
        d = b.exp()
        b.zero_()
        say(b)
        (d * c + b).sum().backward()
        loss = (w * w).sum()
        with torch.no_grad():
            w.add_(1)
        loss.backward()
    say(a.grad, w.grad, w)
    b = a * 1
    c = b.sin()
    b.mul_(3)
    attempt(say, lambda: c.sum().backward())


@program
def what_was_written_through_data_before_is_saved_as_it_is(torch, x, say):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    a = x(3)
    a.data.fill_(2.0)
    a.requires_grad_()
    Square.apply(a).sum().backward()
    say(a.grad)
    b = (a * 1).sum(0, keepdim=True)
    c = Square.apply(b)
    b.add_(1)
    try:
        c.backward()
    except RuntimeError as error:
        say("is at version 1; expected version 0" in str(error))


@program
def a_gradient_reads_what_was_assigned_through_data_to_a_result_that_nobody_has_any_more(torch, x, say):
    class Assign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, scratch, value, index):
            ctx.index = index
            scratch.data[index] = value
            return scratch

        @staticmethod
        def backward(ctx, grad):
            return grad, grad[ctx.index], None

    first, weight = x(2).requires_grad_(), x(1).requires_grad_()
    for is_read in (False, True):
        rows = Assign.apply(x(2, 4), first, (..., 0))
        for index in range(3):
            value = torch.sin((rows[..., : index + 1] * weight).sum(-1))
            if is_read:
                say(value)
            rows = Assign.apply(rows, value, (..., index + 1))
        say(rows._version)
        (rows * 2).sum().backward()
        say(first.grad, weight.grad)


@program
def a_write_that_counts_after_one_through_data_is_refused(torch, x, say):
    weight = x(2).requires_grad_()
    rows = x(4)
    total = (rows[:2] * weight).sum()
    rows.data[1] = 7.0
    total.backward()
    say(weight.grad)
    total = (rows[:2] * weight).sum()
    rows.data[1] = 8.0
    rows.add_(1)
    attempt(say, total.backward)
