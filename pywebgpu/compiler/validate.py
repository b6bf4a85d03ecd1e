"""Whether data is a Program: its numbers are held against each other before anything is made of them.

js_bridge/validate.mjs holds the same rules in the same words, and tests/cases/broken_exports.json holds both to them.
"""

import re
from math import prod
from typing import Any

from pywebgpu import dtypes
from pywebgpu.kernels.target import NEEDED
from pywebgpu.support.documents import EXACT, is_shape, is_size, require
from pywebgpu.support.formats import WORD

LISTS = ("kernels", "steps", "sizes", "ranges", "scratch", "inputs", "outputs", "numbers", "blocks", "written")
MAX_GROUPS = 65535  # workgroups along an axis, and
MAX_NUMBERS = 16384  # words of a uniform, that any device allows
KINDS = {"r": "storage, read", "w": "storage, read_write", "n": "uniform", "f": "storage, read_write"}
BINDING = re.compile(r"@group\(0\) @binding\((\d+)\) var<([a-z_, ]+)>")
ENTRY = re.compile(r"@compute\b[^{}]*\bfn main\(")

Data = dict[str, Any]


def check(data: Any) -> None:
    """Raises Malformed where data of `wire.as_data`'s form cannot be run: the rule, and where it is broken."""
    require(isinstance(data, dict), "a program", "it is an object")
    for name in LISTS:
        require(isinstance(data.get(name), list), name, "it is a list")
    for index, size in enumerate(data["sizes"]):
        require(
            is_size(size) and size >= WORD and size % WORD == 0, f"sizes[{index}]", "a buffer has words, one at least"
        )
    for index, span in enumerate(data["ranges"]):
        require(
            _is_range(span, data["sizes"]), f"ranges[{index}]", "a buffer, a multiple of 256, and bytes that it has"
        )
    _check_ends(data)
    for index, kernel in enumerate(data["kernels"]):
        _check_kernel(f"kernels[{index}]", kernel, len(data["blocks"]))
    for index, block in enumerate(data["blocks"]):
        fits = isinstance(block, list) and 0 < len(block) <= MAX_NUMBERS and all(map(is_size, block))
        require(fits and max(block) < len(data["numbers"]), f"blocks[{index}]", "it has host numbers, one at least")
    _check_steps(data)
    least = data.get("lower_bound")
    require(is_size(least) and least <= sum(data["sizes"]), "lower_bound", "at most the bytes of all buffers")


def is_dtype(name: object) -> bool:
    """Whether it names a dtype of webgpu."""
    return isinstance(name, str) and name in dtypes.BY_NAME and dtypes.BY_NAME[name].compute is not None


def _is_range(span: Any, sizes: list[int]) -> bool:
    if not (isinstance(span, list) and len(span) == 3 and all(map(is_size, span)) and span[0] < len(sizes)):
        return False
    buffer, offset, size = span
    return bool(offset % 256 == 0 and size % WORD == 0 and size > 0 and offset + size <= sizes[buffer])


def _check_ends(data: Data) -> None:
    """What goes in and comes out."""
    rule = "a value has a dtype of webgpu, and a buffer that holds its shape"
    for name in ("inputs", "outputs"):
        for index, value in enumerate(data[name]):
            require(_is_value(value, data["sizes"]), f"{name}[{index}]", rule)
    input_buffers = [value["buffer"] for value in data["inputs"]]
    output_buffers = [value["buffer"] for value in data["outputs"]]
    require(len(set(input_buffers)) == len(input_buffers), "inputs", "each has a buffer of its own")
    for index, pair in enumerate(data["written"]):
        fits = isinstance(pair, list) and len(pair) == 2 and all(map(is_size, pair))
        fits = (
            fits
            and pair[0] < len(output_buffers)
            and pair[1] < len(input_buffers)
            and output_buffers[pair[0]] == input_buffers[pair[1]]
        )
        require(fits, f"written[{index}]", "an output, and the input whose buffer it has")
    replaced = {output for output, _ in data["written"]}
    require(len(replaced) == len(data["written"]), "written", "an output replaces one input")
    for index, buffer in enumerate(output_buffers):
        require(
            index in replaced or buffer not in input_buffers,
            f"outputs[{index}]",
            "it has the buffer of an input that stays",
        )
    inner = set(range(len(data["sizes"]))) - {*input_buffers, *output_buffers}
    scratch = data["scratch"]
    fits = all(map(is_size, scratch)) and len(scratch) == len(inner) and set(scratch) == inner
    require(fits, "scratch", "the buffers that are neither an input's nor an output's")
    require(len(data["numbers"]) <= MAX_NUMBERS and all(map(is_dtype, data["numbers"])), "numbers", "dtypes of webgpu")


