"""Programs that look at what functions return: their types, their names, their text. See programs.py."""

import copy

import numpy as np

from tests.cases.programs import program
from tests.cases.programs_of_refusals import attempt


@program
def results_have_names_and_print_them(torch, x, say):
    a, m = torch.tensor([1.0, 3.0, 2.0]), torch.eye(2)
    for found in (
        a.sort(), a.max(0), a.topk(2), a.aminmax(), a.mode(), a.median(0), a.kthvalue(1), a.cummin(0), torch.frexp(a),
        a.histogram(3), torch.linalg.qr(m), torch.linalg.slogdet(m), torch.linalg.svd(m), torch.linalg.eigh(m),
        torch.linalg.lu(m), torch.linalg.lu_factor(m), torch.linalg.inv_ex(m), torch.svd(m), torch.geqrf(m),
    ):  # fmt: skip
        say(type(found).__name__, isinstance(found, tuple), len(found))
        say(repr(found)[: repr(found).index("tensor")], repr(found).count("=tensor("))
    found = torch.func.vmap(lambda row: row.sort(descending=True))(x(2, 3))
    say(type(found).__name__, found.values, found.indices)
    say(torch.linalg.eigh(m).eigenvalues, torch.linalg.svd(m).Vh, torch.return_types.sort.__name__)


@program
def einsum_takes_numbers_of_axes(torch, x, say):
    a, b, c = x(2, 3), x(3, 4), x(2, 3, 4)
    for call in (
        lambda: torch.einsum(a, [0, 1], b, [1, 2], [2, 0]), lambda: torch.einsum(a, [0, 1], b, [1, 2]),
        lambda: torch.einsum(c, [..., 0], [0, ...]), lambda: torch.einsum(a, [0, 1], []),
        lambda: torch.einsum(a, [0, 99]), lambda: torch.einsum(), lambda: torch.einsum("ij"),
        lambda: torch.einsum(b, [27, 3]),
    ):  # fmt: skip
        attempt(say, call)


@program
def einsum_sums_one_operand_of_whole_numbers_as_sum_does(torch, x, say):
    """And products of both as bmm does, which does not mix dtypes."""
    for dtype in (torch.uint8, torch.int32):
        a, b, c, one = (torch.full(shape, 7, dtype=dtype) for shape in ((3, 2, 9), (3, 2), (9,), (2, 1)))
        for call in (
            lambda a=a, b=b: torch.einsum("...ik,...j->...ij", a, b),
            lambda a=a, b=b: torch.einsum("...ik,...j->ij", a, b),
            lambda a=a, b=b: torch.einsum("...ik,...j->ij", a[0], b[0]), lambda a=a: torch.einsum("bik,bjk->bij", a, a),
            lambda a=a, c=c: torch.einsum("ik,k,j->ij", a[0], c, c), lambda c=c: torch.einsum("i,j->", c, c),
            lambda a=a, c=c, b=b: torch.einsum("ik,k,b->i", a[0], c, b[:, 0]),
            lambda one=one, a=a: torch.einsum("ik,kj->ij", one, a[0].T),
            lambda one=one: torch.einsum("ik,j->ij", one, one[:, 0]),
            lambda one=one: torch.einsum("ik->i", one), lambda b=b: torch.einsum("b,bi->i", b[:, 0], b[:1]),
        ):  # fmt: skip
            attempt(say, call)


@program
def no_axes_are_none_for_any_and_all(torch, x, say):
    a = torch.tensor([[0, 1], [0, 0]])
    for reduce in (torch.any, torch.all):
        say(reduce(a, dim=[]), reduce(a, dim=()), reduce(a, dim=[], keepdim=True), reduce(a, dim=[0, 1]), reduce(a))


