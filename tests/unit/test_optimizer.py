"""What all update rules share: groups, states, state dicts, hooks; and clipping, which runs before them."""

import copy
import io
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu
from pywebgpu import optim
from pywebgpu.autodiff import grad_mode
from pywebgpu.io import state
from pywebgpu.nn import utils
from pywebgpu.optim import muon
from pywebgpu.tensor import create, tensor

pytestmark = pytest.mark.usefixtures("default_device")

START = ([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], [3.0, -2.0])
SLOPES = ([[0.1, -0.2, 0.3], [0.4, 0.0, -0.6]], [-0.7, 0.8])

RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "dampened": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    "nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "adam": ("Adam", {"lr": 0.05}),
    "adam with decay": ("Adam", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}),
    "adam that forgets": ("Adam", {"betas": (0.0, 0.5), "maximize": True}),
    "adamw": ("AdamW", {"lr": 0.05, "weight_decay": 0.1}),
    "adamw amsgrad": ("AdamW", {"lr": 0.05, "amsgrad": True, "eps": 1e-3}),
    "radam": ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    "radam with decay": ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "rmsprop": ("RMSprop", {"weight_decay": 0.1}),
    "rmsprop centered": ("RMSprop", {"centered": True, "momentum": 0.9, "alpha": 0.8}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.2, "weight_decay": 0.1}),
    "adadelta": ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}),
    "nadam": ("NAdam", {"lr": 0.05, "betas": (0.8, 0.9), "momentum_decay": 0.1}),
    "nadam with decay": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    "adamax": ("Adamax", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    "rprop": ("Rprop", {"lr": 0.05, "etas": (0.4, 1.5), "step_sizes": (0.01, 0.1)}),
    "asgd": ("ASGD", {"lr": 0.05, "lambd": 0.1, "alpha": 0.5, "t0": 2, "weight_decay": 0.1}),
    "adafactor": ("Adafactor", {"lr": 0.5}),
    "adafactor with decay": (
        "Adafactor",
        {"lr": 0.3, "beta2_decay": -0.5, "eps": (1e-3, 0.1), "d": 1.5, "weight_decay": 0.1, "maximize": True},
    ),
}


