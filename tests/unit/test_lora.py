"""Adapters: losses of peft, over quantised weights too; files with peft's names; merged models; the command."""

import json
from pathlib import Path
from typing import Any

import pytest

import pywebgpu
from pywebgpu.cli import finetune as command
from pywebgpu.io import gguf, safetensors
from pywebgpu.models import finetuning, lora
from pywebgpu.models.llama import Llama
from pywebgpu.models.lora import LoraConfig, LoraLinear
from pywebgpu.models.quantized import QuantizedLinear, quantize
from pywebgpu.tensor import create
from tests.cases import adapters as cases
from tests.cases import language_models, spelling

CONFIG = LoraConfig(**cases.ADAPTERS | {"target_modules": tuple(cases.ADAPTERS["target_modules"])})
IDS = create.tensor(language_models.IDS, device="cpu")


def _adapted(model: Llama, device: str = "cpu") -> Llama:
    """The model with the adapters of the table, none of which is 0."""
    lora.add(model, CONFIG)
    model.load_state_dict(spelling.tensors(cases.SHAPES, device), strict=False)
    return model


def _losses(model: Llama, n_steps: int, device: str = "cpu") -> list[float]:
    training = finetuning.Finetuning(model, learning_rate=cases.LEARNING_RATE, weight_decay=cases.WEIGHT_DECAY)
    tokens = create.tensor(cases.TOKENS, device=device)
    return [training.step(tokens).item() for _ in range(n_steps)]


def test_losses_are_those_of_peft(device: str) -> None:
    model = _adapted(spelling.model(device), device)
    before = {key: value.clone() for key, value in model.state_dict().items() if "lora_" not in key}
    losses = _losses(model, 20, device)
    assert max(abs(a - b) for a, b in zip(losses, cases.LOSSES, strict=True)) < 1e-3
    assert all(value.equal(model.state_dict()[key]) for key, value in before.items())
    assert {key for key, value in model.named_parameters() if value.grad is not None} == set(cases.SHAPES)


@pytest.mark.parametrize("format", ["q8_0", "q4_1"])
def test_quantised_weights_train_as_the_numbers_they_stand_for(format: str, device: str) -> None:
    quantised = quantize(spelling.model(device), format, skip=["lm_head", "model.embed_tokens"])
    plain = spelling.model(device)
    state = {f"{path}.weight": layer.weight for path, layer in quantised.named_modules() if _is_quantised(layer)}
    assert len(state) == 14
    plain.load_state_dict(state, strict=False)
    expected = _losses(_adapted(plain, device), 20, device)
    assert isinstance(quantised, Llama)
    losses = _losses(_adapted(quantised, device), 20, device)
    assert max(abs(a - b) for a, b in zip(losses, expected, strict=True)) < 1e-3


def _is_quantised(layer: object) -> bool:
    return isinstance(layer, QuantizedLinear)


def test_an_adapter_starts_without_effect() -> None:
    model = spelling.model()
    expected = model(IDS)
    lora.add(model, CONFIG)
    assert model(IDS).equal(expected)
    assert sum(value.numel() for value in model.parameters() if value.requires_grad) == sum(
        rows * columns for rows, columns in cases.SHAPES.values()
    )


def test_files_have_the_names_of_peft(tmp_path: Path) -> None:
    model = _adapted(spelling.model())
    expected = model(IDS)
    lora.save(model, CONFIG, tmp_path)
    assert set(safetensors.load_file(tmp_path / "adapter_model.safetensors")) == {
        f"base_model.model.{name}" for name in cases.SHAPES
    }
    again = spelling.model()
    assert lora.load(again, tmp_path) == CONFIG
    assert again(IDS).equal(expected)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"use_dora": True}, "use_dora is True"),
        ({"peft_type": "IA3"}, "peft_type is 'IA3'"),
        ({"bias": "all"}, "bias is 'all'"),
        ({"target_modules": "all-linear"}, "a list of names is needed"),
        ({"target_modules": ["q_proj"]}, "not those of this model"),
        ({"target_modules": ["c_attn"]}, "no linear layer is named c_attn"),
        ({"r": 2}, r"is \(4, 64\), needs \(2, 64\)"),
        ({"r": 0}, "needs r >= 1"),
    ],
)
def test_other_adapters_are_refused(facts: dict[str, Any], text: str, tmp_path: Path) -> None:
    lora.save(_adapted(spelling.model()), CONFIG, tmp_path)
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | facts), "utf-8")
    with pytest.raises(ValueError, match=text):
        lora.load(spelling.model(), tmp_path)


