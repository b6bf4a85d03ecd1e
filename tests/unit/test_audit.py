"""Each of the walls around a compiled step alone: what watching finds, what guards see, what audits find."""

import copy
import functools
import pickle
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.step_capture import audit, function, surroundings, survey
from pywebgpu.step_capture.capture import Capture
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.watch import Watch
from tests.unit.replays import audited

pytestmark = pytest.mark.usefixtures("default_device")


def watched(work: Callable[[], Any]) -> Watch:
    watch = Watch(lambda: False, lambda: None)
    with watch:
        work()
    return watch


SCALE = 2.0
TABLE = {"k": [1.0]}


class Holder:
    rate = 0.5

    def __init__(self) -> None:
        self.scale, self.unused = 2.0, 0

    def read(self) -> float:
        return self.scale * self.rate


HOLDER = Holder()


def of_globals() -> float:
    return SCALE + TABLE["k"][0]


def of_objects() -> float:
    return HOLDER.read()


# Watching


@pytest.mark.parametrize(
    ("work", "word"),
    [
        (random.random, "Random.random"),
        (lambda: random.uniform(0, 1), "random"),
        (time.time, "time"),
        (lambda: print(end=""), "print"),
        (lambda: id(SCALE), "id"),
    ],
    ids=["random", "uniform", "time", "print", "id"],
)
def test_calls_that_read_the_world_are_reasons(work: Callable[[], Any], word: str) -> None:
    assert any(word in reason for reason in watched(lambda: work()).reasons)


def test_functions_of_their_arguments_are_no_reason() -> None:
    assert watched(lambda: (sorted([2, 1]), "a".upper(), len("ab"), abs(-1), isinstance(1, int))).reasons == []


def test_code_that_ran_is_found_and_no_other() -> None:
    names = {code.co_name for code, _ in watched(of_objects).codes.values()}
    assert {"of_objects", "read"} <= names
    assert "of_globals" not in names


# Guards


def change_global(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SCALE", 3.0)


def change_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "k", [1.0, 2.0])


def change_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HOLDER, "scale", 3.0)


def change_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Holder, "rate", 3.0)


def change_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HOLDER, "read", lambda: 1.0, raising=False)


@pytest.mark.parametrize(
    ("work", "change", "word"),
    [
        (of_globals, change_global, "SCALE was 2.0 and is 3.0"),
        (of_globals, change_item, "TABLE.k"),
        (of_objects, change_attribute, "HOLDER.scale was 2.0 and is 3.0"),
        (of_objects, change_class, "Holder.rate was 0.5 and is 3.0"),
        (of_objects, change_method, "HOLDER.read is new"),
    ],
    ids=["global", "item", "attribute", "class", "method"],
)
def test_what_code_sees_is_guarded(
    work: Callable[[], Any], change: Callable[[Any], None], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = survey.survey([("work", work)], watched(work), Capture(), Call((), {}))
    assert found.reasons == []
    assert found.changed() is None
    assert found.changed() is None, "the fast way, too"
    change(monkeypatch)
    assert word in str(found.changed())


def test_what_code_does_not_name_is_not_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = survey.survey([("work", of_objects)], watched(of_objects), Capture(), Call((), {}))
    monkeypatch.setattr(HOLDER, "unused", 1)
    assert found.changed() is None


@pytest.mark.parametrize("value", [0.0, -0.0, float("nan"), 1, True, "a", None, (1, 2.0)], ids=repr)
def test_values_are_told_apart_as_python_tells_them(value: Any) -> None:
    others = [0.0, -0.0, float("nan"), 1, True, "a", None, (1, 2.0), (1, 2)]
    same = [other for other in others if surroundings.is_same(value, other)]
    assert [repr(one) for one in same] == [repr(value)] * (value == value), "a list holds a NaN by its identity"


# Audits


def test_the_schedule_of_audits() -> None:
    assert [n for n in range(1, 40) if audit.is_due(n, "")] == [2, 3, 5, 9, 17, 33]
    assert [n for n in range(1, 5) if audit.is_due(n, "1")] == [1, 2, 3, 4]
    assert not any(audit.is_due(n, "0") for n in range(1, 40))


class Blind:
    """Guards that see nothing."""

    reasons: tuple[str, ...] = ()
    tensors: frozenset[int] = frozenset()
    library: frozenset[Any] = frozenset()
    n_looks = 0
    by_identity = False
    codes: dict[Any, Any] = {}  # noqa: RUF012
    library_codes: dict[Any, Any] = {}  # noqa: RUF012

    def changed(self) -> None:
        return None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda box: box.update(op="sin"), "graph"),
        (lambda box: box.update(scale=4.0), "number"),
        (lambda box: box.update(tensor=torch.ones(2)), "another tensor"),
        (lambda box: box.update(kept="other"), "returns"),
    ],
    ids=["graph", "number", "state", "result"],
)
def test_audits_find_what_no_guard_sees(change: Callable[[Any], None], word: str) -> None:
    zeros = torch.zeros(2)
    box: dict[str, Any] = {"op": "cos", "scale": 2.0, "tensor": zeros, "kept": "one"}

    def f(x: Any) -> Any:
        return getattr(x, box["op"])() * box["scale"] + box["tensor"], box["kept"]

    step, x = torch.compile(f), torch.ones(2)
    with audited("0"):
        step(x)
    (variants,) = step._variants.values()
    variants.steps[0].now.surroundings = Blind()
    change(box)
    with audited("1"), pytest.warns(UserWarning, match=word):
        found, kept = step(x)
    assert found.tolist() == f(x)[0].tolist(), "what Python records is what is computed"
    assert kept == box["kept"]
    assert step.counters["differences"] == 1
    assert word in step.reasons[-1]