def counted(module: Any, rule: str, *, is_compiled: bool = False) -> list[Any]:
    """What a program sees of counts: as they go on, and as it writes to them."""
    name, options = RULES[rule]
    parameter = module.tensor(START[0]).requires_grad_()
    slopes = module.tensor(SLOPES[0])
    optimizer = getattr(module.optim, name)([parameter], **options)

    def step(slopes: Any) -> None:
        (parameter * slopes).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step = pywebgpu.compile(step) if is_compiled else step
    step(slopes)
    state = optimizer.state[parameter]
    count = state.get("step")
    facts: list[Any] = [
        (key, str(x.dtype), tuple(x.shape), str(x.device.type)) for key, x in state.items() if x is count
    ]
    for number in range(6):
        step(slopes)
        if count is not None:
            facts += [count.item(), count is state["step"], optimizer.state_dict()["state"][0]["step"].item()]
        if count is not None and number == 2:
            count.fill_(7)
        if count is not None and number == 4:
            state["step"] += 1
    restored = copy.deepcopy(optimizer.state_dict()["state"])
    return [*facts, parameter.tolist(), {key: x.tolist() for key, x in restored.get(0, {}).items() if x is not None}]


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_counts_are_tensors_that_go_on_and_take_writes_as_torchs_do(rule: str, is_compiled: bool, device: str) -> None:
    facts, wanted = counted(pywebgpu, rule, is_compiled=is_compiled), counted(torch, rule)
    assert facts[:-2] == wanted[:-2]
    for ours, theirs in zip(facts[-2:], wanted[-2:], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


MUON: dict[str, dict[str, Any]] = {
    "default": {"lr": 0.02},
    "plain": {"lr": 0.02, "nesterov": False, "momentum": 0.5, "weight_decay": 0.0},
    "like adamw": {"lr": 0.02, "adjust_lr_fn": "match_rms_adamw"},
    "steps": {"lr": 0.02, "ns_steps": 3, "eps": 1e-4, "ns_coefficients": (3.0, -3.5, 1.5), "adjust_lr_fn": "original"},
}
SHAPES = [(5, 7), (8, 16), (5, 7), (9, 3), (8, 16), (5, 7)]


def draw(step: int) -> list[np.ndarray]:
    random = np.random.default_rng(step)
    return [random.standard_normal(shape).astype("float32") for shape in SHAPES]


def with_muon(module: Any, options: dict[str, Any], device: str) -> list[np.ndarray]:
    """20 steps from gradients that depend on nothing else; the parameters at the end."""
    where = {} if module is torch else {"device": device}
    params = [module.tensor(values, **where).requires_grad_() for values in draw(0)]
    optimizer = (torch.optim if module is torch else optim).Muon(params, **options)
    for step in range(20):
        for parameter, gradient in zip(params, draw(step + 1), strict=True):
            parameter.grad = module.tensor(gradient, **where)
        optimizer.step()
    assert all(tuple(optimizer.state[p]["momentum_buffer"].shape) == tuple(p.shape) for p in params)
    return [parameter.detach().cpu().numpy() for parameter in params]


@pytest.mark.parametrize("name", MUON)
def test_muon_moves_as_torchs(name: str, device: str) -> None:
    """torch rounds the matrices to bfloat16: of a step of about `lr` an element it may differ by some hundredths."""
    for found, wanted in zip(with_muon(create, MUON[name], device), with_muon(torch, MUON[name], "cpu"), strict=True):
        np.testing.assert_allclose(found, wanted, atol=0.02)


def test_muon_makes_singular_values_equal(device: str) -> None:
    """By the formula in float64, of which the rule rounds each product to the 8 bits of a bfloat16."""
    x = np.random.default_rng(0).standard_normal((2, 12, 5))
    found = muon.orthogonal(create.tensor(x.astype("float32"), device=device), (3.4445, -4.775, 2.0315), 5, 1e-7)
    wanted = x.transpose(0, 2, 1) / np.linalg.norm(x, axis=(1, 2), keepdims=True)
    for _ in range(5):
        gram = wanted @ wanted.transpose(0, 2, 1)
        wanted = 3.4445 * wanted + (-4.775 * gram + 2.0315 * gram @ gram) @ wanted
    np.testing.assert_allclose(found.cpu().numpy(), wanted.transpose(0, 2, 1), atol=0.02)
    values = np.linalg.svd(found.cpu().numpy(), compute_uv=False)
    assert 0.5 < values.min() <= values.max() < 1.5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lr": -1.0}, "Learning rate should be >= 0 but is: -1.0"),
        ({"momentum": -0.1}, "momentum should be >= 0 but is: -0.1"),
        ({"weight_decay": -1.0}, "weight decay should be >= 0 but is: -1.0"),
        ({"adjust_lr_fn": "other"}, "Adjust learning rate function other is not supported"),
    ],
)
def test_muon_refuses_what_torch_refuses(options: dict[str, Any], text: str) -> None:
    for module, rules in ((create, optim), (torch, torch.optim)):
        with pytest.raises(ValueError, match=text):
            rules.Muon([module.ones(2, 2).requires_grad_()], **options)
        with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
            rules.Muon([module.ones(2).requires_grad_()])


@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.8), "weight_decay": 0.3}, {"maximize": True}])
def test_lion_is_its_formula(options: dict[str, Any], device: str) -> None:
    (one, two), decay = options.get("betas", (0.9, 0.99)), options.get("weight_decay", 0.0)
    parameter = create.tensor(START[0], device=device).requires_grad_()
    other = create.tensor(START[1], device=device).requires_grad_()
    optimizer = optim.Lion([parameter, other], lr=0.05, **options)
    wanted, mean = np.array(START[0]), np.zeros((2, 3))
    for step in range(20):
        give_gradients([parameter, other], step)
        gradient = np.array(SLOPES[0]) * math.cos(step) * (-1 if options.get("maximize") else 1)
        wanted = wanted * (1 - 0.05 * decay) - 0.05 * np.sign(one * mean + (1 - one) * gradient)
        mean = two * mean + (1 - two) * gradient
        optimizer.step()
    np.testing.assert_allclose(parameter.detach().cpu().numpy(), wanted, atol=1e-5)
    np.testing.assert_allclose(optimizer.state[parameter]["exp_avg"].cpu().numpy(), mean, atol=1e-5)


