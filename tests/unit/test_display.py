"""What notebooks show: escaped, whole, and never an error instead."""

import asyncio
import base64
import builtins
import inspect
import json
import re
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import pywebgpu as torch
from pywebgpu import display, dtypes, nn
from pywebgpu.display import Live, chart, drawing, html, places, stoppable, stopping, values, widgets
from pywebgpu.errors import CannotWaitError, DeviceLostError
from pywebgpu.profiler import profile

EVIL = '<script>alert("x")</script>'


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.blocks = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        self.register_buffer("mask", torch.ones(3))
        self.embedding.weight.requires_grad_(False)

    def extra_repr(self) -> str:
        return EVIL

    def forward(self, x: Any) -> Any:
        return self.blocks(self.embedding(x))


def optimizer() -> Any:
    model = Model()
    made = torch.optim.AdamW(
        [{"params": model.blocks[0].parameters()}, {"params": [model.blocks[2].weight], "lr": 0.5}]
    )
    model(torch.tensor([1])).sum().backward()
    made.step()
    made.param_groups[0]["note"] = EVIL
    return made


def averages() -> Any:
    with profile() as found:
        Model()(torch.tensor([1])).sum().item()
    return found.key_averages()


def live() -> Any:
    made = Live(EVIL, every=1e9)
    made._drawn = 1e12
    made.log(**{EVIL: 1.0, "loss": torch.tensor(2.0)})
    made.log(**{EVIL: float("nan"), "loss": 1.0})
    return made


SHOWN: dict[str, Callable[[], Any]] = {
    "matrix": lambda: torch.randn(30, 70),
    "vector": lambda: torch.arange(5),
    "number": lambda: torch.tensor(1.5),
    "bools": lambda: torch.tensor([[True, False]]),
    "empty": lambda: torch.zeros(0, 3),
    "deep": lambda: torch.rand(2, 3, 4, 5),
    "without finite ones": lambda: torch.full((3,), float("nan")),
    "doubles": lambda: torch.rand(3, dtype=torch.float64, device="cpu"),
    "halves": lambda: torch.rand(3).half(),
    "parameter": lambda: nn.Parameter(torch.ones(2)),
    "complex": lambda: torch.fft.fft(torch.arange(4.0)),
    "complex history": lambda: torch.fft.fft(torch.ones(2, 3, requires_grad=True)),
    "history": lambda: torch.ones(2, requires_grad=True) * 2,
    "module": Model,
    "layer": lambda: nn.Linear(2, 3),
    "optimizer": optimizer,
    "explanation": lambda: torch.explain(lambda: torch.ones(3, device="null") * 2),
    "averages": averages,
    "live": live,
    "image": lambda: display.image(torch.rand(3, 5), title=EVIL),
    "scatter": lambda: display.scatter(torch.rand(4, 2), [0, 1, 1, 30], names=[EVIL, "", "b"], behind=torch.rand(2, 2)),
    "bars": lambda: display.bars({EVIL: 0.5, 1: float("nan")}),
    "pictures": lambda: display.beside(display.image([[1.0]]), display.Picture("<p>1</p>", "1")),
}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.usefixtures("default_device")
def test_it_is_well_formed_and_escaped(name: str, device: str) -> None:
    found = SHOWN[name]()._repr_html_()
    assert ElementTree.fromstring(re.sub(r"<details open", '<details open=""', found)) is not None
    assert "<script" not in found
    assert len(found) < 20_000


def test_statistics_are_those_of_finite_values(device: str) -> None:
    x = torch.tensor([[1.0, 2.0, float("nan")], [3.0, float("inf"), 6.0]], device=device)
    assert values._statistics(x) == "min 1  max 6  mean 3  std 1.871  2 not finite"
    assert values._statistics(torch.tensor([2, 7, -1], device=device)) == "min -1  max 7"
    assert values._statistics(torch.tensor([True, False, True], device=device)) == "2 of 3 are True"
    assert "of magnitudes: min 4  max 5  mean 4.5  std 0.5" in torch.tensor([3 + 4j, 4j], device=device)._repr_html_()


