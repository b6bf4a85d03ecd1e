"""Gradients asked for wrongly: calls that must raise, by the exception type that torch raises for them."""

from tests.cases.case import Case, script
from tests.cases.errors import a

CASES: list[Case] = []


@script(CASES)
def backward_without_gradient(torch):
    a(torch, 3).sum().backward()


@script(CASES)
def backward_of_many(torch):
    (a(torch, 3, grad=True) * 2).backward()


@script(CASES)
def backward_twice(torch):
    y = (a(torch, 3, grad=True) ** 2).sum()
    y.backward()
    y.backward()


@script(CASES)
def backward_gradient_shape(torch):
    (a(torch, 3, grad=True) * 2).backward(torch.ones(2))


@script(CASES)
def backward_under_no_grad_result(torch):
    with torch.no_grad():
        y = (a(torch, 3, grad=True) * 2).sum()
    y.backward()


@script(CASES)
def grad_of_unused(torch):
    torch.autograd.grad((a(torch, 3, grad=True) * 2).sum(), a(torch, 3, grad=True))


@script(CASES)
def grad_of_what_requires_none(torch):
    torch.autograd.grad((a(torch, 3, grad=True) * 2).sum(), a(torch, 3))


@script(CASES)
def grad_after_detach(torch):
    x = a(torch, 3, grad=True)
    torch.autograd.grad((x.detach() * 2).sum(), x)


@script(CASES)
def in_place_on_leaf(torch):
    a(torch, 3, grad=True).add_(1)


@script(CASES)
def set_item_on_leaf(torch):
    a(torch, 3, grad=True)[0] = 5.0


@script(CASES)
def in_place_on_view_of_leaf(torch):
    a(torch, 3, grad=True)[1:].mul_(2)


@script(CASES)
def augmented_on_leaf(torch):
    x = a(torch, 3, grad=True)
    x *= 2


@script(CASES)
def saved_output_overwritten(torch):
    y = a(torch, 3, grad=True).exp()
    y.add_(1)
    y.sum().backward()


@script(CASES)
def saved_input_overwritten(torch):
    x = a(torch, 3, grad=True) * 1
    y = x * x
    x.zero_()
    y.sum().backward()


@script(CASES)
def saved_input_overwritten_through_view(torch):
    x = a(torch, 3, grad=True) * 1
    y = x.sin()
    x[0] = 5.0
    y.sum().backward()


@script(CASES)
def saved_constant_overwritten(torch):
    w = torch.ones(3)
    y = a(torch, 3, grad=True) * w
    w.add_(1)
    y.sum().backward()


@script(CASES)
def saved_parameter_updated_before_backward(torch):
    w = a(torch, 3, grad=True)
    y = (w * w).sum()
    with torch.no_grad():
        w.sub_(0.1)
    y.backward()


@script(CASES)
def requires_grad_off_on_intermediate(torch):
    (a(torch, 3, grad=True) * 2).requires_grad_(False)


@script(CASES)
def retain_grad_on_plain(torch):
    a(torch, 3).retain_grad()


@script(CASES)
def hook_on_plain(torch):
    a(torch, 3).register_hook(lambda g: g)


@script(CASES)
def grad_of_wrong_shape(torch):
    a(torch, 3, grad=True).grad = torch.ones(4)


@script(CASES)
def grad_of_wrong_type(torch):
    a(torch, 3, grad=True).grad = 1.0


@script(CASES)
def saved_input_overwritten_through_detached(torch):
    x = a(torch, 3, grad=True) * 1
    y = x * x
    x.detach().zero_()
    y.sum().backward()


@script(CASES)
def function_returns_too_many(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g, g

    Twice.apply(a(torch, 3, grad=True)).sum().backward()


@script(CASES)
def function_instance_called(torch):
    class Twice(torch.autograd.Function):
        pass

    Twice.apply(a(torch, 3, grad=True))


@script(CASES)
def written_to_overlapping_view(torch):
    torch.ones(3).expand(2, 3).add_(1)


@script(CASES)
def out_of_wrong_dtype(torch):
    torch.add(a(torch, 3), a(torch, 3), out=torch.zeros(3, dtype=torch.int64))


@script(CASES)
def out_requires_grad(torch):
    torch.add(a(torch, 3), a(torch, 3, grad=True), out=torch.zeros(3))
