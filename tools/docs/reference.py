"""The reference: a page a module, made of docstrings, signatures and the calls that tests make."""

import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pywebgpu import errors
from tools.docs import examples, samples, surface

# Functions of torch itself stand on a page by what they are for: where they are defined says it.
GROUPS = {
    "Making tensors": "create from_data random generator random_inplace sampling complex_numbers limits dlpack sparse",
    "Arithmetic, element by element": "methods pointwise bits numeric logarithms gamma divisors",
    "Sums, extremes and statistics": "reduction statistics quantile histogram",
    "Products of matrices": "contraction einsum linalg factorization lu_factors products",
    "Shapes, views and copies": "functions movement reshaping view copies size layout base",
    "Choosing and sorting": "gather_scatter sorting index indexing",
    "Layers and losses, as functions": "spatial activation channel_dropout rows loss margins sequences operators",
    "Modes, devices, dtypes, compiling and files": "",
    "Written in place": "",
}
REST, IN_PLACE = list(GROUPS)[-2:]
TITLES = {"": "torch", "Tensor": "torch.Tensor"}
ALIKE = ("", "Tensor", "nn.functional", "special", "linalg", "masked")  # where one name means one thing
ALIAS = re.compile(r"(?:As |The same as )?`?([a-z]\w*?)`?(?:, by element|, written into this tensor|\.|, )")
CALLS = Path(__file__).parents[2] / "docs" / "calls.json"
OPDB = Path(__file__).parents[2] / "docs" / "conformance.json"
FEW = 4  # names of a module for which a page would be too much: they share one
LEAD = """# Reference

Every public name, with what its docstring says, and calls that the tests make: dtypes and shapes of what is given and
of what comes back (`float32[2, 3]` is a tensor), and errors. *Tested with* names dtypes that are held against PyTorch.
`torch` is `pywebgpu` here: `import pywebgpu as torch`.
"""
MARKS = re.compile(r"([\\*_<>\[\]])")
FIELD = re.compile(r"^(Shapes?|Dtypes?|Raises|Source|Against torch|Returns|Arguments?|Example)s?: ", re.MULTILINE)


def write(made: Path) -> None:
    """Writes made/reference/*.md."""
    folder = made / "reference"
    folder.mkdir(exist_ok=True)
    found = samples.collect()
    extend(found)
    pages: dict[str, str] = {}
    small: list[str] = []
    for path in surface.modules():
        names = list(surface.names(path))
        if path == "":
            pages |= {slug(title): page(title, some, found) for title, some in grouped(names).items()}
        elif len(names) <= FEW:
            small += [f"## torch.{path}\n", *(entry(name, found) for name in names)]
        else:
            pages[path.lower()] = page(TITLES.get(path, f"torch.{path}"), names, found)
    pages["small-modules"] = "\n".join(["# Small modules\n", *small])
    listed = "\n".join(["```{toctree}", ":maxdepth: 1", "", *pages, "```"])
    pages["index"] = f"{LEAD}\n{listed}\n"
    for name, text in pages.items():
        target = folder / f"{name}.md"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")  # Sphinx reads again what is newer.
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()


def extend(found: dict[str, samples.Found]) -> None:
    """Adds what PyTorch's own samples show, dtypes of all that pass and calls of names that our tables do not call; and
    calls that are written for the reference alone.
    """
    for full, dtypes in passed().items():
        found.setdefault(full, samples.Found()).dtypes.update(dtypes)
    for full, lines in json.loads(CALLS.read_text(encoding="utf-8")).items():
        one = found.setdefault(full, samples.Found())
        if not one.calls:
            one.calls |= {(0, (), line): line for line in lines}
    for full, example in examples.collect().items():
        one = found.setdefault(full, samples.Found())
        one.calls = one.calls or example.calls
        one.errors |= example.errors
    for one in list(found.values()):  # An error's own entry shows who raises it.
        for text, call in one.errors.items():
            kind = text.partition(":")[0]
            if hasattr(errors, kind):
                found.setdefault(f"errors.{kind}", samples.Found()).errors.setdefault(text, call)