def test_a_signature_that_keeps_differing_is_recorded_at_each_call() -> None:
    box = {"scale": 0.0}

    def f(x: Any) -> Any:
        return x * box["scale"]

    step, x = torch.compile(f), torch.ones(2)
    for n in range(2 * function.TRUST + 3):
        expected = pytest.warns(UserWarning, match="number") if n % 2 and n < 2 * function.TRUST else audited("1")
        with audited("1"), expected:
            assert step(x).tolist() == [box["scale"]] * 2
        for variants in step._variants.values():
            for one in variants.steps:
                one.now.surroundings = Blind()
        box["scale"] += 1.0
    assert step.counters["differences"] == function.TRUST
    assert step.counters["replays"] == 0


def test_what_a_step_returns_besides_tensors_is_new_in_each_run() -> None:
    step = torch.compile(lambda x: (x * 2, {1, 2}, bytearray(b"a"), slice(1, 2), [3]))
    found = [step(torch.ones(1))[1:] for _ in range(8)]
    assert all(one == ({1, 2}, bytearray(b"a"), slice(1, 2), [3]) for one in found)
    assert step.counters["differences"] == 0
    assert step.counters["replays"] >= 3
    for at in (0, 1, 3):
        assert len({id(one[at]) for one in found}) == len(found)


def test_a_returned_gradient_is_the_parameters_own() -> None:
    weight = torch.ones(2, requires_grad=True)

    def grow(x: torch.Tensor) -> torch.Tensor:
        (weight * x).sum().backward()
        return weight.grad

    step = torch.compile(grow)
    with audited("0"):
        for n in range(1, 9):
            grad = step(torch.ones(2))
            assert grad is weight.grad
            assert grad.tolist() == [float(n)] * 2
            if n == 4:
                kept, weight.grad = grad, torch.full((2,), 4.0)
    assert kept.tolist() == [4.0, 4.0]


# Copies


@pytest.mark.parametrize(
    "twin", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))], ids=["copy", "pickle"]
)
def test_a_twin_of_a_compiled_module_is_not_compiled(twin: Callable[[Any], Any]) -> None:
    model = torch.nn.Linear(2, 2)
    model.compile()
    with torch.no_grad():
        for _ in range(5):
            wanted = model(torch.ones(1, 2)).tolist()
        other = twin(model)
        assert other._compiled_call_impl is None
        assert other(torch.ones(1, 2)).tolist() == wanted