def test_removed_adapters_leave_the_model_as_it_was() -> None:
    model = spelling.model()
    names, expected = list(model.state_dict()), model(IDS)
    assert not _adapted(model)(IDS).equal(expected)
    lora.remove(model)
    assert list(model.state_dict()) == names
    assert model(IDS).equal(expected)


def test_adapters_are_added_once() -> None:
    with pytest.raises(ValueError, match="merge them first"):
        lora.add(_adapted(spelling.model()))


@pytest.mark.parametrize("is_quantised", [False, True])
def test_a_merged_model_does_the_same(is_quantised: bool) -> None:
    model = spelling.model()
    if is_quantised:
        quantize(model, "q8_0")
    expected = _adapted(model)(IDS)
    lora.merge(model)
    assert not any(isinstance(layer, LoraLinear) for layer in model.modules())
    assert (model(IDS) - expected).abs().max().item() < 1e-4


# Files of models


def test_a_gguf_file_is_written_back(tmp_path: Path) -> None:
    source = spelling.write(spelling.model(), tmp_path / "a.gguf")
    model = _adapted(Llama.from_file(source, "cpu"))
    expected = model(IDS)
    lora.save_gguf(model, source, tmp_path / "b.gguf")
    merged = gguf.File(tmp_path / "b.gguf")
    assert merged.metadata == source.metadata
    kept = [name for name in source.entries if not name.endswith(("attn_q.weight", "attn_v.weight", "ffn_down.weight"))]
    assert all(source.raw(name).equal(merged.raw(name)) for name in kept)
    assert {merged.entries[name].format.name for name in set(source.entries) - set(kept)} == {"q8_0"}
    logits, before = (Llama.from_file(file, "cpu")(IDS) for file in (merged, source))
    assert (logits - expected).abs().mean().item() < 0.02 * (before - expected).abs().mean().item()
    lora.save_gguf(model, source, tmp_path / "c.gguf", format=None)
    assert (Llama.from_file(tmp_path / "c.gguf", "cpu")(IDS) - expected).abs().max().item() < 1e-4


def test_rows_of_a_text_share_a_token() -> None:
    assert finetuning.rows(range(8), 3).tolist() == [[0, 1, 2, 3], [3, 4, 5, 6]]
    with pytest.raises(ValueError, match="the text has 3 tokens; a row needs 4"):
        finetuning.rows(range(3), 3)


def test_each_pass_takes_all_rows() -> None:
    training = finetuning.Finetuning(lora.add(spelling.model()), learning_rate=0.0)
    rows = create.tensor(cases.TOKENS, device="cpu")
    with pywebgpu.no_grad():
        expected = sorted(finetuning.loss(training.model, row[None]).item() for row in rows)
    losses = list(training.run(rows, 6))
    for part in (losses[:3], losses[3:]):
        assert sorted(part) == pytest.approx(expected, abs=1e-5)


def test_the_command_trains_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spelling.write(spelling.model(), tmp_path / "a.gguf")
    (tmp_path / "a.txt").write_text("the cat sat on the mat " * 9, "utf-8")
    files = ["--model", str(tmp_path / "a.gguf"), "--data", str(tmp_path / "a.txt"), "--out", str(tmp_path / "out")]
    sizes = ["--steps", "12", "--length", "16", "--batch", "2", "--rank", "2", "--learning-rate", "0.02"]
    options = [*files, *sizes, "--seed", "1", "--device", "cpu", "--merge", str(tmp_path / "b.gguf")]
    assert command.main(options) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["step", "1"], ["step", "10"], ["step", "12"]]
    losses = [float(line.split()[3]) for line in lines[:3]]
    assert losses[2] < losses[0] - 0.5
    ids = create.tensor([[*range(16)]], device="cpu")
    model, merged = Llama.from_file(tmp_path / "a.gguf", "cpu"), Llama.from_file(tmp_path / "b.gguf", "cpu")
    lora.load(model, tmp_path / "out", "cpu")
    assert (model(ids) - merged(ids)).abs().max().item() < 0.3
    assert command.main([*files, "--length", "1000"]) == 2
    assert "a row needs 1001" in capsys.readouterr().err
