"""What is measured: programs against PyTorch's API, where `torch` is pywebgpu or PyTorch.

Weights and batches come from Python's own generator, so that both libraries start from equal numbers and may be held
against each other. Each workload trains on one batch, which lies on the device before the first step.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from pywebgpu.bench import gpt, vision

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.nn.module import Module
    from pywebgpu.tensor.tensor import Tensor

Step = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Data:
    """An array in plain Python: its shape, its values in order, whether they are whole numbers.

    Without values it is computed where it will be, by a formula.
    """

    shape: tuple[int, ...]
    values: list[Any]
    kind: Literal["float", "int"] = "float"


@dataclass(frozen=True, slots=True)
class Training:
    """`model(torch)`, trained on the inputs and targets that `batch()` gives, by `optimizer(torch, parameters)`.

    is_large: weights are computed where they will be, by a formula.
    precision: "float32", or the half of autocast; with "float16" the loss is scaled.
    """

    model: Callable[[Any], Any]
    batch: Callable[[], tuple[Data, Data]]
    optimizer: Callable[[Any, Any], Any]
    is_large: bool = False
    precision: str = "float32"

    def build(self, torch: ModuleType, device: str) -> Step:
        model = self.model(torch).to(device)
        (_fill_by_formula if self.is_large else _fill)(torch, model)
        inputs, targets = [_tensor(torch, device, data) for data in self.batch()]
        optimizer = self.optimizer(torch, model.parameters())

        if self.precision != "float32":
            return self._mixed(torch, model, inputs, targets, optimizer)

        def step() -> object:
            """The ordinary loop's body."""
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs).flatten(0, -2), targets)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    def _mixed(self, torch: ModuleType, model: Any, inputs: Tensor, targets: Tensor, optimizer: Any) -> Step:
        scaler = torch.amp.GradScaler(inputs.device.type, enabled=self.precision == "float16")
        dtype = getattr(torch, self.precision)

        def step() -> object:
            optimizer.zero_grad()
            with torch.autocast(inputs.device.type, dtype=dtype):
                loss = torch.nn.functional.cross_entropy(model(inputs).flatten(0, -2), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        return step

    def start(self, torch: ModuleType) -> dict[str, Data]:
        """The weights that a training begins with, by name."""
        parameters = self.model(torch).named_parameters()
        return {name: weight(name, tuple(parameter.shape)) for name, parameter in parameters}

    def as_data(self, torch: ModuleType) -> dict[str, Any]:
        """The first weights and the batch, as JSON has them: for other libraries."""
        with torch.device("null"):
            parameters = {name: asdict(data) for name, data in self.start(torch).items()}
        inputs, targets = self.batch()
        return {"parameters": parameters, "inputs": asdict(inputs), "targets": asdict(targets)}


@dataclass(frozen=True, slots=True)
class Workload:
    """`build(torch, device)` gives a function that does one step and returns its loss, or its result."""

    name: str
    text: str
    build: Callable[[Any, str], Step]
    training: Training | None = None


def _mlp() -> Training:
    def model(torch: ModuleType) -> object:
        nn = torch.nn
        return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))

    def batch() -> tuple[Data, Data]:
        return floats(64, 784), integers(10, 64)

    return Training(model, batch, lambda torch, parameters: torch.optim.SGD(parameters, lr=0.1))


def _cnn() -> Training:
    def model(torch: ModuleType) -> object:
        nn = torch.nn
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 10),
        )

    def batch() -> tuple[Data, Data]:
        return floats(32, 1, 28, 28), integers(10, 32)

    return Training(model, batch, lambda torch, parameters: torch.optim.SGD(parameters, lr=0.05))


