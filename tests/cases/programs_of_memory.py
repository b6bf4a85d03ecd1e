"""Short programs about memory: what `out=` fills, what is the tensor itself, strides of results; see programs.py."""

from tests.cases.programs import program
from tests.cases.programs_of_values import attempts


@program
def an_out_of_another_shape_is_resized(torch, x, say):
    small, large = torch.empty(0), torch.zeros(4, 3)
    view = large[1:]
    say(torch.add(x(3), 1, out=small) is small, small, torch.mul(x(2, 2), 2, out=view), view.shape, large)
    whole = torch.zeros(6)
    alias = whole.view(2, 3)
    torch.neg(x(2), out=whole)
    say(whole, alias.shape, alias)
    torch.cat([x(2), x(2)], out=whole)
    say(whole, alias)


@program
def an_out_that_is_resized_keeps_its_memory(torch, x, say):
    whole = torch.zeros(6)
    alias, pointer = whole.view(2, 3), whole.data_ptr()
    torch.add(x(4), 1, out=whole)
    say(whole.data_ptr() == pointer, alias, whole._version > 0)
    whole.fill_(9)
    say(alias)
    part = torch.zeros(8)
    middle = part[2:4]
    torch.arange(3.0, out=middle)
    say(part, middle)


@program
def ranges_are_written_into_a_part(torch, x, say):
    for make in (
        lambda out: torch.arange(3.0, out=out),
        lambda out: torch.linspace(0.0, 1.0, 3, out=out),
        lambda out: torch.logspace(0.0, 1.0, 3, out=out),
        lambda out: torch.range(1.0, 3.0, out=out),
    ):
        whole = torch.zeros(5)
        part = whole.narrow(0, 1, 3)
        say(make(part) is part, whole)
        square = torch.zeros(2, 3)
        make(square[1])
        say(square)
        matrix = torch.zeros(3, 1)
        make(matrix)
        say(matrix.shape, matrix)
        matrix = torch.zeros(2, 3)
        make(matrix.t()[:, 1])
        say(matrix)


@program
def what_changes_nothing_is_the_tensor_itself(torch, x, say):
    v, m, scalar = x(3), x(2, 3), x(1)[0]
    say(
        v.flatten() is v,
        torch.flatten(v, 0) is v,
        m.flatten() is m,
        m.flatten(1) is m,
        m.flatten(0, 0) is m,
        scalar.flatten().shape,
        v.ravel() is v,
        torch.ravel(v) is v,
        m.contiguous() is m,
        m.to(torch.float32) is m,
        m.float() is m,
        m.type(torch.float32) is m,
        m.type_as(m) is m,
        m.expand_as(m) is m,
        m.reshape(2, 3) is m,
        m.view(2, 3) is m,
        m.sum_to_size(2, 3) is m,
        torch.atleast_1d(v) is v,
        torch.atleast_2d(m) is m,
        torch.atleast_3d(m[None]).shape,
        m.resolve_conj() is m,
        m.resolve_neg() is m,
        torch.real(m) is m,
        m.real is m,
        torch.conj(m) is m,
        m.conj() is m,
        m.squeeze() is m,
        m.cpu() is m if m.device.type == "cpu" else True,
        torch.nn.functional.dropout(m, 0.5, training=False) is m,
        torch.nn.functional.dropout2d(x(1, 2, 2, 2), 0.5, training=False).shape,
        torch.nn.functional.alpha_dropout(m, 0.5, training=False) is m,
        torch.nn.functional.feature_alpha_dropout(m, 0.5, training=False) is m,
        torch.nn.Flatten(0)(v) is v,
        torch.nn.Identity()(v) is v,
        torch.einsum("ij", m) is m,
        torch.cartesian_prod(v) is v,
        torch.broadcast_tensors(m)[0] is m,
        torch.as_tensor(m) is m,
        torch.asarray(m) is m,
        torch.movedim(m, 0, 0) is m,
        m.repeat(1, 1) is m,
        m.tile(1, 1) is m,
        m.chunk(1)[0] is m,
        m.unflatten(0, (2,)) is m,
        torch.constant_pad_nd(m, (0, 0)) is m,
        torch.nn.functional.pad(m, (0, 0)) is m,
    )  # fmt: skip


