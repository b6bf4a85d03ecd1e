"""Libraries in Pyodide: files of tensors, a tokenizer, and where there are Pyodide's wheels a small Llama and BERT.

`python -m tests libraries --host node`, and `--host chromium`, run all of them.
"""

from pathlib import Path

import pytest
import safetensors.torch

from pywebgpu.support import installation
from tests import devices
from tests.libraries import command, in_pyodide

pytestmark = pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())
FILE = """
import torch
from safetensors import safe_open
from safetensors.torch import load_model, save_model
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
model[1].weight = model[0].weight
save_model(model, "{folder}/m.safetensors")
print(model[0].weight.tolist())
with safe_open("{folder}/m.safetensors", "pt") as file:
    print(load_model(model, "{folder}/m.safetensors"), file.keys())
"""
TOKENIZER = """
import pywebgpu.as_torch
import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
vocabulary = {"[CLS]": 0, "l": 1, "o": 2, "w": 3, "lo": 4, "low": 5, "Ġ": 6}
tokenizer = Tokenizer(models.BPE(vocabulary, [("l", "o"), ("lo", "w")]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 0)])
row = tokenizer.encode("low wlo")
print(row.ids, row.tokens, tokenizer.decode(row.ids))
"""
NOTEBOOK = """
import sys
sys.path.append("{root}")
from pyodide.ffi import run_sync
from tests import notebooks
run_sync(notebooks.main(["{root}/notebooks/7-transformers.ipynb"]))
"""


def test_a_model_in_a_file_of_node_is_read_by_the_package_itself(tmp_path: Path) -> None:
    script = tmp_path / "save.py"
    script.write_text(FILE.format(folder=tmp_path), encoding="utf-8")
    lines, raised = in_pyodide.run("node", "webgpu", script, [], tmp_path)
    assert not raised
    tensors = safetensors.torch.load_file(tmp_path / "m.safetensors")
    assert sorted(tensors) == ["0.bias", "0.weight", "1.bias"]
    assert lines == [str(tensors["0.weight"].tolist()), "(set(), []) ['0.bias', '0.weight', '1.bias']"]


def test_a_tokenizer_encodes_by_javascript_in_node(tmp_path: Path) -> None:
    name, _, file = ("@huggingface/tokenizers", "", "dist/tokenizers.min.mjs")
    if not (installation.find_modules().path / name / file).is_file():
        pytest.skip(f"{name} is not installed: make modules")
    script = tmp_path / "encode.py"
    script.write_text(TOKENIZER, encoding="utf-8")
    lines, raised = in_pyodide.run("node", "webgpu", script, [], tmp_path)
    assert not raised
    assert lines == ["[0, 5, 6, 3, 4] ['[CLS]', 'low', 'Ġ', 'w', 'lo'] [CLS]low wlo"]


@pytest.mark.skipif(bool(in_pyodide.why_missing("node")), reason=in_pyodide.why_missing("node"))
def test_a_llama_and_a_bert_train_generate_and_are_read_again_in_node() -> None:
    assert command.main(["transformers_first", "--host", "node", "--device", "webgpu"]) == 0


@pytest.mark.skipif(bool(in_pyodide.why_missing("node")), reason=in_pyodide.why_missing("node"))
def test_the_notebook_of_transformers_runs_in_node(tmp_path: Path) -> None:
    library = next(library for library in command.LIBRARIES if library.name == "transformers")
    script = tmp_path / "notebook.py"
    script.write_text(NOTEBOOK.format(root=in_pyodide.ROOT), encoding="utf-8")
    wheels = in_pyodide.prepare(command.cache(), library.requirements)
    lines, raised = in_pyodide.run("node", "webgpu", script, wheels, command.cache())
    assert not raised
    assert lines == ["7-transformers 4 shown"]