@program
def places_are_whole_numbers(torch, x, say):
    places = torch.tensor([5, 0, 3])
    for call in (
        lambda: torch.unravel_index(places, (2, 3)), lambda: torch.unravel_index(places.to(torch.uint8), 6),
        lambda: torch.unravel_index(x(3), (2, 3)), lambda: torch.unravel_index(places > 1, (2, 3)),
        lambda: torch.unravel_index(places, (2, -3)),
    ):  # fmt: skip
        attempt(say, call)


@program
def pictures_are_sampled_at_no_number(torch, x, say):
    """What is nowhere reads 0, or the first pixel."""
    nowhere, far = float("nan"), 1e30
    places = torch.tensor([[[[nowhere, 0.0], [0.1, nowhere], [far, 0.1], [-0.3, 0.2]]]])
    for mode in ("nearest", "bilinear"):
        for padding in ("zeros", "border"):
            sample = torch.nn.functional.grid_sample
            say(sample(x(1, 1, 3, 4), places, mode=mode, padding_mode=padding, align_corners=False))


@program
def gradients_are_asked_for_without_gradient_mode(torch, x, say):
    a = x(3).requires_grad_()
    z = (a * a).sum()
    with torch.no_grad():
        say(torch.autograd.grad(z, a, retain_graph=True))
        z.backward(inputs=[a])
    say(a.grad)


@program
def a_function_differentiates_inside(torch, x, say):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            with torch.enable_grad():
                ctx.y = a.detach().requires_grad_()
                ctx.z = (ctx.y * ctx.y).sum()
            return ctx.z.detach()

        @staticmethod
        def backward(ctx, g):
            return torch.autograd.grad(ctx.z, ctx.y)[0] * g

    a = x(3).requires_grad_()
    Inner.apply(a).backward()
    say(a.grad)


@program
def bits_are_read_as_elements_of_another_size(torch, x, say):
    a = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    for name in ("float16", "int16", "uint8", "int32", "complex64", "bool"):
        attempt(say, lambda name=name: a.view(getattr(torch, name)).shape)
    say(a.view(torch.int16), a.view(torch.uint8).view(torch.float32))
    attempt(say, lambda: x(2, 3).view(torch.complex64))
    attempt(say, lambda: torch.tensor(1.0).view(torch.int16))


@program
def small_differences_of_modules_and_data(torch, x, say):
    data, linear = torch.utils.data, torch.nn.Linear(2, 2)
    given = {"weight": torch.ones(2, 2), "bias": torch.ones(2), "other": torch.ones(1)}
    loader = data.DataLoader(range(3))
    for call in (
        lambda: torch.nn.Sequential() + 3, lambda: torch.func.functional_call(linear, given, x(2)),
        lambda: torch.func.functional_call(linear, given, x(2), strict=True),
        lambda: torch.func.jacrev(lambda a: a.long())(x(2)), lambda: data.StackDataset(range(3), range(3))[1],
        lambda: data.StackDataset(a=range(3))[2], lambda: len(data.StackDataset(range(3))),
        lambda: data.StackDataset(range(3), range(2)), lambda: data.TensorDataset(x(2), x(3)),
        lambda: data.ConcatDataset([]), lambda: setattr(loader, "batch_size", 2),
        lambda: list(data.WeightedRandomSampler([1.0], 2, replacement=False)), lambda: torch.Tensor(5.5),
        lambda: x(3).H, lambda: torch.autograd.functional.hessian(lambda a: a, x(2)),
    ):  # fmt: skip
        attempt(say, call)
    c = x(2, 3)

    def wrong():
        c[0, 0] = x(2)

    attempt(say, wrong)


