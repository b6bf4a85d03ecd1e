"""Short programs about what calls take, and what modules hold: names, shapes, NumPy; see programs.py."""

from tests.cases.programs import program
from tests.cases.programs_of_values import attempts


@program
def shapes_are_sizes_where_lists_are_data(torch, x, say):
    a = x(2, 3)
    say(
        tuple(a.new(a.shape).shape),
        tuple(a.new(torch.Size([2, 3])).shape),
        tuple(torch.Tensor(torch.Size([2, 3])).shape),
        tuple(torch.Tensor(a.shape).shape),
        tuple(torch.FloatTensor(a.shape).shape),
        torch.Tensor([2, 3]),
        torch.Tensor((2, 3)),
        a.new([2, 3]),
        a.new((2, 3)),
        tuple(a.new(2, 3).shape),
        tuple(a.new(torch.Size([])).shape),
        tuple(torch.Tensor(torch.Size([])).shape),
        torch.tensor(a.shape),
        a.new_tensor(a.shape),
        torch.as_tensor(a.shape),
        tuple(a.new().shape),
        tuple(torch.IntTensor(a.shape).shape),
        tuple(torch.LongTensor(torch.Size([1, 2])).shape),
    )


@program
def numpys_names_of_arguments(torch, x, say):
    a, b = x(2, 3), x(2, 3) + 1
    say(torch.exp(x=a, out=torch.empty(0)))
    attempts(
        say,
        lambda: torch.exp(x=a),
        lambda: torch.add(x1=a, x2=b),
        lambda: torch.add(x1=a, other=b),
        lambda: torch.sub(input=a, x2=b),
        lambda: torch.mul(x1=a, x2=2),
        lambda: torch.div(x1=a, x2=b),
        lambda: torch.maximum(x1=a, x2=b),
        lambda: torch.pow(x1=a, x2=2),
        lambda: torch.eq(x1=a, x2=b),
        lambda: torch.atan2(x1=a, x2=b),
        lambda: torch.matmul(x1=a, x2=b.t()),
        lambda: torch.logical_and(x1=a > 1, x2=b > 1),
        lambda: torch.fmod(x1=a, x2=b),
        lambda: torch.sum(a=a),
        lambda: torch.sum(x=a, axis=1),
        lambda: torch.mean(x=a, axis=0, keepdims=True),
        lambda: torch.prod(x=a, axis=0),
        lambda: torch.std(x=a, axis=0),
        lambda: torch.var(a, axis=0),
        lambda: torch.argmax(x=a, axis=0),
        lambda: torch.cumsum(x=a, axis=1),
        lambda: torch.flip(x=a, dims=(0,)),
        lambda: torch.roll(x=a, shifts=1, axis=0),
        lambda: torch.squeeze(x=a[None], axis=0),
        lambda: torch.unsqueeze(x=a, axis=0),
        lambda: torch.clamp(x=a, min=1),
        lambda: torch.where(condition=a > 1, x=a, y=b),
        lambda: torch.where(a > 1, x1=a, x2=b),
        lambda: torch.sqrt(a=a),
        lambda: torch.sigmoid(x=a),
        lambda: torch.softmax(a, axis=0),
        lambda: torch.softmax(x=a, dim=0),
        lambda: torch.sort(a, axis=0)[0],
        lambda: torch.cat((a, b), axis=1),
        lambda: torch.stack((a, b), axis=1),
        lambda: torch.concat((a, b), axis=1),
        lambda: torch.tile(x=a, dims=(2,)),
        lambda: torch.diagonal(x=a),
        lambda: torch.reshape(x=a, shape=(3, 2)),
        lambda: torch.add(a, x2=b),
        lambda: torch.exp(a=a),
        lambda: torch.exp(y=a),
        lambda: torch.exp(a, x=a),
        lambda: torch.exp(),
        lambda: torch.add(x2=b),
        lambda: torch.any(x=a > 1, axis=0),
        lambda: torch.nn.functional.relu(x=a),
        lambda: torch.special.expit(x=a),
        lambda: torch.linalg.norm(x=a, axis=0),
        lambda: torch.linalg.vector_norm(a, axis=0),
        lambda: torch.linalg.norm(a, axis=0),
        lambda: torch.amax(a, axis=1),
        lambda: torch.isnan(x=a),
        lambda: torch.count_nonzero(x=a, axis=0),
        lambda: torch.nansum(x=a, axis=0),
    )


@program
def axes_of_fourier_transforms(torch, x, say):
    a = x(4, 4)
    attempts(
        say,
        *(
            lambda name=name: getattr(torch.fft, name)(a, axis=0).abs()
            for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        ),
        *(
            lambda name=name: getattr(torch.fft, name)(a, axes=(0,)).abs()
            for name in ("fftn", "ifftn", "rfftn", "irfftn", "fftshift", "ifftshift", "fft2", "rfft2")
        ),
        *(
            lambda name=name: getattr(torch.fft, name)(a, axis=(0,)).abs()
            for name in (
                "fftn",
                "ifftn",
                "rfftn",
                "irfftn",
                "hfftn",
                "ihfftn",
                "fftshift",
                "ifftshift",
                "ifft2",
                "irfft2",
            )
        ),
        lambda: torch.fft.fft2(a, axis=(0, 1)).abs(),
        lambda: torch.fft.fft(x=a, axis=1).abs(),
        lambda: torch.fft.fft(a=a).abs(),
        lambda: torch.fft.fft(input=a, dim=1).abs(),
    )