def passed() -> dict[str, set[str]]:
    """By name, the dtypes for which all of PyTorch's own samples pass on device cpu."""
    found: dict[str, set[str]] = defaultdict(set)
    for where, tables in json.loads(OPDB.read_text(encoding="utf-8")).items():
        host, dtype = where.split("/")
        for name, counts in tables["operators"].items() if host == "cpu" else ():
            if counts["passed"] and not any(counts[bad] for bad in ("wrong", "refused", "absent")):
                found[name.partition("|")[0]].add(dtype)
    return found


def slug(title: str) -> str:
    return "torch-" + re.sub(r"\W+", "-", title.lower()).strip("-")


def grouped(names: list[surface.Name]) -> dict[str, list[surface.Name]]:
    groups = {module: title for title, modules in GROUPS.items() for module in modules.split()}
    found: dict[str, list[surface.Name]] = defaultdict(list)
    for name in names:
        is_in_place = name.name.endswith("_")
        found[IN_PLACE if is_in_place else groups.get(home(name.value), REST)].append(name)
    return {title: found[title] for title in GROUPS if found[title]}


def home(value: Any) -> str:
    """The file that defines it, by the method's where a function is made of one."""
    method = getattr(surface.holder("Tensor"), getattr(value, "__name__", ""), value)
    files = [(getattr(one, "__module__", "") or "").rpartition(".")[2] for one in (value, method)]
    return next((file for file in files if file not in ("functions", "methods")), files[0])


def page(title: str, names: list[surface.Name], found: dict[str, samples.Found]) -> str:
    return "\n".join([f"# {title}\n", *(entry(name, found) for name in names)])


def entry(name: surface.Name, found: dict[str, samples.Found]) -> str:
    """One name as a directive of Sphinx, so that it can be searched for and linked to."""
    value = name.value
    kind = "class" if isinstance(value, type) else "attribute" if isinstance(value, property) else "function"
    lines = [f"::::{{py:{kind}}} torch.{name.full}{surface.signature(name)}", ""]
    lines += [prose(surface.text(name)) or f"As in PyTorch: `torch.{name.full}`.", ""]
    lines += list(shown(merged(name, found)))
    if name.is_own:
        lines += ["Only here; PyTorch has no such name.", ""]
    return "\n".join([*lines, "::::", ""])


def merged(name: surface.Name, found: dict[str, samples.Found]) -> samples.Found:
    """What is known of the name, together with the method of its name, or else of what it is another name of."""
    others = [name.full]
    if name.path in ALIKE:
        plain = name.name.removesuffix("_")
        alias = ALIAS.match(surface.text(name))
        last = [name.name, plain, *([alias[1]] if alias else [])]
        others += [f"{path}.{one}".removeprefix(".") for one in last for path in ALIKE]
    whole = samples.Found()
    for full in others[: 1 if name.path not in ("", "Tensor") else 3]:
        add(whole, found.get(full))
    for full in others:
        if not whole.calls:
            add(whole, found.get(full))
    return whole


def add(whole: samples.Found, part: samples.Found | None) -> None:
    if part is not None:
        whole.calls |= part.calls
        whole.errors |= part.errors
        whole.dtypes |= part.dtypes


def shown(known: samples.Found) -> Iterator[str]:
    calls, errors = samples.few(known)
    if known.dtypes:
        yield f"*Tested with* {', '.join(sorted(known.dtypes))}.\n"
    if calls or errors:
        yield "```text"
        yield from calls
        yield from (f"{call}\n    {error}" for call, error in errors)
        yield "```\n"


def prose(text: str) -> str:
    """A docstring as Markdown: its paragraphs, fields in bold, and code as it is."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith((">>>", "    ")):
            blocks.append(f"```pycon\n{inspect.cleandoc(block)}\n```")
        else:
            blocks.append(FIELD.sub(lambda field: f"\n**{field[1]}**: ", escaped(block)).strip())
    return "\n\n".join(blocks)


def escaped(text: str) -> str:
    """What is no code, without a meaning in Markdown."""
    parts = text.split("`")
    return "`".join(part if at % 2 else MARKS.sub(r"\\\1", part) for at, part in enumerate(parts))
