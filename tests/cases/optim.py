"""Update rules and schedules: ten steps on a small problem, rates, groups, state dicts."""

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
    count = lambda key, value: float(value) if key == "step" else value  # noqa: E731
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