DTYPES = [dtype for dtype in vars(dtypes).values() if isinstance(dtype, torch.dtype)]


@pytest.mark.parametrize("dtype", dict.fromkeys(DTYPES), ids=str)
def test_every_dtype_has_a_map(dtype: torch.dtype) -> None:
    assert "map of values" in torch.zeros(2, 3, device="cpu").to(dtype)._repr_html_()


def test_a_map_colors_zero_alike_on_both_sides() -> None:
    found = values.heat_map([[-2.0, 0.0, 2.0], [float("nan"), 0.0, 0.0]])
    assert f'<path fill="{values.SIGNED[0]}" d="M0 0h1v1h-1z"/>' in found
    assert f'<path fill="{values.SIGNED[-1]}" d="M2 0h1v1h-1z"/>' in found
    assert f'<path fill="{values.SIGNED[4]}" d="M1 0h1v1h-1zM1 1h2v1h-2z"/>' in found
    assert values.ODD in found


def test_a_long_text_is_folded_below_the_map_and_a_small_map_is_large(device: str) -> None:
    long, short = (torch.rand(rows, 2, device=device)._repr_html_() for rows in (20, 3))
    assert "<details><summary" in long
    assert "<details" not in short
    assert 'width="32" height="48"' in short
    assert f'height="{20 * values.CELL}"' in long