def fitted(module: Any, options: dict[str, Any], n_steps: int, saved: Any = None) -> tuple[list[float], Any, list[Any]]:
    """The losses of L-BFGS on three numbers of a curve, of its state dict, and the numbers at the end."""
    x = module.tensor([0.1 * i for i in range(20)])
    params = [module.tensor([1.0, 0.2], requires_grad=True), module.tensor([[0.3]], requires_grad=True)]
    optimizer = (torch.optim if module is torch else optim).LBFGS(params, **options)
    if saved is not None:
        optimizer.load_state_dict(saved)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (params[0][0] * (x * params[0][1]).sin() + params[1] - (2 * (x * 0.8).sin() + 0.5)).square().mean()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(n_steps)]
    return losses, optimizer.state_dict(), values(params)


SEARCHES: dict[str, dict[str, Any]] = {
    "plain": {"lr": 0.3, "max_iter": 4},
    "short history": {"lr": 0.3, "max_iter": 4, "history_size": 2, "tolerance_change": 1e-5},
    "strong_wolfe": {"line_search_fn": "strong_wolfe", "max_iter": 4},
    "long first guess": {"line_search_fn": "strong_wolfe", "lr": 30.0, "max_iter": 3, "max_eval": 40},
}


@pytest.mark.parametrize("name", SEARCHES)
def test_lbfgs_goes_torchs_way(name: str, device: str) -> None:
    (found, state, end), (wanted, theirs, theirs_end) = (fitted(lib, SEARCHES[name], 5) for lib in (create, torch))
    assert found == pytest.approx(wanted, rel=1e-3, abs=1e-6)
    assert end == pytest.approx(theirs_end, abs=1e-3)
    ours, other = state["state"][0], theirs["state"][0]
    assert set(other) - set(ours) <= {"al"}
    assert [ours[key] for key in ("func_evals", "n_iter")] == [other[key] for key in ("func_evals", "n_iter")]
    assert [tuple(one.shape) for one in ours["old_dirs"]] == [tuple(one.shape) for one in other["old_dirs"]]


def test_torch_goes_on_with_lbfgs_and_back() -> None:
    options = SEARCHES["strong_wolfe"]
    state = fitted(create, options, 2)[1]
    wanted = fitted(create, options, 1, copy.deepcopy(state))[0]
    state["state"][0] = {key: as_torch(value) for key, value in state["state"][0].items()}
    losses, back, _ = fitted(torch, options, 1, state)
    assert losses == pytest.approx(wanted, rel=1e-4)
    back["state"][0] = {key: as_ours(value) for key, value in back["state"][0].items()}
    assert math.isfinite(fitted(create, options, 1, back)[0][0])


def as_torch(value: Any) -> Any:
    if isinstance(value, list):
        return [as_torch(item) for item in value]
    return torch.tensor(value.tolist()) if isinstance(value, tensor.Tensor) else value


def as_ours(value: Any) -> Any:
    if isinstance(value, list):
        return [as_ours(item) for item in value]
    return create.tensor(value.tolist()) if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.8), "maximize": True}])
def test_sparse_adam_moves_the_rows_that_were_touched(options: dict[str, Any], device: str) -> None:
    ours = create.tensor(SPARSE, device=device, requires_grad=True)
    theirs = torch.tensor(SPARSE, requires_grad=True)
    rules = optim.SparseAdam([ours], lr=0.1, **options), torch.optim.SparseAdam([theirs], lr=0.1, **options)
    for step in range(20):
        rows = torch.tensor(SPARSE).mul(math.cos(step)).index_fill(0, torch.tensor([step % 4]), 0)
        theirs.grad = rows.to_sparse(1)
        ours.grad = create.tensor(rows.numpy(), device=device)
        for rule in rules:
            rule.step()
    np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs.detach().numpy(), rtol=2e-5)


SPARSE = [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0], [1.0, 3.0]]


@pytest.mark.parametrize("name", [n for n in RULES if not n.startswith(("adafactor", "dampened"))])  # torch cuts these
def test_gradients_flow_through_a_differentiable_step(name: str) -> None:
    found = [through_steps(create, name, 1), through_steps(torch, name, 1)]
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert all(map(math.isfinite, through_steps(create, name, 3)))  # Where torch's own states stand in the way.


