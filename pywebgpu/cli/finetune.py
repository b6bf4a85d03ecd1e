"""`pywebgpu finetune`: adapters beside a language model's layers learn a text."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from pywebgpu import errors


def main(arguments: Sequence[str]) -> int:
    """The command. Returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        _train(options)
    except (errors.PywebgpuError, OSError, ValueError, ImportError) as error:
        print(f"pywebgpu finetune: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print()
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pywebgpu finetune", description=__doc__)
    parser.add_argument("--model", required=True, metavar="FILE", help="a GGUF file, or a folder of transformers")
    parser.add_argument("--data", required=True, metavar="FILE", help="the text, in UTF-8")
    parser.add_argument("--out", default="adapter", metavar="FOLDER", help="where the adapters go (adapter)")
    parser.add_argument("--merge", metavar="FILE", help="also write a GGUF file with the adapters merged")
    parser.add_argument("--steps", type=int, default=200, help="updates of the adapters (200)")
    parser.add_argument("--length", type=int, default=128, help="tokens of a row (128)")
    parser.add_argument("--batch", type=int, default=1, help="rows of a step (1)")
    parser.add_argument("--rank", type=int, default=8, help="rank of the adapters (8)")
    parser.add_argument("--alpha", type=float, default=16, help="they are scaled by alpha / rank (16)")
    parser.add_argument(
        "--targets", default="q_proj,v_proj", metavar="NAMES", help="layers that get adapters (q_proj,v_proj)"
    )
    parser.add_argument("--learning-rate", type=float, default=2e-4, help="of AdamW (0.0002)")
    parser.add_argument("--seed", type=int, help="the same at each run")
    parser.add_argument("--device", help="webgpu or cpu; the default device if none is named")
    return parser


def _train(options: argparse.Namespace) -> None:
    llama = import_module("pywebgpu.models.llama")
    lora, finetuning = import_module("pywebgpu.models.lora"), import_module("pywebgpu.models.finetuning")
    if options.seed is not None:
        import_module("pywebgpu.tensor.random").manual_seed(options.seed)
    source = llama.open_source(options.model)
    if options.merge is not None and isinstance(source, Path):
        raise ValueError(f"--merge writes a GGUF file anew, and {source} is a folder")
    tokenizer = import_module("pywebgpu.models.tokenizer").Tokenizer.from_file(source)
    with open(options.data, encoding="utf-8") as text:
        ids = tokenizer.encode(text.read())
    config = lora.LoraConfig(options.rank, options.alpha, options.targets.split(","))
    model = lora.add(llama.Llama.from_file(source, options.device), config)
    rows = finetuning.rows(ids, options.length, options.device)
    training = finetuning.Finetuning(model, learning_rate=options.learning_rate)
    start = time.perf_counter()
    for step, loss in enumerate(training.run(rows, options.steps, options.batch), 1):
        if step == 1 or step % 10 == 0 or step == options.steps:
            print(f"step {step}  loss {loss:.4f}  {time.perf_counter() - start:.1f} s", flush=True)
    lora.save(model, config, options.out)
    print(f"{options.out}: the adapters, in peft's format")
    if options.merge is not None:
        lora.save_gguf(model, source, options.merge)
        print(f"{options.merge}: the model with them")
