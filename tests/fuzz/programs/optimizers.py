"""Programs that look into optimizers and schedules themselves, or have attributes of the same names."""

from tests.fuzz.programs.program import Program

_OPTIMIZER = "p = [param(n) for n in range(3)]\nopt = optim.SGD(p, lr=0.1)\n"
_RATE = {4: "opt.param_groups[0]['lr'] = 0.5", 6: "opt.param_groups[0].update(lr=0.25)"}


def _of(name: str, value: str, changes: dict[int, str], setup: str = "", **more: int) -> Program:
    """A step that multiplies by what it reads of an optimizer."""
    return Program(name, f"{_OPTIMIZER}{setup}\ndef step(x):\n    return x * {value}", changes, **more)  # type: ignore[arg-type]


PROGRAMS = [
    _of("group_as_a_dict", "dict(opt.param_groups[0])['lr']", _RATE, replays=2),
    _of("group_unpacked", "{**opt.param_groups[0]}['lr']", _RATE, replays=2),
    _of("group_joined", "(opt.param_groups[0] | {})['lr']", _RATE, replays=2),
    _of("group_joined_from_the_right", "({} | opt.param_groups[0])['lr']", _RATE, replays=2),
    _of("group_copied", "opt.param_groups[0].copy()['lr']", _RATE, replays=2),
    _of("group_copied_deeply", "copy.deepcopy({k: v for k, v in opt.param_groups[0].items() if k != 'params'})['lr']", _RATE),
    _of("items_of_a_group", "[v for k, v in opt.param_groups[0].items() if k == 'lr'][0]", _RATE, replays=2),
    _of("values_of_a_group", "list(opt.param_groups[0].values())[1]", _RATE, replays=2),
    _of("sum_over_groups", "max(g.get('lr') for g in opt.param_groups)", _RATE, replays=2),
    _of("length_of_a_group", "len(opt.param_groups[0]['params'])", {4: "opt.param_groups[0]['params'].pop()", 6: "opt.add_param_group({'params': [param(5)]})"}, replays=1),
    _of("number_of_groups", "len(opt.param_groups)", {4: "opt.add_param_group({'params': [param(5)]})", 6: "opt.param_groups.pop()"}, replays=2),
    _of("defaults_of_an_optimizer", "opt.defaults['lr']", {4: "opt.defaults['lr'] = 0.5"}, replays=2),
    _of("option_that_is_an_int", "opt.param_groups[0]['weight_decay'] + x * opt.param_groups[0]['momentum']",
        {4: "opt.param_groups[0].update(weight_decay=1)", 6: "opt.param_groups[0]['momentum'] = True"}, replays=2),
    _of("state_that_is_kept", "len(opt.state) + sum(s['n'] for s in opt.state.values())", {4: "opt.state[p[0]]['n'] = 2.0", 6: "opt.state[p[0]]['n'] = 3.0"}),
    _of("attributes_of_a_schedule", "sched.last_epoch + sched.gamma + sched.base_lrs[0]",
        {4: "opt.step(); sched.step()", 6: "sched.gamma = 0.25", 8: "sched.base_lrs[0] = 0.75"}, "sched = optim.lr_scheduler.StepLR(opt, 1, 0.5)"),
    _of("state_dict_of_an_optimizer", "kept['param_groups'][0]['lr']", {4: "kept['param_groups'][0]['lr'] = 0.5"}, "kept = opt.state_dict()", replays=2),
    _of("state_dict_made_inside", "opt.state_dict()['param_groups'][0]['lr']", _RATE),
    Program("named_as_in_an_optimizer", "box = types.SimpleNamespace(state={'k': 1.0}, defaults=[1.0], param_groups=[{'lr': 1.0}])\nother = {'state': {'k': 1.0}}\ndef step(x):\n    return x * box.state['k'] * box.defaults[0] * box.param_groups[0]['lr'] * other['state']['k']",
            {2: "box.state['k'] = 2.0", 4: "box.defaults[0] = 3.0", 6: "box.param_groups[0]['lr'] = 4.0", 8: "other['state']['k'] = 5.0"}),
    Program("zero_grad_alone", f"{_OPTIMIZER}def step(x):\n    opt.zero_grad()\n    (sum(p) * x).sum().backward()\n    opt.zero_grad()\n    return x * 1",
            {4: "opt.param_groups[0]['params'].pop()", 6: "opt.param_groups[0]['params'].pop()"}, replays=2),
    Program("group_updated_inside", f"{_OPTIMIZER}def step(x):\n    opt.zero_grad()\n    opt.param_groups[0].update(lr=opt.param_groups[0]['lr'] * 0.5)\n    (sum(p) * x).sum().backward()\n    opt.step()\n    return x * 1",
            {4: "opt.param_groups[0]['lr'] = 0.5"}, replays=2),
    Program("option_of_another_type_inside", f"{_OPTIMIZER}def step(x):\n    opt.zero_grad()\n    opt.param_groups[0]['lr'] *= 0.5\n    (sum(p) * x).sum().backward()\n    opt.step()\n    return x * 1",
            {4: "opt.param_groups[0]['lr'] = 1"}, replays=1),
    Program("option_turned_inside", f"{_OPTIMIZER}def step(x):\n    opt.zero_grad()\n    opt.param_groups[0]['maximize'] = not opt.param_groups[0]['maximize']\n    (sum(p) * x).sum().backward()\n    opt.step()\n    return x * 1"),
]  # fmt: skip
