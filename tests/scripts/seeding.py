"""Numbers for programs that are run under two libraries: drawn by Python's own generator, whose draws are the same."""

import random


def fill(module, seed=0, scale=0.1):
    """Gives every parameter of two axes and more small normal numbers, and zeros to biases; returns it."""
    import torch

    source = random.Random(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1 or "bias" not in name:
                parameter.fill_(1.0)
            else:
                parameter.zero_()
            if parameter.dim() > 1:
                values = [source.gauss(0, scale) for _ in range(parameter.numel())]
                parameter.copy_(torch.tensor(values).reshape(parameter.shape))
    return module


def normal(*shape, seed=0):
    """A tensor of normal numbers."""
    import torch

    source, count = random.Random(seed), 1
    for n in shape:
        count *= n
    return torch.tensor([source.gauss(0, 1) for _ in range(count)]).reshape(shape)
