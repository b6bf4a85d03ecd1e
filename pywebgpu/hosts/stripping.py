"""Source files without what a page's Python and JavaScript do not run: comments, docstrings, types, long names.

Apart from site.py because it knows Python's grammar and nothing of addresses.
"""

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import ascii_letters
from typing import TypeGuard

FORMATTED = {number for number, name in tokenize.tok_name.items() if name.startswith("FSTRING")}  # Since Python 3.12.
STARTS = {number for number in FORMATTED if tokenize.tok_name[number].endswith("START")}
ENDS = {number for number in FORMATTED if tokenize.tok_name[number].endswith("END")}
COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, *COMPREHENSIONS
FOR_CLASSES = {"ClassVar", "InitVar", "KW_ONLY"}  # types that a dataclass reads
COMMENTS = re.compile(r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*$", re.MULTILINE | re.DOTALL)


def bare(name: str, content: bytes) -> bytes:
    """A file without what Python and JavaScript do not run."""
    if name.endswith(".py"):
        return _bare_python(content.decode()).encode()
    return COMMENTS.sub("", content.decode()).encode() if name.endswith(".mjs") else content


@lru_cache(maxsize=1000)  # An archive is made again when any of its files changed.
def _bare_python(source: str) -> str:
    return without_spaces(with_short_names(without_comments(source)))


def without_comments(source: str) -> str:
    """The same program, each line at its number: no comments, docstrings and types, narrow indentation."""
    lines = source.splitlines(keepends=True)
    kept, inside, bracketed, depth = list(lines), set[int](), set[int](), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line, column = token.start
        if depth and not lines[line - 1][:column].strip():
            bracketed.add(line - 1)
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if token.type == tokenize.COMMENT:
            kept[line - 1] = lines[line - 1][:column].rstrip() + "\n"
        elif line != token.end[0] and (token.type == tokenize.STRING or token.type in FORMATTED):
            inside.update(range(line, token.end[0]))
    nodes = [*ast.walk(ast.parse(source))]
    for line, start, end, short in sorted(_annotations(nodes, lines), reverse=True):
        encoded = kept[line - 1].encode()  # Columns of a tree count bytes.
        kept[line - 1] = (encoded[:start] + short + encoded[end:]).decode()
    for node in reversed(nodes):  # What is inside before what is around it, which may go whole.
        if _is_for_checkers(node):
            kept[_first_line(node) - 1 : node.end_lineno] = ["\n"] * ((node.end_lineno or 0) - _first_line(node) + 1)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            if text is not None and text.end_lineno is not None:
                kept[text.lineno - 1 : text.end_lineno] = ["\n"] * (text.end_lineno - text.lineno + 1)
            first = node.body[0] if text is not None or not isinstance(node, ast.Module) else None
            if first is not None and all(map(_is_for_checkers, node.body[text is not None :])):
                kept[first.lineno - 1] = " " * first.col_offset + '""\n'
    return _dedented(_without_type_imports(kept), inside, bracketed)


def with_short_names(source: str) -> str:
    """The same program, in which the local variables of functions are single letters.

    Those that an inner function or a text with values reads, or a statement other than an assignment names, keep their
    names, as do parameters, and all of a function that asks for its `locals()`. Comprehensions share its letters.
    """
    lines = [line.encode() for line in source.splitlines(keepends=True)]  # Columns of a tree count bytes.
    uses: list[tuple[int, int, int, bytes]] = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            uses += _shorter(function)
    for line, start, end, letter in sorted(uses, reverse=True):
        lines[line - 1] = lines[line - 1][:start] + letter + lines[line - 1][end:]
    return b"".join(lines).decode()


def _shorter(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, int, int, bytes]]:
    """Where its variables stand: a line, the columns from and to, and the letter that each becomes."""
    variables: dict[str, list[ast.Name]] = {}
    stored, listed, free, kept = set[str](), set[str](), set[str](), set[str]()
    waiting: list[tuple[ast.AST, frozenset[str]]] = [
        (node, frozenset()) for node in function.body
    ]  # with the variables of the comprehensions around it
    while waiting:
        node, inner = waiting.pop()
        if isinstance(node, ast.Name):
            variables.setdefault(node.id, []).append(node)
            kind = listed if node.id in inner else free if isinstance(node.ctx, ast.Load) else stored
            kind.add(node.id)
        elif isinstance(node, COMPREHENSIONS):
            targets = [name for loop in node.generators for name in ast.walk(loop.target)]
            deeper = inner.union(name.id for name in targets if isinstance(name, ast.Name))
            first = node.generators[0]
            parts = [part for loop in node.generators for part in ast.iter_child_nodes(loop) if part is not first.iter]
            parts += [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.comprehension)]
            waiting += [(first.iter, inner), *((part, deeper) for part in parts)]
        elif isinstance(node, (*SCOPES, ast.JoinedStr)):
            kept |= _names(node)
        else:
            kept.update(_bound(node))
            waiting += [(child, inner) for child in ast.iter_child_nodes(node)]
    taken = _names(function)
    if "locals" in taken:
        return
    letters = iter([letter for letter in ascii_letters if letter not in taken])
    own = stored | (listed - free)  # A name that comprehensions alone bind may be a global's elsewhere.
    by_count = sorted(own - kept - _names(function.args), key=lambda name: (-len(variables[name]), name))
    for name, letter in zip([name for name in by_count if len(name) > 1], letters, strict=False):
        for use in variables[name]:
            yield use.lineno, use.col_offset, use.end_col_offset or 0, letter.encode()


