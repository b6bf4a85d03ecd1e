"""Short programs about strides of results, where operands do not lie row by row; see programs.py."""

import copy

from tests.cases.programs import program
from tests.cases.programs_of_values import attempts

# What gives results in memory as its operand's, or row-major ones: by element, moved, joined, made alike, reduced.
METHODS = """
    neg exp relu sigmoid clone short half int contiguous isnan square erf floor abs sinc frac digamma logical_not
    nan_to_num deg2rad logit i0 triu detach sgn
"""
FUNCTIONALS = """
    gelu silu elu hardtanh mish leaky_relu softplus logsigmoid hardswish selu celu softsign tanhshrink hardshrink relu6
    dropout normalize
"""
FUNCTIONS = "zeros_like empty_like rand_like randn_like ones_like"
OF_ONE = {
    "add": lambda torch, v: v + 1,
    "radd": lambda torch, v: 2.0 - v,
    "double": lambda torch, v: v + v,
    "row": lambda torch, v: v * v[:1],
    "pow": lambda torch, v: v**2,
    "both": lambda torch, v: (v > 1) & (v < 3),
    "where": lambda torch, v: torch.where(v > 0, v, v),
    "lerp": lambda torch, v: v.lerp(v, 0.5),
    "addcmul": lambda torch, v: v.addcmul(v, v),
    "clamp": lambda torch, v: v.clamp(0, 3),
    "bound": lambda torch, v: v.clamp(min=v),
    "maximum": lambda torch, v: torch.maximum(v, v),
    "turned": lambda torch, v: v.transpose(0, 1) + 1,
    "moved": lambda torch, v: v.movedim(0, -1) * 1.5,
    "part": lambda torch, v: v[:, 1:] * 2,
    "steps": lambda torch, v: v[..., ::2] - 1,
    "expanded": lambda torch, v: v.unsqueeze(0).expand(2, *v.shape) + 1,
    "written": lambda torch, v: v.clone().add_(1),
    "softmax": lambda torch, v: v.softmax(1),
    "cumsum": lambda torch, v: v.cumsum(1),
    "flip": lambda torch, v: v.flip(1),
    "sort": lambda torch, v: v.sort(1)[0],
    "argsort": lambda torch, v: v.argsort(1),
    "roll": lambda torch, v: v.roll(1, 1),
    "diff": lambda torch, v: v.diff(dim=1),
    "sum": lambda torch, v: v.sum(1, keepdim=True),
    "cat": lambda torch, v: torch.cat([v, v]),
    "glu": lambda torch, v: torch.nn.functional.glu(torch.cat([v, v]), 0),
    "pad": lambda torch, v: torch.nn.functional.pad(v, (1, 1)),
    "full_like": lambda torch, v: torch.full_like(v, 2.0),
    "dtype_like": lambda torch, v: torch.ones_like(v, dtype=torch.int32),
    "to": lambda torch, v: v.to(memory_format=torch.contiguous_format),
    "cloned": lambda torch, v: v.clone(memory_format=torch.contiguous_format),
    "preserved": lambda torch, v: v.clone(memory_format=torch.preserve_format),
    "copied": lambda torch, v: copy.deepcopy(v),
    "parameter": lambda torch, v: torch.nn.Parameter(v),
    "masked_fill": lambda torch, v: v.masked_fill(v > 1, 0.0),
    "scatter": lambda torch, v: v.scatter(0, torch.zeros_like(v).long(), 1.0),
    "rows": lambda torch, v: v[torch.tensor([1, 0])],
    "columns": lambda torch, v: v[:, torch.tensor([1, 0, 1])],
    "pairs": lambda torch, v: v[torch.tensor([[1, 0]]), torch.tensor([[0, 1]])],
    "put": lambda torch, v: v.put(torch.tensor([0, 1]), v.new_ones(2)),
    "index_put": lambda torch, v: v.index_put((torch.tensor([0, 1]),), v.new_ones(())),
    "nonzero": lambda torch, v: v.nonzero(),
    "view_copy": lambda torch, v: torch.transpose_copy(v, 0, 1),
    "doubled": lambda torch, v: v.half(memory_format=torch.contiguous_format),
    "gather": lambda torch, v: v.gather(0, torch.zeros_like(v).long()),
}
OF_PICTURES = {
    "bicubic": lambda F, v: F.interpolate(v, scale_factor=2, mode="bicubic"),
    "antialias": lambda F, v: F.interpolate(v, scale_factor=0.5, mode="bilinear", antialias=True),
    "max_pool": lambda F, v: F.max_pool2d(v, 2),
    "indices": lambda F, v: F.max_pool2d(v, 2, return_indices=True)[1],
    "avg_pool": lambda F, v: F.avg_pool2d(v, 2),
    "adaptive": lambda F, v: F.adaptive_avg_pool2d(v, 2),
    "adaptive_max": lambda F, v: F.adaptive_max_pool2d(v, 2),
    "lp_pool": lambda F, v: F.lp_pool2d(v, 2, 2),
    "group_norm": lambda F, v: F.group_norm(v, 3),
    "instance_norm": lambda F, v: F.instance_norm(v),
    "response_norm": lambda F, v: F.local_response_norm(v, 2),
    "batch_norm": lambda F, v: F.batch_norm(v, None, None, training=True),
    "nearest": lambda F, v: F.interpolate(v, scale_factor=2),
    "bilinear": lambda F, v: F.interpolate(v, scale_factor=2, mode="bilinear"),
    "replicate": lambda F, v: F.pad(v, (1, 1, 1, 1), mode="replicate"),
    "shuffled": lambda F, v: F.channel_shuffle(v, 3),
    "dropout2d": lambda F, v: F.dropout2d(v),
    "unfold": lambda F, v: F.unfold(v, 2),
    "mse": lambda F, v: F.mse_loss(v, v, reduction="none"),
}