@pytest.mark.filterwarnings("ignore:.*cannot be replayed:UserWarning")
@pytest.mark.parametrize("draw", [torch.seed, lambda: torch.Generator().seed()], ids=["default", "new"])
def test_a_seed_of_the_operating_system_is_drawn_anew(draw: Any) -> None:
    step = torch.compile(lambda x: x * (draw() % 1000003))
    assert len({float(step(torch.ones(()))) for _ in range(6)}) == 6
    assert step.counters["replays"] == 0


def test_a_frozen_dataclass_beside_a_step_leaves_its_numbers_free() -> None:
    @dataclass(frozen=True)
    class Settings:
        rate: float = 0.1

    settings = Settings()
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([weight], lr=settings.rate)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        (weight * x * settings.rate).sum().backward()
        optimizer.step()
        return weight.detach().clone()

    with audited("0"):
        for _ in range(8):
            step(torch.ones(2))
    assert step.counters["replays"] >= 5, step.reasons


class Telling:
    """A program that tells types apart beside an optimizer whose numbers change at each call."""

    def __init__(self, optimizer: Any) -> None:
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.optimizer = optimizer([self.weight], lr=0.1)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)

    def step(self, x: torch.Tensor) -> torch.Tensor:
        assert type(x) is torch.Tensor
        self.optimizer.zero_grad()
        (self.weight * x).sum().backward()
        self.optimizer.step()
        return self.weight.detach().clone()


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_telling_types_apart_leaves_the_numbers_free_that_only_the_package_reads(optimizer: Any) -> None:
    program = Telling(optimizer)
    step = torch.compile(program.step)
    with audited("0"):
        for _ in range(6):
            step(torch.ones(2))
            program.schedule.step()
    assert step.counters["captures"] <= 2, step.reasons
    assert step.counters["replays"] >= 4, step.reasons


RATES: dict[str, Callable[[Any], Any]] = {
    "subscript": lambda program: program.optimizer.param_groups[0]["lr"],
    "get": lambda program: program.optimizer.param_groups[0].get("lr"),
    "items": lambda program: next(value for name, value in program.optimizer.param_groups[0].items() if name == "lr"),
    "copy": lambda program: dict(program.optimizer.param_groups[0])["lr"],
    "schedule": lambda program: program.schedule.get_last_lr()[0],
}


@pytest.mark.filterwarnings("ignore:.*captured anew:UserWarning")
@pytest.mark.parametrize("how", RATES)
def test_a_rate_that_the_program_asks_for_is_a_float_until_it_changes_and_free_then(how: str) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    program = SimpleNamespace(optimizer=optimizer, schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9))
    kinds = []

    def step(x: torch.Tensor) -> torch.Tensor:
        rate = RATES[how](program)
        kinds.append(rate.__class__)
        return x * rate

    def plain(x: torch.Tensor) -> torch.Tensor:
        return x * RATES[how](program)

    telling, free = torch.compile(step), torch.compile(plain)
    with audited("0"):
        for n in range(10):
            wanted = [pytest.approx(0.1 * 0.9**n)] * 2
            assert telling(torch.ones(2)).tolist() == wanted
            assert free(torch.ones(2)).tolist() == wanted
            optimizer.step()
            program.schedule.step()
    assert set(kinds) == {float}
    assert free.counters["captures"] == 2, free.reasons
    assert free.counters["replays"] == 8, free.reasons


def test_fork_rng_in_a_step_is_replayed() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.random.fork_rng():
            inner = torch.rand(3)
        return x * (inner + torch.rand(3))

    runs = []
    for run in (step, compiled := torch.compile(step)):
        torch.manual_seed(0)
        with audited("0"):
            runs.append([run(torch.ones(3)).tolist() for _ in range(6)])
    assert runs[0] == runs[1]
    assert compiled.counters["replays"] == 5, compiled.reasons


@pytest.mark.filterwarnings("ignore:.*cannot be replayed:UserWarning")
def test_a_cleared_cache_is_seen_though_its_count_of_misses_comes_back() -> None:
    store = [0.5]

    @functools.lru_cache
    def slope() -> float:
        return store[0]

    step = torch.compile(lambda x: x * slope())
    found = []
    with audited("0"):
        for n in range(10):
            store[0] = 0.5 if n < 5 else 2.0
            if n == 8:
                slope.cache_clear()
            found.append(step(torch.ones(())).item())
    assert found == [0.5] * 8 + [2.0] * 2
