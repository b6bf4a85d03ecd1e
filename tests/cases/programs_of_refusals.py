"""Programs that ask for what PyTorch refuses: it would be wrong without a word. See programs.py."""

from collections.abc import Callable
from typing import Any

from tests.cases.programs import program
from tests.cases.programs_of_values import attempts


def attempt(say: Any, call: Callable[[], object]) -> None:
    """Says what a call returns, or what it raises."""
    try:
        say(call())
    except Exception as error:
        say(error)


@program
def tensors_of_inference_mode_are_not_saved(torch, x, say):
    with torch.inference_mode():
        i = x(3)
    w = x(3).requires_grad_()
    for call in (
        lambda: (i * w).sum(), lambda: i + w, lambda: (i.clone() * w).sum(), lambda: i.detach() * w, lambda: w.pow(i),
        lambda: torch.nn.functional.linear(i[None], torch.ones(2, 3, requires_grad=True)),
        lambda: w.sum() + i, lambda: w[i.long()], lambda: torch.where(i > 0.2, w, w), lambda: (w * 1).mul_(i),
        lambda: torch.nn.Parameter(i), lambda: i.view(3, 1).is_inference(), lambda: i.detach().is_inference(),
        lambda: (i * 2).is_inference(),
    ):  # fmt: skip
        attempt(say, call)


@program
def functions_save_no_tensors_of_inference_mode(torch, x, say):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

    with torch.inference_mode():
        i = x(3)
    attempt(say, lambda: Scaled.apply(x(3), i))
    attempt(say, lambda: Scaled.apply(x(3).requires_grad_(), i))


@program
def writes_do_not_change_what_they_read(torch, x, say):
    e = torch.zeros(3, 1).expand(3, 4)
    for call in (
        lambda b, m: b[1:].copy_(b[:-1]), lambda b, m: b[1:].add_(b[:-1]), lambda b, m: b.add_(b),
        lambda b, m: b[:3].copy_(b[3:]), lambda b, m: b.__setitem__(slice(1, None), b[:-1]),
        lambda b, m: torch.sin(b[1:], out=b[:-1]), lambda b, m: torch.mul(b[1:], b[1:], out=b[1:]),
        lambda b, m: b[::2].add_(b[1::2]), lambda b, m: m.add_(m.t()), lambda b, m: m.copy_(m.t()),
        lambda b, m: m.mul_(m[0]), lambda b, m: b[1:].addcmul_(b[:-1], b[:-1]), lambda b, m: b[1:].lerp_(b[:-1], 0.5),
        lambda b, m: e.add_(1), lambda b, m: e.fill_(2),
        lambda b, m: b[1:].index_add_(0, torch.tensor([0]), b[:1]), lambda b, m: m.t().add_(m.t()),
    ):  # fmt: skip
        attempt(say, lambda call=call: call(x(6), x(3, 3)))


@program
def one_of_several_views_is_not_written(torch, x, say):
    a = x(4, 4).requires_grad_()
    for parts in (
        lambda b: b.unbind(0), lambda b: b.split(2), lambda b: b.chunk(2), lambda b: b.split_with_sizes([2, 2]),
        lambda b: list(b), lambda b: b.tensor_split(2), lambda b: torch.unsafe_split(b, 2), lambda b: [b[0], b[1]],
    ):  # fmt: skip
        attempt(say, lambda parts=parts: parts(a * 1)[0].add_(1))
        attempt(say, lambda parts=parts: parts(a * 1)[0].view(-1).mul_(2))
        attempt(say, lambda parts=parts: parts(a * 1)[0].detach().mul_(2))
        attempt(say, lambda parts=parts: parts(x(4, 4))[0].mul_(a.sum()))
        attempt(say, lambda parts=parts: parts(x(4, 4))[0].mul_(2))
        base = a * 1
        view = parts(base)[0]
        base.mul_(2)
        attempt(say, lambda view=view: view.sum())
        for write in (
            lambda b, v: b.diagonal().data.mul_(3), lambda b, v: b.data[0].mul_(3), lambda b, v: v.data.mul_(3),
            lambda b, v: b.detach().mul_(3), lambda b, v: b.diagonal().detach().mul_(3),
        ):  # fmt: skip
            for base in (a * 1, x(4, 4).requires_grad_()):
                view = parts(base)[0]
                write(base, view)
                attempt(say, lambda view=view: view.detach() * 2)
                attempt(say, lambda view=view: view * 2)