@program
def matrices_are_kept_by_rows(torch, x, say):
    a = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    c = a.to_sparse_csr()
    say(c.crow_indices(), c.col_indices(), c.values(), c.shape, str(c.layout), c.is_sparse, c.is_sparse_csr, c._nnz())
    say(c.layout == torch.sparse_csr, a.is_sparse_csr, c.to_dense(), c @ x(3, 2), torch.mm(c, x(3, 2)), c.matmul(x(3)))
    say(a.to_sparse(layout=torch.sparse_csr).values(), a.to_sparse().to_sparse_csr().col_indices(), (c * 2).to_dense())
    d = torch.sparse_csr_tensor([0, 1, 3, 3], [1, 0, 2], [1.0, 2.0, 3.0], (3, 3))
    say((d + c).to_dense(), c.t().to_dense(), c.abs().to_dense(), c.sum(), c.to_sparse().to_dense())
    for reduce in ("sum", "mean", "amax", "amin"):
        say(torch.sparse.mm(c, x(3, 2), reduce))
    say(torch.sparse.sampled_addmm(c, x(3, 2), x(2, 3), beta=0.5, alpha=2.0).to_dense())
    for call in (
        lambda: torch.sparse_csr_tensor([0, 1], [1, 0], [1.0], (1, 2)), lambda: c.indices(), lambda: a.crow_indices(),
        lambda: torch.sparse_csr_tensor([0, 1], [1], [1.0], (3, 2)), lambda: torch.sparse.mm(c, x(2, 2)),
    ):  # fmt: skip
        attempt(say, call)
    w = x(3, 2).requires_grad_()
    (c @ w).sum().backward()
    say(w.grad)


@program
def elements_are_computed_in_python(torch, x, say):
    say(torch.nn.functional.pdist(x(2, 3)))
    a = x(2, 3).cpu()
    say(a.apply_(lambda v: v * 2), a.map_(x(3).cpu(), lambda p, q: p - q), a)
    attempt(say, lambda: x(2).cpu().requires_grad_().apply_(lambda v: v))


@program
def rare_names_give_what_torch_gives(torch, x, say):
    a, kind = x(2, 3, 4), type("Kind", (torch.Tensor,), {})
    say(a.dim_order(), a.permute(2, 0, 1).dim_order())
    made = (a.requires_grad_() * 2).as_subclass(kind)
    say(type(made).__name__, made.requires_grad, isinstance(made, torch.Tensor))
    attempt(say, lambda: a.as_subclass(int))
    b = a.detach()
    copies = torch.slice_copy(b, 1, 0, 3, 2), torch.view_as_complex_copy(b[..., :2].contiguous())
    say(*copies, torch.view_as_real_copy(copies[1]), *(c.data_ptr() == b.data_ptr() for c in copies))
    say(*b.unsafe_split_with_sizes((1, 2), 1))
    m = x(4, 3) + torch.eye(4, 3)
    reflections, scales = torch.geqrf(m)
    say(torch.orgqr(reflections, scales), torch.nuclear_norm(m), torch.frobenius_norm(m, [0, 1]))
    for drop in (torch.dropout_, torch.alpha_dropout_, torch.feature_alpha_dropout_, torch.feature_dropout_):
        say(drop(torch.ones(2, 3), 0.0, True), drop(torch.ones(2, 3), 0.5, False))
    lost = torch.feature_dropout(torch.ones(8, 4, 5), 0.5, True)
    say((lost == lost[..., :1]).all(), lost.max())


@program
def modules_with_tensors_that_are_no_buffers_are_copied(torch, x, say):
    class Masked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mask, self.none, self.empty = x(2, 2), None, x(0)

    module = Masked()
    again = copy.deepcopy(module)
    say(again.mask, again.mask is module.mask, again.none, again.empty, len(again._forward_hooks))
    say(copy.copy(module).mask is module.mask)


