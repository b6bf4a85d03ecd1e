"""Update rules and schedules: ten steps on a small problem, rates, groups, state dicts."""

import copy
from typing import Any

from tests.cases.case import Case, numbers, script

CASES: list[Case] = []

RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.1}),
    "SGD_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "SGD_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "SGD_dampening": ("SGD", {"lr": 0.1, "momentum": 0.8, "dampening": 0.5}),
    "SGD_weight_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.05}),
    "SGD_all": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True}),
    "SGD_maximize": ("SGD", {"lr": 0.05, "maximize": True}),
    "Adam": ("Adam", {"lr": 0.05}),
    "Adam_betas": ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-6}),
    "Adam_weight_decay": ("Adam", {"lr": 0.05, "weight_decay": 0.1}),
    "Adam_amsgrad": ("Adam", {"lr": 0.05, "amsgrad": True}),
    "AdamW": ("AdamW", {"lr": 0.05}),
    "AdamW_weight_decay": ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "betas": (0.9, 0.95)}),
    "AdamW_amsgrad": ("AdamW", {"lr": 0.05, "amsgrad": True}),
    "RAdam": ("RAdam", {"lr": 0.05}),
    "RMSprop": ("RMSprop", {"lr": 0.01}),
    "RMSprop_momentum": ("RMSprop", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}),
    "RMSprop_centered": ("RMSprop", {"lr": 0.01, "centered": True, "alpha": 0.9}),
    "Adadelta": ("Adadelta", {"lr": 1.0}),
    "Adagrad": ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    "NAdam": ("NAdam", {"lr": 0.05, "weight_decay": 0.1}),
    "Adamax": ("Adamax", {"lr": 0.05}),
    "Rprop": ("Rprop", {"lr": 0.05}),
    "ASGD": ("ASGD", {"lr": 0.1, "t0": 3, "lambd": 0.01}),
    "Adafactor": ("Adafactor", {"lr": 0.2, "weight_decay": 0.05}),
}
SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "StepLR": ("StepLR", {"step_size": 3, "gamma": 0.5}),
    "MultiStepLR": ("MultiStepLR", {"milestones": [2, 5, 6], "gamma": 0.3}),
    "ConstantLR": ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    "LinearLR": ("LinearLR", {"start_factor": 0.1, "total_iters": 5}),
    "ExponentialLR": ("ExponentialLR", {"gamma": 0.8}),
    "PolynomialLR": ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    "CosineAnnealingLR": ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.01}),
    "CosineAnnealingWarmRestarts": ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    "LambdaLR": ("LambdaLR", {"lr_lambda": lambda step: 0.95**step}),
    "LambdaLR_warmup": ("LambdaLR", {"lr_lambda": lambda step: min(1.0, (step + 1) / 5)}),
    "MultiplicativeLR": ("MultiplicativeLR", {"lr_lambda": lambda step: 0.9}),
    "OneCycleLR": ("OneCycleLR", {"max_lr": 0.3, "total_steps": 12, "cycle_momentum": False}),
    "OneCycleLR_linear": ("OneCycleLR", {"max_lr": 0.3, "total_steps": 12, "anneal_strategy": "linear"}),
}
COUNTS = ("step", "mu_product", "eta", "mu")
SHARED = ("lr", "weight_decay", "betas", "eps", "momentum", "nesterov", "amsgrad", "params", "initial_lr")


def problem(torch: Any) -> tuple[list[Any], Any]:
    """Two parameters and a loss that is no parabola."""
    params = [numbers(torch, f"parameter {n}", *shape).requires_grad_() for n, shape in enumerate([(4, 3), (3,)])]
    x, y = numbers(torch, "x", 7, 4), numbers(torch, "y", 7, 3)
    return params, lambda: ((x @ params[0] + params[1]).tanh() - y).square().mean()


def step(optimizer: Any, loss_of: Any) -> Any:
    optimizer.zero_grad()
    loss = loss_of()
    loss.backward()
    optimizer.step()
    return loss.detach()


def described(optimizer: Any) -> Any:
    """A state dict without what is particular to a library: counts become numbers, unshared options go."""
    state = optimizer.state_dict()
    groups = [{key: group[key] for key in SHARED if key in group} for group in state["param_groups"]]
    count = lambda key, value: float(value) if key in COUNTS else value  # noqa: E731
    return groups, {i: {key: count(key, v) for key, v in entry.items()} for i, entry in state["state"].items()}