def _names(part: ast.AST) -> set[str]:
    """All that a part of a program names, but for attributes and arguments of calls."""
    nodes = [*ast.walk(part)]
    return {node.id for node in nodes if isinstance(node, ast.Name)}.union(*map(_bound, nodes))


def _bound(node: ast.AST) -> Iterable[str]:
    """The names that a statement or a parameter has as texts."""
    if isinstance(node, ast.Attribute | ast.keyword | ast.Constant):
        return ()
    fields = [value for _, value in ast.iter_fields(node)]
    texts = [text for value in fields for text in (value if isinstance(value, list) else [value])]
    return [text.partition(".")[0] for text in texts if isinstance(text, str)]


def without_spaces(source: str) -> str:
    """The same program without spaces beside operators."""
    lines = source.splitlines(keepends=True)
    pairs, inside = list[tuple[tokenize.TokenInfo, tokenize.TokenInfo]](), 0
    for left, right in itertools.pairwise(tokenize.generate_tokens(io.StringIO(source).readline)):
        inside += (left.type in STARTS) - (left.type in ENDS)
        is_between = left.end[0] == right.start[0] and left.string.strip() and right.string.strip()
        if is_between and not inside and tokenize.OP in (left.type, right.type):
            pairs.append((left, right))
    for left, right in reversed(pairs):
        line = lines[left.end[0] - 1]
        lines[left.end[0] - 1] = line[: left.end[1]] + line[right.start[1] :]
    return "".join(lines)


def _without_type_imports(lines: list[str]) -> list[str]:
    """The same program without the imports of names that stood in annotations alone."""
    tree = ast.parse("".join(lines))
    imports = [node for node in tree.body if _imports_types(node)]
    used: set[object] = set()
    for node in ast.walk(tree) if imports else ():
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Constant):
            used.add(str(node.value))  # as in __all__
    for node in imports:
        names = [alias.name for alias in node.names if alias.name in used]
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        lines[first:last] = ["\n"] * (last - first)
        if names:
            lines[first] = f"from {node.module} import {', '.join(names)}\n"
    return lines


def _imports_types(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    """Whether all that it imports are classes, by their own names."""
    return isinstance(node, ast.ImportFrom) and all(
        alias.asname is None and alias.name[0].isupper() for alias in node.names
    )


def _is_for_checkers(node: ast.AST) -> TypeGuard[ast.If | ast.FunctionDef]:
    """Whether only type checkers read it: imports for annotations, and the ways in which a function may be called."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse
    overloads = (
        [ast.unparse(decorator) for decorator in node.decorator_list] if isinstance(node, ast.FunctionDef) else []
    )
    return "overload" in overloads


def _first_line(node: ast.If | ast.FunctionDef) -> int:
    decorators = [] if isinstance(node, ast.If) else node.decorator_list
    return min(node.lineno, *(decorator.lineno for decorator in decorators)) if decorators else node.lineno


def _dedented(lines: list[str], inside: set[int], bracketed: set[int]) -> str:
    """A program with one space a level, none inside of brackets; lines that begin inside of texts are as they were."""
    depths = [0 if number in inside else len(line) - len(line.lstrip(" ")) for number, line in enumerate(lines)]
    levels = [0 if number in bracketed else depth // 4 for number, depth in enumerate(depths)]
    return "".join([level * " " + line[depth:] for line, depth, level in zip(lines, depths, levels, strict=True)])


def _annotations(nodes: Iterable[ast.AST], lines: list[str]) -> Iterator[tuple[int, int, int, bytes]]:
    """Where types stand, on one line each: its number, the columns from and to, and what takes its place.

    A field of a class needs some type, or it is none to a dataclass, which reads only whether it is for instances.
    """
    of_classes = {id(inner) for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body}
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and id(node) in of_classes:
            if FOR_CLASSES.isdisjoint(_names(node.annotation)):
                yield from _span(node.annotation.lineno, node.annotation.col_offset, node.annotation, b"int")
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _span(node.lineno, node.target.end_col_offset or 0, node.annotation)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            yield from _span(node.lineno, node.col_offset + len(node.arg.encode()), node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            start = lines[node.returns.lineno - 1].encode().rfind(b" ->", 0, node.returns.col_offset)
            yield from _span(node.returns.lineno, start, node.returns)


def _span(line: int, start: int, annotation: ast.expr, short: bytes = b"") -> Iterator[tuple[int, int, int, bytes]]:
    """From a column to the end of an annotation, where both are on the line."""
    if start >= 0 and annotation.end_lineno == line:
        yield line, start, annotation.end_col_offset or 0, short
