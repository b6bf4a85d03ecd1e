"""Values that lie inside others: windows of data, parts of a pack, tensors whose storages are parts of a flat one."""

import copy
import gc
import io
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.compiler import driver, in_place, serialization, wire
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Dispatch, Program, Slot
from pywebgpu.compiler.schedule import scheduled
from pywebgpu.io import safetensors
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Features, Target
from pywebgpu.ops import indexing, packing, pointwise, scattering
from pywebgpu.runtime import state
from pywebgpu.tensor import flat_parameters
from pywebgpu.tensor.apply import apply
from tests.fuzz import steps
from tests.unit.compiled import for_limits, leaf, only, programs, settle

DEFAULT = Limits()


def pack(*parts: Any, clean: bool = False) -> Any:
    starts, size = packing.layout(tuple(tuple(part.shape) for part in parts), parts[0].dtype)
    return apply(lambda *nodes: packing.pack(*nodes, starts=starts, size=size, clean=clean), *parts)


def compiled(*wanted: Any, written: Any = (), limits: Limits = DEFAULT) -> Program:
    program = for_limits(limits, *wanted, written=written)
    assert wire.to_json(serialization.from_json(wire.to_json(program))) == wire.to_json(program)
    return program


def bound(program: Program) -> list[list[tuple[int, int | None]]]:
    """What each step binds: buffers, and where in them."""
    slots = program.slots
    return [[(slots[at].buffer, slots[at].offset) for at in s.slots] for s in program.steps if isinstance(s, Dispatch)]


# Programs


