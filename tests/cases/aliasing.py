"""Views share their storage: writes in place and writes through views, seen by every alias. Compared exactly."""

from tests.cases.case import Case, script

CASES: list[Case] = []


def grid(torch, *shape):
    size = 1
    for n in shape:
        size *= n
    return torch.arange(size, dtype=torch.float32).reshape(shape)


# name: makes a view of a (4, 6) tensor. A write to the view is seen in the base, and the reverse.
VIEWS = {
    "row": lambda torch, a: a[1],
    "column": lambda torch, a: a[:, 2],
    "slice": lambda torch, a: a[1:3, ::2],
    "ellipsis": lambda torch, a: a[..., -1:],
    "none": lambda torch, a: a[:, None],
    "transpose": lambda torch, a: a.t(),
    "T": lambda torch, a: a.T,
    "mT": lambda torch, a: a.mT,
    "permute": lambda torch, a: a.permute(1, 0),
    "view": lambda torch, a: a.view(2, 12),
    "view_flat": lambda torch, a: a.view(-1),
    "reshape": lambda torch, a: a.reshape(3, 8),
    "flatten": lambda torch, a: a.flatten(),
    "unflatten": lambda torch, a: a.unflatten(1, (2, 3)),
    "squeeze": lambda torch, a: a[:1].squeeze(0),
    "unsqueeze": lambda torch, a: a.unsqueeze(0),
    "narrow": lambda torch, a: a.narrow(0, 1, 2),
    "select": lambda torch, a: a.select(1, 3),
    "diagonal": lambda torch, a: a.diagonal(),
    "split": lambda torch, a: a.split(3, 1)[1],
    "chunk": lambda torch, a: a.chunk(2)[1],
    "unbind": lambda torch, a: a.unbind()[2],
    "detach": lambda torch, a: a.detach(),
    "data": lambda torch, a: a.data,
    "swapaxes": lambda torch, a: a.swapaxes(0, 1),
    "movedim": lambda torch, a: a.movedim(0, 1),
    "view_of_view": lambda torch, a: a.t()[2:5].t()[1:, ::2],
    "slice_of_slice": lambda torch, a: a[1:][:, 1:][::2, ::2],
    "expand_of_row": lambda torch, a: a[0].unsqueeze(0).expand(1, 6),
    "unfold": lambda torch, a: a.unfold(1, 2, 2),
    "unfold_once": lambda torch, a: a.unfold(1, 6, 1),
    "unfold_one_of_several": lambda torch, a: a.unfold(0, 2, 1)[1].unfold(0, 3, 2)[1, :, :2],
    "as_strided": lambda torch, a: a.as_strided((2, 3), (1, 7), 2),
    "contiguous": lambda torch, a: a.contiguous(),
    "to_same": lambda torch, a: a.to(torch.float32),
    "float": lambda torch, a: a.float(),
    "iteration": lambda torch, a: next(iter(a)),
    "view_as": lambda torch, a: a.view_as(torch.zeros(8, 3)),
    "broadcast_to_itself": lambda torch, a: a.broadcast_to(4, 6),
}
# name: makes a copy; a write to it stays there.
COPIES = {
    "clone": lambda torch, a: a.clone(),
    "reshape_copies": lambda torch, a: a.t().reshape(-1),
    "contiguous_copies": lambda torch, a: a.t().contiguous(),
    "flatten_copies": lambda torch, a: a.t().flatten(),
    "list_index": lambda torch, a: a[[0, 1]],
    "mask_index": lambda torch, a: a[a > 3],
    "tensor_index": lambda torch, a: a[torch.tensor([0, 1])],
    "index_select": lambda torch, a: a.index_select(0, torch.tensor([0, 1])),
    "gather": lambda torch, a: a.gather(0, torch.zeros(1, 6, dtype=torch.int64)),
    "flip": lambda torch, a: a.flip(0),
    "roll": lambda torch, a: a.roll(1),
    "repeat": lambda torch, a: a.repeat(1, 1),
    "tril": lambda torch, a: a.tril(9),
    "cat": lambda torch, a: torch.cat([a]),
    "stack": lambda torch, a: torch.stack([a]),
    "cast": lambda torch, a: a.to(torch.float16).to(torch.float32),
    "arithmetic": lambda torch, a: a + 0,
    "positive_sum": lambda torch, a: a.sum(0),
    "tensor_of": lambda torch, a: a.to(torch.float32, copy=True),
    "where": lambda torch, a: torch.where(a > 0, a, a),
}
WRITES = {
    "add": lambda torch, v: v.add_(100),
    "mul": lambda torch, v: v.mul_(-1),
    "fill": lambda torch, v: v.fill_(7),
    "zero": lambda torch, v: v.zero_(),
    "copy": lambda torch, v: v.copy_(torch.arange(v.numel(), dtype=torch.float32).reshape(v.shape) + 50),
    "set": lambda torch, v: v.__setitem__(0, -5),
    "set_all": lambda torch, v: v.__setitem__(..., -9),
    "clamp": lambda torch, v: v.clamp_(3, 9),
    "masked_fill": lambda torch, v: v.masked_fill_(v > 8, 0),
    "neg": lambda torch, v: v.neg_(),
}