@pytest.mark.parametrize("error", [CannotWaitError("cannot wait"), DeviceLostError("gone")])
def test_what_cannot_be_read_is_shown_without_its_values(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise error

    x = torch.ones(3, 4, device="cpu") + 1
    monkeypatch.setattr(x._storage.device, "download", fail)
    found = x._repr_html_()
    assert "3 x 4 · torch.float32 · cpu" in found
    assert "not read: gone" in found or "not read: await x.cpu_async()" in found
    if isinstance(error, CannotWaitError):
        assert repr(x) == "tensor(<not read: await x.cpu_async()>, size=(3, 4), dtype=torch.float32)"
        assert f"{x.sum():.3f}" == "tensor(<not read: await x.cpu_async()>, size=(), dtype=torch.float32)"
    else:
        with pytest.raises(DeviceLostError, match="gone"):
            f"{x.sum():.3f}"


def test_a_module_shows_shapes_parameters_and_bytes() -> None:
    text = re.sub("<[^>]*>", "", Model()._repr_html_())
    assert "Model 50 parameters · 200 B" in text
    assert "20 frozen" in text
    assert "weight 5 x 4 80 B, frozen" in text
    assert "mask 3 buffer, 12 B" in text


def test_the_page_of_visualize_shows_itself(tmp_path: Path) -> None:
    page = torch.visualize(lambda: torch.ones(3, device="null") * 2, tmp_path / "page.html")
    assert page.read_text().startswith("<!doctype html>")
    assert page == tmp_path / "page.html"
    assert page._repr_html_().startswith("<iframe")
    assert "<script" not in page._repr_html_()  # Escaped, inside of srcdoc.


def test_a_page_without_a_path_is_no_file_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = torch.visualize(lambda: torch.ones(3, device="null") * 2)
    assert page.read_text().startswith("<!doctype html>")
    page.unlink()
    assert not [*tmp_path.iterdir()]


# Live


class Handle:
    def __init__(self) -> None:
        self.pages: list[str] = []

    def display(self, data: dict[str, str], **options: object) -> "Handle":
        self.pages.append(data["text/html"])
        return self

    def update(self, data: dict[str, str], **options: object) -> None:
        self.pages.append(data["text/html"])


def test_live_draws_in_a_cell_and_reads_tensors_together(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    handle = Handle()
    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace()
    ipython.display = types.SimpleNamespace(display=handle.display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    with Live("run", every=1e9) as plot:
        for step in range(10):
            plot.log(loss=torch.tensor(10.0 - step, device=device), rate=0.5)
    assert plot.lines["loss"] == [(step + 1, 10.0 - step) for step in range(10)]
    assert len(handle.pages) in (1, 2)  # The first value may be drawn at once.
    assert "loss" in handle.pages[-1]
    assert "step 10" in handle.pages[-1]


def test_live_draws_in_marimo(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    output = types.SimpleNamespace(replace=shown.append)
    marimo: Any = types.ModuleType("marimo")
    marimo.running_in_notebook, marimo.Html, marimo.output = lambda: True, lambda text: text, output
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    with Live() as plot:
        plot.log(loss=1)
    assert "<svg" in shown[-1]


def test_live_is_one_line_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with Live("run") as plot:
        for step in range(8):
            plot.log(loss=8 - step)
    assert capsys.readouterr().err == "run  step 8  loss 1 █▇▆▅▄▃▂▁\n"


def test_a_loop_that_is_stopped_ends_before_its_next_step() -> None:
    loop, seen = stoppable(range(5)), []
    for step in loop:
        seen.append(step)
        if step == 2:
            loop.stop()
    assert (seen, loop.step, loop.stopped) == ([0, 1, 2], 3, True)

    async def steps() -> list[int]:
        return [step async for step in stoppable(range(3))]

    assert asyncio.run(steps()) == [0, 1, 2]


def test_live_keeps_what_cannot_be_read_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    plot = Live(every=0)
    x = torch.tensor(3.0, device="cpu")

    def fail(*args: object) -> None:
        raise CannotWaitError("cannot wait")

    with monkeypatch.context() as patched:
        patched.setattr(x._storage.device, "download", fail)
        plot.log(loss=x)
        assert plot.lines == {"loss": []}
        assert "1 values are not read yet" in plot._repr_html_()
    asyncio.run(plot.draw_async())
    assert plot.lines == {"loss": [(1, 3.0)]}


@pytest.mark.parametrize("low", [0.0, -3.0, 1e-9, 5e7])
@pytest.mark.parametrize("span", [0.0, 1e-6, 1.0, 1234.5])
def test_marks_are_few_and_hold_all_values(low: float, span: float) -> None:
    marks = chart._marks(low, low + span)
    assert 2 <= len(marks) <= 8
    assert marks[0] <= low + 1e-9 * abs(low)
    assert marks[-1] >= low + span - 1e-9 * abs(low) - 1e-12


def test_long_lines_are_thinned() -> None:
    line = [(float(at), float(at)) for at in range(100_000)]
    assert len(chart.chart({"a": line})) < 12_000
    assert chart._thinned(line)[-1] == line[-1]


def test_a_logarithmic_axis_has_decades() -> None:
    assert chart._decades([0.02, 3.0]) == [0.01, 0.1, 1.0, 10.0]
    assert "0.01<" in chart.chart({"a": [(0, 0.02), (1, 3.0)]}, logarithmic=True)
    assert "<svg" in chart.chart({"a": [(0, 0.0), (1, 3.0)]}, logarithmic=True)


def test_a_missing_element_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    document = types.SimpleNamespace(getElementById=lambda name: None)
    with pytest.raises(ValueError, match="no element with the id 'plot'"):
        places.Element(document, "plot")


@pytest.mark.parametrize("name", ["Cell", "Marimo", "Element", "Output", "Terminal"])
def test_a_place_takes_what_all_places_take(name: str) -> None:
    assert inspect.signature(getattr(places, name).show) == inspect.signature(places.Place.show)


def test_an_editor_stops_a_loop_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, str]] = []
    page = types.SimpleNamespace(place=lambda: "1", show=lambda name, html: shown.append((name, html)))
    monkeypatch.setattr(places, "find", lambda target: places.Output(page))
    with monkeypatch.context() as patched:
        patched.setattr(sys, "platform", "emscripten")
        patched.setattr(stopping, "_let_messages_in", lambda: None)
        assert list(stoppable(range(3))) == [0, 1, 2]
    assert shown == []


def test_amounts_are_for_people() -> None:
    assert [html.amount(size) for size in (12, 3_300, 4.4e6, 2.5e9)] == ["12 B", "3.3 kB", "4.4 MB", "2.5 GB"]
    assert builtins.len(html.table(["a"], [[EVIL]])) > 0


# Pictures and widgets


def test_an_image_shows_each_number_by_its_shade() -> None:
    found = display.image(torch.tensor([[0.0, 0.5], [1.0, float("nan")]]), scale=10)
    assert str(found) == "  ==\n@@  ".replace("=", drawing.SHADES[4])
    packed = re.search(r"base64,([\w+/=]+)", found.markup)
    assert packed is not None
    data = base64.b64decode(packed[1])
    pixels = zlib.decompress(data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8])
    assert pixels == bytes([0, 0, 128, 0, 255, 0])
    with pytest.raises(ValueError, match="rows of equal length"):
        display.image([[1.0], [1.0, 2.0]])


def test_points_lie_where_their_numbers_say() -> None:
    found = display.scatter([[-1, -1], [1, 1], [5, 0]], [0, 1, 2], span=(-1, 1), size=100)
    assert re.findall(r'cx="(.*?)" cy="(.*?)"', found.markup) == [("0.0", "100.0"), ("100.0", "0.0")]
    lines = str(found).splitlines()
    assert lines[-1].startswith("o")
    assert lines[0].endswith("x")


def test_live_shows_pictures_above_its_plot(capsys: pytest.CaptureFixture[str]) -> None:
    with Live("two", every=0) as live:
        live.log(loss=1.0)
        live.show(display.Picture("<b>first</b>", "first"), EVIL)
        live.show(display.Picture("<b>second</b>", "second"), EVIL)
    said = capsys.readouterr().err
    assert said.startswith(f"second\n{EVIL}\ntwo  step 1")
    page = live._repr_html_()
    assert page.index("<b>second</b>") < page.index("&lt;script") < page.index("over steps")


class FakePage:
    """A page where somebody sets a widget, three times."""

    def __init__(self) -> None:
        self.added: list[dict[str, Any]] = []
        self.shown: list[tuple[str, str]] = []
        self.left = [0.25, 0.5, 0.75]
        self.turn = self.changed = lambda: None

    def place(self) -> str:
        return f"p{len(self.added)}"

    def add(self, text: str) -> None:
        self.added.append(json.loads(text))

    def show(self, name: str, markup: str) -> None:
        self.shown.append((name, markup))

    def value(self, name: str) -> str:
        return json.dumps(self.left.pop(0)) if self.left else ""


def test_widgets_keep_their_value_where_there_is_no_page() -> None:
    slider, canvas = display.Slider("power", 0, 3), display.Canvas("draw", size=2, value=[[0, 1], [1, 0]])
    seen = [(slider.value, canvas.value) for _ in display.changes(slider, canvas)]
    assert seen == [(1.5, [[0.0, 1.0], [1.0, 0.0]])]


def test_widgets_take_what_a_page_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    page = FakePage()
    monkeypatch.setattr(widgets, "page", lambda: page)
    monkeypatch.setattr(widgets, "_wait", lambda promise: bool(page.left))
    slider = display.Slider("power", 0, 3, 2)
    assert page.added == [
        {"id": "p0", "value": 2, "kind": "slider", "label": "power", "low": 0, "high": 3, "step": 0.015}
    ]
    assert [slider.value for _ in display.changes(slider)] == [0.25, 0.5, 0.75]
    assert slider.value == 2


def test_figures_of_matplotlib_are_shown_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    page = FakePage()
    monkeypatch.setattr(widgets, "page", lambda: page)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "web"))
    was = pyplot.get_backend()
    pyplot.switch_backend("module://figures")
    pyplot.figure(figsize=(1, 1)).add_subplot().plot([1, 2])
    pyplot.show()
    pyplot.switch_backend(was)
    assert [markup[:50] for _, markup in page.shown] == ['<img alt="Figure 1" src="data:image/png;base64,iVB']