@program
def whole_numbers_of_numpy_are_whole_numbers(torch, x, say):
    f, a = torch.nn.functional, x(1, 4, 3, 4)
    zero, one, two, three, four = np.arange(5)
    say(
        f.pad(a, (one, two)), f.max_pool2d(a, two, two), f.avg_pool2d(a, (two, two)), f.pixel_shuffle(a, two),
        f.conv2d(a, torch.ones(2, 4, 2, 2), padding=one, stride=one), f.interpolate(a, size=(two, two)),
        f.interpolate(a, scale_factor=two), f.unfold(a, two), f.fold(torch.ones(1, 4, 6), (three, four), two),
        f.layer_norm(a, (four,)), f.group_norm(a, two), f.glu(a, one), f.one_hot(torch.tensor([1, 2]), four),
        f.normalize(a, dim=one), f.cosine_similarity(a, a, dim=one),
        f.cross_entropy(a.reshape(12, 4), torch.zeros(12, dtype=torch.int64), ignore_index=np.int64(-1)),
    )  # fmt: skip
    say(
        a.roll(one, two), torch.roll(a, (one,), (two,)), a.sum(dim=two), a.mean((one, two)), a.amax(two),
        a.var(dim=one), a.argmax(two), a.topk(two, dim=three)[0], a.softmax(three), a.cumsum(three),
        a.logsumexp(two), a.norm(two), a.kthvalue(two, three)[0], a.quantile(0.5, dim=two), *a.chunk(two, one),
        *torch.tensor_split(a, two, one),
        *a.unbind(one), a.permute(zero, two, three, one), a.movedim(one, two), a.squeeze(zero), a.unsqueeze(one),
        a.flip(three), a.tril(one), a.diagonal(one), a.diff(n=one, dim=three), a.unflatten(one, (two, two)),
        a.narrow(one, one, two), a.repeat(one, one, two, one), a.repeat_interleave(two, dim=one), a.view(two, -1),
        a.expand(two, 4, 3, 4), a.select(one, two), a.flatten(one), torch.cat([a, a], dim=one), torch.stack([a], one),
        a * two, a**two, a[:, one], torch.zeros(two, three), torch.full((two,), one), torch.eye(three),
        torch.bincount(torch.tensor([1, 2]), minlength=four), torch.matrix_power(torch.eye(3), two),
    )  # fmt: skip
    say(*(tuple(w.shape) for w in torch.nn.Conv2d(four, two, three, padding=one).parameters()))


@program
def out_says_in_what_dtype_sums_are_taken(torch, x, say):
    a = torch.tensor([[1.6, 2.7], [3.5, 0.0]])
    for source in (a, a > 1, a.long(), a.half(), a.cfloat()):
        for dtype in (torch.int64, torch.int32, torch.float16, torch.float32, torch.complex64, torch.bool):
            for function in (torch.sum, torch.prod, torch.cumsum, torch.cumprod):
                out = torch.empty(0, dtype=dtype)
                attempt(say, lambda: function(source, dim=0, out=out).tolist())  # Called here.


@program
def running_sums_of_many_are_as_exact_as_sums(torch, x, say):
    many = torch.arange(2_000_000).remainder(1009).mul(0.37)
    exact = np.cumsum(np.float64(many.numpy()))
    for found in (many.cumsum(0), many.reshape(2, -1).cumsum(1).add_(torch.tensor([[0.0], [exact[999_999]]]))):
        say(bool((abs(found.reshape(-1).numpy() - exact) / exact[-1]).max() < 2e-7))


@program
def products_of_private_names(torch, x, say):
    a, b = (x(3, 4) * 10).to(torch.int8), (x(4, 2) * 10).to(torch.int8)
    say(torch._int_mm(a, b))
    say(torch._addmm_activation(x(2), x(3, 4), x(4, 2)))
    say(torch._masked_softmax(x(2, 3), torch.tensor([[True, False, True], [False] * 3]), 1, 2))
    u, s, v = torch.svd(torch.complex(x(3, 2), x(3, 2)))
    say((u * s @ v.mH).real)
    say(torch.linalg.matrix_rank(torch.eye(3).expand(4, 3, 3), atol=torch.tensor([0.1, 2, 0.1, 2])))
    say([torch.Size([1, 2]) * 2, (1,) + torch.Size([1]), torch.Size([1]) + (2,)])
    say(torch.empty(50, dtype=torch.int8).random_(120, None).min().item() >= 120)


