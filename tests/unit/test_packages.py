"""Modules of compiled packages that Pyodide has not: what of them is Python, against the packages themselves."""

import copy
import importlib
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch as theirs
import torch

import pywebgpu
from pywebgpu import packages
from pywebgpu.packages import psutil, threads
from pywebgpu.packages.safetensors import numpy as arrays
from pywebgpu.packages.safetensors import safe_open
from pywebgpu.packages.safetensors import torch as ours
from pywebgpu.packages.tokenizers import Encoding, Tokenizer, backend, models, processors, tokenizer, trainers
from pywebgpu.packages.tokenizers.tokenizer import AddedToken
from pywebgpu.support import lazy

FILE = {
    "version": "1.0",
    "truncation": {"direction": "Right", "max_length": 6, "strategy": "LongestFirst", "stride": 1},
    "padding": {
        "strategy": {"Fixed": 8}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "[PAD]",
    },
    "added_tokens": [
        {"id": 0, "content": "[PAD]", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True},
    ],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
    },
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "model": {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
        "vocab": {"[PAD]": 0, "a": 1, "[CLS]": 2, "b": 3, "ab": 4}, "merges": [["a", "b"]],
    },
}  # fmt: skip


@pytest.fixture
def finder() -> Iterator[None]:
    before = sys.meta_path[:]
    packages.install()
    yield
    sys.meta_path[:] = before


def test_what_is_installed_is_imported_and_the_rest_is_here(finder: None) -> None:
    assert theirs.__file__ == importlib.import_module("safetensors.torch").__file__
    spec = importlib.util.find_spec("tokenizers")
    if spec is not None and isinstance(spec.loader, lazy.AliasLoader):  # No environment of these tests has it.
        assert importlib.import_module("tokenizers.models") is models
        assert importlib.metadata.version("tokenizers") == packages.VERSIONS["tokenizers"]
    assert importlib.util.find_spec("safetensors.no_such_module") is None


def test_files_are_read_by_the_package_and_back(tmp_path: Path) -> None:
    values = {
        "a": pywebgpu.arange(6.0, device="cpu").reshape(2, 3),
        "b": pywebgpu.ones(2, dtype=pywebgpu.bool, device="cpu"),
    }
    ours.save_file(values, tmp_path / "a.safetensors", {"format": "pt"})
    loaded = theirs.load_file(tmp_path / "a.safetensors")
    assert loaded["a"].tolist() == values["a"].tolist()
    assert loaded["b"].dtype is torch.bool
    theirs.save_file(loaded, tmp_path / "b.safetensors", {"k": "v"})
    with safe_open(tmp_path / "b.safetensors", "pt", "cpu") as file:
        assert (file.keys(), file.metadata(), file.get_slice("a").get_shape()) == (["a", "b"], {"k": "v"}, [2, 3])
        assert file.get_slice("a")[1:, 0].tolist() == [3]
        with pytest.raises(ours.files.SafetensorError, match="does not contain tensor c"):
            file.get_tensor("c")
    arrays.save_file({"x": np.arange(3, dtype=np.int16)}, tmp_path / "c.safetensors")
    assert theirs.load_file(tmp_path / "c.safetensors")["x"].tolist() == [0, 1, 2]
    assert arrays.load((tmp_path / "b.safetensors").read_bytes())["a"].tolist() == values["a"].tolist()


def test_names_that_share_memory_are_stored_once(tmp_path: Path) -> None:
    def tied(library: Any) -> Any:
        model = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Linear(2, 2), library.nn.Linear(2, 2))
        model[2].weight = model[0].weight
        return model

    model = tied(pywebgpu).to("cpu")
    ours.save_model(model, tmp_path / "a.safetensors")
    theirs.save_model(tied(torch), tmp_path / "b.safetensors")
    names = [sorted(theirs.load_file(tmp_path / name)) for name in ("a.safetensors", "b.safetensors")]
    assert names[0] == names[1]
    assert ours.load_model(tied(pywebgpu).to("cpu"), tmp_path / "b.safetensors") == (set(), [])
    with pytest.raises(RuntimeError, match="Missing key"):
        ours.load_model(
            pywebgpu.nn.Sequential(pywebgpu.nn.Linear(2, 2), pywebgpu.nn.Tanh(), pywebgpu.nn.Linear(2, 2)),
            tmp_path / "a.safetensors",
        )
    with pytest.raises(RuntimeError, match="share memory"):
        ours.save_file(dict(model.state_dict()), tmp_path / "c.safetensors")
    base = pywebgpu.arange(8.0, device="cpu")
    ours.save_file({"a": base[:4], "b": base[4:]}, tmp_path / "d.safetensors")  # Parts that do not overlap.
    for wrong in (base.reshape(2, 4).T, [1]):
        with pytest.raises(ValueError, match=r"contiguous|expected torch"):
            ours.save({"a": wrong})  # type: ignore[dict-item]