def add(name: str, fn) -> None:
    CASES.append(Case(name, fn, grad=False, tolerance="model"))


for name, (rule, options) in RULES.items():

    def ten_steps(torch, rule=rule, options=options):
        params, loss_of = problem(torch)
        optimizer = getattr(torch.optim, rule)(params, **options)
        losses = [step(optimizer, loss_of)]
        first = [p.detach().clone() for p in params]
        losses += [step(optimizer, loss_of) for _ in range(9)]
        return losses, first, [p.detach() for p in params], described(optimizer)

    def resumed(torch, rule=rule, options=options):
        params, loss_of = problem(torch)
        optimizer = getattr(torch.optim, rule)(params, **options)
        for _ in range(3):
            step(optimizer, loss_of)
        again = getattr(torch.optim, rule)(params, **options)
        again.load_state_dict(optimizer.state_dict())
        losses = [step(again, loss_of) for _ in range(4)]
        return losses, [p.detach() for p in params], described(again)

    add(name, ten_steps)
    add(f"{name}_resumed", resumed)

for name, (schedule, options) in SCHEDULES.items():

    def rates(torch, schedule=schedule, options=options):
        params, loss_of = problem(torch)
        optimizer = torch.optim.SGD(params, lr=0.2, momentum=0.9)
        scheduler = getattr(torch.optim.lr_scheduler, schedule)(optimizer, **options)
        seen = []
        for _ in range(10):
            seen.append((optimizer.param_groups[0]["lr"], scheduler.get_last_lr()[0], scheduler.last_epoch))
            step(optimizer, loss_of)
            scheduler.step()
        return seen, [p.detach() for p in params]

    add(name, rates)


