"""Short programs at the edges of dtypes, positions and shapes; see programs.py."""

from tests.cases.programs import program


def attempts(say, *calls):
    """Says what each call gives, or its error."""
    for call in calls:
        try:
            say(call())
        except Exception as error:
            say(error)


@program
def arithmetic_of_bytes(torch, x, say):
    u = torch.tensor([250, 3, 7], dtype=torch.uint8)
    say(
        u + 10,
        u + u,
        u - 5,
        u * 2,
        u + torch.tensor([-1, 1, 2], dtype=torch.int8),
        u // 2,
        u / 2,
        -u,
        u >> 1,
        u << 3,
        ~u,
        u % 4,
        u**2,
    )


@program
def arithmetic_of_bools(torch, x, say):
    b = torch.tensor([True, False])
    say(b + b, b * b, b | b, b ^ b, b & ~b, b.sum(), b.cumsum(0), b + 1, b / b)


@program
def bools_are_not_subtracted(torch, x, say):
    b = torch.tensor([True, False])
    b - b


@program
def bools_are_not_negated(torch, x, say):
    -torch.tensor([True])


@program
def floats_are_not_written_to_whole_numbers(torch, x, say):
    i = torch.arange(3)
    i.add_(1.5)


@program
def quotients_are_not_written_to_whole_numbers(torch, x, say):
    i = torch.arange(3)
    i /= 2


@program
def whole_numbers_are_written_to_floats(torch, x, say):
    a = x(3)
    a += torch.arange(3)
    a *= True
    say(a)


@program
def writes_do_not_grow(torch, x, say):
    a = x(3)
    a += x(2, 3)


@program
def assigned_values_broadcast(torch, x, say):
    a = torch.zeros(2, 3, 4)
    a[..., 1] = x(3)
    a[1, :, ::2] = x(1, 2)
    a[:, [0, 2], [1, 3]] = 5.0
    say(a)


@program
def assigned_values_fit(torch, x, say):
    a = torch.zeros(2, 3)
    a[0] = x(2)


@program
def positions_are_inside(torch, x, say):
    x(3)[3]


@program
def positions_of_tensors_are_inside(torch, x, say):
    say(x(3)[torch.tensor([0, 3])])


@program
def steps_are_positive(torch, x, say):
    x(3)[::-1]


@program
def positions_are_whole(torch, x, say):
    x(3)[torch.tensor([1.0])]


@program
def positions_of_all_kinds(torch, x, say):
    a = x(2, 3, 4)
    say(
        a[:, None, torch.tensor([0, 2])].shape,
        a[torch.tensor([1]), :, torch.tensor([[0], [3]])],
        a[True].shape,
        a[torch.tensor([True, False])],
        a[..., None, -1].shape,
        a[0, torch.tensor(2)],
    )


@program
def shapes_that_do_not_fit(torch, x, say):
    attempts(
        say,
        lambda: x(6).view(4),
        lambda: x(2, 3).t().view(6),
        lambda: x(6).view(-1, -1),
        lambda: x(6).reshape(0, -1),
        lambda: x(2, 3).permute(0, 0),
        lambda: x(2, 3).transpose(0, 2),
        lambda: x(3).unsqueeze(3),
        lambda: x(2, 3).expand(2, 4),
        lambda: x(3).expand(-1, 3),
        lambda: x(2).squeeze(2),
        lambda: x(4).unflatten(0, (3, -1)),
        lambda: x(2, 2).flatten(1, 0),
        lambda: x(3).as_strided((3,), (2,)),
        lambda: x(4).chunk(0),
        lambda: x(4).split(-1),
        lambda: x(4).split([1, 2]),
        lambda: x(4).unfold(0, 5, 1),
        lambda: x(4).narrow(0, 3, 2),
        lambda: x(2, 3).movedim((0, 0), (1, 0)),
        lambda: x(3).repeat(()),
        lambda: x(2, 3).repeat(2),
        lambda: x(3).roll((1, 2), 0),
        lambda: torch.cat([x(2), x(2, 2)]),
        lambda: torch.stack([x(2), x(3)]),
        lambda: torch.cat([x(2), torch.arange(2)]),
    )