@program
def what_an_optimizer_wrote_is_not_read_again(torch, x, say):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for late in (False, True):
        y = model(torch.ones(1, 2)).sum()
        y.backward(retain_graph=True)
        if late:
            model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        attempt(say, y.backward)


@program
def views_that_a_function_returns_are_not_written(torch, x, say):
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a[:2]

        @staticmethod
        def backward(ctx, g):
            return torch.cat([g, torch.zeros(1)])

    b = x(3).requires_grad_() * 1
    attempt(say, lambda: First.apply(b) + 1)
    attempt(say, lambda: First.apply(b).add_(1))


@program
def results_that_no_memory_holds(torch, x, say):
    functional, large, side = torch.nn.functional, 1 << 50, 1 << 25
    attempts(
        say,
        lambda: x(3).repeat(large),
        lambda: x(3).tile(large),
        lambda: x(3).repeat_interleave(large),
        lambda: functional.one_hot(torch.tensor([1]), large),
        lambda: torch.tril_indices(side, side),
        lambda: torch.triu_indices(1 << 31, 1 << 31),
        lambda: functional.interpolate(x(1, 1, 2, 2), size=(side, side)),
        lambda: functional.interpolate(x(1, 1, 2, 2), size=(side, side), mode="bilinear"),
        lambda: functional.unfold(x(1, 1, 2, 2), 2, padding=side),
        lambda: functional.fold(x(1, 4, 1), (side, side), (2, 2)),
        lambda: functional.pad(x(2), (0, large)),
        lambda: functional.adaptive_avg_pool1d(x(1, 1, 4), large),
        lambda: torch.outer(x(1).expand(side), x(1).expand(side)),
        lambda: torch.combinations(x(200), 10),
        lambda: torch.kron(x(1).expand(side), x(1).expand(side)),
        lambda: x(1).expand(large).clone(),
        lambda: torch.arange(large),
        lambda: torch.fft.fft(x(3), n=large),
    )
    say(x(1).expand(large).shape, torch.meshgrid(*[x(1).expand(side)] * 2, indexing="ij")[0].shape)


@program
def pools_of_nothing(torch, x, say):
    f, zeros = torch.nn.functional, torch.zeros
    for call in (
        lambda: f.avg_pool2d(zeros(6, 0, 20, 32), 3), lambda: f.max_pool3d(zeros(0, 20, 9, 8), 3),
        lambda: f.adaptive_avg_pool1d(zeros(0, 20), 3).shape, lambda: f.adaptive_avg_pool2d(zeros(2, 0, 9, 8), 3).shape,
        lambda: f.adaptive_avg_pool3d(zeros(2, 0, 9, 8, 4), 3), lambda: f.adaptive_max_pool2d(zeros(2, 0, 9, 8), 3),
        lambda: f.adaptive_max_pool1d(zeros(0, 20), 3).shape, lambda: f.adaptive_max_pool2d(zeros(2, 3, 9, 8), 0).shape,
        lambda: f.adaptive_avg_pool3d(zeros(2, 3, 9, 8, 3), (0, 1, 0)).shape,
        lambda: f.max_pool1d(zeros(2, 3, 9), 2, 0),
        lambda: f.adaptive_max_pool2d(zeros(2, 3, 9, 2, requires_grad=True), 0).sum().backward(),
        lambda: f.adaptive_avg_pool2d(zeros(2, 3, 9, 2, requires_grad=True), 0).sum().backward(),
        lambda: f.adaptive_max_pool2d(zeros(2, 3, 9, 3, dtype=torch.int32), 2),
        lambda: f.fractional_max_pool2d(zeros(2, 3, 20, 3), (), 2),
        lambda: f.fractional_max_pool2d(x(2, 3, 9, 9), 2, 0).shape,
        lambda: f.fractional_max_pool2d(zeros(0, 3, 20, 3), (2, 2), (2, 2)).shape,
        lambda: f.max_unpool3d(zeros(2, 3, 1, 1, 1), zeros(2, 3, 1, 1, 1).long(), [1, 1]),
        lambda: f.max_unpool2d(zeros(2, 3, 1, 1), zeros(2, 3, 1, 1).long(), [1, 1], output_size=(2, 2)),
        lambda: f.max_unpool2d(zeros(3, 1, 1), zeros(3, 1, 1).long(), [2, 2], output_size=(1, 2, 3)),
        lambda: f.max_unpool2d(zeros(3, 1), zeros(3, 1).long(), [2, 2]),
    ):  # fmt: skip
        attempt(say, call)