def through(view, write):
    """A copy of the base, base and view after the view is written, and both after the base is written."""

    def fn(torch):
        base = grid(torch, 4, 6)
        before = base.clone()
        alias = view(torch, base)
        write(torch, alias)
        seen = base.clone(), alias.clone()
        base.mul_(2)
        return before, seen, base, alias

    return fn


for kind, view in VIEWS.items():
    for action in ("add", "copy", "set") if kind != "expand_of_row" else ("set_all",):
        CASES.append(Case(f"view_{kind}_{action}", through(view, WRITES[action]), grad=False, tolerance="exact"))
for kind, view in COPIES.items():
    CASES.append(Case(f"copy_{kind}", through(view, WRITES["add"]), grad=False, tolerance="exact"))
for action, write in WRITES.items():
    for kind in ("transpose", "slice", "view_of_view"):
        if action not in ("add", "copy", "set"):
            CASES.append(Case(f"view_{kind}_{action}", through(VIEWS[kind], write), grad=False, tolerance="exact"))


@script(CASES)
def two_views_of_one_base(torch):
    a = grid(torch, 3, 4)
    rows, columns = a[1], a[:, 1]
    rows += 10
    columns *= 2
    rows[1] = -1
    return a, rows, columns


@script(CASES)
def overlapping_views(torch):
    a = grid(torch, 8)
    left, right = a[:5], a[3:]
    left.add_(100)
    right.mul_(2)
    left.sub_(1)
    return a, left, right


@script(CASES)
def view_made_before_and_after_a_write(torch):
    a = grid(torch, 6)
    early = a.view(2, 3)
    a.add_(1)
    late = a.view(3, 2)
    late[0, 0] = 99
    return a, early, late


@script(CASES)
def computed_before_a_write(torch):
    a = grid(torch, 5)
    b = a * 2
    a.zero_()
    c = a * 2
    return a, b, c


@script(CASES)
def slices_read_before_a_write(torch):
    a = grid(torch, 6)
    total = a[:3].sum()
    a[:3] = 0
    return total, a[:3].sum(), a.sum()


@script(CASES)
def written_from_itself(torch):
    a, b, c = grid(torch, 6), grid(torch, 6), grid(torch, 3, 3)
    a.add_(a)
    b.copy_(b.flip(0))
    c.add_(c.t().clone())
    return a, b, c


@script(CASES)
def shifted_onto_itself(torch):
    a = grid(torch, 8)
    a[1:] = a[:-1].clone()
    b = grid(torch, 8)
    b[2:] += b[:-2].clone()
    return a, b


@script(CASES)
def swapped_rows(torch):
    a = grid(torch, 3, 2)
    a[0], a[2] = a[2].clone(), a[0].clone()
    a[[0, 1]] = a[[1, 0]]
    return a


@script(CASES)
def in_place_returns_itself(torch):
    a = grid(torch, 3)
    b = a.add_(1)
    b.mul_(2)
    return a is b, a, b


@script(CASES)
def assignment_does_not_alias_the_value(torch):
    a, b = grid(torch, 2, 3), torch.ones(3)
    a[0] = b
    b.add_(5)
    return a, b


@script(CASES)
def augmented_on_a_name_and_on_a_view(torch):
    a = grid(torch, 2, 3)
    row = a[0]
    row += 1
    row = row + 100
    row += 1000
    return a, row


@script(CASES)
def augmented_item(torch):
    a = grid(torch, 2, 3)
    a[1] += 5
    a[:, 0] *= 3
    a[a > 6] -= 1
    a[torch.tensor([0, 1]), torch.tensor([1, 2])] = 77.0
    return a


