"""Low-rank adapters beside frozen layers, under the names that peft gives them in files.

y = base(x) + B A x * alpha / rank: A starts as a linear layer does, B at 0. The base may be quantised.
Source: Hu et al. 2021 (arXiv 2106.09685), Dettmers et al. 2023 (arXiv 2305.14314).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu.autograd import no_grad
from pywebgpu.io import gguf, safetensors
from pywebgpu.models import llama
from pywebgpu.models.quantized import QuantizedLinear
from pywebgpu.nn import init
from pywebgpu.nn.dropout import Dropout
from pywebgpu.nn.linear import Linear
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.support import atomic
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

PREFIX = "base_model.model."  # of peft's names
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """How adapters are made, under peft's names.

    r: their rank.  lora_alpha: what they add is multiplied by lora_alpha / r.  target_modules: last names of layers.
    """

    r: int = 8
    lora_alpha: float = 16
    target_modules: Sequence[str] = ("q_proj", "v_proj")
    lora_dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.r < 1 or not 0 <= self.lora_dropout < 1:
            raise ValueError(
                f"LoRA: r is {self.r} and lora_dropout {self.lora_dropout}; needs r >= 1, 0 <= dropout < 1"
            )


class LoraLinear(Module):
    """A linear layer that is frozen, and what an adapter adds to it."""

    def __init__(self, base_layer: Linear | QuantizedLinear, config: LoraConfig) -> None:
        super().__init__()
        device = next(iter(base_layer.state_dict().values())).device
        self.base_layer = base_layer.requires_grad_(False)
        self.lora_A = Linear(base_layer.in_features, config.r, bias=False, device=device)
        self.lora_B = Linear(config.r, base_layer.out_features, bias=False, device=device)
        self.lora_dropout = Dropout(config.lora_dropout)
        self.scaling = config.lora_alpha / config.r
        init.zeros_(self.lora_B.weight)

    def forward(self, x: Tensor) -> Tensor:
        base: Tensor = self.base_layer(x)
        change: Tensor = self.lora_B(self.lora_A(self.lora_dropout(x)))
        return base + change * self.scaling

    @no_grad()
    def merged_weight(self) -> Tensor:
        """The weight of one layer that does the same."""
        weight = self.base_layer.weight
        assert isinstance(weight, Tensor)
        return weight + self.lora_B.weight @ self.lora_A.weight * self.scaling


def add(model: Module, config: LoraConfig | None = None) -> Module:
    """Freezes a model and puts adapters beside its layers of the config's names. Returns the model.

    Raises: ValueError when there is no such layer, or when it has adapters already.
    """
    config = config or LoraConfig()
    if any(layers(model)):
        raise ValueError("LoRA: the model has adapters; merge them first")
    paths = [path for path, layer in model.named_modules() if _is_target(path, layer, config)]
    if not paths:
        raise ValueError(f"LoRA: no linear layer is named {' or '.join(config.target_modules)}")
    model.requires_grad_(False)
    for path in paths:
        base = model.get_submodule(path)
        assert isinstance(base, Linear | QuantizedLinear)
        model.set_submodule(path, LoraLinear(base, config).train(base.training))
    return model


def _is_target(path: str, layer: Module, config: LoraConfig) -> bool:
    return isinstance(layer, Linear | QuantizedLinear) and path.rpartition(".")[2] in config.target_modules


def layers(model: Module) -> Iterator[tuple[str, LoraLinear]]:
    """The layers with adapters, by name."""
    for path, layer in model.named_modules():
        if isinstance(layer, LoraLinear):
            yield path, layer


def parameters(model: Module) -> list[Parameter]:
    """What is trained."""
    return [part.weight for _, layer in layers(model) for part in (layer.lora_A, layer.lora_B)]


@no_grad()
def merge(model: Module) -> Module:
    """Replaces layers with adapters by linear layers that do the same. Returns the model."""
    for path, layer in list(layers(model)):
        weight, base = layer.merged_weight(), layer.base_layer
        merged = Linear(base.in_features, base.out_features, bias=base.bias is not None, device="meta")
        merged.weight, merged.bias = Parameter(weight, requires_grad=False), base.bias
        model.set_submodule(path, merged.train(layer.training))
    return model


def remove(model: Module) -> Module:
    """Puts the layers back that adapters stand beside. Returns the model, which stays frozen."""
    for path, layer in list(layers(model)):
        model.set_submodule(path, layer.base_layer)
    return model


# Files


def state_dict(model: Module) -> dict[str, Tensor]:
    """The adapters by peft's names."""
    return {
        f"{PREFIX}{path}.{name}.weight": part.weight.detach()
        for path, layer in layers(model)
        for name, part in (("lora_A", layer.lora_A), ("lora_B", layer.lora_B))
    }


