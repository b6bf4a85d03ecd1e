"""Runs notebooks as a kernel does, cell by cell with `await` at the top; a program of its own, in any Python.

python -m tests.notebooks notebooks/1-start.ipynb ...    # in one process, each with names of its own
"""

import ast
import asyncio
import inspect
import json
import linecache
import sys
from pathlib import Path


def cells(path: Path) -> list[str]:
    """The code of a notebook."""
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


async def run(path: Path) -> list[str]:
    """What each cell shows, as HTML where there is HTML. Raises what a cell raises."""
    names: dict[str, object] = {"__name__": "__main__"}
    shown = []
    for number, source in enumerate(cells(path), 1):
        name = f"<ipython-input-{number}-{path.stem}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        await _execute(compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if isinstance(last, ast.Expr):
            value = await _execute(
                compile(ast.Expression(last.value), name, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names
            )
            html = getattr(value, "_repr_html_", None)
            shown.append(html() if html is not None else repr(value))
    return shown


async def _execute(code: object, names: dict[str, object]) -> object:
    result = eval(code, names)  # type: ignore[arg-type]
    return await result if inspect.isawaitable(result) else result


async def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        try:
            print(path.stem, len(await run(path)), "shown")
        except BaseException as error:
            error.add_note(f"in {path.name}")
            raise


if __name__ == "__main__":
    if sys.platform == "emscripten":
        from pyodide.ffi import run_sync

        run_sync(main(sys.argv[1:]))
    else:
        asyncio.run(main(sys.argv[1:]))