@program
def writes_of_what_overlaps(torch, x, say):
    i = torch.tensor([0, 1])
    for name, call in {
        "scatter_": lambda a: a[:3].scatter_(0, i, a[1:4]),
        "scatter_add_": lambda a: a[:3].scatter_add_(0, i, a[1:4]),
        "gather": lambda a: torch.gather(a[:3], 0, i, out=a[1:3]),
        "index_add_": lambda a: a[:3].index_add_(0, i, a[1:3]),
        "index_copy_": lambda a: a[:3].index_copy_(0, i, a[1:3]),
        "masked_fill_": lambda a: a[:3].masked_fill_(a[:3] > 0.3, 1.0),
        "put_": lambda a: a[:3].put_(i, a[1:3]),
        "index_put_": lambda a: a[:3].index_put_((i,), a[1:3]),
        "take": lambda a: torch.take(a, i, out=a[1:3]),
        "index_select": lambda a: torch.index_select(a, 0, i, out=a[:2]),
        "masked_select": lambda a: torch.masked_select(a, a > 0.5, out=a[:2]),
        "addcmul_": lambda a: a[:3].addcmul_(a[1:4], a[:3]),
        "lerp_": lambda a: a[:3].lerp_(a[1:4], 0.5),
        "copy_": lambda a: a[:3].copy_(a[1:4]),
        "maximum": lambda a: torch.maximum(a[:3], a[1:4], out=a[2:5]),
        "where": lambda a: torch.where(a[:3] > 0.2, a[:3], a[1:4], out=a[2:5]),
        "stack": lambda a: torch.stack([a[:2], a[2:4]], out=a[2:6].view(2, 2)),
        "cat": lambda a: torch.cat([a[:2], a[1:3]], out=a[2:6]),
        "cat apart": lambda a: torch.cat([a[:2], a[1:3]], out=a[3:7]),
    }.items():
        a = x(7).clone()
        try:
            call(a)
        except RuntimeError:
            say(name, "refused")
        else:
            say(name, a)


@program
def cat_into_another_part_of_its_memory(torch, x, say):
    w = x(10, 2)
    say(torch.cat([w[:2], w[4:6]], out=w[6:10]), w)
    say(torch.stack([w[0], w[1]], out=w[4:6]), w)
    torch.cat([w[:2], w[5:7]], out=w[6:10])


# Memory formats


@program
def formats_that_are_there_already(torch, x, say):
    last = torch.channels_last
    permuted = x(2, 4, 5, 3).permute(0, 3, 1, 2)
    say(permuted.contiguous(memory_format=last) is permuted, permuted.is_contiguous(memory_format=last))
    say(permuted.to(memory_format=last) is permuted)
    plain = x(2, 3, 4, 5)
    say(plain.contiguous(memory_format=last) is plain, plain.to(memory_format=last) is plain)
    say(plain.to(memory_format=torch.preserve_format) is plain, plain.is_contiguous(memory_format=last))
    one = x(2, 1, 4, 5)
    say(one.is_contiguous(memory_format=last), one.is_contiguous(), one.contiguous(memory_format=last) is one)
    say(one.to(memory_format=last).stride(), one.contiguous(memory_format=last).stride())
    volume = x(1, 2, 2, 2, 2).to(memory_format=torch.channels_last_3d)
    say(volume.stride(), volume.is_contiguous(memory_format=torch.channels_last_3d))
    empty = torch.empty(2, 3, 4, 5, memory_format=last)
    say(empty.stride(), torch.empty_like(plain, memory_format=last).stride())
    attempts(
        say,
        lambda: x(2, 3).contiguous(memory_format=last),
        lambda: x(2, 3).to(memory_format=last),
        lambda: x(2, 3).is_contiguous(memory_format=last),
        lambda: plain.contiguous(memory_format=torch.preserve_format),
        lambda: torch.empty(2, 3, memory_format=last),
    )
    leaf = x(1, 2, 2, 2).clone().requires_grad_()
    (leaf.contiguous(memory_format=last) * x(1, 2, 2, 2)).sum().backward()
    say(leaf.grad, plain.clone(memory_format=last).stride(), plain.half().to(memory_format=last).stride())
    image = plain.contiguous(memory_format=last)
    conv = torch.nn.Conv2d(3, 2, 3)
    say(bool((conv(image) - conv(plain)).abs().max() < 1e-5), image._base is None, image.grad_fn)
    say(image[:, 1:].stride(), image.is_contiguous(), image.detach().stride(), image.contiguous().stride())
    say(image.permute(0, 2, 3, 1).is_contiguous(), image.requires_grad_().is_leaf)


@program
def channels_last_memory_is_in_that_order(torch, x, say):
    image = x(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)
    say(image, image.permute(0, 2, 3, 1).reshape(-1))
    shown = image.permute(0, 2, 3, 1).view(-1)
    shown.zero_()
    say(image)
    image = x(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)
    copy = image.view(1, 2, 2, 2).reshape(-1) if image.is_contiguous() else image.reshape(-1)
    copy.zero_()
    say(image, image.as_strided((8,), (1,)))
    same = x(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)
    attempts(say, lambda: same.view(8), lambda: same.view(1, 2, 4), lambda: same.flatten(2).stride())


@program
def copies_keep_strides_of_axes_of_one(torch, x, say):
    image = x(1, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    view = image[0][None]
    copies = (view.half(), view.clone(), torch.empty_like(view), torch.zeros_like(view), view * 2, view.to(torch.int32))
    say([copy.stride() for copy in copies])
    for mode in ("nearest", "bilinear", "bicubic"):
        say(torch.nn.functional.interpolate(view.float(), size=(3, 3), mode=mode).stride())
    say(torch.constant_pad_nd(image, [1, 2], 0.5).stride(), torch.constant_pad_nd(image, [1, 2], 0.5))