@script(CASES)
def repeated_index_is_written_once(torch):
    a = torch.zeros(4)
    a[torch.tensor([1, 1, 1])] += 1
    b = torch.zeros(4).index_add_(0, torch.tensor([1, 1, 1]), torch.ones(3))
    return a, b


@script(CASES)
def set_data(torch):
    a = grid(torch, 3).requires_grad_()
    alias = a.data
    alias[0] = 50
    a.data = torch.tensor([7.0, 8.0, 9.0])
    alias[1] = 60
    return a.detach(), alias, a.requires_grad


@script(CASES)
def detach_shares(torch):
    a = grid(torch, 3).requires_grad_()
    plain = a.detach()
    plain.add_(1)
    return a.detach(), plain, plain.requires_grad


@script(CASES)
def parameter_shares(torch):
    a = grid(torch, 3)
    p = torch.nn.Parameter(a)
    a.add_(10)
    return p.detach(), p.requires_grad


@script(CASES)
def same_storage(torch):
    a = grid(torch, 4, 3)
    return [a.data_ptr() == x.data_ptr() for x in (a.view(-1), a.t(), a.detach(), a.clone(), a + 0)]


@script(CASES)
def is_view_of(torch):
    a = grid(torch, 4, 3)
    return a[1]._base is a, a._is_view(), a.t()._is_view(), a._version, a.add_(1)._version, a.t()._version


@script(CASES)
def item_between_writes(torch):
    a = grid(torch, 4)
    seen = []
    for n in range(4):
        a[n] += 10
        seen.append((a.sum().item(), a[n].item()))
        a.mul_(2)
    return seen, a


@script(CASES)
def state_in_a_loop(torch):
    state, seen = torch.zeros(3), []
    for n in range(20):
        state.mul_(0.5).add_(float(n))
        seen.append(state[n % 3].clone())
    return state, seen


@script(CASES)
def cache_filled_by_slices(torch):
    cache = torch.zeros(2, 6, 3)
    for n in range(4):
        cache[:, n : n + 1] = grid(torch, 2, 1, 3) + n
    return cache, cache[:, :4].sum(1)


@script(CASES)
def out_writes_into_a_view(torch):
    a, b = torch.zeros(3, 4), grid(torch, 4)
    torch.add(b, b, out=a[1])
    torch.mul(b, 2, out=a[:, :4][2])
    return a


@script(CASES)
def fill_diagonal(torch):
    a = grid(torch, 3, 3)
    a.fill_diagonal_(9)
    b = grid(torch, 3, 3)
    b.diagonal().zero_()
    return a, b


@script(CASES)
def copy_broadcasts_and_casts(torch):
    a = torch.zeros(2, 3, dtype=torch.int32)
    a.copy_(torch.tensor([1.9, -1.9, 3.0]))
    half = torch.zeros(3, dtype=torch.float16)
    half[1:] = torch.tensor([0.1, 2.0])
    return a, half


@script(CASES)
def integer_and_bool_views(torch):
    a, mask = torch.arange(6), torch.zeros(2, 3, dtype=torch.bool)
    a.view(2, 3)[1] *= -1
    mask[1] = True
    mask.t()[0] ^= True
    small = torch.zeros(7, dtype=torch.uint8)
    small[1::2] = 200
    small[2:] += 1
    return a, mask, small


@script(CASES)
def half_views_of_odd_size(torch):
    a = torch.arange(9).to(torch.float16)
    a[1::2].mul_(-1)
    a.view(3, 3)[:, 1] = 0.5
    return a, a[3:8]


@script(CASES)
def transposed_in_place(torch):
    a = grid(torch, 2, 3)
    b = a.t_()
    return a, a is b, a.shape, a.unsqueeze_(0).shape, a.squeeze_().shape


@script(CASES)
def empty_views(torch):
    a = grid(torch, 3, 4)
    a[3:].add_(1)
    a[:, 2:2] = 5
    a[torch.zeros(3, dtype=torch.bool)] = 9
    return a


@script(CASES)
def list_of_parameters_updated(torch):
    params = [grid(torch, 3), grid(torch, 2, 2)]
    views = [p.view(-1) for p in params]
    for n in range(3):
        for p in params:
            p.add_(p, alpha=0.5 * n)
    return params, views