@program
def masked_tensors(torch, x, say):
    masked = torch.masked
    mask = torch.tensor([[True, False, True], [False, False, False]])

    def parts(m):
        dense, chosen = m.get_data().detach().to_dense(), m.get_mask().to_dense()
        say(dense.masked_fill(chosen.logical_not(), 0), chosen)

    a, b = masked.masked_tensor(x(2, 3), mask, True), masked.masked_tensor(x(2, 3) + 1, mask)
    for call in (
        lambda: a * b, lambda: torch.exp(a), lambda: a.sum(0), lambda: a.mean(), lambda: a.amax(1),
        lambda: a.prod(0, True),
        lambda: a.std(), lambda: a.argmin(), lambda: torch.softmax(a, 1), lambda: torch.where(x(2, 3) > 0.3, a, b),
        lambda: a.t(), lambda: a[0], lambda: torch.stack([a, b]), lambda: a.reshape(6), lambda: a.to_sparse() + 1,
        lambda: a.to_sparse_csr().to_dense(), lambda: b.clone().mul_(2), lambda: b == x(2, 3),
        lambda: (a > 0.2)._is_any_true(),
    ):  # fmt: skip
        parts(call())
    (a * a).sum().backward()
    parts(a.grad)
    for call in (
        lambda: a + masked.masked_tensor(x(2, 3), mask.logical_not()), lambda: a.max(),
        lambda: masked.masked_tensor(a, mask),
        lambda: masked.masked_tensor(x(2, 3), mask[0]), lambda: masked.masked_tensor(x(2, 3).bfloat16(), mask),
        lambda: masked.masked_tensor(x(2, 3), x(2, 3)), lambda: masked.masked_tensor(x(2, 3).to_sparse(), mask),
        lambda: a.to_sparse().is_contiguous(),
    ):  # fmt: skip
        try:
            call()
        except (TypeError, ValueError) as error:
            say(error)


@program
def storages_of_either_byte_order(torch, x, say):
    held = bytearray([64, 73, 15, 219])
    for name, order in (("Short", "big"), ("Short", "little"), ("Float", "big"), ("Bool", "big"), ("Byte", "native")):
        say(getattr(torch, f"{name}Storage").from_buffer(held, order).tolist())
    say(torch.UntypedStorage.from_buffer(held, "big", dtype=torch.int16).tolist())
    for call in (
        lambda: torch.ShortStorage.from_buffer(held, "other"), lambda: torch.ShortStorage.from_buffer(held, "big", 3),
        lambda: torch.ShortStorage.from_buffer(held[:3], "big"), lambda: torch.FloatStorage(3).resizable(),
        lambda: torch.tensor(torch.ones(3).storage(), dtype=torch.float64),
        lambda: torch.UntypedStorage(3, device="meta")[0], lambda: torch.TypedStorage(0, device="meta")[0],
        lambda: torch.empty(1).resize_(2**61), lambda: x(3).index_fill(0, torch.tensor([0]), 1j),
        lambda: x(4).topk(4, True), lambda: torch.tensor_split(x(3), torch.tensor([]), 0),
        lambda: torch.tensor_split(torch.zeros(()), 1, 0), lambda: x(3).diff(prepend=x(1, 1)),
        lambda: torch.tensor([1 + 1j, 2]).scatter_reduce(0, torch.tensor([0, 0]), torch.tensor([1j, 2]), "amax"),
    ):  # fmt: skip
        try:
            say(call())
        except (RuntimeError, TypeError, ValueError) as error:
            say(error)
    say(torch.tensor([1 + 1j, 2]).scatter_reduce(0, torch.tensor([0, 0]), torch.tensor([1 + 1j, 2]), "mean"))
    say(torch.gradient(x(4), spacing=2j), torch.combinations(x(2), 0))
    say(torch.isclose(x(2), x(2), torch.tensor(1), torch.tensor(1)))