@program
def reductions_of_nothing(torch, x, say):
    attempts(
        say,
        lambda: x(0).max(),
        lambda: x(0, 3).max(0),
        lambda: x(0).argmax(),
        lambda: x(0).mean(),
        lambda: x(0).sum(),
        lambda: x(0).prod(),
        lambda: x(3).sum((0, 0)),
        lambda: x(3).sum(1),
        lambda: torch.arange(3).mean(),
        lambda: x(1).std(),
        lambda: x(0).median(),
        lambda: x(3).topk(4),
        lambda: x(3).kthvalue(0),
        lambda: x(3).cumsum(1),
        lambda: torch.tensor(1.0).sum(0),
        lambda: torch.tensor(1.0).max(0),
        lambda: x(2, 0).sum(1),
        lambda: x(0).logsumexp(0),
        lambda: x(0, 2).half().logsumexp(0),
        lambda: x(2, 3).amax((0, -2)),
        lambda: x(3).norm(p="x"),
        lambda: x(3).quantile(2.0),
        lambda: torch.tensor([True]).all(1),
        lambda: x(3).var(correction=3),
        lambda: torch.arange(3).std(),
        lambda: torch.arange(6).median(),
        lambda: x(0, 2).all(0),
        lambda: x(0).any(),
    )


@program
def products_that_do_not_fit(torch, x, say):
    attempts(
        say,
        lambda: x(2, 3) @ x(2, 3),
        lambda: x(3) @ x(3),
        lambda: x(2, 3) @ x(3),
        lambda: x(3) @ x(3, 2),
        lambda: torch.tensor(1.0) @ x(3),
        lambda: x(2, 3) @ torch.arange(3),
        lambda: x(2, 3) @ x(3).double(),
        lambda: x(0, 3) @ x(3, 2),
        lambda: x(2, 0) @ x(0, 2),
        lambda: torch.mm(x(2), x(2, 2)),
        lambda: torch.bmm(x(1, 2, 3), x(2, 3, 2)),
        lambda: torch.dot(x(2), x(3)),
        lambda: torch.einsum("ij,jk", x(2, 3), x(3, 2)),
        lambda: torch.einsum("ij,kj->ik", x(2, 3), x(2, 2)),
        lambda: torch.einsum("ii->i", x(3, 3)),
        lambda: torch.outer(x(2), x(1, 2)),
        lambda: torch.addmm(x(3), x(2, 3), x(3, 2)),
        lambda: torch.arange(4).view(2, 2) @ torch.arange(4).view(2, 2),
        lambda: torch.tensor([[True]]) @ torch.tensor([[True]]),
    )


@program
def tensors_as_numbers(torch, x, say):
    a = torch.tensor(3.5)
    say(float(a), int(a), bool(a), a.item(), f"{a:.2f}", round(a.item()))
    attempts(
        say,
        lambda: bool(x(2)),
        lambda: float(x(2)),
        lambda: int(torch.tensor([])),
        lambda: len(a),
        lambda: list(a),
        lambda: [1, 2, 3][torch.tensor(1)],
        lambda: [1, 2][torch.tensor(1.0)],
        lambda: a.__index__(),
        lambda: x(2) in [1],
        lambda: 0.14285714285714285 in x(2),
        lambda: hash(a) == hash(a),
        lambda: x(2) == None,  # noqa: E711 - what tensors answer
        lambda: x(2) == "a",
        lambda: x(2) < "a",
        lambda: not x(1),
        lambda: x(2) and 1,
        lambda: max(x(3)),
        lambda: sum(x(3)),
        lambda: sorted(x(3).tolist()),
        lambda: torch.tensor([[1], [2, 3]]),
        lambda: torch.tensor([1, "a"]),
        lambda: torch.tensor([1.0, None]),
        lambda: torch.tensor([x(1), x(1)]),
        lambda: torch.tensor([torch.tensor(1), 2.5]),
        lambda: torch.tensor([True, 2]),
        lambda: torch.tensor([1, 2.0]),
        lambda: torch.tensor(2**70),
        lambda: torch.tensor(3, dtype=torch.uint8) + 300,
        lambda: torch.full((2,), 3),
        lambda: torch.full((2,), 3.0),
        lambda: torch.full((2,), True),
        lambda: torch.arange(0, 1, 0.3),
        lambda: torch.arange(3.0),
        lambda: torch.arange(5, 2),
        lambda: torch.linspace(0, 1, 3),
        lambda: torch.zeros(-1),
        lambda: torch.zeros(2, "a"),
        lambda: torch.ones((2,), dtype=int),
        lambda: torch.eye(2, 3),
    )