def training_of(shape: gpt.Shape, *, is_large: bool = False) -> Training:
    """AdamW on a gpt."""

    def batch() -> tuple[Data, Data]:
        rows, length = shape.batch, shape.block + 1
        text = integers(shape.vocabulary, rows, length).values
        lines = [text[start : start + length] for start in range(0, rows * length, length)]
        inputs = [character for line in lines for character in line[:-1]]
        targets = [character for line in lines for character in line[1:]]
        return Data((rows, shape.block), inputs, "int"), Data((rows * shape.block,), targets, "int")

    return Training(
        lambda torch: gpt.model(torch, shape),
        batch,
        lambda torch, parameters: torch.optim.AdamW(parameters, lr=1e-3),
        is_large,
    )


def _matmul(torch: ModuleType, device: str) -> Step:
    a, b = [_tensor(torch, device, floats(1024, 1024, seed=seed)) for seed in (0, 1)]
    return lambda: a @ b


def _pointwise(torch: ModuleType, device: str) -> Step:
    x = torch.linspace(-2.0, 2.0, 4 << 20, device=device)

    def step() -> object:
        y = (x * 1.5 + 0.25).sin()
        y = (y * x - 0.5).tanh()
        return ((-y).exp() + 1.0).sqrt() / 3.0

    return step


def weight(name: str, shape: tuple[int, ...]) -> Data:
    """Weights that depend on their names only: small where they are matrices, else ones for scales and zeros."""
    if len(shape) == 1:
        return Data(shape, [float(name.endswith("weight"))] * shape[0])
    bound = prod(shape[1:]) ** -0.5
    draw = random.Random(name).random
    return Data(shape, [bound * (2.0 * draw() - 1.0) for _ in range(prod(shape))])


def floats(*shape: int, seed: int = 0) -> Data:
    draw = random.Random(seed).random
    return Data(shape, [2.0 * draw() - 1.0 for _ in range(prod(shape))])


def integers(bound: int, *shape: int) -> Data:
    draw = random.Random(0).randrange
    return Data(shape, [draw(bound) for _ in range(prod(shape))], "int")


def _tensor(torch: ModuleType, device: str, data: Data) -> Tensor:
    if not data.values:
        return _by_formula(torch, prod(data.shape), 0, device).reshape(data.shape).contiguous()
    dtype = torch.float32 if data.kind == "float" else torch.int64
    tensor: Tensor = torch.tensor(data.values, dtype=dtype, device=device).reshape(data.shape).contiguous()
    return tensor


def _fill(torch: ModuleType, model: Module) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            data = weight(name, tuple(parameter.shape))
            parameter.copy_(_tensor(torch, str(parameter.device), data))


def _by_formula(torch: ModuleType, count: int, seed: int, device: object) -> Tensor:
    n = torch.arange(count, device=device)
    drawn = ((n % 4099) * 53 + (n % 613) * 97 + 31 * seed) % 1009
    values: Tensor = drawn.float() / 504.0 - 1.0
    return values


def _fill_by_formula(torch: ModuleType, model: Module) -> None:
    """The same in every library, as it is of small whole numbers."""
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            if parameter.ndim == 1:  # Libraries agree on the scales of norms, which are ones.
                continue
            drawn = _by_formula(torch, parameter.numel(), index, parameter.device)
            parameter.copy_((drawn * prod(parameter.shape[1:]) ** -0.5).reshape(parameter.shape))
        for parameter in [bias for name, bias in model.named_parameters() if bias.ndim == 1 and name.endswith("bias")]:
            parameter.zero_()


def _trained(name: str, text: str, training: Training) -> Workload:
    return Workload(name, text, training.build, training)


_ALL = (
    _trained("mlp", "784-128-10, ReLU, batch 64, cross-entropy, SGD", _mlp()),
    _trained("gpt", "4 layers, 4 heads, width 128, block 64, batch 8, vocabulary 65, AdamW", training_of(gpt.Shape())),
    Workload("matmul", "1024 x 1024 by 1024 x 1024", _matmul),
    Workload("pointwise", "a chain of ten over 4 M elements", _pointwise),
    _trained("gpt1", "gpt with one layer of width 8", training_of(gpt.Shape(layers=1, width=8))),
    _trained("cnn", "conv 1-16, pool, conv 16-32, pool, dense; batch 32 on 28 x 28, SGD", _cnn()),
)
WORKLOADS = {workload.name: workload for workload in _ALL}