def save(model: Module, config: LoraConfig, folder: str | os.PathLike[str]) -> None:
    """Writes the adapters to a folder from which peft loads them, too. Raises: OSError."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.save_file(state_dict(model), folder / WEIGHTS, {"format": "pt"})
    with atomic.replaced(folder / CONFIG, durable=True) as file:
        file.write(config_file(config).encode())


def config_file(config: LoraConfig) -> str:
    """What peft reads beside the weights, as JSON."""
    facts = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,
        "r": config.r,
        "lora_alpha": config.lora_alpha,
        "lora_dropout": config.lora_dropout,
        "target_modules": list(config.target_modules),
        "bias": "none",
        "inference_mode": True,
    }
    return json.dumps(facts, indent=2)


def load(model: Module, folder: str | os.PathLike[str], device: DeviceLike = None) -> LoraConfig:
    """Puts the adapters of a folder that `save` or peft wrote beside a model's layers; returns how they are made.

    Raises: SafetensorError for a damaged file; ValueError for adapters of another kind, or of another model.
    """
    folder = Path(folder)
    facts: dict[str, Any] = json.loads((folder / CONFIG).read_text("utf-8"))
    refused = {name: facts.get(name) for name in ("use_dora", "use_rslora", "alpha_pattern", "rank_pattern")}
    refused |= {"bias": facts.get("bias", "none") != "none", "peft_type": facts.get("peft_type") != "LORA"}
    for name, value in refused.items():
        if value:
            raise ValueError(f"{folder}: its {name} is {facts.get(name)!r}, which is not known here")
    targets = facts["target_modules"]
    if not isinstance(targets, list):
        raise ValueError(f"{folder}: its target_modules are {targets!r}; a list of names is needed")
    config = LoraConfig(facts["r"], facts["lora_alpha"], tuple(targets), facts.get("lora_dropout", 0.0))
    tensors = safetensors.load_file(folder / WEIGHTS, device)
    add(model, config)
    own = state_dict(model)
    if own.keys() != tensors.keys():
        different = sorted(own.keys() ^ tensors.keys())
        raise ValueError(f"{folder}: its adapters are not those of this model: {different[0]}")
    with no_grad():
        for name, value in own.items():
            if value.shape != tensors[name].shape:
                raise ValueError(f"{folder}: {name} is {tuple(tensors[name].shape)}, needs {tuple(value.shape)}")
            value.copy_(tensors[name])
    return config


def save_gguf(
    model: llama.Llama, source: gguf.File, filename: str | os.PathLike[str], *, format: str | None = "q8_0"
) -> None:
    """Writes the GGUF file that a model was read from, with its adapters merged.

    format: of the weights that changed, as steps of four bits are larger than most changes; None: float32.
    All else is as it was. Raises: OSError; ValueError for a format that the rows do not fit.
    """
    changed = {f"{path}.weight": layer for path, layer in layers(model)}
    architecture = source.metadata["general.architecture"]
    tensors: dict[str, Tensor | gguf.Stored] = {}
    formats: dict[str, str] = {}
    for name in source.entries:
        own = llama.name_of_gguf(name, architecture)
        if own is not None and own in changed:
            weight = changed[own].merged_weight().cpu()
            tensors[name] = llama.as_in_gguf(own, weight, architecture, model.config.head_dim)
            formats |= {} if format is None else {name: format}
        else:
            tensors[name] = source.stored(name, "cpu")
    gguf.save_file(tensors, filename, source.metadata, formats=formats, kinds=source.kinds)