@program
def arithmetic_of_whole_numbers(torch, x, say):
    i = torch.tensor([-7, -1, 0, 5, 7])
    say(
        i // 2,
        i % 3,
        i % -3,
        torch.fmod(i, 3),
        i / 2,
        torch.div(i, 2, rounding_mode="trunc"),
        torch.div(i, -2, rounding_mode="floor"),
        i >> 1,
        i << 2,
        i & 3,
        i | 8,
        i ^ 5,
        ~i,
        i.abs(),
        i.sign(),
        i.clamp(-2, 3),
        i.pow(3),
        i.float().round(),
        (i.float() / 2).round(),
        i.bitwise_not(),
        -i,
    )
    attempts(
        say,
        lambda: i // 0,
        lambda: i % 0,
        lambda: i ** (-1),
        lambda: torch.pow(2, i),
        lambda: i.div(0),
        lambda: i.sqrt(),
        lambda: i.exp().dtype,
        lambda: i << -1,
        lambda: i.lerp(i, 0.5),
        lambda: i.addcmul(i, i, value=0.5),
    )


@program
def order(torch, x, say):
    a = torch.tensor([2.0, 1.0, 2.0, 1.0, float("nan"), 0.0])
    v, i = a.sort(stable=True)
    say(v, i)
    v, i = a.sort(descending=True, stable=True)
    say(v, i)
    say(
        a[:4].unique(),
        a[:4].unique(return_counts=True)[1],
        torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 0.0, 4.0])),
        torch.bucketize(torch.tensor([2.0]), torch.tensor([1.0, 2.0]), right=True),
        a[:4].unique_consecutive(),
        torch.bincount(torch.tensor([0, 2, 2])),
        a[:4].argsort(stable=True),
        a.nonzero(),
        a.count_nonzero(),
    )


@program
def complex_numbers(torch, x, say):
    a = x(2).requires_grad_()
    z = torch.complex(a, a * 2)
    w = (z * z.conj()).real.sum() + z.abs().sum() + z.angle().sum() + (z**2).imag.sum()
    w.backward()
    say(a.grad)
    attempts(
        say,
        lambda: z > 1,
        lambda: z.max(),
        lambda: torch.view_as_real(z).shape,
        lambda: x(2) * 1j,
        lambda: (x(2) * 1j).dtype,
        lambda: z.float(),
        lambda: z.sum().backward(),
        lambda: z.real._base is not None,
        lambda: torch.arange(2) * 1j,
        lambda: z.mean(),
        lambda: z // 2,
        lambda: z.round(),
    )


@program
def matrices_with_infinities(torch, x, say):
    """LAPACK may find no end of those of 3 rows and 7 columns."""
    a = torch.cat([torch.eye(3), torch.ones(3, 4)], 1).repeat(3, 1, 1)
    a[1, 0, 1] = float("inf")
    for rows in (a, a.mT, a[1], a[..., :3]):
        say(torch.linalg.svdvals(rows), torch.linalg.norm(rows[-1], 2))
    say(torch.linalg.svd(a).S, torch.linalg.svd(a[1]).Vh.shape)


@program
def operands_that_are_numbers_or_of_other_dtypes(torch, x, say):
    a, i = x(3) + 1, torch.tensor([0, 1, 1])
    attempts(
        say,
        lambda: torch.kron(a, 3),
        lambda: torch.outer(a, 3),
        lambda: torch.dist(a, 3.0),
        lambda: torch.bucketize(a, 3),
        lambda: torch.nextafter(a, 3.0),
        lambda: torch.nextafter(i, i),
        lambda: torch.nextafter(i, a).view(torch.int32),
        lambda: torch.nextafter(a, a + i).view(torch.int32),
        lambda: torch.bincount(i, weights=a),
    )


@program
def scalars_and_empty_rows(torch, x, say):
    scalar, empty = x(1).reshape(()), torch.zeros(2, 0, dtype=torch.int16)
    attempts(
        say,
        lambda: scalar.mT,
        lambda: scalar.mH,
        lambda: x(2).mT,
        lambda: scalar.split(1),
        lambda: torch.trapezoid(empty),
        lambda: torch.trapezoid(x(3) > 1),
        lambda: torch.cumulative_trapezoid(x(3) > 1),
    )


