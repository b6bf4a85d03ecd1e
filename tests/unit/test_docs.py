"""The code in the pages for readers runs as it stands, and what they link to exists."""

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("made", "_build")  # below docs: by the program that builds the site
WRITTEN = [
    path for path in sorted((ROOT / "docs").rglob("*.md")) if path.relative_to(ROOT / "docs").parts[0] not in MADE
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
# What a line says that it prints: an error's text, or numbers.
SAID = re.compile(r"^ *print\((?:error\)  # (.+)|.*\)  # ([\d ]+))$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
HEADING_LINK = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
ROW = re.compile(r"^\| ([TCRGXU]-\d+) \| .* \| (holds|partly|open) \| ?(.*?) ?\|$", re.MULTILINE)
TEST = re.compile(r"([\w/]+\.py)::(\w+)")
JAVASCRIPT = re.compile(r"([\w/]+\.test\.mjs): ([^:;|]+)")
CASE = re.compile(r"\b([a-z]+): (\w+)(?=[,; ]|$)")  # the first that a table is asked for


def blocks() -> list[tuple[Path, int, str]]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found += [(page, text[: match.start(1)].count("\n"), match[1]) for match in BLOCK.finditer(text)]
    return found


@pytest.mark.parametrize(("page", "line", "code"), blocks(), ids=lambda value: getattr(value, "name", None))
def test_code_runs(
    page: Path,
    line: int,
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And prints what its comments say."""
    monkeypatch.chdir(tmp_path)  # A page may write a checkpoint.
    # Empty lines before it, so that a failure names the line of the page.
    exec(compile("\n" * line + code, str(page), "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out.splitlines()
    assert [said for said in map("".join, SAID.findall(code)) if said not in printed] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        made = "/made/" in f"/{target}"  # The site's build checks these.
        assert made or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    for target, heading in HEADING_LINK.findall(page.read_text(encoding="utf-8")):
        whole = (page.parent / target) if target else page
        if "/made/" not in f"/{target}":
            titles = re.findall(r"^#+ (.+)$", whole.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, (
                f"{page.name}: {heading}"
            )


def test_every_page_of_the_documentation_is_in_its_contents() -> None:
    listed = re.findall(r"^[\w/.-]+$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in WRITTEN}
    # The first is the contents, the second is for those who read the folder, the third stands below "Contributing".
    assert pages - {*listed} == {"index", "README", "requirements"}


def test_messages_that_are_explained_exist() -> None:
    sources = [
        path
        for folder in ("pywebgpu", "web")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".mjs")
    ]
    text = "".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")) for path in sources)
    messages = re.findall(
        r"^\| `([^`]+)` \|", (ROOT / "docs" / "guides" / "errors.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(messages) > 15
    assert [message for message in messages for part in message.split("…") if part.strip() not in text] == []


def rows() -> list[tuple[str, str, str]]:
    """Of each requirement its id, its status and what shows it."""
    text = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    return ROW.findall(text)


def test_requirements_are_counted() -> None:
    text = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    count = Counter(status for _, status, _ in rows())
    said = re.search(r"Of (\d+) rows,\s(\d+) hold, (\d+) hold partly and (\d+) are open", text)
    assert said is not None
    assert [*map(int, said.groups())] == [len(rows()), count["holds"], count["partly"], count["open"]]
    assert len({name for name, _, _ in rows()}) == len(rows())


def missing(status: str, shown: str) -> Iterator[str]:
    """What a row names and nobody has."""
    if (status == "open") != (not shown):
        yield "what shows it, if it is not open"
    for file, test in TEST.findall(shown):
        path = ROOT / file if (ROOT / file).exists() else ROOT / "tests" / file
        if f"def {test}(" not in path.read_text(encoding="utf-8"):
            yield f"{file}::{test}"
    for file, title in JAVASCRIPT.findall(shown):
        if f'test("{title}' not in (ROOT / file).read_text(encoding="utf-8"):
            yield f"{file}: {title}"
    for area, case in CASE.findall(shown.split("; missing:")[0]):
        if (ROOT / "tests" / "cases" / f"{area}.py").exists():
            cases = importlib.import_module(f"tests.cases.{area}").CASES
            if case not in {one.name for one in cases}:
                yield f"{area}: {case}"


def test_what_shows_a_requirement_exists() -> None:
    assert [(name, found) for name, status, shown in rows() for found in missing(status, shown)] == []
