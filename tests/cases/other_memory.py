"""Views keep what they are views of: after `x.data = y`, a change of shape in place, a write of x from itself.

Also what is known of gradients then, and copies of tensors that share memory.
"""

import copy

from tests.cases.aliasing import VIEWS, grid
from tests.cases.case import Case, randn, script

CASES: list[Case] = []


def after_data(view):
    """What a view of a tensor shows when that was given other memory, each was written, and the tensor again."""

    def fn(torch):
        base = grid(torch, 4, 6)
        alias = view(torch, base)
        before = tuple(alias.shape)
        base.data = torch.ones(2, 5)
        alias.add_(100)
        base.mul_(3)
        second = view(torch, alias) if before == (4, 6) else alias.view_as(alias)
        second.neg_()
        return base, alias, second, before == tuple(alias.shape), base.data_ptr() == alias.data_ptr()

    return fn


def after_turning(change):
    """A tensor that changes its shape in place, and a view of it: values, and who sees whose writes."""

    def fn(torch):
        base = grid(torch, 1, 3, 1)
        view = base[0]
        result = change(base)
        base.add_(1)
        view[1] = 50
        again = base.unsqueeze(0)
        base *= 2
        return result is base, base, view, again, base._is_view(), base._base is None, base.stride()

    return fn


for kind, view in VIEWS.items():
    if kind not in ("contiguous", "to_same", "float"):  # These are the tensor itself.
        CASES.append(Case(f"data_after_{kind}", after_data(view), grad=False, tolerance="exact"))
TURNS = {
    "t_": lambda x: x.squeeze_(0).t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(1, 2),
    "swapdims_": lambda x: x.swapdims_(0, 2),
    "squeeze_": lambda x: x.squeeze_(),
    "squeeze_of_an_axis": lambda x: x.squeeze_(-1),
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "resize_": lambda x: x.resize_(2),
    "resize_as_": lambda x: x.resize_as_(x.squeeze()),
}
for kind, change in TURNS.items():
    CASES.append(Case(f"turned_by_{kind}", after_turning(change), grad=False, tolerance="exact"))


@script(CASES)
def data_of_a_leaf_and_its_views(torch):
    x = grid(torch, 2, 3).requires_grad_()
    row, column = x[0], x.t()[1]
    x.data = torch.ones(2, 3)
    (row * 2 + column.sum() + x[1] * 5).sum().backward()
    return row.detach(), x.grad, x.is_leaf, row._base is x


@script(CASES)
def data_of_a_view(torch):
    a = grid(torch, 2, 3)
    row, other = a[0], torch.zeros(2)
    row.data = other
    row.add_(1)
    return a, row, other


