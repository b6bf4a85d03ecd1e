"""Short programs at the edges of views and writes in place; see programs.py."""

from tests.cases.programs import program
from tests.cases.programs_of_values import attempts


@program
def writes_through_views_of_views(torch, x, say):
    a = x(4, 3)
    v = a.t()[1:]
    v += 1
    a[1].mul_(2)
    say(a, v, a._version, v._version)


@program
def no_write_to_what_was_expanded(torch, x, say):
    a = x(1, 3).expand(2, 3)
    say(a.is_contiguous(), a.stride())
    a.add_(1)


@program
def no_copy_to_what_was_expanded(torch, x, say):
    a = x(3, 1).expand(3, 2)
    a.copy_(x(3, 2))


@program
def leaves_are_not_written(torch, x, say):
    a = x(3).requires_grad_()
    a.add_(1)


@program
def views_of_leaves_are_not_written(torch, x, say):
    a = x(3).requires_grad_()
    a[0] = 1


@program
def leaves_are_written_without_gradients(torch, x, say):
    a = x(3).requires_grad_()
    with torch.no_grad():
        a.mul_(2)
    (a * a).sum().backward()
    say(a, a.grad, a._version)


@program
def saved_values_are_not_overwritten(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 1
    c = b * b
    b.add_(1)
    c.sum().backward()


@program
def saved_results_are_not_overwritten(torch, x, say):
    a = x(3).requires_grad_()
    b = a.exp()
    b.mul_(2)
    b.sum().backward()


@program
def what_nobody_saved_is_overwritten(torch, x, say):
    a = x(3).requires_grad_()
    b = a + 1
    c = b + 2
    b.mul_(5)
    (c.sum() + b.sum()).backward()
    say(a.grad)


@program
def saved_values_are_not_overwritten_without_gradients(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 1
    c = b.sin()
    with torch.no_grad():
        b.zero_()
    c.sum().backward()


@program
def saved_values_are_not_overwritten_when_detached(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 1
    c = b.sin()
    b.detach().zero_()
    c.sum().backward()


@program
def steps_overwrite_what_was_saved(torch, x, say):
    w = x(3).requires_grad_()
    y = (w * w).sum()
    o = torch.optim.SGD([w], lr=0.1)
    y.backward(retain_graph=True)
    o.step()
    y.backward()


@program
def views_without_gradients_are_not_written_with_them(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 1
    with torch.no_grad():
        v = b[:2]
    v.add_(1)


@program
def parts_are_written(torch, x, say):
    a = x(4)
    u, _ = a.split(2)
    u.mul_(2)
    say(a)


@program
def detached_tensors_share_memory(torch, x, say):
    a = x(3).requires_grad_()
    d = a.detach()
    d[0] = 100.0
    say(a, a._version, d._version, d.requires_grad)


@program
def detached_in_place(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    b.detach_()
    say(b.requires_grad, b.is_leaf, b.grad_fn)
    b[:2].detach_()


@program
def views_are_not_detached_in_place(torch, x, say):
    a = x(3).requires_grad_()
    b = (a * 2)[:2]
    b.detach_()


@program
def results_are_not_written_with_gradients(torch, x, say):
    a = x(3).requires_grad_()
    torch.add(a, 1, out=torch.zeros(3))


@program
def positions_that_are_there_twice(torch, x, say):
    a = torch.zeros(3)
    a.index_put_((torch.tensor([0, 0, 1]),), x(3), accumulate=True)
    say(a)
    b = x(4).requires_grad_()
    c = b * 1
    c[torch.tensor([1, 1])] = b[:1] * 3
    c.sum().backward()
    say(b.grad)


@program
def copies_into_tensors_have_gradients(torch, x, say):
    a = x(3).requires_grad_()
    b = torch.zeros(2, 3)
    b.copy_(a)
    b[1].mul_(2)
    b.sum().backward()
    say(a.grad, b.requires_grad, b.grad_fn is not None)


@program
def writes_through_views_bring_history(torch, x, say):
    b = torch.zeros(3)
    v = b[:2]
    v.copy_(x(2).requires_grad_())
    say(b.requires_grad, v.requires_grad)


@program
def views_see_later_writes(torch, x, say):
    a = x(4).requires_grad_()
    b = a * 1
    v = b[1:3]
    b.mul_(2)
    (v * v).sum().backward()
    say(a.grad, v)


@program
def writes_to_transposed_tensors(torch, x, say):
    a = x(2, 3).requires_grad_()
    b = a * 1
    b.t()[0] = b[:, 1] * 2
    b.diagonal().mul_(3)
    (b * x(2, 3)).sum().backward()
    say(a.grad, b)


@program
def gradients_of_gradients_of_what_was_written_in_place(torch, x, say):
    nn, functional = torch.nn, torch.nn.functional
    lstm = nn.LSTM(4, 2)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.copy_(x(*parameter.shape) / 4)
    for module in (nn.InstanceNorm1d(2), nn.LayerNorm(4), nn.GroupNorm(1, 2), nn.BatchNorm1d(2), lambda a: lstm(a)[0]):
        for write in (lambda a: functional.leaky_relu(a, 0.2, inplace=True), lambda a: a.mul_(2).sigmoid_()):
            for is_read in (False, True):
                a, weight = ((x(2, 2, 4) * k).sin().requires_grad_() for k in (1, 2))
                out = module(write(a * weight))
                if is_read:
                    out.sum().item()
                (g,) = torch.autograd.grad(out.exp().sum(), a, create_graph=True)
                (g.square().sum() + out.sum()).backward()
                say(weight.grad)


# Writes that read what they write to, and what they refuse


@program
def a_number_of_the_written_tensor_is_read_first(torch, x, say):
    mask, rows = torch.tensor([True, False] * 3), torch.tensor([0, 1])
    for write in (
        lambda a: a.masked_fill_(mask, a[2]),
        lambda a: a.index_fill_(0, rows, a[2]),
        lambda a: a.fill_(a[2]),
        lambda a: a[:4].masked_scatter_(torch.tensor([True, False, True, True]), a[2:6]),
    ):
        whole = x(6).clone()
        write(whole)
        say(whole)


@program
def elements_are_written_one_by_one(torch, x, say):
    """And read meanwhile: by ops, views, copies and gradients, whole and in part."""
    for size in (3, 5000):
        a = torch.zeros(size)
        for i in range(0, size, 7):
            a[i] = i
        a[1], a[-1], a[1] = 2, 7.5, 4
        say(a)
    b, whole, flags = x(2, 3).clone(), torch.zeros(4, dtype=torch.int64), torch.zeros(3, dtype=torch.bool)
    row, before, doubled = b[0], b.clone(), b * 2
    b[0, 1], b[-1, -1] = 5, True
    say(b, row, before, doubled, b._version, row.sum())
    row[2] = 8.0
    b[0, 2] = 9.0
    say(row, b)
    b[1, 0] = 1.5
    b.mul_(2)
    b[1, 0] = float("nan")
    b.t()[0, 0] = -1.0
    say(b, b.view(-1)[3:], torch.equal(b, b))
    b[0, 0] = 3
    b.copy_(before)
    b[1, 1] = 4
    flat = b.view(6)
    b[1, 2] = 6
    say(flat, b.detach(), b.tolist())
    whole[0], whole[1], whole[2], flags[1], flags[2] = 2.9, -3, True, 5, 0.0
    say(whole, flags)
    attempts(
        say,
        lambda: whole.__setitem__(4, 1),
        lambda: b.__setitem__((0, 3), 1.0),
        lambda: b.__setitem__((0, 0, 0), 1.0),
        lambda: whole.__setitem__(3, float("inf")),
        lambda: torch.tensor(1.0).__setitem__((), 2.0),
    )
    say(whole, b)
    halves, pairs = torch.zeros(3).half(), torch.zeros(2, dtype=torch.complex64)
    halves[1], pairs[1] = 1e9, 3
    say(halves, pairs)


@program
def elements_that_were_saved_are_written(torch, x, say):
    w, a = x(3).requires_grad_(), x(3).clone()
    loss = (w * a).sum()
    a[0] = 2.0
    attempts(say, loss.backward)
    with torch.no_grad():
        w[1] = 4.0
    (w * a).sum().backward()
    say(w, w.grad, a.requires_grad)
    grown = torch.zeros(3)
    grown[0] = 1.0
    grown[1] = w[0]
    grown[2] = 2.0
    grown.sum().backward()
    say(grown, w.grad)
    attempts(say, lambda: w.__setitem__(0, 1.0))
    shared = x(4).clone()
    memory = shared.cpu().numpy()
    shared[1] = 5.0
    say(bool(memory[1] == 5) or shared.device.type != "cpu")
    with torch.inference_mode():
        inside = torch.zeros(2)
        inside[0] = 1.0
    say(shared, inside)


@program
def a_masked_scatter_reads_what_it_has_written(torch, x, say):
    even = torch.tensor([True, False] * 4)
    for mask, written, read in (
        (even, slice(0, 8), slice(0, 8)),
        (even, slice(0, 8), slice(4, 12)),
        (even, slice(2, 10), slice(0, 8)),
        (~even, slice(4, 12), slice(2, 12)),
        (torch.ones(8).bool(), slice(3, 11), slice(0, 10)),
        (torch.ones(8).bool(), slice(0, 8), slice(1, 12)),
    ):
        whole = x(12).clone()
        whole[written].masked_scatter_(mask, whole[read])
        say(whole)
    flags = torch.tensor([False] + [True] * 7)
    flags[:4].masked_scatter_(flags[2:6], flags[4:])
    say(flags)
    for mask in (torch.ones(3, 4).bool(), even[:4], even[:3, None]):
        square, flat = x(4, 4).clone(), x(16).clone()
        square.t()[1:].masked_scatter_(mask, square)  # Columns of what is read by rows.
        flat.as_strided((3, 4), (1, 4), 1).masked_scatter_(mask, flat[2:])
        square[:3].masked_scatter_(mask, square.t())  # A copy is read.
        say(square, flat)


@program
def rows_of_no_axis_and_numbers_as_rows(torch, x, say):
    none, one, row = torch.tensor(2.0), torch.tensor(5.0), torch.tensor([0])
    attempts(
        say,
        *(
            (lambda a, i, v, how: lambda: how(a, i, v))(a, i, v, how)
            for a in (none, x(3), x(3, 2))
            for i in (torch.tensor(0), row, torch.tensor([0, 0]), row.int())
            for v in (one, torch.tensor([5.0]), torch.tensor([5.0, 6.0]), torch.tensor([[5.0, 6.0]]))
            for how in (
                lambda a, i, v: a.index_copy(0, i, v),
                lambda a, i, v: a.index_add(0, i, v),
                lambda a, i, v: a.index_fill(0, i, v),
                lambda a, i, v: a.index_reduce(0, i.long(), v, "prod"),
            )
        ),
    )


@program
def a_view_of_several_says_that_it_wants_a_gradient(torch, x, say):
    whole = x(4).requires_grad_() * 1
    first = whole.unbind(0)[0]
    whole.mul_(2)
    say(first.requires_grad, first.shape)
    attempts(say, lambda: first + 1)


@program
def subscripts_that_are_arrays_of_numpy(torch, x, say):
    import numpy as np

    whole = x(3, 4)
    for key in (
        (slice(None), np.array([0, 1])),
        [np.array([0, 1]), np.array([0, 1])],
        [np.array([0, 1])],
        np.array([0.0]),
        np.array([]),
        range(2),
        (range(2), range(2)),
        (slice(None), range(2)),
        (slice(None), (0, 1)),
        [range(2)],
        (Ellipsis, [0, 1]),
    ):
        copy = whole.clone()
        copy[key] = 0.0
        say(whole[key], copy)


@program
def functions_that_refuse_values_or_an_out(torch, x, say):
    functional, inf = torch.nn.functional, float("inf")
    edges = torch.tensor([-2.0, -0.0, 0.0, 1.0])
    for alpha in (inf, -inf):
        say(functional.celu(edges, alpha)[1:], functional.elu(edges, alpha)[1:])
    attempts(
        say,
        lambda: functional.gaussian_nll_loss(x(3), x(3), torch.tensor([-1.0, 1.0, 1.0])).item(),
        lambda: torch.argsort(x(3), out=torch.empty(0, dtype=torch.int64)),
        lambda: torch.isnan(x(3), out=torch.empty(0, dtype=torch.bool)),
        lambda: torch.trace(x(3, 3), out=torch.empty(0)),
    )
    numbers, weight = torch.tensor([0, 1, 2, 3]), x(5, 2)
    # Offsets that fall in the middle are left out: PyTorch reads memory that it never wrote.
    for offsets in ([0, 2], [2, 0], [0, 5], [1, 2], [0, 4], [0, 4, 4], [0, 0]):
        for last in (False, True):
            attempts(
                say,
                lambda offsets=offsets, last=last: functional.embedding_bag(
                    numbers, weight, torch.tensor(offsets), mode="sum", include_last_offset=last
                ).tolist(),
            )


@program
def what_is_written_through_data_is_what_formulas_read(torch, x, say):
    def tried(write):
        leaf = x(3, 2).requires_grad_()
        y = leaf * 2
        z = y * y
        write(y)
        z.sum().backward()
        say(leaf.grad)

    tried(lambda y: y.data.__setitem__(0, 5.0))
    tried(lambda y: y.data[0].fill_(5.0))
    tried(lambda y: y.data.add_(1))
    tried(lambda y: y.data.view(-1)[:2].copy_(torch.zeros(2, device=y.device)))
    tried(lambda y: y.detach().add_(1))


def writes_through_data_are_none_to_the_tensor(torch, x, say):
    memory, weight = torch.zeros(4), x(2).requires_grad_()
    product = memory[:2] * weight
    memory.data[2:] = 5
    product.sum().backward()
    say(weight.grad, memory, memory._version)


@program
def a_subclass_is_made_of_a_tensors_memory(torch, x, say):
    class Own(torch.Tensor):
        pass

    memory = x(3)
    own = torch.Tensor._make_subclass(Own, memory, True)
    say(type(own) is Own, own.is_leaf, own.requires_grad, own._is_view())
    with torch.no_grad():
        own.add_(1)
    say(memory, own.detach().as_subclass(torch.Tensor))


@program
def views_as_another_dtype_show_the_same_memory(torch, x, say):
    a = torch.arange(6.0).reshape(2, 3)
    bits = a.view(torch.int32)
    bits[0, 0] = 0x3F800000
    say(a, bits.data_ptr() == a.data_ptr())
    a.mul_(2)
    say(bits, a.view(torch.int16).shape, a.view(torch.int16).stride(), a[:, :2].view(torch.float64).shape)
    leaf = x(3).requires_grad_()
    say(leaf.view(torch.int32).requires_grad, leaf.view(torch.float32).requires_grad)


@program
def memory_is_resized_in_a_format(torch, x, say):
    flat = torch.arange(48.0)
    say(flat.resize_(2, 3, 2, 4, memory_format=torch.channels_last).stride(), flat)
    other = torch.arange(48.0)
    say(other.resize_as_(flat, memory_format=torch.preserve_format).stride(), other[::2].ravel().stride())
    for call in (
        lambda: flat.resize_(4, memory_format=torch.preserve_format), lambda: torch.empty(()).resize_([0, 4, 1 << 61]),
    ):  # fmt: skip
        try:
            call()
        except RuntimeError as error:
            say(error)


@program
def modules_are_called_with_other_tensors(torch, x, say):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)
            self.tied = self.layer.bias
            self.factor = x(2)
            self.register_buffer("count", torch.zeros(1))

        def forward(self, value):
            self.count = self.count + 1
            return self.layer(value) * self.factor + self.tied

    module, value, weight = Scaled(), x(1, 2), x(2, 2)
    call = torch.func.functional_call
    replaced = {"layer.weight": weight, "tied": torch.ones(2), "count": torch.ones(1), "factor": torch.ones(2)}
    say(call(module, replaced, value), replaced["count"], module.count)
    for wrong, options in (
        ({"tied": x(2), "layer.bias": x(2)}, {}), ({"layer.weight": weight}, {"strict": True}),
        ({"layer.weight": 1}, {}), ({"none.weight": weight}, {}), ([weight], {}), (3, {}),
    ):  # fmt: skip
        try:
            call(module, wrong, value, **options)
        except (TypeError, ValueError, RuntimeError, AttributeError) as error:
            say(type(error).__name__)
    say(module.count, module.layer.bias is module.tied)


@program
def converted_modules_keep_their_tensors(torch, x, say):
    module = torch.nn.Linear(2, 2)
    module(x(1, 2)).sum().backward()
    weight, grad = module.weight, module.weight.grad
    numbers = weight._cdata, grad._cdata
    module.to(torch.float64)
    say(module.weight is weight, weight.grad is grad, numbers == (weight._cdata, grad._cdata), grad.dtype)
    other = x(2)
    before = other._cdata
    torch.utils.swap_tensors(other, x(2))
    say(
        other._cdata == before,
        torch.finfo(torch.float16) == torch.finfo(torch.half),
        len(2 * torch.nn.Sequential(module)),
    )