def test_a_file_of_a_tokenizer_is_what_was_read() -> None:
    tokenizer = Tokenizer.from_str(json.dumps(FILE))
    assert json.loads(tokenizer.to_str()) == FILE
    assert json.loads(copy.deepcopy(tokenizer).to_str()) == FILE
    tokenizer.pre_tokenizer.add_prefix_space = True
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 9), ("[CLS]", 2))
    assert json.loads(tokenizer.to_str())["pre_tokenizer"]["add_prefix_space"] is True
    assert tokenizer.num_special_tokens_to_add(is_pair=True) == 3
    assert (tokenizer.truncation, tokenizer.padding) == (
        {"max_length": 6, "stride": 1, "strategy": "longest_first", "direction": "right"},
        {"length": 8, "pad_to_multiple_of": None, "pad_id": 0, "pad_token": "[PAD]", "pad_type_id": 0,
         "direction": "left"},
    )  # fmt: skip


def test_tokens_that_are_added_get_the_next_numbers() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    assert tokenizer.add_special_tokens(["<s>", "a"]) == 2
    assert tokenizer.add_tokens(["<s>", AddedToken("c", lstrip=True), ""]) == 2
    assert tokenizer.get_vocab() == {"a": 0, "b": 1, "<s>": 2, "c": 3}
    assert (tokenizer.get_vocab_size(), tokenizer.get_vocab_size(with_added_tokens=False)) == (4, 2)
    assert (tokenizer.id_to_token(3), tokenizer.token_to_id("d"), tokenizer.get_added_tokens_decoder()[3].lstrip) == (
        "c",
        None,
        True,
    )


@pytest.mark.parametrize(
    ("lengths", "options", "wanted"),
    [
        ((9,), {}, ["A", 3, [3, 3]]),
        ((9,), {"stride": 1}, ["A", 3, [3, 3, 3]]),
        ((9, 2), {}, ["AB", 1, [1] * 17]),
        ((2, 9), {"strategy": "only_second", "max_length": 7}, ["AB", 2, [2, 2, 2, 1]]),
    ],
)
def test_what_is_too_long_is_cut(lengths: tuple[int, ...], options: dict[str, Any], wanted: list[Any]) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 9), ("[CLS]", 2))
    tokenizer.enable_truncation(**{"max_length": 5, **options})
    rows = [([1] * length, ["a"] * length, [None] * length) for length in lengths]
    encoding = tokenizer._around(rows, add_special_tokens=True)
    last = [number for number in encoding.sequence_ids if number is not None].count(len(lengths) - 1)
    assert ["AB"[: len(lengths)], last, [len(part) - len(encoding) + last for part in encoding.overflowing]] == wanted
    assert len(encoding) <= tokenizer.truncation["max_length"]  # type: ignore[index]


def test_pairs_are_joined_by_how_often_they_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    class Spaces:
        def words(self, texts: list[str]) -> list[str]:
            return [word for text in texts for word in text.split()]

    monkeypatch.setattr(Tokenizer, "backend", lambda self: Spaces())
    tokenizer = Tokenizer(models.BPE())
    tokenizer.train_from_iterator(
        ["low low lower", "newest newest"], trainers.BpeTrainer(vocab_size=14, special_tokens=["<s>"])
    )
    assert tokenizer.token_to_id("<s>") == 0
    assert tokenizer.model.merges == [("l", "o"), ("w", "e"), ("e", "we"), ("n", "ewe"), ("s", "t")]
    with pytest.raises(NotImplementedError, match="Unigram"):
        Tokenizer(models.Unigram()).train_from_iterator(["a"])


def test_encodings_are_padded_at_either_end() -> None:
    row = Encoding()
    row.add(5, "a", 0, 0, None)
    row.pad(3, direction="left", pad_id=9)
    assert (row.ids, row.attention_mask, row.special_tokens_mask) == ([9, 9, 5], [0, 0, 1], [1, 1, 0])
    assert Encoding.merge([row, row]).ids == [9, 9, 5, 9, 9, 5]
    assert row.offsets == [(0, 0)] * 3


def test_outside_of_pyodide_nothing_encodes() -> None:
    with pytest.raises(NotImplementedError, match="pip install tokenizers"):
        Tokenizer(models.WordPiece({"[UNK]": 0})).encode("a")
    assert backend.placed("ab  c", ["ab", "c"]) == [("ab", (0, 2)), ("c", (4, 5))]
    assert tokenizer._pair(["a", "b"], is_pretokenized=False) == ("a", "b")


def test_the_process_has_one_processor() -> None:
    assert psutil.cpu_count() == 1
    assert psutil.virtual_memory().available == psutil.LARGEST - psutil.Process().memory_info().rss
    with pytest.raises(psutil.NoSuchProcess):
        psutil.Process(-1)


def test_where_no_thread_starts_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    thread = threads.Thread(target=done.append, args=(1,))
    thread.start()
    thread.join()
    assert (done, thread.is_alive()) == ([1], False)
    with pytest.raises(RuntimeError, match="only be started once"):
        thread.start()
    monkeypatch.setattr(futures.ThreadPoolExecutor, "submit", threads.submit)
    with futures.ThreadPoolExecutor() as pool:
        assert list(pool.map(abs, (-1, 2))) == [1, 2]
        assert isinstance(pool.submit(int, "x").exception(), ValueError)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, 1)