@program
def matrices_without_factors(torch, x, say):
    linalg, zeros = torch.linalg, torch.zeros
    for call in (
        lambda: linalg.inv(zeros(3, 2, 2)), lambda: linalg.solve(zeros(3, 2, 2), zeros(3, 2, 2)),
        lambda: linalg.cholesky(zeros(3, 2, 2)), lambda: torch.cholesky_inverse(zeros(2, 2)),
    ):  # fmt: skip
        try:
            call()
        except linalg.LinAlgError as error:
            say("The" + str(error).partition("The")[2], "Batch element 0" in str(error))
    for call in (
        lambda: linalg.lstsq(x(2, 3), x(3)), lambda: linalg.lstsq(x(1, 1, 1), x(3, 1)),
        lambda: linalg.cond(torch.eye(2), 5),
        lambda: linalg.tensorinv(zeros(2, 3, 4), 1), lambda: linalg.tensorinv(zeros(2, 2), 0),
        lambda: linalg.pinv(zeros(3)),
        lambda: torch.lu_unpack(x(2, 2), zeros(2, dtype=torch.int32)), lambda: torch.inner(x(2, 3), x(2, 2)),
        lambda: zeros(3).__dlpack__(stream=object()),
    ):  # fmt: skip
        attempt(say, call)


@program
def views_taken_without_gradients_are_not_moved_or_written(torch, x, say):
    for mode in (torch.no_grad, torch.inference_mode):
        for call in (
            lambda v: v.transpose_(0, 1), lambda v: v.add_(1), lambda v: v.unsqueeze_(0), lambda v: v.squeeze_(),
        ):  # fmt: skip
            a = x(2, 3).requires_grad_() * 2
            with mode():
                v = a.view_as(a)
            attempt(say, lambda call=call, v=v: call(v))
        a = x(2, 3).requires_grad_() * 2
        with mode():
            v = a.view(-1)
        attempt(say, lambda v=v: v.grad_fn)
        a.transpose_(0, 1)
        attempt(say, lambda v=v: v.grad_fn)


@program
def leaves_of_inference_mode_are_not_saved_or_moved(torch, x, say):
    w = x(1, 3).requires_grad_()
    with torch.inference_mode():
        i = torch.ones(1, 3, requires_grad=True)
        say(i.view(-1).requires_grad, i.view(-1).is_inference())
    say(i.view(-1).requires_grad, i.view(-1)._is_view())
    for call in (lambda: i + w, lambda: i * w, lambda: i.detach().transpose_(0, 1), lambda: i.detach().resize_(3)):
        attempt(say, call)


@program
def attributes_that_cannot_be_deleted(torch, x, say):
    a = x(3).requires_grad_()
    for name in ("data", "requires_grad"):
        attempt(say, lambda name=name: delattr(a, name))
    attempt(say, lambda: torch.autograd.Function()(a))
    edge = torch.autograd.graph.get_gradient_edge(x(3).requires_grad_() * 2)
    options = {"allow_unused": True, "materialize_grads": True}
    attempt(say, lambda: torch.autograd.grad((a * 2).sum(), (a, edge), **options))


@program
def what_else_autograd_refuses(torch, x, say):
    leaf = x(3, 2).requires_grad_()
    for call in (
        lambda: leaf.unbind(0)[0].add_(x(2)), lambda: leaf.view(-1).unbind(0)[0].add_(1.0),
        lambda: delattr(leaf, "data"), lambda: setattr(x(2), "data", x(2).to_sparse()),
        lambda: x(2, 2, 2).to_sparse().t(), lambda: x(2, 2).to_sparse(1).t(), lambda: x(2).to_sparse().t().shape,
    ):  # fmt: skip
        attempt(say, call)


@program
def differences_and_storages_that_are_refused(torch, x, say):
    attempt(say, lambda: torch.diff(x(3, 3), prepend=x(2, 2)))
    attempt(say, lambda: torch.diff(x(3, 3), dim=0, append=x(1, 2)))
    attempt(say, lambda: torch.diff(x(3, 2), dim=0, append=x(1, 2)))
    attempt(say, lambda: torch.TypedStorage([1, 2], device="meta", dtype=torch.float32).tolist())
