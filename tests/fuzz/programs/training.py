"""Steps that train: what happens to gradients, optimizers and schedules between calls, and how a step may be written."""

from tests.fuzz.programs.program import Program

LOOP = """
m = nn.Sequential(linear(0, 3, 4), nn.Tanh(), linear(1, 2, 3))
params = list(m.parameters())
opt = {optimizer}
_g = _v = _kept = None
held = []
def step(x):
    {before}
    loss = m(x).square().mean()
    loss.backward()
    {after}
    opt.step()
    {last}
    return loss.detach()
"""
SGD = "optim.SGD(params, lr=0.1, momentum=0.9)"
ADAMW = "optim.AdamW(params, lr=0.05)"


def loop(name: str, optimizer: str = SGD, before: str = "opt.zero_grad()", after: str = "pass", last: str = "pass",
         changes: dict[int, str] | None = None, setup: str = "", **more: object) -> Program:  # fmt: skip
    text = LOOP.format(optimizer=optimizer, before=before, after=after, last=last)
    head, _, tail = text.partition("def step(x):")
    return Program(name, f"{head}{setup}\ndef step(x):{tail}", changes or {}, **more)  # type: ignore[arg-type]


# What happens to gradients between the calls of a step that adds to them.
GRADIENTS: dict[str, tuple[str, ...]] = {
    "none": ("opt.zero_grad()", "opt.zero_grad()"),
    "zero": ("opt.zero_grad(set_to_none=False)", "opt.zero_grad(set_to_none=False)"),
    "none_then_zero": ("opt.zero_grad()", "opt.zero_grad(set_to_none=False)", "opt.zero_grad()"),
    "one_of_them_none": ("params[0].grad = None", "params[1].grad = None", "params[0].grad = params[1].grad = None"),
    "one_of_them_zero": ("params[0].grad.zero_()", "params[2].grad.zero_()"),
    "model_zero_grad": ("m.zero_grad()", "m.zero_grad(set_to_none=False)"),
    "held": ("held[:] = [p.grad for p in params]", "held += [p.grad for p in params]; opt.zero_grad()"),
    "held_then_none": ("_g = params[0].grad; opt.zero_grad(); held.append(_g)", "opt.zero_grad()", "_g.add_(1.0)"),
    "held_views": ("held.append(params[0].grad[0]); opt.zero_grad()", "held.append(params[2].grad[1:]); opt.zero_grad()"),
    "held_detached": ("held.append(params[0].grad.detach()); opt.zero_grad()", "opt.zero_grad()"),
    "held_cloned": ("held.append(params[0].grad.clone())", "opt.zero_grad()"),
    "replaced": ("params[0].grad = data(9, 3, 4)", "params[0].grad = data(8, 3, 4)"),
    "replaced_by_its_clone": ("params[0].grad = params[0].grad.clone()", "params[1].grad = params[1].grad.clone()"),
    "replaced_by_a_view": ("params[1].grad = data(9, 2, 3)[0]", "params[1].grad = data(9, 3, 2)[:, 1]"),
    "replaced_by_another_gradient": ("params[1].grad = params[3].grad.repeat(2)[:3]",),
    "replaced_by_a_parameter": ("params[1].grad = params[1].detach()",),
    "shared_by_two": ("_g = torch.zeros(3); params[1].grad = _g", "_g.add_(1.0)"),
    "scaled": ("params[0].grad.mul_(0.5)", "params[0].grad[0] = 0.0"),
    "data_of_a_gradient": ("params[0].grad.data = data(9, 3, 4)", "params[0].grad.data.zero_()"),
    "deleted": ("del params[0].grad", "params[0].grad = None"),
    "frozen": ("params[0].requires_grad_(False)", "params[0].requires_grad_(True)", "params[2].requires_grad_(False)"),
    "frozen_with_none": ("params[0].requires_grad_(False); params[0].grad = None", "opt.zero_grad()", "params[0].requires_grad_(True)"),
    "another_backward": ("m(data(9)).sum().backward()", "(params[0] * 2).sum().backward()"),
    "eager_update": ("opt.step()", "opt.zero_grad(); m(data(9)).sum().backward(); opt.step()"),
    "clipped_between": ("torch.nn.utils.clip_grad_norm_(params, 0.1)", "opt.zero_grad()"),
    "hook": ("_g = params[0].register_hook(lambda g: g * 2)", "_g.remove()"),
    "retained": ("_g = [p.grad.sum() for p in params]; held.append(_g[0])", "opt.zero_grad(); held.append(_g[1])"),
}  # fmt: skip