@program
def modules_by_attribute(torch, x, say):
    modules = torch.nn.modules
    say(
        *(
            getattr(getattr(modules, file), name).__name__
            for file, name in {
                "activation": "ReLU", "adaptive": "AdaptiveLogSoftmaxWithLoss", "batchnorm": "BatchNorm2d",
                "channelshuffle": "ChannelShuffle", "container": "ModuleList", "conv": "Conv2d", "distance":
                "PairwiseDistance", "dropout": "Dropout", "flatten": "Flatten", "fold": "Fold", "instancenorm":
                "InstanceNorm2d", "lazy": "LazyModuleMixin", "linear": "Linear", "loss": "MSELoss", "module": "Module",
                "normalization": "LayerNorm", "padding": "ZeroPad2d", "pixelshuffle": "PixelShuffle", "pooling":
                "MaxPool2d", "rnn": "GRU", "sparse": "Embedding", "transformer": "Transformer", "upsampling":
                "Upsample",
            }.items()
        )
    )  # fmt: skip
    say(modules.rnn.GRU is torch.nn.GRU, modules.sparse.Embedding is torch.nn.Embedding)
    say(modules.sparse is torch.sparse, modules.utils._pair(3), modules.Linear is torch.nn.Linear)


@program
def functions_are_pickled(torch, x, say):
    import copy
    import pickle

    for name in (
        "tanh", "add", "cat", "relu", "sum", "where", "zeros", "arange", "einsum", "nn.functional.relu",
        "nn.functional.softmax", "nn.functional.cross_entropy", "nn.functional.linear", "linalg.norm", "fft.fft",
        "special.expit", "Tensor", "float32", "strided", "channels_last", "nn.init.zeros_", "Size", "device",
        "nn.functional.scaled_dot_product_attention", "matmul", "bmm", "stack", "rand", "randn",
        "mean", "nn.functional.silu", "nn.functional.gelu", "logsumexp", "linalg.svd", "masked_select", "lerp",
        "special.erf", "nn.functional.conv2d", "nn.functional.dropout", "exp", "sin",
    ):  # fmt: skip
        found = torch
        for part in name.split("."):
            found = getattr(found, part)
        say(name, pickle.loads(pickle.dumps(found)) == found, copy.deepcopy(found) is found)


@program
def patched_methods_of_pruning_come_back(torch, x, say):
    from unittest import mock

    prune = __import__(f"{torch.__name__}.nn.utils.prune", fromlist=["L1Unstructured"])
    before = prune.L1Unstructured
    method = before.compute_mask
    name = f"{torch.__name__}.nn.utils.prune.L1Unstructured.compute_mask"
    with mock.patch(name, lambda self, t, default_mask: default_mask * 0):
        say(prune.L1Unstructured is before, prune.L1Unstructured(1).compute_mask(x(3), torch.ones(3)))
    say(prune.L1Unstructured is before, before.compute_mask is method)
    with mock.patch(f"{torch.__name__}.nn.functional.relu", lambda a: a * 7):
        say(torch.nn.functional.relu(x(2)), torch.nn.ReLU()(x(2)))
    say(torch.nn.functional.relu(x(2)), torch.nn.ReLU()(x(2)))
    with mock.patch(f"{torch.__name__}.optim.SGD.step", lambda self: say(type(self).__name__)):
        torch.optim.SGD([torch.nn.Parameter(x(1))], lr=0.1).step()
    with mock.patch(f"{torch.__name__}.linalg.norm", lambda a: a * 5):
        say(torch.linalg.norm(x(2)))
    say(torch.linalg.norm(x(2)))
    with mock.patch(f"{torch.__name__}.nn.Linear.forward", lambda self, a: a):
        say(torch.nn.Linear(2, 3)(x(2)))


@program
def arrays_and_tensors_together(torch, x, say):
    import numpy as np

    a, t = np.ones((2, 3), np.float32), (x(2, 3)).cpu()
    for call in (
        lambda: np.add(a, t), lambda: np.add(t, a), lambda: np.multiply(t, t), lambda: t + a,
        lambda: t - a, lambda: np.exp(t), lambda: np.sum(t), lambda: np.mean(t),
        lambda: np.matmul(a, t.t()), lambda: a @ t.t().numpy(), lambda: np.sqrt(t),
        lambda: np.float32(2) * t, lambda: t * np.float32(2), lambda: np.float64(2) * t, lambda: np.add(2, t),
        lambda: np.maximum(a, t), lambda: np.stack([t, t]), lambda: np.concatenate([a, t]), lambda: np.add.reduce(t),
        lambda: np.greater(t, a), lambda: np.clip(t, 0, 1), lambda: np.abs(t), lambda: np.isnan(t), lambda: np.array(t),
        lambda: np.int64(3) + t, lambda: np.power(t, 2), lambda: np.argmax(t),
        lambda: np.add(t, t, out=np.zeros((2, 3), np.float32)),
        lambda: np.asarray(t), lambda: np.dot(a, t.t()), lambda: np.where(t > 1, t, a), lambda: np.round(t),
        lambda: np.sin(t[0, 0]), lambda: np.add(a, t.double()), lambda: t.__array_wrap__(a), lambda: np.floor(t),
        lambda: np.prod(t), lambda: np.all(t), lambda: np.any(t), lambda: np.cumsum(t), lambda: np.std(t),
        lambda: np.bool_(True) & (t > 1), lambda: np.transpose(t), lambda: np.reshape(t, (3, 2)),
        lambda: np.squeeze(t[None]),
    ):  # fmt: skip
        try:
            found = call()
        except Exception as error:
            say(error)
        else:
            plain = found.tolist()
            kind = (
                "Tensor" if isinstance(found, torch.Tensor) else "array" if isinstance(found, np.ndarray) else "number"
            )
            say(kind, plain, str(found.dtype).removeprefix("torch.") if kind != "number" else "")