def of_each(say, torch, value):
    """Says the strides of each of the results, by name."""
    for names, space in ((METHODS, torch.Tensor), (FUNCTIONALS, torch.nn.functional), (FUNCTIONS, torch)):
        for name in names.split():
            say(name, getattr(space, name)(value).stride())
    for name, function in OF_ONE.items():
        say(name, function(torch, value).stride())


@program
def results_of_a_transposed_matrix(torch, x, say):
    of_each(say, torch, x(3, 4).t())


@program
def results_of_permuted_axes(torch, x, say):
    of_each(say, torch, x(2, 3, 4, 5).permute(3, 1, 0, 2))


@program
def results_of_channels_last(torch, x, say):
    of_each(say, torch, x(2, 3, 4, 5).contiguous(memory_format=torch.channels_last))


@program
def results_of_one_channel(torch, x, say):
    of_each(say, torch, x(2, 1, 4, 5).contiguous(memory_format=torch.channels_last))


@program
def results_of_expanded_axes(torch, x, say):
    of_each(say, torch, x(3, 1).expand(3, 4))


@program
def operands_of_several_layouts(torch, x, say):
    image, plain = x(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), x(2, 3, 4, 5)
    say((image + plain).stride(), (plain + image).stride(), torch.cat([image, plain], 1).stride())
    turned = x(3, 4).t()
    say((turned + turned.contiguous()).stride(), (turned.contiguous() + turned).stride())
    say((turned + torch.arange(4.0)[:, None]).stride(), (turned[1:] * 2).stride(), (turned @ turned.t()).t().stride())
    volume = x(1, 2, 2, 3, 4).to(memory_format=torch.channels_last_3d)
    say((volume * 2).stride(), volume.relu().is_contiguous(memory_format=torch.channels_last_3d))
    say(torch.nn.functional.max_pool3d(volume[0], 2).stride(), torch.nn.functional.avg_pool3d(volume[0], 2).stride())
    say(torch.complex(turned, turned).stride(), torch.view_as_real(torch.complex(turned, turned)).stride())


@program
def layers_of_pictures(torch, x, say):
    image = x(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    for name, function in OF_PICTURES.items():
        say(name, function(torch.nn.functional, image).stride())
    for weight in (x(6, 3, 3, 3), x(6, 3, 3, 3).contiguous(memory_format=torch.channels_last)):
        for value in (image, x(2, 3, 4, 5)):
            say(torch.nn.functional.conv2d(value, weight).stride())
            say(torch.nn.functional.conv_transpose2d(value, weight[:3]).stride())
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
    )
    model = model.to(memory_format=torch.channels_last)
    say(model[0].weight.stride(), model[0].bias.stride(), model(x(2, 3, 6, 6)).stride())
    say(model[0].weight.is_leaf, model[0].weight.is_contiguous(), model.half()[0].weight.stride())


@program
def a_result_shows_its_memory_in_that_order(torch, x, say):
    turned = x(3, 4).t() + 0
    say(turned, turned.as_strided((12,), (1,)), turned.t().view(12), turned.t().is_contiguous())
    attempts(say, lambda: turned.view(12), lambda: turned.view(2, 2, 3).stride())
    turned.t().view(12)[2:4] = 0
    turned[0, 0] = 9
    say(turned, turned[1:].data_ptr() - turned.data_ptr(), turned.contiguous().stride())
    image = x(1, 2, 2, 2).contiguous(memory_format=torch.channels_last) * 1
    image.permute(0, 2, 3, 1).reshape(-1)[:3] = 0
    image.add_(1)
    say(image, image.as_strided((8,), (1,)), image.flatten(), image[0, 1].storage_offset())
    resized = x(2, 3).t() + 0
    say(resized.resize_(6), resized.resize_(2, 2))


@program
def gradients_flow_through_results_of_other_layouts(torch, x, say):
    leaf = x(3, 4).requires_grad_()
    turned = (leaf.t() * 2).exp()
    turned.retain_grad()
    (turned + 1)[1:].pow(2).sum().backward()
    say(leaf.grad, turned.grad, type(turned.grad_fn).__name__, turned.grad.stride())


@program
def strides_of_factors(torch, x, say):
    a = x(2, 3, 3) + 2 * torch.eye(3)
    a = a @ a.mT
    b = x(2, 3, 4)
    for name in ["cholesky", "inv", "eigh", "qr", "lu_factor", "inv_ex", "cholesky_ex", "ldl_factor"]:
        found = getattr(torch.linalg, name)(a)
        say([part.stride() for part in (found if isinstance(found, tuple) else (found,))])
    say(torch.linalg.solve(a, b).stride(), torch.linalg.solve_triangular(a.triu(), b, upper=True).stride())
    say(torch.linalg.lstsq(a, b).solution.stride(), torch.geqrf(a)[0].stride())


@program
def gradients_lie_as_their_leaves_do(torch, x, say):
    for shape, steps in (((2, 3, 4), (1, 8, 2)), ((2, 3), (1, 2)), ((2, 3), (6, 2)), ((2, 3), (1, 4)), ((4,), (2,))):
        leaf = torch.empty_strided(shape, steps).fill_(1.0).requires_grad_()
        (leaf * 2).sum().backward()
        say(leaf.grad.stride())
        (leaf * leaf).sum().backward()
        say(leaf.grad.stride(), leaf.grad)
    image = x(2, 3, 8, 8).contiguous(memory_format=torch.channels_last).requires_grad_()
    torch.nn.functional.interpolate(image, scale_factor=0.5, mode="bilinear").sum().backward()
    say(image.grad.is_contiguous(memory_format=torch.channels_last), image.grad.sum())
