"""Layers whose weights stay quantised: against the numbers that their blocks stand for."""

from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.composites.quantized import FORMATS
from pywebgpu.io import block_formats, gguf
from pywebgpu.models.llama import Llama
from pywebgpu.models.quantized import Planes, QuantizedEmbedding, QuantizedLinear, quantize, quantized_layer

ROWS = (1, 2, 7, 40)


def _data(format: str, rows: int, columns: int) -> torch.Tensor:
    torch.manual_seed(rows)
    return block_formats.quantize(torch.randn(rows, columns, device="cpu"), block_formats.FORMATS[format])


def _close(value: torch.Tensor, expected: torch.Tensor, bound: float = 2e-6) -> None:
    scale = expected.abs().max().item()
    assert (value.cpu() - expected.cpu()).abs().max().item() <= bound * scale


@pytest.mark.parametrize("format", FORMATS)
def test_planes_are_the_blocks_numbers(format: str, device: str) -> None:
    data = _data(format, 7, 512)
    layer = QuantizedLinear(Planes.of_blocks(data, format).to(device))
    expected = block_formats.dequantize(data, block_formats.FORMATS[format])
    assert torch.equal(layer.weight.cpu(), expected)
    assert sum(plane.numel() * plane.element_size() for plane in layer.planes) == data.numel()


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("format", FORMATS)
def test_products_and_their_gradients_are_those_of_the_numbers(format: str, rows: int, device: str) -> None:
    data = _data(format, 37, 512)
    weight = block_formats.dequantize(data, block_formats.FORMATS[format])
    bias = torch.nn.Parameter(torch.randn(37, device=device))
    layer = QuantizedLinear(Planes.of_blocks(data, format).to(device), bias)
    x = torch.randn(rows, 512, device=device, requires_grad=True)
    y, factor = layer(x), torch.randn(rows, 37, device=device)
    (y * factor).sum().backward()
    x_expected = x.detach().cpu().requires_grad_()
    y_expected = x_expected @ weight.t() + bias.detach().cpu()
    (y_expected * factor.cpu()).sum().backward()
    _close(y, y_expected)
    _close(x.grad, x_expected.grad)
    _close(bias.grad, factor.sum(0))


@pytest.mark.parametrize("format", FORMATS)
def test_rows_are_looked_up(format: str, device: str) -> None:
    data = _data(format, 11, 256)
    layer = QuantizedEmbedding(Planes.of_blocks(data, format).to(device))
    ids = torch.tensor([[3, 10, 3], [0, 7, 1]], device=device)
    expected = block_formats.dequantize(data, block_formats.FORMATS[format])
    assert torch.equal(layer(ids).cpu(), expected[ids.cpu()])
    with pytest.raises(IndexError):
        layer(torch.tensor([11], device=device)).tolist()


def _model(device: str) -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20, 64), nn.Linear(64, 96), nn.SiLU(), nn.Linear(96, 64), nn.Linear(64, 20))
    model[4].weight = model[0].weight
    return model.to(device)


def test_a_model_is_quantised_and_its_shared_weights_stay_shared(device: str) -> None:
    model, ids = _model(device), torch.arange(6, device=device)
    before = model(ids)
    assert quantize(model, "q8_0", skip=["3"]) is model
    kinds = [type(layer).__name__ for layer in model]
    assert kinds == ["QuantizedEmbedding", "QuantizedLinear", "SiLU", "Linear", "QuantizedLinear"]
    assert model[0].codes is model[4].codes
    assert (model(ids) - before).abs().max().item() < 0.05 * before.abs().max().item()
    state = model.state_dict()
    other = quantize(_model(device), "q8_0", skip=["3"])
    other[1].codes.zero_()
    other.load_state_dict(state)
    assert torch.equal(other(ids), model(ids))


def test_adapters_beside_quantised_weights_are_trained(device: str) -> None:
    """Losses of LoRA over a quantised layer, and over the numbers that it stands for."""
    data = _data("q4_1", 16, 64)
    frozen = QuantizedLinear(Planes.of_blocks(data, "q4_1").to(device))
    weight = frozen.weight.detach()
    x, target = torch.randn(12, 64, device=device), torch.randn(12, 16, device=device)

    def losses(layer: Any) -> list[float]:
        torch.manual_seed(1)
        down, up = nn.Linear(64, 4, bias=False).to(device), nn.Linear(4, 16, bias=False).to(device)
        optimizer = torch.optim.AdamW([*down.parameters(), *up.parameters()], lr=0.01)
        values = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (layer(x + up(down(x)) @ weight) - target).square().mean()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
        return values

    assert losses(frozen) == pytest.approx(losses(lambda x: x @ weight.t()), rel=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="'q9' is not known; known are q4_0, q4_1"):
        quantize(_model("cpu"), "q9")
    with pytest.raises(ValueError, match="quantized_layer makes one"):
        quantize(nn.Linear(32, 32), "q8_0")
    with pytest.raises(ValueError, match=r"the layer's weight is \(4, 32\), the quantised one \(4, 64\)"):
        quantized_layer(nn.Linear(32, 4), Planes.of_blocks(_data("q8_0", 4, 64), "q8_0"))
    with pytest.raises(RuntimeError, match="the input has 5 features, the weight 64"):
        QuantizedLinear(Planes.of_blocks(_data("q8_0", 4, 64), "q8_0"))(torch.ones(2, 5, device="cpu"))


@pytest.mark.parametrize("format", ["q4_0", "q4_1", "q8_0"])
def test_a_files_weights_stay_as_they_are(format: str, tmp_path: Path, device: str) -> None:
    sizes = {"head_count": 4, "head_count_kv": 2, "layer_norm_rms_epsilon": 1e-5}
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 96,
        **{f"llama.attention.{name}": value for name, value in sizes.items()},
    }
    layer = {"attn_q": (64, 64), "attn_k": (32, 64), "attn_v": (32, 64), "attn_output": (64, 64)}
    layer |= {"ffn_gate": (96, 64), "ffn_up": (96, 64), "ffn_down": (64, 96)}
    shapes = {f"blk.{index}.{name}.weight": shape for index in range(2) for name, shape in layer.items()}
    shapes["token_embd.weight"] = (50, 64)
    torch.manual_seed(0)
    weights = {name: torch.randn(*shape, device="cpu") * 0.2 for name, shape in shapes.items()}
    norms = [f"blk.{index}.{name}.weight" for index in range(2) for name in ("attn_norm", "ffn_norm")]
    weights |= {name: torch.rand(64, device="cpu") + 0.5 for name in (*norms, "output_norm.weight")}
    path = tmp_path / "model.gguf"
    gguf.save_file(weights, path, metadata, formats=dict.fromkeys(shapes, format))
    model = Llama.from_file(path, device, quantized=True)
    stored = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
    entries = gguf.File(path).entries
    assert stored == sum(entries[name].end - entries[name].begin for name in shapes)
    ids = torch.tensor([[3, 14, 15, 9, 26]], device=device)
    _close(model(ids), Llama.from_file(path, device, quantized=False)(ids), 1e-5)


@pytest.mark.parametrize("format", FORMATS)
def test_planes_may_be_computed_by_the_kernel_that_reads_them(format: str, device: str) -> None:
    stored = Planes.of_blocks(_data(format, 5, 256), format)
    planes = Planes(format, {name: (plane.to(device) * 1).view(5, -1) for name, plane in stored.tensors.items()})
    x = torch.randn(2, 256, device=device)
    _close(QuantizedLinear(planes)(x), QuantizedLinear(stored)(x.cpu()))