@program
def slopes_along_axes(torch, x, say):
    values, places = (
        x(4, 5, 3) ** 2 * 1.37 - 0.61,
        (torch.tensor([0.5, 0.75, 3.0, 3.25]), torch.tensor([2.0, 1.0, 4.0])),
    )
    for order in (1, 2):
        for spacing in (0.7, [0.3, 3], places):
            say(*torch.gradient(values, spacing=spacing, dim=(0, 2), edge_order=order))
        say(*torch.gradient(values.long(), spacing=2, dim=(0, 2), edge_order=order))
        say(*torch.gradient(values, spacing=1 + 2j, dim=(0, 2), edge_order=order))


@program
def whole_numbers_may_be_tensors(torch, x, say):
    y, counts = x(2, 3), torch.tensor([1, 2])
    attempts(
        say,
        lambda: torch.cumsum(y, torch.tensor(0)),
        lambda: torch.cumprod(y, torch.tensor(1, dtype=torch.int32)),
        lambda: torch.repeat_interleave(y, counts, dim=0, output_size=counts.sum()),
        lambda: torch.repeat_interleave(counts, output_size=counts.sum()),
        lambda: y.map2_(x(3), x(1, 3), lambda a, b, c: a + b * c),
    )
    say(y)
    for call in (
        lambda: torch.cumsum(y, torch.tensor(0.0)),
        lambda: y.map2_(x(3), x(3).requires_grad_(), lambda a, b, c: a),
    ):
        try:
            say(call())
        except (TypeError, RuntimeError) as error:
            say(type(error).__name__)


@program
def numbers_fill_what_shows_elements_twice(torch, x, say):
    memory = x(8).clone()
    memory.as_strided((2, 3, 2), (1, 1, 3)).fill_(7)
    say(memory, x(1).clone().expand(4).fill_(2), memory.unfold(0, 4, 2).zero_(), memory)


@program
def memory_that_nothing_wrote_shows_with_deterministic_algorithms(torch, x, say):
    say(torch.are_deterministic_algorithms_enabled(), torch.get_deterministic_debug_mode())
    torch.use_deterministic_algorithms(True, warn_only=True)
    say(torch.is_deterministic_algorithms_warn_only_enabled(), torch.get_deterministic_debug_mode())
    torch.set_deterministic_debug_mode("error")
    say(torch.is_deterministic_algorithms_warn_only_enabled(), torch.get_deterministic_debug_mode())
    try:
        for dtype in (torch.float32, torch.float16, torch.complex64, torch.int32, torch.int64, torch.uint8, torch.bool):
            ones = torch.ones(2, dtype=dtype)
            say(torch.empty(2, dtype=dtype), torch.empty_like(ones), ones.new_empty(1), ones.resize_(3))
            say(torch.empty_strided((2, 2), (1, 2), dtype=dtype), torch.empty_permuted((2, 1), (1, 0), dtype=dtype))
        torch.utils.deterministic.fill_uninitialized_memory = False
        say(torch.utils.deterministic.fill_uninitialized_memory)
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False)
    attempts(say, lambda: torch.set_deterministic_debug_mode(1.5))


@program
def memory_that_numpy_shows_keeps_its_size(torch, x, say):
    y = x(3)
    say(y.untyped_storage().resizable(), y.storage().resizable())
    y.numpy()
    say(y.untyped_storage().resizable(), y.storage().resizable(), x(2).storage().resizable())


@program
def norms_of_infinities(torch, x, say):
    for values in ([float("inf")] * 2, [float("inf"), 1.0], [0.0, 2.0], [0.0, 0.0]):
        say([torch.tensor(values).norm(p) for p in (-3.5, -2, -1, -0.5, 0, 0.5, 1, 2, float("inf"), -float("inf"))])


@program
def whole_numbers_of_any_dtype_are_positions(torch, x, say):
    y, n = x(3, 4), torch.tensor(1)
    say([y[n.to(dtype)] for dtype in (torch.int16, torch.int32, torch.int64, torch.int8)], y[n.short(), n.int()])
    attempts(
        say,
        lambda: y[torch.tensor([1, 2], dtype=torch.int16)],
        lambda: torch.unravel_index(torch.tensor([1]), torch.tensor([1, 2, 3])),
        lambda: torch.unravel_index(torch.tensor([5]), (2, 3)),
    )


@program
def older_order_of_embedding_bag(torch, x, say):
    rows, numbers = x(5, 2), torch.tensor([0, 3, 4])
    say(torch.nn.functional.embedding_bag(rows, numbers, torch.tensor([0, 2])))
