"""The networks on pictures of the workloads, written against PyTorch's API: `torch` is pywebgpu or PyTorch.

ResNet-18 and MobileNetV2 as their papers have them for pictures of 224 x 224; for 32 x 32 they begin without the
strides that would leave nothing to see, as is usual there. A small vision transformer has 64 or 196 patches.
Source: He et al. 2015 (arXiv 1512.03385); Sandler et al. 2018 (arXiv 1801.04381); Dosovitskiy et al. 2020 (arXiv
2010.11929), with the mean of all patches for a class token, as Beyer et al. 2022 (arXiv 2205.01580).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.tensor.tensor import Tensor

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, stride
# Expansion, channels, repeats, stride; at 32 x 32 the second stage keeps its size.
BOTTLENECKS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def resnet18(torch: ModuleType, size: int, classes: int) -> object:
    """Pictures (batch, 3, size, size) -> scores (batch, classes)."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined,misc] # Which class that is, is known at run time.
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(outer)
            self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(outer)
            self.short = nn.Sequential()
            if stride != 1 or inner != outer:
                self.short = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

        def forward(self, x: Tensor) -> object:
            out = nn.functional.relu(self.first_norm(self.first(x)))
            return nn.functional.relu(self.second_norm(self.second(out)) + self.short(x))

    layers: list[Any] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    if size > 64:
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for outer, stride in STAGES:
        layers += [Block(inner, outer, stride), Block(outer, outer, 1)]
        inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, classes))


def mobilenet(torch: ModuleType, size: int, classes: int) -> object:
    """As resnet18: bottlenecks with depthwise convolutions."""
    nn = torch.nn

    def joined(inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1) -> list[Any]:
        conv = nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False)
        return [conv, nn.BatchNorm2d(outer), nn.ReLU6()]

    class Bottleneck(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, inner: int, outer: int, stride: int, expansion: int) -> None:
            super().__init__()
            wide = inner * expansion
            self.is_residual = stride == 1 and inner == outer
            wider = joined(inner, wide, 1) if expansion != 1 else []
            self.body = nn.Sequential(*wider, *joined(wide, wide, 3, stride, wide), *joined(wide, outer, 1)[:2])

        def forward(self, x: Tensor) -> object:
            return x + self.body(x) if self.is_residual else self.body(x)

    is_small = size <= 64
    layers: list[Any] = joined(3, 32, 3, 1 if is_small else 2)
    inner = 32
    for number, (expansion, outer, repeats, stride) in enumerate(BOTTLENECKS):
        for index in range(repeats):
            step = stride if index == 0 and not (is_small and number == 1) else 1
            layers.append(Bottleneck(inner, outer, step, expansion))
            inner = outer
    layers += joined(inner, 1280, 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, classes))


def vit(torch: ModuleType, size: int, classes: int) -> object:
    """As resnet18: six layers of 192 over patches of 4 x 4, or of 16 x 16."""
    nn = torch.nn
    width, patch = 192, 4 if size <= 64 else 16

    class Vit(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.position = nn.Embedding((size // patch) ** 2, width)
            layer = nn.TransformerEncoderLayer(
                width, 3, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, pictures: Tensor) -> object:
            x = self.patches(pictures).flatten(2).transpose(1, 2) + self.position.weight
            return self.head(self.norm(self.layers(x)).mean(1))

    return Vit()