def test_a_large_result_lies_where_the_pack_lay_that_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients that are divided by the scale of a loss: nothing else reads them."""
    monkeypatch.setattr(in_place, "LARGE", 1)
    a, b, c = leaf(64, 64), leaf(64, 64), leaf(64, 64)
    first, second = a @ b, b @ c
    buffers = {slot.buffer for slot in compiled(pack(first, second) * 0.5).slots[3:]}
    assert len(buffers) == 1
    for wanted, count in (
        ((first.sum(1), pack(first, second) * 0.5), 1),
        ((pack(first, second) * 0.5, first.sum(1)), 2),
    ):
        program = compiled(*wanted)
        assert len({slot.buffer for slot in program.slots if slot.nbytes == 8 * 64 * 64}) == count


def test_halves_of_weights_are_cast_by_one_kernel() -> None:
    """They lie in one vector, and products read their ranges of its halves."""
    size, flat, x = 1 << 18, leaf(1 << 20), leaf(512, 512, dtype=torch.float16)
    cut = [partial(packing.piece, start=at * size, shape=(512, 512)) for at in range(3)]
    weights = [apply(one, flat).half() for one in cut]
    program = compiled(*(x @ weight for weight in weights))
    names = [program.kernels[step.kernel].name for step in program.steps if isinstance(step, Dispatch)]
    assert names.count("map_cast") == 1
    products = [at for at, name in enumerate(names) if "matmul" in name]
    assert len(products) == 3
    (halves,) = set.intersection(*({buffer for buffer, _ in bound(program)[at]} for at in products)) - {0, 1}
    starts = {offset for at in products for buffer, offset in bound(program)[at] if buffer == halves}
    assert starts == {0, 2 * size, 4 * size}
    apart = compiled(x @ weights[0])
    assert len(apart.kernels) <= 2, "half of the vector would be cast for nothing"


def test_rows_are_added_where_a_product_wrote() -> None:
    a, b, numbers, updates = leaf(3000, 8), leaf(8, 64), leaf(70, dtype=torch.int64), leaf(70, 64)
    added = apply(
        lambda base, index, rows: indexing.scatter(pointwise.full(0.0, base.spec), index, rows, mode="add"),
        leaf(3000, 64), numbers, updates,
    )  # fmt: skip
    program = compiled(a @ b + added)
    (output,) = program.outputs
    buffer = program.slots[output].buffer
    assert len(program.steps) == 4, "a product, the order of the numbers, the runs, those that blocks share"
    assert sum((buffer, 0) in places or (buffer, None) in places for places in bound(program)) == 3


@pytest.mark.parametrize(("updates", "names"), [(70, {"few"}), (scattering.FEW + 1, {"blocks", "carried"})])
def test_few_rows_are_added_by_one_kernel_on_a_gpu(updates: int, names: set[str]) -> None:
    added = leaf(3000, 64).index_add(0, leaf(updates, dtype=torch.int64), leaf(updates, 64))
    program = compile_graph((added._node,), Target(True, DEFAULT, Features(family="nvidia")))
    found = {kernel.name for kernel in program.kernels if "scatter" in kernel.name}
    assert found == {f"scatter_{name}_add" for name in names}


def test_rows_of_a_value_of_many_windows_are_added_window_by_window() -> None:
    x, numbers, updates = leaf(3000, 64), leaf(70, dtype=torch.int64), leaf(70, 64)
    for nbytes, way in ((1 << 19, "scatter_blocks_add"), (1 << 16, "scatter_add")):
        program = compiled(x.index_add(0, numbers, updates), limits=replace(DEFAULT, binding_bytes=nbytes))
        assert way in {kernel.name for kernel in program.kernels}


def test_rows_are_added_in_the_buffer_that_the_result_takes_over() -> None:
    x, numbers, updates = leaf(3000, 64), leaf(70, dtype=torch.int64), leaf(70, 64)
    program = only(lambda: x.index_add_(0, numbers, updates))
    assert len(program.steps) == 4, "the numbers are checked and put in order, and nothing is copied"
    assert program.slots[program.outputs[0]].buffer == program.slots[program.inputs[0]].buffer


def test_a_pack_is_begun_after_what_reads_the_same() -> None:
    """A gradient of weights begins the vector of all gradients: its memory is not there while the other is made."""
    x, w = leaf(64, 8), leaf(8, 4096)
    coming = (x @ w).softmax(1)
    program = compiled(pack(x.t() @ coming, x.sum(0)), coming @ w.t())
    flat, _ = (program.slots[at].buffer for at in program.outputs)
    products = [
        at for at, step in enumerate(bound(program)) if program.kernels[program.steps[at].kernel].name[:6] == "matmul"
    ]
    begins = [flat in {buffer for buffer, _ in bound(program)[at]} for at in products]
    assert begins == [False, False, True]


def test_parts_are_computed_in_their_places() -> None:
    x, w = leaf(8, 16), leaf(16, 5)
    flat = pack((x @ w).relu(), x.sum(0), x.exp().t().reshape(-1))
    program = compiled(flat)
    output = program.slots[program.outputs[0]].buffer
    written = [place for step in bound(program) for place in step if place[0] == output]
    assert sorted(written) == [(output, 0), (output, 256), (output, 512)]
    assert program.scratch == ()


def test_a_pack_of_data_is_a_copy_by_few_kernels() -> None:
    many = [leaf(n) for n in range(1, 31)]
    assert len(compiled(pack(*many)).steps) == 5
    assert len(compiled(pack(*many, clean=True)).steps) == 5, "what joins neighbours also writes what lies between"
    few = compiled(pack(*many), limits=Limits(bindings=16))
    assert len(few.steps) == 3


@pytest.mark.parametrize("clean", [False, True])
def test_gaps_cost_a_kernel_where_they_matter(clean: bool) -> None:
    x = leaf(8, 16)
    program = compiled(pack(x.sum(0), x.exp(), clean=clean).sin())
    assert [kernel.name for kernel in program.kernels].count("pack_gaps") == clean
    assert compiled(pack(x.exp(), x.sin(), clean=True)).kernels[0].name.startswith("map"), "there are no gaps"


def test_what_is_wanted_for_itself_is_stored_twice_by_one_kernel() -> None:
    x = leaf(8, 16) @ leaf(16, 8)
    program = compiled(x, pack(x, x))
    assert len(program.steps) == 1
    assert len({place for step in bound(program) for place in step}) == 5


def test_equal_layers_share_kernels() -> None:
    def layers(x: Any, parts: list[Any]) -> Program:
        for weight, bias in zip(parts[::2], parts[1::2], strict=True):
            x = (x @ weight + bias).relu()
        return compiled(x)

    x, flat = leaf(16, 32), leaf(4 * 1088)
    places = [start + place for start in range(0, 4 * 1088, 1088) for place in (0, 1024)]
    separate = [leaf(32) if at % 1088 else leaf(32, 32) for at in places]
    pieces = [apply(packing.piece, flat, start=at, shape=(32,) if at % 1088 else (32, 32)) for at in places]
    program, apart = layers(x, pieces), layers(x, separate)
    assert program.kernels == apart.kernels, "no kernel sees where a window starts"
    assert {offset for step in bound(program) for _, offset in step if offset} == {4 * at for at in places if at}


@pytest.mark.parametrize(
    ("view", "offset"),
    [
        (lambda x: x[2:6], 512),
        (lambda x: x[4], 1024),
        (lambda x: x[2:4, :].reshape(4, 32)[2:], 768),
        (lambda x: x[1:3, 3], None),
        (lambda x: x[:, 3:4], None),
        (lambda x: x[::2], None),
        (lambda x: x.reshape(-1)[32:96], None),
    ],
)
def test_contiguous_aligned_slices_of_data_are_windows(view: Any, offset: int | None) -> None:
    x = leaf(8, 64, grad=True)
    program = compiled(view(x) * 2)
    assert bound(program)[0][0] == (program.slots[0].buffer, offset)


def test_a_window_is_not_written_around() -> None:
    """A kernel that reads a window of data does not write the data in place; one that runs later does."""
    x = leaf(8, 64, grad=True)
    node = x._storage.node
    halves = x[:4] * 2 + x[4:]
    for_limits(DEFAULT, torch.cat([halves, halves]) + x, written=((0, 0),))
    later = pointwise.mul(node, apply(lambda h: h, halves.sum().expand(8, 64))._node)
    program = for_limits(DEFAULT, halves, later, written=((1, 0),))
    assert program.written == ((1, 0),)


def test_a_part_that_is_read_beside_another_has_its_own_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """WebGPU refuses a dispatch that reads one range of a buffer and writes another."""
    x, w = leaf(64, 64), leaf(64, 64)
    first = x @ w
    wanted = pack(first, first @ w).exp()
    counted = Mock(side_effect=scheduled)
    monkeypatch.setattr(driver, "scheduled", counted)
    program = compiled(wanted)
    assert len(program.steps) == 3, "the copy is made by the kernel of the value"
    assert counted.call_count == 1, "only the part is moved"


def test_engines_refuse_what_the_compiler_never_makes(device: str) -> None:
    """One range of a buffer read and another written by one dispatch: js_bridge/test holds Dawn to the same."""
    if device != "webgpu":
        pytest.skip("other devices have no engine")
    gpu = torch.ones(4, device=device)._storage.device
    program = compiled(leaf(64).exp())
    slots = (program.slots[0], *(Slot(program.slots[1].spec, program.slots[1].buffer, at) for at in (0, 256)))
    wrong = replace(
        program,
        slots=(*slots, Slot(Spec((128,), torch.float32), program.slots[1].buffer)),
        steps=(replace(program.steps[0], slots=(1, 2)),),
        sizes=(256, 512),
        outputs=(3,),
    )
    buffer = gpu.upload(bytes(256), Spec((64,), torch.float32))
    with pytest.raises(Exception, match=r"(?i)usage"):
        gpu.run(gpu.load(wrong), [buffer], [], [None])


def test_a_pack_of_pieces_in_their_places_is_nothing() -> None:
    flat = leaf(192)
    pieces = [apply(packing.piece, flat, start=start, shape=(5, 10)) for start in (0, 64, 128)]
    assert len(compiled(pack(*pieces) * 2).steps) == 1
    assert len(compiled(pack(*pieces, clean=True) * 2).steps) == 2
    assert len(compiled(pack(*reversed(pieces)) * 2).steps) == 2


# Values


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(0)


SIMPLE = ("data", "computed", "product", "turned", "window", "constant", "sum")
KINDS = (*SIMPLE, "again", "kept", "read", "empty", "packed", "number")


def part(kind: str, made: list[Any], draw: np.random.Generator, device: str) -> tuple[Any, list[Any]]:
    """A part of a pack, and what else is wanted of the same values."""
    data = lambda *shape: torch.from_numpy(draw.normal(size=shape).astype("float32")).to(device)  # noqa: E731
    match kind:
        case "data":
            return data(3, 7), []
        case "computed":
            return (data(9, 5) * 2).exp(), []
        case "product":
            return data(6, 4) @ data(4, 11), []
        case "turned":
            return (data(5, 3) + 1).t(), []
        case "window":
            return data(200)[64:139], []
        case "constant":
            return torch.full((70,), 2.5, device=device), []
        case "sum":
            return data(33, 130).sum(0), []
        case "again" if made:
            return made[-1], []
        case "kept":
            kept = data(8, 8).sin()
            return kept, [kept]
        case "read" if made:
            return made[-1].reshape(-1).tanh() @ torch.full((made[-1].numel(), 64), 1 / 64, device=device), []
        case "packed" if made:
            return pack(*made[:2], clean=True), []
        case "empty":
            return data(0, 3).exp(), []
        case _:
            return data(1).reshape(()), []


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=12), st.booleans(), st.integers(0, 100))
@steps.PROFILE
def test_packs_hold_their_parts(device: str, kinds: list[str], clean: bool, seed: int) -> None:
    def run(place: str) -> list[Any]:
        made: list[Any] = []
        wanted: list[Any] = []
        numbers = np.random.default_rng(seed)
        for kind in kinds:
            value, more = part(kind, made, numbers, place)
            made.append(value)
            wanted += more
        flat = pack(*made, clean=clean)
        starts, _ = packing.layout(tuple(tuple(value.shape) for value in made), made[0].dtype)
        pieces = [
            apply(packing.piece, flat * 2, start=start, shape=tuple(value.shape))
            for start, value in zip(starts, made, strict=True)
        ]
        return [*wanted, *pieces, *([flat.abs().sum()] if clean else [])]

    for found, expected in zip(run(device), run("cpu"), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


# Tensors


def trio(device: str = "cpu") -> list[Any]:
    return [torch.arange(n, dtype=torch.float32, device=device) + n for n in (3, 70, 5)]


def test_a_flat_tensor_and_its_tensors_are_one(device: str) -> None:
    tensors = trio(device)
    before = [t.tolist() for t in tensors]
    view = tensors[1][10:12]
    flat = flat_parameters.gather(tensors)
    assert [t.tolist() for t in tensors] == before
    assert all(t._storage.whole is not None for t in tensors)
    flat.mul_(2.0)
    assert [t.tolist() for t in tensors] == [[2 * x for x in values] for values in before]
    assert view.tolist() == [2 * x for x in before[1][10:12]]
    again = flat_parameters.gather(tensors)
    assert again._storage is flat._storage, "nothing is copied"
    view.zero_()
    assert tensors[1][9:13].tolist() == [2 * before[1][9], 0, 0, 2 * before[1][12]]
    assert tensors[1]._storage.whole is None, "a write of its own takes a tensor out"
    flat.zero_()
    assert tensors[0].sum().item() == 0
    assert tensors[1].sum().item() != 0
    assert flat_parameters.gather(tensors)._storage is not flat._storage


def test_versions_never_fall() -> None:
    tensors = trio()
    seen = [tensors[0]._version]
    for _ in range(2):
        flat = flat_parameters.gather(tensors)
        seen.append(tensors[0]._version)
        flat.add_(1)
        seen.append(tensors[0]._version)
        tensors[0].add_(1)
        seen.append(tensors[0]._version)
    assert all(a <= b for a, b in pairwise(seen))
    assert seen[-1] > seen[0]


def test_a_write_to_one_makes_no_other_stale() -> None:
    a, b = (t.requires_grad_() for t in trio()[:2])
    flat_parameters.gather([a, b])
    first, second = (a * a).sum(), (b * b).sum()
    with torch.no_grad():
        b.mul_(2)
    first.backward()
    assert a.grad.tolist() == (2 * a).tolist()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        second.backward()


def test_a_step_makes_saved_values_stale() -> None:
    model = nn.Linear(4, 4, device="cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for reads in (False, True):
        loss = model(model(torch.ones(2, 4, device="cpu"))).sum()
        if reads:
            loss.item()
        loss.backward(retain_graph=True)
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_storages_end_with_their_last_tensor() -> None:
    settle()
    counters = torch.memory.stats("null")
    before = counters["live_buffers"], counters["live_bytes"]
    tensors = trio("null")
    flat_parameters.gather(tensors).add_(1)
    settle()
    held = tensors[0]
    del tensors
    gc.collect()
    assert torch.memory.stats("null")["live_buffers"] == before[0] + 1
    held.add_(1)
    settle()
    gc.collect()
    after = torch.memory.stats("null")
    assert (after["live_buffers"], after["live_bytes"]) == (before[0] + 1, before[1] + 12)


def model(device: str) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 70), nn.LayerNorm(70), nn.Tanh(), nn.Linear(70, 3)).to(device)


def train(model: Any, optimizer: Any, n_steps: int = 3, *, device: str) -> list[float]:
    x = torch.linspace(-1, 1, 30, device=device).reshape(6, 5)
    losses = []
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_copies_and_files_know_nothing_of_it(device: str, tmp_path: Any) -> None:
    trained = model(device)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=0.05)
    train(trained, optimizer, device=device)
    twin, state = copy.deepcopy(trained), copy.deepcopy(optimizer.state_dict())
    file = io.BytesIO()
    torch.save({"model": trained.state_dict(), "optimizer": optimizer.state_dict()}, file)
    safetensors.save_file(trained.state_dict(), tmp_path / "model.safetensors")
    expected = train(trained, optimizer, device=device)
    assert not any(p._storage.whole is not None for p in twin.parameters())
    file.seek(0)
    saved = torch.load(file, device)
    weights = safetensors.load_file(tmp_path / "model.safetensors")
    for source, values in ((state, weights), (saved["optimizer"], saved["model"])):
        other = model(device)
        other.load_state_dict(values)
        again = torch.optim.AdamW(other.parameters(), lr=0.05)
        again.load_state_dict(source)
        assert train(other, again, device=device) == pytest.approx(expected, rel=1e-5)
    fresh = torch.optim.AdamW(twin.parameters(), lr=0.05)
    fresh.load_state_dict(state)
    assert train(twin, fresh, device=device) == pytest.approx(expected, rel=1e-5)


def test_flat_tensors_are_cut_at_a_size(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = model(device)
    expected = train(whole, torch.optim.Adam(whole.parameters()), device=device)
    monkeypatch.setattr(flat_parameters, "largest", lambda storage: 4 * 400)
    cut = model(device)
    optimizer = torch.optim.Adam(cut.parameters())
    assert train(cut, optimizer, device=device) == pytest.approx(expected, rel=1e-5)
    wholes = {id(p._storage.whole) for p in cut.parameters() if p._storage.whole is not None}
    assert len(wholes) == 2


# Steps


def steps_of(module: Any, optimizer: Any, n_steps: int, *, clip: bool = False) -> list[Program]:
    x = leaf(6, 5)

    def run() -> None:
        optimizer.zero_grad()
        module(x).square().mean().backward()
        if clip:
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()

    return programs(lambda: [run() for _ in range(n_steps)])


class Nothing(torch.optim.Optimizer):
    def step(self, closure: Any = None) -> None: ...


@pytest.mark.parametrize("rule", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop])
def test_all_parameters_are_updated_by_one_dispatch(rule: Any) -> None:
    module = model("null")
    forward = steps_of(module, Nothing(module.parameters(), {}), 1)
    module = model("null")
    found = steps_of(module, rule(module.parameters(), lr=0.1), 4)
    assert len(found) == 1, "the first step is the program of all steps"
    assert len(found[0].steps) <= len(forward[0].steps) + 1
    n_written = len(found[0].written)
    assert n_written == {torch.optim.SGD: 1, torch.optim.AdamW: 3}.get(rule, 2), "parameters and states stay in place"


def test_clipping_is_a_norm_and_part_of_the_update() -> None:
    counts = []
    for clip in (False, True):
        module = model("null")
        found = steps_of(module, torch.optim.AdamW(module.parameters()), 3, clip=clip)
        counts.append(len(found[-1].steps))
    assert counts[1] <= counts[0] + 3


def test_a_model_without_steady_gradients_is_not_packed_each_time() -> None:
    module = model("null")
    optimizer = torch.optim.Adam(module.parameters())
    params = list(module.parameters())
    for n in range(4):
        module(leaf(6, 5)).sum().backward()
        params[n].grad = None
        optimizer.step()
        optimizer.zero_grad()
    assert params[0]._storage.whole is None
    for _ in range(2):
        module(leaf(6, 5)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    settle()
    assert sum(p._storage.whole is not None for p in params) > 1


def test_reading_a_parameter_leaves_the_program_as_it_is() -> None:
    module = nn.Linear(5, 5, device="cpu")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(2):
        train(module, optimizer, 1, device="cpu")
    before = state.default.counters["program_misses"]
    module.weight.tolist()
    module.weight.tolist()
    read = state.default.counters["program_misses"] - before
    train(module, optimizer, 1, device="cpu")
    assert state.default.counters["program_misses"] - before == read <= 1
