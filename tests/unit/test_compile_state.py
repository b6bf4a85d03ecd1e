"""What a compiled step is given, reads and writes: all calls equal eager ones, whatever happens between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from tests.unit.replays import Program, Wrap, adam, audited, same, trained

# Arguments


@pytest.fixture(autouse=True)
def _replayed_at_once() -> Iterator[None]:
    """What is claimed here of replays is claimed of every call after the first."""
    with audited("0"):
        yield


def returned_views(wrap: Wrap, make: Any) -> list[Any]:
    step = wrap(lambda x: (x[0], x.detach(), x.sum()))
    return [step(make([[float(n)], [1.0]])) for n in range(3)]


def parts_of_larger_tensors(wrap: Wrap, make: Any) -> list[Any]:
    _, model, _, _ = trained(lambda f: f, make, adam)
    step = wrap(lambda g: g.sum())
    return [step(p.detach()) for _ in range(2) for p in (model[0].weight, model[1].weight)]


def a_state_that_is_passed(wrap: Wrap, make: Any) -> list[Any]:
    w = make([1.0, 2.0])
    step = wrap(lambda x: x * 10 + w)
    return [step(w), step(make([5.0, 5.0])), step(w)]


def an_argument_that_becomes_the_state(wrap: Wrap, make: Any) -> list[Any]:
    w = make([1.0, 2.0])

    def f(x: Any) -> Any:
        w.add_(1.0)
        return x * 2

    step = wrap(f)
    return [step(make([5.0, 5.0])), step(make([5.0, 6.0])), step(w), step(w), w]


def history_that_flows_in(wrap: Wrap, make: Any) -> list[Any]:
    w = make([1.0, 2.0], requires_grad=True)

    def f(h: Any) -> Any:
        loss = (h * h).sum()
        loss.backward()
        return loss.detach()

    step, found = wrap(f), []
    for n in (1.0, 2.0, 3.0):
        w.grad = None
        found += [step((w * n).sin()), w.grad]
    return found


def leaves_with_gradients(wrap: Wrap, make: Any) -> list[Any]:
    def f(x: Any) -> None:
        x.grad = None
        (x * x).sum().backward()

    step, found = wrap(f), []
    x, y = (make([n, 1.0], requires_grad=True) for n in (2.0, 3.0))
    for leaf in (x, y, x, y):
        step(leaf)
        found += [None if one.grad is None else one.grad.clone() for one in (x, y)]
    return found


def slices_that_are_written(wrap: Wrap, make: Any) -> list[Any]:
    data = make([float(n) for n in range(10)])
    step = wrap(lambda part: part.add_(1.0) * part.detach().sum())
    return [*[step(data[at : at + 3]) for at in (0, 2, 5, 0)], data]


def views_of_batches(wrap: Wrap, make: Any) -> list[Any]:
    step, found = wrap(lambda x: x.add_(1.0).sum()), []
    for n in range(3):
        batch = make([[float(n), 1.0, 2.0], [3.0, 4.0, 5.0]])
        found += [step(batch[:, 1:]), step(batch[:, :-1]), batch]
    with torch.no_grad():
        leaf = make([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], requires_grad=True)
        found += [step(leaf[:, 1:]), leaf.detach().clone(), step(leaf[:, 1:]), leaf.detach()]
    return found


def arrays_that_change(wrap: Wrap, make: Any) -> list[Any]:
    x, array = make([1.0, 2.0]), np.ones(2, "float32")
    step = wrap(lambda x, array: x * torch.from_numpy(array).to(x.device))
    found = [step(x, array), step(x, array)]
    array[0] = 3.0
    return [*found, step(x, array)]


@dataclass
class Batch:
    x: Any
    scale: float


def dataclasses_in_and_out(wrap: Wrap, make: Any) -> list[Any]:
    step = wrap(lambda batch: Batch(batch.x * batch.scale, batch.scale))
    results = [step(Batch(make([float(n)]), n + 0.5)) for n in range(3)]
    return [[result.x, result.scale] for result in results]


def containers_that_are_written(wrap: Wrap, make: Any) -> list[Any]:
    def f(batch: Any, seen: Any) -> Any:
        batch["y"] = batch["x"] * batch["scale"]
        seen.append(batch["y"])
        return batch["y"]

    step, found, seen = wrap(f), [], []
    for n in range(3):
        batch = {"x": make([float(n)]), "scale": 0.5}
        found += [step(batch, seen), sorted(batch), batch["y"]]
    return [*found, seen]


# State


def copies_of_other_tensors(wrap: Wrap, make: Any) -> list[Any]:
    a, b = make([1.0, 2.0]), make([3.0, 4.0])

    def f(x: Any) -> Any:
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)
        b.add_(x)
        return a + b

    step = wrap(f)
    return [*[step(make([1.0, n])) for n in (1.0, 2.0, 3.0)], a, b]


def an_argument_that_is_copied_in(wrap: Wrap, make: Any) -> list[Any]:
    w, found = make([1.0, 2.0]), []
    step = wrap(lambda x: w.copy_(x).sum())
    for n in range(4):
        x = make([float(n), 2.0])
        found.append(step(x))
        w.add_(1.0)
        found += [w.clone(), x]
    return found


def tensors_that_shared_a_value(wrap: Wrap, make: Any) -> list[Any]:
    a, b = make([1.0, 2.0]), make([0.0, 0.0])
    b.copy_(a)

    def f(x: Any) -> Any:
        b.add_(x)
        return a * 1 + b

    step = wrap(f)
    return [*[step(make([1.0, 1.0])) for _ in range(3)], a, b]


def constants_that_are_returned(wrap: Wrap, make: Any) -> list[Any]:
    step, found = wrap(lambda x: (make([1.0, 2.0]), x * 2)), []
    for n in range(3):
        constant, y = step(make([float(n)]))
        found += [constant.clone(), y]
        constant.add_(5.0)
    return found


def data_that_is_replaced(wrap: Wrap, make: Any) -> list[Any]:
    w = make([1.0, 2.0])
    step, x = wrap(lambda x: x + w), make([0.0, 0.0])
    found = [step(x), step(x)]
    w.data = make([5.0, 6.0])
    return [*found, step(x)]


def parameters_that_freeze(wrap: Wrap, make: Any) -> list[Any]:
    step, model, _, x = trained(wrap, make, adam)
    found = [step(x), step(x)]
    for flag in (False, True):
        model[0].requires_grad_(flag)
        found += [step(x), step(x), *model.parameters(), *[p.grad for p in model.parameters()]]
    return found


def gradients_that_are_returned(wrap: Wrap, make: Any) -> list[Any]:
    w = make([1.0, 2.0], requires_grad=True)

    def f(x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return w.grad

    step = wrap(f)
    return [step(make([float(n), 1.0])) for n in range(4)]


def gradients_that_are_passed(wrap: Wrap, make: Any) -> list[Any]:
    w, found = torch.nn.Parameter(make([1.0, 2.0])), []
    update = torch.optim.SGD([w], lr=0.1)

    def f(x: Any) -> Any:
        w.grad = x
        update.step()
        return w.sum().detach()

    step = wrap(f)
    for n in range(4):
        x = make([float(n), 2.0])
        found += [step(x), w.grad is x, w.grad]
    return [*found, w]


def hooks_of_tensors(wrap: Wrap, make: Any) -> list[Any]:
    w = make([1.0, 2.0], requires_grad=True)

    def f(x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return w.grad

    step, x = wrap(f), make([1.0, 3.0])
    found = [step(x), step(x)]
    handle = w.register_hook(lambda grad: grad * 2)
    found.append(step(x))
    handle.remove()
    return [*found, step(x)]


def hooks_of_modules(wrap: Wrap, make: Any) -> list[Any]:
    x = make([1.0, 2.0])
    model = torch.nn.Linear(2, 2).to(x.device)
    step = wrap(lambda x: model(x).detach())
    found = [step(x), step(x)]
    handle = model.register_forward_hook(lambda module, given, out: out * 2)
    found.append(step(x))
    handle.remove()
    return [*found, step(x)]


def tensors_of_modules(wrap: Wrap, make: Any) -> list[Any]:
    x = make([1.0, 2.0])
    model = torch.nn.Linear(2, 2).to(x.device)
    old = model.mask = make([1.0, 0.0])
    model.register_forward_hook(lambda module, given, out: out * module.mask)
    step = wrap(lambda x: model(x).detach())
    found = [step(x), step(x)]
    model.mask = make([0.0, 1.0])
    return [*found, step(x), old]


def counters_of_modules(wrap: Wrap, make: Any) -> list[Any]:
    class Counting(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x * self.calls

    step = wrap(Counting())
    with torch.no_grad():
        return [step(make([1.0])) for _ in range(4)]


def batch_norm_that_averages(wrap: Wrap, make: Any) -> list[Any]:
    model = torch.nn.BatchNorm1d(2, momentum=None).to(make([0.0]).device)
    step = wrap(lambda x: model(x).detach())
    return [*[step(make([[float(n), 1.0], [2.0, 0.5]])) for n in range(4)], model.running_mean]


ARGUMENTS = (
    returned_views,
    parts_of_larger_tensors,
    a_state_that_is_passed,
    an_argument_that_becomes_the_state,
    history_that_flows_in,
    leaves_with_gradients,
    slices_that_are_written,
    views_of_batches,
    arrays_that_change,
    dataclasses_in_and_out,
    containers_that_are_written,
)
STATE = (
    copies_of_other_tensors,
    an_argument_that_is_copied_in,
    tensors_that_shared_a_value,
    constants_that_are_returned,
    data_that_is_replaced,
    parameters_that_freeze,
    gradients_that_are_returned,
    gradients_that_are_passed,
    hooks_of_tensors,
    hooks_of_modules,
    tensors_of_modules,
    counters_of_modules,
    batch_norm_that_averages,
)


@pytest.mark.one_in(webgpu=2)
@pytest.mark.filterwarnings("ignore:.*captured anew:UserWarning", "ignore:.*cannot be replayed:UserWarning")
@pytest.mark.parametrize("program", [*ARGUMENTS, *STATE], ids=lambda program: program.__name__)
def test_steps_equal_eager_ones(program: Program, device: str) -> None:
    same(program, device)


def test_views_of_a_batch_that_has_a_name_are_replayed(device: str) -> None:
    step = torch.compile(lambda x, y: (x - y).sum())
    for n in range(6):
        batch = torch.arange(5.0, device=device) * n
        assert step(batch[1:], batch[:-1]).item() == 4.0 * n
    assert step.counters["captures"] == 1


def test_an_index_out_of_range_is_told_in_a_replay_too(device: str) -> None:
    rows = torch.arange(6.0, device=device).reshape(3, 2)
    step = torch.compile(lambda index: rows[index].sum())
    for index, total in ((0, 1.0), (2, 9.0), (5, None), (1, 5.0)):
        given = torch.tensor([index], device=device)
        if total is None:
            with pytest.raises(IndexError):
                step(given).item()
        else:
            assert step(given).item() == total


def test_numbers_that_are_state_are_checked_once_they_may_be_others(device: str) -> None:
    rows, index = torch.arange(6.0, device=device).reshape(3, 2), torch.tensor([1], device=device)
    step = torch.compile(lambda: rows[index].sum())
    assert [step().item(), step().item()] == [5.0, 5.0]
    index.copy_(torch.tensor([2], device=device))
    assert step().item() == 9.0
    index.copy_(torch.tensor([7], device=device) - 1)
    with pytest.raises(IndexError):
        step().item()


def test_a_mode_that_is_changed_and_put_back_inside_is_captured_once(device: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)).to(device)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def scores(x: Any) -> Any:
        model.eval()
        found = model(x)
        model.train()
        return found

    step, x = torch.compile(scores), torch.ones(1, 2, device=device)
    assert step(x).tolist() == step(x).tolist() == step(x).tolist()
    assert (step.counters["captures"], step.counters["replays"]) == (1, 2)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
def test_parameters_that_a_step_writes_besides_its_optimizer_come_to_rest(make: Any, device: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).to(device)
    optimizer = make(model.parameters(), lr=0.1)

    @torch.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.5, 0.5)
        return loss.detach()

    for _ in range(8):
        step(torch.ones(1, 2, device=device))
    assert step.counters["captures"] <= 4, step.reasons
    assert step.counters["replays"] + step.counters["audits"] >= 4


def test_steps_of_one_function_list_once_what_stands_around_them() -> None:
    model = torch.nn.Linear(2, 2).to("cpu")
    step = torch.compile(lambda x: model(x).sum().detach())
    for n in range(1, 6):
        step(torch.ones(n, 2, device="cpu"))
    around = [variants.steps[0].now.surroundings for variants in step._variants.values()]
    lists = {id(part): len(part) for known in around for entry in known.entries for part in (entry.keys, entry.values)}
    alone = sum(len(entry.keys) + len(entry.values) for entry in around[0].entries)
    assert len(around) == 5
    assert sum(lists.values()) < 1.3 * alone