# What happens to an optimizer between the calls.
OPTIMIZERS: dict[str, tuple[str, ...]] = {
    "rate": ("opt.param_groups[0]['lr'] = 0.5", "opt.param_groups[0]['lr'] = 0.01", "opt.param_groups[0]['lr'] *= 2"),
    "rate_as_an_int": ("opt.param_groups[0]['lr'] = 1", "opt.param_groups[0]['lr'] = 0.1"),
    "rate_as_zero": ("opt.param_groups[0]['lr'] = 0.0", "opt.param_groups[0]['lr'] = 0.1"),
    "rate_by_update": ("opt.param_groups[0].update(lr=0.5)", "opt.param_groups[0].setdefault('lr', 7.0)"),
    "rate_by_loop": ("for g in opt.param_groups:\n    g['lr'] /= 2", "for g in opt.param_groups:\n    g['lr'] *= 3"),
    "decay": ("opt.param_groups[0]['weight_decay'] = 0.5", "opt.param_groups[0]['weight_decay'] = 0", "opt.param_groups[0]['weight_decay'] = 0.1"),
    "maximize": ("opt.param_groups[0]['maximize'] = True", "opt.param_groups[0]['maximize'] = False"),
    "group": ("opt.param_groups[0]['params'] = params[:2]", "opt.param_groups[0]['params'] = params"),
    "group_order": ("opt.param_groups[0]['params'].reverse()", "opt.param_groups[0]['params'].pop()"),
    "group_added": ("_g = param(0); opt.add_param_group({'params': [_g], 'lr': 0.5})", "opt.param_groups[1]['lr'] = 0.1"),
    "group_removed": ("opt.param_groups[0]['params'] = params[:2]; opt.add_param_group({'params': params[2:], 'lr': 0.5})", "if len(opt.param_groups) > 1: opt.param_groups.pop()"),
    "state_cleared": ("opt.state.clear()", "opt.state.pop(params[0], None)"),
    "state_replaced": ("opt.state = collections.defaultdict(dict)",),
    "loaded": ("_kept = copy.deepcopy(opt.state_dict())", "opt.load_state_dict(copy.deepcopy(_kept))"),
    "loaded_with_the_model": ("_kept = copy.deepcopy((m.state_dict(), opt.state_dict()))", "m.load_state_dict(_kept[0])", "opt.load_state_dict(_kept[1])"),
    "loaded_by_assignment": ("_kept = copy.deepcopy(m.state_dict())", "m.load_state_dict(_kept, assign=True)"),
    "replaced": ("opt = optim.SGD(params, lr=0.2)", "opt = optim.AdamW(params, lr=0.01)"),
    "replaced_by_its_twin": ("_kept = copy.deepcopy(opt.state_dict()); opt = type(opt)(params, lr=0.1); opt.load_state_dict(copy.deepcopy(_kept))",),
    "copied": ("opt2 = copy.deepcopy(opt); opt = opt2",),
    "state_in_place": ("for s in opt.state.values():\n    for v in s.values():\n        if hasattr(v, 'mul_') and v.ndim:\n            v.mul_(0.5)",),
    "step_patched": ("opt.step = lambda: None", "vars(opt).pop('step', None)"),
    "step_outside": ("opt.step()", "opt.zero_grad(); opt.step()"),
    "weights_in_place": ("with torch.no_grad():\n    params[0].mul_(0.5)", "params[0].data.fill_(0.1)"),
    "weights_replaced": ("params[0].data = data(9, 3, 4)", "params[0].data = params[0].data.clone()"),
    "weights_shared": ("params[0].data = params[0].data[:]", "params[0].data.mul_(2.0)"),
    "hook": ("_g = opt.register_step_pre_hook(lambda o, a, k: held.append(1))", "_g.remove()"),
}  # fmt: skip
OF_SGD = {
    "momentum": ("opt.param_groups[0]['momentum'] = 0.5", "opt.param_groups[0]['momentum'] = 0.0", "opt.param_groups[0]['momentum'] = 0.9"),
    "nesterov": ("opt.param_groups[0]['nesterov'] = True", "opt.param_groups[0]['dampening'] = 0"),
    "momentum_buffer": ("opt.state[params[0]]['momentum_buffer'] = None", "opt.state[params[0]]['momentum_buffer'].zero_()"),
    "momentum_buffer_replaced": ("opt.state[params[0]]['momentum_buffer'] = data(9, 3, 4)",),
    "momentum_buffer_deleted": ("del opt.state[params[0]]['momentum_buffer']", "opt.state[params[1]]['momentum_buffer'] = None"),
}  # fmt: skip
OF_ADAMW = {
    "betas": ("opt.param_groups[0]['betas'] = (0.5, 0.9)", "opt.param_groups[0]['betas'] = (0.9, 0.99)"),
    "eps": ("opt.param_groups[0]['eps'] = 0.1", "opt.param_groups[0]['eps'] = 1e-8"),
    "average_replaced": (
        "opt.state[params[0]]['exp_avg'] = data(9, 3, 4)",
        "opt.state[params[0]]['exp_avg_sq'].fill_(0.5)",
    ),
    "amsgrad": ("opt = optim.AdamW(params, lr=0.05, amsgrad=True)",),
}
RULES = {
    "sgd": "optim.SGD(params, lr=0.1)",
    "sgd_nesterov": "optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)",
    "adam": "optim.Adam(params, lr=0.05)",
    "adam_amsgrad": "optim.Adam(params, lr=0.05, amsgrad=True)",
    "rmsprop": "optim.RMSprop(params, lr=0.01, momentum=0.5, centered=True)",
    "adagrad": "optim.Adagrad(params, lr=0.05, lr_decay=0.01)",
    "radam": "optim.RAdam(params, lr=0.05)",
    "groups": "optim.SGD([{'params': params[:2]}, {'params': params[2:], 'lr': 0.01}], lr=0.1)",
    "rate_tensor": "optim.Adam(params, lr=torch.tensor(0.05))",
}
SCHEDULES = {
    "step": "StepLR(opt, 3, 0.5)",
    "multi_step": "MultiStepLR(opt, [2, 5], 0.5)",
    "exponential": "ExponentialLR(opt, 0.9)",
    "cosine": "CosineAnnealingLR(opt, 7)",
    "warm_restarts": "CosineAnnealingWarmRestarts(opt, 3)",
    "linear": "LinearLR(opt, 0.1, 1.0, 5)",
    "constant": "ConstantLR(opt, 0.1, 4)",
    "polynomial": "PolynomialLR(opt, 6, 2.0)",
    "one_cycle": "OneCycleLR(opt, 0.1, 20, cycle_momentum=False)",
    "one_cycle_of_momentum": "OneCycleLR(opt, 0.1, 20)",
    "lambda_": "LambdaLR(opt, lambda n: 0.9 ** n)",
    "multiplicative": "MultiplicativeLR(opt, lambda n: 0.9)",
    "sequential": "SequentialLR(opt, [optim.lr_scheduler.ConstantLR(opt, 0.1, 3), optim.lr_scheduler.ExponentialLR(opt, 0.9)], [4])",
    "chained": "ChainedScheduler([optim.lr_scheduler.LinearLR(opt), optim.lr_scheduler.ExponentialLR(opt, 0.9)])",
}
WRITTEN = (
    loop("loop_clip", after="torch.nn.utils.clip_grad_norm_(params, 0.5)", replays=2),
    loop("loop_clip_value", after="torch.nn.utils.clip_grad_value_(params, 0.1)", replays=2),
    loop("loop_clip_by_a_name", setup="most = 0.5", after="torch.nn.utils.clip_grad_norm_(params, most)", changes={4: "most = 0.1", 6: "most = 2.0"}),
    loop("loop_zero_last", before="pass", last="opt.zero_grad()", replays=2),
    loop("loop_zero_in_place", before="opt.zero_grad(set_to_none=False)", replays=2),
    loop("loop_zero_by_assignment", before="for p in params: p.grad = None", replays=2),
    loop("loop_zero_by_a_call", before="for p in params: p.grad is None or p.grad.zero_()", replays=2),
    loop("loop_zero_some", before="params[0].grad = None"),
    loop("loop_no_zero", before="pass", replays=2),
    loop("loop_adds_twice", after="m(x * 2).mean().backward()", replays=2),
    loop("loop_scales", after="for p in params: p.grad.mul_(0.5)", replays=2),
    loop("loop_replaces_a_gradient", after="params[0].grad = params[0].grad * 0.5", replays=2),
    loop("loop_keeps_gradients", after="held[:] = [p.grad for p in params]"),
    loop("loop_keeps_copies_of_gradients", after="held.append(params[0].grad.clone())"),
    loop("loop_average_of_weights", setup="mean = [p.detach().clone() for p in params]", last="for a, p in zip(mean, params): a.lerp_(p.detach(), 0.1)", replays=2),
    loop("loop_average_of_weights_anew", setup="mean = [p.detach().clone() for p in params]", last="mean[:] = [a * 0.9 + p.detach() * 0.1 for a, p in zip(mean, params)]"),
    loop("loop_counts_to_accumulate", setup="n = 0\ndef due():\n    outer n\n    n += 1\n    return n % 3 == 0", before="pass",
         after="if not due(): return loss.detach()", last="opt.zero_grad()"),
    loop("loop_scales_the_loss", setup="scale = [2.0]", before="opt.zero_grad(); x = x * scale[0]", last="scale[0] = scale[0] * 1.1 if len(held) % 2 else scale[0] / 1.2; held.append(1)"),
    loop("loop_rate_by_hand", setup="n = 0\ndef rate():\n    outer n\n    n += 1\n    return 0.1 / n", after="opt.param_groups[0]['lr'] = rate()"),
    loop("loop_rate_multiplied", after="opt.param_groups[0]['lr'] *= 0.9", replays=2),
    loop("loop_two_optimizers", setup="second = optim.Adam(params[2:], lr=0.01)", after="second.step()", changes={4: "second.param_groups[0]['lr'] = 0.5", 6: "second = optim.SGD(params[2:], lr=0.3)"}),
    loop("loop_two_optimizers_in_turn", setup="both = [opt, optim.Adam(params, lr=0.01)]\nturn = [0]", after="turn[0] ^= 1; both[turn[0]].step()"),
    loop("loop_optimizer_in_a_dict", setup="box = {'opt': optim.SGD(params, lr=0.1)}", after="box['opt'].step()", changes={4: "box['opt'] = optim.Adam(params, lr=0.1)", 6: "box['opt'].param_groups[0]['lr'] = 0.5"}),
    loop("loop_made_in_the_step", after="optim.SGD(params, lr=0.1).step()", replays=0),
    loop("loop_freezes_inside", before="opt.zero_grad(); params[0].requires_grad_(False)", last="params[0].requires_grad_(True)"),
    loop("loop_freezes_in_turn", setup="n = [0]", before="opt.zero_grad(); n[0] += 1; params[0].requires_grad_(n[0] % 2 == 0)"),
    loop("loop_unused_at_times", before="opt.zero_grad(); x = x.detach() if len(held) % 2 else x * params[1].sum(); held.append(1)"),
    loop("loop_grad_of_grad", "optim.SGD(params, lr=0.001)", after="g, = torch.autograd.grad(m(x).square().sum(), params[0], create_graph=True); g.square().sum().backward()"),
    loop("loop_autograd_grad", after="held[:] = [torch.autograd.grad(m(x).sum(), params[0])[0]]"),
    loop("loop_retain_graph", before="opt.zero_grad(); y = m(x).sum(); y.backward(retain_graph=True); y.backward()"),
    loop("loop_exception", setup="n = [0]\ndef fail():\n    n[0] += 1\n    if n[0] in (3, 4, 7):\n        raise ValueError('user', n[0])", after="fail()"),
    loop("loop_exception_at_once", setup="fails = False\ndef fail():\n    if fails:\n        raise ValueError('user')", before="fail(); opt.zero_grad()",
         changes={4: "fails = True", 6: "fails = False", 7: "fails = True", 8: "fails = False"}),
    loop("loop_exception_after", setup="fails = False\ndef fail():\n    if fails:\n        raise ValueError('user')", last="fail()",
         changes={4: "fails = True", 6: "fails = False", 7: "fails = True", 8: "fails = False"}),
    loop("loop_exception_caught", setup="n = [0]\ndef fail():\n    n[0] += 1\n    if n[0] % 3 == 0:\n        raise ValueError('user')", after="try: fail()\n    except ValueError: opt.zero_grad()"),
    loop("loop_closure", optimizer="optim.SGD(params, lr=0.1)", after="opt.step(lambda: loss)"),
    loop("loop_mode_switch", setup="m.append(nn.Dropout(0.5))", before="opt.zero_grad(); m.eval()", last="m.train()"),
    loop("loop_batch_norm", setup="m.insert(1, nn.BatchNorm1d(4))", changes={4: "m.eval()", 6: "m.train()", 7: "m[1].momentum = None"}),
    loop("loop_plateau", setup="sched = optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)", changes=dict.fromkeys(range(2, 11), "sched.step(1.0)")),
    loop("loop_rate_read", last="held.append(opt.param_groups[0]['lr'])", changes={4: "opt.param_groups[0]['lr'] = 0.5"}),
    loop("loop_rate_in_a_branch", after="opt.param_groups[0]['lr'] = 0.2 if opt.param_groups[0]['lr'] > 0.15 else 0.1", changes={4: "opt.param_groups[0]['lr'] = 0.5"}),
    loop("loop_rate_in_text", last="held.append(f\"{opt.param_groups[0]['lr']:.3f}\")", changes={4: "opt.param_groups[0]['lr'] = 0.5"}),
    Program("loop_two_steps", "m = linear(0)\nopt = optim.SGD(m.parameters(), lr=0.1, momentum=0.9)\n@compile\ndef grow(x):\n    loss = m(x).square().mean()\n    loss.backward()\n"
            "    return loss.detach()\n@compile\ndef update():\n    opt.step()\n    opt.zero_grad()\ndef step(x):\n    out = grow(x), grow(x * 2)\n    update()\n    return out",
            {4: "opt.zero_grad()", 6: "opt.zero_grad(set_to_none=False)", 7: "m.weight.grad = None"}),
    Program("loop_two_models", "a, b = linear(0), linear(3)\noa, ob = optim.Adam(a.parameters(), lr=0.1), optim.SGD(b.parameters(), lr=0.1)\ndef step(x):\n    oa.zero_grad(); ob.zero_grad()\n"
            "    y = a(x)\n    b(y.detach()).square().mean().backward()\n    ob.step()\n    b(y).mean().backward()\n    oa.step()\n    return y.detach()",
            {4: "b.requires_grad_(False)", 6: "b.requires_grad_(True)", 7: "a, b = b, a"}),
    Program("loop_of_a_class", "class Trainer:\n    def __init__(self):\n        self.m = linear(0)\n        self.opt = optim.SGD(self.m.parameters(), lr=0.1)\n        self.n = 0\n    @compile\n"
            "    def step(self, x):\n        self.opt.zero_grad()\n        loss = self.m(x).square().mean()\n        loss.backward()\n        self.opt.step()\n        self.n += 1\n        return loss.detach()\n"
            "t, u = Trainer(), Trainer()", {4: "t.m = linear(3)", 6: "t, u = u, t", 7: "t.opt = optim.SGD(t.m.parameters(), lr=0.5)"}, call="t.step(data(n))"),
    Program("loop_of_a_class_compiled_in_init", "class Trainer:\n    def __init__(self):\n        self.m = linear(0)\n        self.opt = optim.SGD(self.m.parameters(), lr=0.1)\n        self._step = compile(self.step)\n"
            "    def step(self, x):\n        self.opt.zero_grad()\n        loss = self.m(x).square().mean()\n        loss.backward()\n        self.opt.step()\n        return loss.detach()\n"
            "t = Trainer()", {4: "t.m.weight.data.mul_(2.0)", 6: "t.opt.param_groups[0]['lr'] = 0.5", 7: "t.m = linear(3)"}, call="t._step(data(n))"),
)  # fmt: skip