def through_steps(module: Any, name: str, n_steps: int) -> list[float]:
    """The gradient of what a start became, with respect to that start."""
    rule, options = RULES[name]
    start = module.tensor([0.5, -1.0, 2.0], requires_grad=True)
    parameter = start * 2
    optimizer = getattr(torch.optim if module is torch else optim, rule)([parameter], **options, differentiable=True)
    for step in range(n_steps):
        parameter.grad = start.detach() * math.cos(step)
        optimizer.step()
    parameter.square().sum().backward()
    found: list[float] = start.grad.tolist()
    return found


def parameters(module: Any = create, device: str = "cpu") -> list[Any]:
    options = {} if module is torch else {"device": device}
    return [module.tensor(values, requires_grad=True, **options) for values in START]


def give_gradients(params: list[Any], step: int, module: Any = create) -> None:
    """Gradients that turn from step to step and depend on nothing else."""
    for parameter, slopes in zip(params, SLOPES, strict=True):
        parameter.grad = module.tensor(slopes, device=parameter.device) * math.cos(step)


def values(params: list[Any]) -> list[float]:
    return [float(value) for parameter in params for value in parameter.detach().reshape(-1).tolist()]


def trained(name: str, module: Any, n_steps: int = 10, device: str = "cpu") -> tuple[list[Any], Any]:
    rule, options = RULES[name]
    params = parameters(module, device)
    if module is torch:
        options = {**options, "foreach": False}
    optimizer = getattr(torch.optim if module is torch else optim, rule)(params, **options)
    for step in range(n_steps):
        give_gradients(params, step, module)
        optimizer.step()
    return params, optimizer


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize("name", RULES)
def test_ten_steps_are_torchs(name: str, device: str) -> None:
    found = values(trained(name, create, device=device)[0])
    assert found == pytest.approx(values(trained(name, torch)[0]), rel=1e-5, abs=2e-7)


@pytest.mark.parametrize("step", [1, 10, 10_000, 1_000_000])
def test_corrections_of_late_steps_are_exact(step: int, device: str) -> None:
    """AdamW's update from given moments, against float64."""
    lr, (first, second), eps, decay = 1e-3, (0.9, 0.999), 1e-8, 0.01
    weight, moment, square, slope = 0.5, 0.003, 4e-6, 0.002
    parameter = create.tensor([weight], requires_grad=True, device=device)
    optimizer = optim.AdamW([parameter], lr=lr, betas=(first, second), eps=eps, weight_decay=decay)
    kept = {"step": float(step - 1), "exp_avg": create.tensor([moment]), "exp_avg_sq": create.tensor([square])}
    optimizer.load_state_dict({"state": {0: kept}, "param_groups": optimizer.state_dict()["param_groups"]})
    parameter.grad = create.tensor([slope], device=device)
    optimizer.step()
    moment, square = first * moment + (1 - first) * slope, second * square + (1 - second) * slope**2
    scale = math.sqrt(square / (1 - second**step)) + eps
    wanted = weight * (1 - lr * decay) - lr * moment / (1 - first**step) / scale
    assert parameter.item() - weight == pytest.approx(wanted - weight, rel=2e-4)
    assert parameter.item() == pytest.approx(wanted, rel=1.2e-7)


@pytest.mark.parametrize("name", RULES)
def test_state_dicts_have_torchs_keys(name: str) -> None:
    ours, theirs = trained(name, create)[1].state_dict(), trained(name, torch)[1].state_dict()
    assert {key: list(values) for key, values in ours["state"].items()} == {
        key: list(values) for key, values in theirs["state"].items()
    }
    for group in theirs["param_groups"]:
        group["foreach"] = None
    assert ours["param_groups"] == theirs["param_groups"]