def _is_value(value: Any, sizes: list[int]) -> bool:
    if not (isinstance(value, dict) and is_dtype(value.get("dtype")) and is_shape(value.get("shape"))):
        return False
    buffer = value.get("buffer")
    if not (is_size(buffer) and buffer < len(sizes)):
        return False
    return dtypes.BY_NAME[value["dtype"]].format.nbytes(prod(value["shape"])) <= sizes[buffer]


def _check_kernel(where: str, kernel: Any, n_blocks: int) -> None:
    fits = isinstance(kernel, dict) and all(isinstance(kernel.get(key), str) for key in ("name", "wgsl", "bindings"))
    require(fits, where, "name, wgsl and bindings are text")
    grid, letters, text = kernel.get("grid"), kernel["bindings"], kernel["wgsl"]
    fits = isinstance(grid, list) and len(grid) == 3 and all(is_size(n, MAX_GROUPS) and n > 0 for n in grid)
    require(fits, where, f"a grid is three numbers from 1 to {MAX_GROUPS}")
    require(re.fullmatch("(?=.*w)[rw]+n?f?", letters), where, "bindings are r and w, some w among them, then n, then f")
    require("n" not in letters or n_blocks, where, "it reads host numbers, and there are none")
    declared = [(int(number), kind) for number, kind in BINDING.findall(text) if len(number) < 4]
    fits = declared == [(index, KINDS[letter]) for index, letter in enumerate(letters)]
    fits = fits and text.count("@binding(") == len(letters) and ENTRY.search(text) is not None
    require(fits, where, "its text has the entry main, and binds what the letters say")
    needs = kernel.get("needs", [])
    fits = isinstance(needs, list) and all(isinstance(name, str) for name in needs) and len({*needs}) == len(needs)
    require(fits and {*needs} <= {*NEEDED}, where, "it needs features that kernels may need, each told once")
    require(is_size(kernel.get("work", 0)), where, "its work is a number of multiplications")


def _check_steps(data: Data) -> None:
    kernels, sizes, ranges = data["kernels"], data["sizes"], data["ranges"]
    known = {value["buffer"] for value in data["inputs"]}  # What has a value. A kernel may read an empty one without.
    for index, step in enumerate(data["steps"]):
        where = f"steps[{index}]"
        fits = isinstance(step, list) and len(step) > 0 and all(map(is_size, step)) and step[0] < len(kernels)
        letters = kernels[step[0]]["bindings"].replace("f", "") if fits else ""
        if letters.endswith("n"):
            fits = len(step) == 1 + len(letters) and step[-1] < len(data["blocks"])
            step, letters = step[:-1], letters[:-1]
        fits = fits and len(step) == 1 + len(letters) and all(n < len(sizes) + len(ranges) for n in step[1:])
        require(fits, where, "a kernel, a buffer or a range for each letter r and w of it, and a block for n")
        bound = [(n, 0, EXACT) if n < len(sizes) else ranges[n - len(sizes)] for n in step[1:]]
        read = {binding[0] for binding, letter in zip(bound, letters, strict=True) if letter == "r"}
        written = [binding for binding, letter in zip(bound, letters, strict=True) if letter == "w"]
        for k, (buffer, begin, size) in enumerate(written):
            disjoint = (b != buffer or e + n <= begin or begin + size <= e for b, e, n in written[:k])
            require(buffer not in read and all(disjoint), where, "it writes what it binds twice")
            known.add(buffer)
    for index, value in enumerate(data["outputs"]):
        require(value["buffer"] in known or 0 in value["shape"], f"outputs[{index}]", "no step writes it")