def scheduled(name: str, made: str, where: str) -> Program:
    text = f"sched = optim.lr_scheduler.{made}"
    if where == "inside":
        return loop(
            f"schedule_{name}_inside", setup=text, last="sched.step()", changes={6: "opt.param_groups[0]['lr'] = 0.03"}
        )
    return loop(f"schedule_{name}_outside", setup=text, changes=dict.fromkeys((2, 4, 5, 6, 8), "sched.step()"))


def accumulated(name: str, happens: tuple[str, ...]) -> tuple[Program, ...]:
    return tuple(
        loop(f"gradients_{kind}_{name}", rule, before="pass", changes=dict(zip((4, 6, 7), happens, strict=False)))
        for kind, rule in (("sgd", SGD), ("adamw", ADAMW))
    )


def optimized(kind: str, rule: str, name: str, happens: tuple[str, ...]) -> Program:
    alone = (
        "private to each library" if name in ("state_in_place", "momentum_buffer", "momentum_buffer_deleted") else ""
    )
    return loop(f"optimizer_{kind}_{name}", rule, changes=dict(zip((4, 6, 7), happens, strict=False)), alone=alone)


PROGRAMS = (
    *(program for name, happens in GRADIENTS.items() for program in accumulated(name, happens)),
    *(optimized(kind, rule, name, happens) for kind, rule in (("sgd", SGD), ("adamw", ADAMW)) for name, happens in OPTIMIZERS.items()),
    *(optimized("sgd", SGD, name, happens) for name, happens in OF_SGD.items()),
    *(optimized("adamw", ADAMW, name, happens) for name, happens in OF_ADAMW.items()),
    *(loop(f"rule_{name}", rule, changes={4: "opt.param_groups[0]['lr'] = 0.02", 6: "opt.zero_grad(set_to_none=False)"}, replays=2) for name, rule in RULES.items()),
    *(scheduled(name, made, where) for name, made in SCHEDULES.items() for where in ("inside", "outside")),
    *WRITTEN,
)  # fmt: skip