@pytest.mark.parametrize("name", RULES)
def test_a_saved_optimizer_goes_on_as_if_never_stopped(name: str) -> None:
    rule, options = RULES[name]
    whole, _ = trained(name, create, 9)
    params, optimizer = trained(name, create, 4)
    file = io.BytesIO()
    state.save({"params": params, "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = state.load(file, "cpu")
    params = [parameter.detach().requires_grad_() for parameter in saved["params"]]
    resumed = getattr(optim, rule)(params, **options)
    resumed.load_state_dict(saved["optimizer"])
    for step in range(4, 9):
        give_gradients(params, step)
        resumed.step()
    assert values(params) == values(whole)


@pytest.mark.parametrize("name", RULES)
def test_torchs_state_is_taken_over(name: str) -> None:
    rule, options = RULES[name]
    theirs, other = trained(name, torch, 4)
    file = io.BytesIO()
    torch.save({"params": [value.detach() for value in theirs], "optimizer": other.state_dict()}, file)
    file.seek(0)
    saved = state.load(file, "cpu")
    ours = [value.requires_grad_() for value in saved["params"]]
    optimizer = getattr(optim, rule)(ours, **options)
    optimizer.load_state_dict(saved["optimizer"])
    for step in range(4, 8):
        for params, module, one in ((theirs, torch, other), (ours, create, optimizer)):
            give_gradients(params, step, module)
            one.step()
    assert values(ours) == pytest.approx(values(theirs), rel=1e-5, abs=1e-7)


def test_loading_writes_into_the_tensors_that_exist() -> None:
    _, optimizer = trained("adam", create, 2)
    saved = copy.deepcopy(optimizer.state_dict())
    held = [values["exp_avg"] for values in optimizer.state.values()]
    before = [value.tolist() for value in held]
    give_gradients(optimizer.param_groups[0]["params"], 3)
    optimizer.step()
    optimizer.load_state_dict(saved)
    assert [values["exp_avg"] for values in optimizer.state.values()] == held
    assert [value.tolist() for value in held] == before
    assert all(values["step"] == 2 for values in optimizer.state.values())


def test_groups_have_their_own_options() -> None:
    weight, bias = parameters()
    optimizer = optim.SGD([{"params": [weight], "lr": 0.5}, {"params": bias}], lr=0.1, momentum=0.9)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    give_gradients([weight, bias], 0)
    optimizer.step()
    assert values([bias]) == pytest.approx([3.0 + 0.07, -2.0 - 0.08])
    assert values([weight])[0] == pytest.approx(0.45)


def test_a_parameter_without_a_gradient_stays() -> None:
    weight, bias = parameters()
    optimizer = optim.Adam([weight, bias])
    weight.grad = create.tensor(SLOPES[0], device="cpu")
    optimizer.step()
    assert bias.tolist() == START[1]
    assert list(optimizer.state_dict()["state"]) == [0]


def test_gradients_are_dropped_or_zeroed() -> None:
    params = parameters()
    optimizer = optim.SGD(params)
    give_gradients(params, 0)
    held = params[0].grad
    optimizer.zero_grad(set_to_none=False)
    assert params[0].grad is held
    assert held.tolist() == [[0.0] * 3] * 2
    optimizer.zero_grad()
    assert params[0].grad is None


def test_a_closure_runs_with_gradients_on() -> None:
    params = parameters()
    optimizer = optim.SGD(params, lr=0.1)

    def closure() -> float:
        assert grad_mode.is_grad_enabled()
        give_gradients(params, 0)
        return 1.5

    with grad_mode.no_grad():
        assert optimizer.step(closure) == 1.5
    assert values(params)[0] == pytest.approx(0.49)


def test_named_parameters_keep_their_names() -> None:
    weight, bias = parameters()
    optimizer = optim.Adam([("weight", weight), ("bias", bias)])
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"] == [weight, bias]


def test_hooks_run_around_a_step_and_can_be_removed() -> None:
    params = parameters()
    optimizer = optim.SGD(params)
    seen: list[str] = []
    handles = [
        optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
        optimizer.register_state_dict_post_hook(lambda _, out: out | {"note": 1}),
    ]
    optimizer.step()
    assert seen == ["before", "after"]
    assert optimizer.state_dict()["note"] == 1
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 2
    assert "note" not in optimizer.state_dict()


def test_a_program_can_write_a_rule() -> None:
    class Signs(optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        def step(self, closure: Any = None) -> Any:
            with grad_mode.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        self.state[parameter]["count"] = self.state[parameter].get("count", 0) + 1
                        parameter.sub_(parameter.grad.sign() * group["lr"])

    params = parameters()
    optimizer = Signs(params, 0.5)
    give_gradients(params, 0)
    optimizer.step()
    assert values(params)[:2] == [0.0, -0.5]
    assert optimizer.state_dict()["state"][1] == {"count": 1}
    assert optim.lr_scheduler.StepLR(optimizer, 1).get_last_lr() == [0.5]


def test_a_copy_has_its_own_state() -> None:
    params, optimizer = trained("adam", create, 1)
    twin = copy.deepcopy(optimizer)
    give_gradients(twin.param_groups[0]["params"], 1)
    twin.step()
    assert [values["step"] for values in optimizer.state.values()] == [1, 1]
    assert [values["step"] for values in twin.state.values()] == [2, 2]
    assert values(params) != values(twin.param_groups[0]["params"])


WRONG: dict[str, tuple[type[Exception], Callable[[Any, Any], Any]]] = {
    "one tensor": (TypeError, lambda o, t: o.SGD(t([1.0]))),
    "no parameters": (ValueError, lambda o, t: o.SGD([])),
    "a number": (TypeError, lambda o, t: o.SGD([1.0])),
    "a result": (ValueError, lambda o, t: o.SGD([t([1.0], requires_grad=True) * 2])),
    "a set": (TypeError, lambda o, t: o.SGD([{"params": {1, 2}}])),
    "a group that is no dict": (TypeError, lambda o, t: o.SGD([t([1.0])]).add_param_group([t([1.0])])),
    "some names": (ValueError, lambda o, t: o.SGD([("a", t([1.0])), t([1.0])])),
    "a negative rate": (ValueError, lambda o, t: o.SGD([t([1.0])], lr=-1)),
    "nesterov without momentum": (ValueError, lambda o, t: o.SGD([t([1.0])], nesterov=True)),
    "a beta of 1": (ValueError, lambda o, t: o.Adam([t([1.0])], betas=(0.9, 1.0))),
    "a negative eps": (ValueError, lambda o, t: o.AdamW([t([1.0])], eps=-1e-8)),
    "a negative decay": (ValueError, lambda o, t: o.RMSprop([t([1.0])], weight_decay=-1)),
    "a rho above 1": (ValueError, lambda o, t: o.Adadelta([t([1.0])], rho=1.5)),
    "two rates": (ValueError, lambda o, t: o.SGD([t([1.0])], lr=t([0.1, 0.2]))),
    "betas of two kinds": (ValueError, lambda o, t: o.Adam([t([1.0])], betas=(0.9, t(0.5)))),
    "foreach of a tensor": (ValueError, lambda o, t: o.Adam([t([1.0])], lr=t(0.1), foreach=True)),
    "fused and foreach": (RuntimeError, lambda o, t: o.Adam([t([1.0])], fused=True, foreach=True)),
    "fused and differentiable": (RuntimeError, lambda o, t: o.SGD([t([1.0])], fused=True, differentiable=True)),
    "etas": (ValueError, lambda o, t: o.Rprop([t([1.0])], etas=(1.5, 1.2))),
    "a momentum_decay below 0": (ValueError, lambda o, t: o.NAdam([t([1.0])], momentum_decay=-1)),
    "a rate of 0": (ValueError, lambda o, t: o.SparseAdam([t([1.0])], lr=0.0)),
    "a positive decay": (ValueError, lambda o, t: o.Adafactor([t([1.0])], beta2_decay=0.1)),
    "a threshold below 1": (ValueError, lambda o, t: o.Adafactor([t([1.0])], d=0.5)),
    "two groups": (ValueError, lambda o, t: o.LBFGS([{"params": t([1.0])}, {"params": t([2.0])}])),
    "a lr_decay below 0": (ValueError, lambda o, t: o.Adagrad([t([1.0])], lr_decay=-1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_what_torch_raises(name: str) -> None:
    error, make = WRONG[name]
    for module, function in ((torch.optim, torch.tensor), (optim, create.tensor)):
        with pytest.raises(error):
            make(module, function)


def test_wrong_state_dicts_are_refused() -> None:
    weight, bias = parameters()
    one, two = optim.SGD([weight, bias]), optim.SGD([{"params": weight}, {"params": bias}])
    with pytest.raises(ValueError, match="number of parameter groups"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="match the size"):
        one.load_state_dict(optim.SGD([weight]).state_dict())
    with pytest.raises(ValueError, match="more than one parameter group"):
        one.add_param_group({"params": [bias]})
    with pytest.warns(UserWarning, match="duplicate"):
        optim.SGD([weight, weight])


# Clipping


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.5, math.inf])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping_by_norm_is_torchs(norm_type: float, max_norm: float, device: str) -> None:
    ours, theirs = parameters(device=device), parameters(torch)
    give_gradients(ours, 0)
    give_gradients(theirs, 0, torch)
    found = utils.clip_grad_norm_(ours, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert found.shape == ()
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    assert values([p.grad for p in ours]) == pytest.approx(values([p.grad for p in theirs]), rel=1e-6)


def test_clipping_by_value_is_torchs(device: str) -> None:
    ours, theirs = parameters(device=device), parameters(torch)
    give_gradients(ours, 0)
    give_gradients(theirs, 0, torch)
    utils.clip_grad_value_(ours, 0.25)
    torch.nn.utils.clip_grad_value_(theirs, 0.25)
    assert values([p.grad for p in ours]) == pytest.approx(values([p.grad for p in theirs]))


def test_a_norm_that_is_not_finite_is_an_error_when_asked() -> None:
    params = parameters()
    give_gradients(params, 0)
    params[1].grad = create.tensor([math.inf, 1.0], device="cpu")
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert utils.clip_grad_norm_(params[1], 1.0).item() == math.inf


def test_clipping_nothing() -> None:
    assert utils.clip_grad_norm_(parameters(), 1.0).item() == 0.0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in ()), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        utils.clip_grad_norm_([], 1.0)


def test_vectors_and_parameters() -> None:
    params = parameters()
    with grad_mode.no_grad():
        vector = utils.parameters_to_vector(params)
        assert vector.tolist() == values(params)
        utils.vector_to_parameters(vector * 2, params)
        assert values(params) == [2 * value for value in vector.tolist()]
    assert all(isinstance(parameter, tensor.Tensor) and parameter.requires_grad for parameter in params)
    with pytest.raises(TypeError):
        utils.vector_to_parameters([1.0], params)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fewer"):
        utils.vector_to_parameters(vector[:3], params)


def test_complex_parameters_are_never_updated_wrongly() -> None:
    """Rules square gradients part by part, as PyTorch; those that look at whole matrices refuse."""
    target = pywebgpu.tensor([1 + 2j, -3j])
    parameter = pywebgpu.zeros(2, dtype=pywebgpu.cfloat, requires_grad=True)
    optimizer = pywebgpu.optim.SGD([parameter], lr=0.1, momentum=0.5)
    for _ in range(100):
        optimizer.zero_grad()
        (parameter - target).abs().square().sum().backward()
        optimizer.step()
    assert pywebgpu.allclose(parameter.detach(), target, atol=1e-4)
    with pytest.raises(NotImplementedError, match="view_as_real"):
        pywebgpu.optim.Adafactor([parameter])


def test_one_around_another_needs_no_init_of_its_own() -> None:
    class Slow(pywebgpu.optim.Optimizer):
        def __init__(self, inner: pywebgpu.optim.Optimizer) -> None:
            self.inner, self.param_groups = inner, inner.param_groups

        def step(self, closure: Any = None) -> Any:
            self.inner.step(closure)
            for group in self.param_groups:
                for x in group["params"]:
                    x.data.mul_(0.5)

    x = pywebgpu.ones(2, requires_grad=True)
    x.grad = pywebgpu.ones(2)
    Slow(pywebgpu.optim.SGD([x], 0.5)).step()
    assert x.tolist() == [0.25, 0.25]


KEPT = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "RAdam", "Rprop", "Adafactor", "Muon")


def described(library: Any, name: str) -> Any:
    """The states of a state dict, after two steps, by kind, shape and dtype."""
    parameter = library.nn.Parameter(library.ones(2, 3))
    optimizer = getattr(library.optim, name)([parameter], lr=0.1)
    for _ in range(2):
        parameter.grad = library.ones(2, 3)
        optimizer.step()
    found = optimizer.state_dict()
    told = [(key, tuple(value.shape), str(value.dtype)) for key, value in found["state"].get(0, {}).items()]
    return sorted(told), set(found["param_groups"][0])


@pytest.mark.parametrize("name", KEPT)
def test_a_state_dict_holds_what_pytorchs_does(name: str) -> None:
    assert described(pywebgpu, name) == described(torch, name)