@script(CASES, tolerance="model")
def groups(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.AdamW(
        [{"params": params[:1], "weight_decay": 0.5}, {"params": params[1:], "lr": 0.2}], lr=0.01
    )
    losses = [step(optimizer, loss_of) for _ in range(5)]
    return losses, [p.detach() for p in params], described(optimizer)


@script(CASES, tolerance="model")
def group_added_later(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.SGD(params[:1], lr=0.1, momentum=0.5)
    losses = [step(optimizer, loss_of) for _ in range(2)]
    optimizer.add_param_group({"params": params[1:], "lr": 0.3})
    losses += [step(optimizer, loss_of) for _ in range(2)]
    return losses, [p.detach() for p in params], described(optimizer)


@script(CASES, tolerance="model")
def rate_set_by_hand(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.Adam(params, lr=0.1)
    losses = []
    for rate in (0.1, 0.2, 0.05, 0.3, 0.0):
        for group in optimizer.param_groups:
            group["lr"] = rate
        losses.append(step(optimizer, loss_of))
    return losses, [p.detach() for p in params]


@script(CASES, tolerance="model")
def parameter_without_gradient(torch):
    params, loss_of = problem(torch)
    unused = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([*params, unused], lr=0.1)
    return step(optimizer, loss_of), unused.detach(), sorted(optimizer.state_dict()["state"])


@script(CASES, tolerance="model")
def accumulated_gradients(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.SGD(params, lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(4):
            (loss_of() / 4).backward()
        optimizer.step()
    return [p.detach() for p in params]


@script(CASES, tolerance="model")
def clipped_steps(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.SGD(params, lr=0.5)
    norms = []
    for _ in range(5):
        optimizer.zero_grad()
        loss_of().backward()
        norms.append(torch.nn.utils.clip_grad_norm_(params, 0.1))
        optimizer.step()
    return norms, [p.detach() for p in params]


@script(CASES, tolerance="model")
def closure(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.SGD(params, lr=0.1)

    def evaluate():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        return loss

    return [optimizer.step(evaluate).detach() for _ in range(3)]


@script(CASES, tolerance="model")
def plateau(torch):
    params, _ = problem(torch)
    optimizer = torch.optim.SGD(params, lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    seen = []
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0):
        scheduler.step(loss)
        seen.append(optimizer.param_groups[0]["lr"])
    return seen


@script(CASES, tolerance="model")
def sequence_of_schedules(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.SGD(params, lr=0.2)
    schedulers = torch.optim.lr_scheduler
    warmup = schedulers.LinearLR(optimizer, start_factor=0.1, total_iters=3)
    decay = schedulers.CosineAnnealingLR(optimizer, T_max=6)
    scheduler = schedulers.SequentialLR(optimizer, [warmup, decay], milestones=[3])
    seen = []
    for _ in range(9):
        seen.append(optimizer.param_groups[0]["lr"])
        step(optimizer, loss_of)
        scheduler.step()
    return seen


@script(CASES, tolerance="model")
def schedule_resumed(torch):
    params, loss_of = problem(torch)
    optimizer = torch.optim.SGD(params, lr=0.2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    for _ in range(3):
        step(optimizer, loss_of)
        scheduler.step()
    again = torch.optim.SGD(params, lr=0.2)
    again.load_state_dict(optimizer.state_dict())
    later = torch.optim.lr_scheduler.CosineAnnealingLR(again, T_max=8)
    later.load_state_dict(scheduler.state_dict())
    seen = []
    for _ in range(4):
        seen.append(again.param_groups[0]["lr"])
        step(again, loss_of)
        later.step()
    return seen, later.last_epoch


# Parameters that are updated together: of several shapes, with and without a gradient, replaced, loaded, shared.


def mixed(torch: Any) -> tuple[list[Any], Any]:
    """Parameters of all sizes, among them one number, none at all, and one that is a view of another's transpose."""
    shapes = [(5, 70), (70,), (70, 3), (3,), (), (0,), (64,), (1, 1)]
    params = [numbers(torch, f"mixed {n}", *shape).requires_grad_() for n, shape in enumerate(shapes)]
    x, y = numbers(torch, "x", 6, 5), numbers(torch, "y", 6, 3)

    def loss_of():
        hidden = (x @ params[0] + params[1]).tanh() * params[4] + params[6].sum() * 0.01
        return (hidden @ params[2] + params[3] * params[7] - y).square().mean() + params[5].sum()

    return params, loss_of


def seen(params: Any) -> list[Any]:
    return [p.detach().clone() for p in params]


for name in ("SGD", "SGD_all", "SGD_maximize", "Adam_amsgrad", "AdamW", "RMSprop_centered", "Adagrad", "Adadelta"):

    def many_shapes(torch, rule=RULES[name]):
        params, loss_of = mixed(torch)
        optimizer = getattr(torch.optim, rule[0])(params, **rule[1])
        losses = [step(optimizer, loss_of) for _ in range(4)]
        return losses, seen(params), described(optimizer), [p.grad for p in params]

    add(f"{name}_of_many_shapes", many_shapes)


@script(CASES, tolerance="model")
def clipped_adamw(torch):
    params, loss_of = mixed(torch)
    optimizer = torch.optim.AdamW(params, lr=0.05)
    norms = []
    for limit in (0.1, 100.0, 0.02):
        optimizer.zero_grad()
        loss_of().backward()
        norms.append(torch.nn.utils.clip_grad_norm_(params, limit))
        some = [p for p in params if p.numel()]  # torch knows no largest element of none.
        norms.append(torch.nn.utils.clip_grad_norm_(some, limit / 2, norm_type=float("inf")))
        torch.nn.utils.clip_grad_value_(params, 0.001)
        optimizer.step()
    return norms, seen(params), [p.grad for p in params], described(optimizer)


@script(CASES, tolerance="model")
def norm_of_parameters(torch):
    params, loss_of = mixed(torch)
    optimizer = torch.optim.Adam(params, lr=0.05)
    found = []
    for _ in range(3):
        step(optimizer, loss_of)
        found.append(torch.nn.utils.get_total_norm(params).detach())
        found.append(torch.nn.utils.get_total_norm([p.grad for p in params], norm_type=1.0))
    return found, seen(params)


@script(CASES, tolerance="model")
def gradients_come_and_go(torch):
    params, loss_of = mixed(torch)
    optimizer = torch.optim.Adam(params, lr=0.05)
    losses = []
    for without in ((), (1,), (0, 2), (3,), (3,), (), (), (6,), ()):
        optimizer.zero_grad()
        loss_of().backward()
        for n in without:
            params[n].grad = None
        optimizer.step()
        losses.append([p.detach().clone() for p in params])
    return losses, described(optimizer)


@script(CASES, tolerance="model")
def parameters_written_between_steps(torch):
    params, loss_of = mixed(torch)
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9)
    found = []
    for n in range(6):
        found.append(step(optimizer, loss_of))
        with torch.no_grad():
            if n == 1:
                params[0].data = params[0].data * 2
            if n == 2:
                params[3].mul_(0.5)
                optimizer.state[params[1]]["momentum_buffer"].zero_()
            if n == 3:
                params[2].data[1:3] = 0.25
    return found, seen(params), described(optimizer)


@script(CASES, tolerance="model")
def aliases_follow_their_parameters(torch):
    params, loss_of = mixed(torch)
    early = [params[0].detach(), params[0].data.t(), params[1].detach()[10:20]]
    optimizer = torch.optim.AdamW(params, lr=0.05)
    late = [params[2].detach(), params[6].data[3:]]
    found = []
    for n in range(3):
        step(optimizer, loss_of)
        found.append([view.clone() for view in (*early, *late)])
        if n == 1:
            early[1].mul_(2.0)
            late[1].zero_()
            found.append([p.detach().clone() for p in params])
    held = params[0].grad
    view = held[2]
    step(optimizer, loss_of)
    view.zero_()
    return found, seen(params), held, view


@script(CASES, tolerance="model")
def parameter_in_two_optimizers(torch):
    params, loss_of = mixed(torch)
    first, second = torch.optim.SGD(params, lr=0.1, momentum=0.5), torch.optim.Adam(params[:4], lr=0.02)
    found = []
    for n in range(6):
        found.append(step(second if n % 2 else first, loss_of))
    return found, seen(params), described(first), described(second)


@script(CASES, tolerance="model")
def gradients_kept_and_added_to(torch):
    params, loss_of = mixed(torch)
    optimizer = torch.optim.Adam(params, lr=0.05)
    found = []
    for n in range(5):
        loss_of().backward()
        optimizer.step()
        found.append([p.grad.clone() for p in params])
        if n == 2:
            optimizer.zero_grad(set_to_none=False)
            found.append([p.grad.clone() for p in params])
    return found, seen(params)


@script(CASES, tolerance="model")
def states_of_different_steps(torch):
    params, loss_of = mixed(torch)
    early = torch.optim.AdamW(params[:3], lr=0.05)
    for _ in range(3):
        step(early, loss_of)
    whole = torch.optim.AdamW(params, lr=0.05)
    for p in params[:3]:
        whole.state[p] = {k: v.clone() if hasattr(v, "clone") else v for k, v in early.state[p].items()}
    found = [step(whole, loss_of) for _ in range(3)]
    again = torch.optim.AdamW(params, lr=0.05)
    again.load_state_dict(copy.deepcopy(whole.state_dict()))
    found += [step(again, loss_of) for _ in range(2)]
    whole.load_state_dict(copy.deepcopy(again.state_dict()))
    found += [step(whole, loss_of) for _ in range(2)]
    return found, seen(params), described(again), described(whole)


@script(CASES, tolerance="model")
def one_tensor_twice(torch):
    params, loss_of = mixed(torch)
    twin = torch.nn.Parameter(params[0].data)
    params.append(twin)
    optimizer = torch.optim.SGD(params, lr=0.1)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        (loss_of() + twin.square().sum() * 0.1).backward()
        params[1].grad = params[1].grad * 2
        params[6].grad = torch.ones(64)
        optimizer.step()
        found.append([p.detach().clone() for p in params])
    return found


@script(CASES, tolerance="model")
def gradient_made_of_another(torch):
    params, loss_of = mixed(torch)
    optimizer = torch.optim.SGD(params, lr=0.1)
    found = []
    for _ in range(3):
        found.append(step(optimizer, loss_of))
        optimizer.zero_grad()
        loss_of().backward()
        params[1].grad = (params[0].grad.t() @ params[0].grad).sum(0)
        params[6].grad = params[1].grad[:64] * params[0].grad.square().mean()
        torch.nn.utils.clip_grad_norm_(params, 5.0)
        optimizer.step()
    return found, seen(params), [p.grad for p in params]