def distilgpt2(tokens: int) -> Workload:
    """A step of a model as large as DistilGPT-2, on one sequence. For a GPU: not among the WORKLOADS."""
    shape = gpt.Shape(
        layers=6, heads=12, width=768, block=tokens, batch=1, vocabulary=50257, positions=1024, is_tied=True
    )
    text = f"6 layers, 12 heads, width 768, vocabulary 50,257, {tokens} tokens, AdamW"
    return _trained("distilgpt2", text, training_of(shape, is_large=True))


def _pictures(name: str, model: Callable[..., object], size: int, batch: int) -> Workload:
    """A step of SGD with momentum on one batch of pictures: not among the WORKLOADS, either."""
    classes = 10 if size <= 64 else 1000

    def data() -> tuple[Data, Data]:
        return Data((batch, 3, size, size), []), integers(classes, batch)

    def optimizer(torch: ModuleType, parameters: object) -> object:
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)

    text = f"{size} x {size}, batch {batch}, {classes} classes, SGD with momentum"
    return _trained(name, text, Training(lambda torch: model(torch, size, classes), data, optimizer, is_large=True))


def _lstm() -> Training:
    vocabulary, length, batch = 65, 64, 32

    def model(torch: ModuleType) -> object:
        nn = torch.nn

        class Lstm(nn.Module):  # type: ignore[name-defined,misc] # Which class that is, is known at run time.
            def __init__(self) -> None:
                super().__init__()
                self.character = nn.Embedding(vocabulary, 256)
                self.layers = nn.LSTM(256, 256, 2, batch_first=True)
                self.head = nn.Linear(256, vocabulary)

            def forward(self, characters: Tensor) -> object:
                return self.head(self.layers(self.character(characters))[0])

        return Lstm()

    def data() -> tuple[Data, Data]:
        text = integers(vocabulary, batch, length + 1).values
        lines = [text[start : start + length + 1] for start in range(0, len(text), length + 1)]
        inputs, targets = ([token for line in lines for token in line[offset : offset + length]] for offset in (0, 1))
        return Data((batch, length), inputs, "int"), Data((batch * length,), targets, "int")

    return Training(model, data, lambda torch, parameters: torch.optim.AdamW(parameters, lr=1e-3), is_large=True)


_OTHERS = (
    _pictures("resnet18", vision.resnet18, 32, 128),
    _pictures("resnet18-224", vision.resnet18, 224, 32),
    _pictures("mobilenet", vision.mobilenet, 32, 128),
    _pictures("mobilenet-224", vision.mobilenet, 224, 32),
    _pictures("vit", vision.vit, 32, 128),
    _pictures("vit-224", vision.vit, 224, 32),
    _trained("lstm", "2 layers of 256, 64 characters, batch 32, vocabulary 65, AdamW", _lstm()),
)
LARGE: dict[str, Callable[[int], Workload]] = {"distilgpt2": distilgpt2}
LARGE |= {workload.name: lambda tokens, workload=workload: workload for workload in _OTHERS}  # type: ignore[misc]
TOKENS = 512  # of the large ones, where nobody says


def checked(name: str) -> str:
    """The name of a workload, as the type of a command's argument."""
    if name not in (names := (*WORKLOADS, *LARGE)):
        raise argparse.ArgumentTypeError(f"there is no workload {name!r}; there are {', '.join(names)}")
    return name


def named(name: str, tokens: int = TOKENS, precision: str = "float32") -> Workload:
    """A workload; `tokens` counts for the large ones, `precision` for those that train."""
    workload = WORKLOADS.get(name) or LARGE[name](tokens)
    if workload.training is None or precision == "float32":
        return workload
    training = replace(workload.training, precision=precision)
    return replace(workload, text=f"{workload.text}, {precision} autocast", build=training.build, training=training)