@script(CASES)
def data_keeps_the_history(torch):
    w = grid(torch, 3).requires_grad_()
    x = w * 2
    x.data = torch.ones(3)
    (x * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    return x.requires_grad, x.is_leaf, w.grad


@script(CASES)
def data_again_and_again(torch):
    x = grid(torch, 3)
    views = []
    for n in range(4):
        views.append(x[:2])
        x.data = x.data * 2 + n
        x.add_(1)
    for view in views:
        view.mul_(10)
    return x, views


@script(CASES)
def data_exchanged(torch):
    a, b = grid(torch, 2), grid(torch, 2) + 10
    left, right = a[:1], b[:1]
    a.data, b.data = b.data, a.data
    a.add_(1)
    left.zero_()
    return a, b, left, right


@script(CASES)
def module_converted_after_views(torch):
    layer = torch.nn.Linear(2, 2)
    layer.load_state_dict({"weight": grid(torch, 2, 2), "bias": torch.zeros(2)})
    weight = layer.weight
    view = weight.data.view(-1)
    layer.to(torch.float16).to(torch.float32)
    view.add_(100)
    return layer.weight is weight, weight.detach(), view


@script(CASES)
def state_assigned(torch):
    layer = torch.nn.Linear(2, 2)
    before = layer.weight.data[0]
    kept = before.clone()
    state = {"weight": grid(torch, 2, 2), "bias": torch.zeros(2)}
    layer.load_state_dict(state, assign=True)
    state["weight"].add_(10)
    before.zero_()
    return layer.weight.detach(), torch.equal(kept, before), before


@script(CASES)
def optimizer_state_after_data(torch):
    p = torch.nn.Parameter(grid(torch, 3))
    view, step = p.data[1:], torch.optim.SGD([p], lr=0.5, momentum=0.5)
    for n in range(3):
        p.grad = torch.ones(3)
        step.step()
        if n == 0:
            p.data = p.data + 100
    view.neg_()
    return p.detach(), view, step.state[p]["momentum_buffer"]


@script(CASES)
def set_after_a_view(torch):
    a, b = grid(torch, 4), grid(torch, 2, 3)
    view = a[1:]
    a.set_(b)
    b.add_(1)
    view.neg_()
    return a, view


@script(CASES)
def resized_in_its_memory(torch):
    a = grid(torch, 2, 3)
    view = a.t()
    view.resize_(2, 2)
    view.add_(10)
    return a, view, view.stride()


ONTO_THEMSELVES = {
    "copy": lambda y: y.copy_(y),
    "copy_of_a_view": lambda y: y.view(-1).copy_(y.view(-1)),
    "copy_of_a_transpose": lambda y: y.t().copy_(y.t()),
    "copy_of_a_slice": lambda y: y[1:].copy_(y[1:]),
    "copy_of_another_slice": lambda y: y[:1].copy_(y[1:2]),
    "copy_of_a_detached": lambda y: y.copy_(y.detach()),
    "add": lambda y: y.add_(y),
    "add_through_a_view": lambda y: y.view(-1).add_(y.view(-1)),
    "row": lambda y: y.__setitem__(0, y[1]),
    "all": lambda y: y.__setitem__(..., y),
    "data": lambda y: setattr(y, "data", y.data),
    "copied_flip": lambda y: y.copy_(y.flip(0)),
}


def onto_itself(write):
    """The gradient after a tensor was written from itself, before and behind formulas that need their inputs."""

    def fn(torch, x):
        y = x * 2.0
        write(y)
        z = y * y
        return z.sin(), z * y[0]

    return fn


for kind, write in ONTO_THEMSELVES.items():
    CASES.append(Case(f"onto_itself_{kind}", onto_itself(write), (randn(3, 2),)))


@script(CASES)
def a_source_written_after_its_copy(torch):
    w, a = torch.ones(4, requires_grad=True), grid(torch, 2, 2)
    copied, reshaped = torch.zeros(2, 2).copy_(a), a.t().reshape(-1)
    filled = torch.zeros(2, 2)
    filled[...] = a
    loss = (copied.view(-1) * w + reshaped * w + filled.view(-1) * w).sum()
    a.zero_()
    loss.backward()
    return w.grad


@script(CASES)
def a_parameter_of_a_value_with_history(torch):
    w = grid(torch, 3).requires_grad_()
    x = w * 2
    p = torch.nn.Parameter(x)
    (p * 3).sum().backward()
    x.data.add_(1)
    return w.grad is None, p.grad, p.detach(), x.detach()


@script(CASES)
def history_written_through_detach(torch):
    w = grid(torch, 2).requires_grad_()
    x = w * 3
    plain = x.detach()
    plain.mul_(w)
    plain[0] += 1
    facts = plain.requires_grad, x.requires_grad, x.is_leaf
    x.sum().backward()
    first = w.grad.clone()
    plain.sum().backward()
    return facts, first, w.grad, x.detach()


@script(CASES)
def turned_with_history(torch):
    x = grid(torch, 2, 3).requires_grad_()
    y = x * 2
    row = y[0]
    y.t_()
    (row * torch.tensor([1.0, 2.0, 3.0])).sum().backward(retain_graph=True)
    (y * grid(torch, 3, 2)).sum().backward()
    return x.grad, y.is_leaf, y.detach()


@script(CASES)
def a_leaf_turned_outside_of_gradients(torch):
    x = grid(torch, 2, 3).requires_grad_()
    with torch.no_grad():
        x.t_().unsqueeze_(0)
    (x * grid(torch, 1, 3, 2)).sum().backward()
    return x.is_leaf, x.requires_grad, x.grad, x.detach()


@script(CASES)
def turned_many_times(torch):
    x = grid(torch, 2, 3)
    for _ in range(2001):
        x.t_()
    return x, x.stride()


@script(CASES)
def one_place_of_an_expanded_axis(torch):
    x = grid(torch, 1, 3)
    wide = x.expand(4, 3)
    wide[2].add_(10)
    wide[3, 1:] = 5
    wide.t()[0, 1] = -1
    zeros = torch.ones(3, 1)
    zeros.expand(3, 4).fill_(7)
    return x, wide, zeros


@script(CASES)
def views_copied_together(torch):
    x = grid(torch, 2, 3)
    whole, column, again = copy.deepcopy((x, x[:, 1], x))
    whole.add_(10)
    shallow = copy.copy(x)
    shallow[0, 0] = 77
    return x, whole, column, again is whole, column.stride(), shallow


@script(CASES)
def strides_of_a_diagonal(torch):
    x = grid(torch, 3, 4)
    found = x.t().diagonal(1), x[1:, 1:].diagonal(), x.t().diagonal(-1, 1, 0)
    return [(d.stride(), d.storage_offset(), d) for d in found]
