"""Short programs that say what they see: PyTorch says the same, in the same order, and raises the same errors.

A program gets the library, a function that makes a tensor of some shape, and one to say things with.
"""

from collections.abc import Callable
from typing import Any

Program = Callable[[Any, Any, Any], None]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    """Notes a program by its name."""
    PROGRAMS[function.__name__] = function
    return function


def pair(torch: Any) -> Any:
    class Pair(torch.nn.Module):
        def forward(self, a, b):
            return a * b, a + b

    return Pair()


def leaves(x: Any) -> tuple[Any, Any]:
    return x(3).requires_grad_(), (x(3) * 2).requires_grad_()


def through(torch: Any, x: Any, say: Any, module: Any, used: int = 2) -> None:
    """Trains a pair a little, and says the gradients of both inputs."""
    a, b = leaves(x)
    sum(part.sum() * (n + 1) for n, part in enumerate(module(a, b)[:used])).backward()
    say(a.grad, b.grad)


# Hooks of modules


@program
def backward_hooks_see_all_gradients_at_once(torch, x, say):
    module = pair(torch)
    module.register_full_backward_hook(lambda m, gi, go: say("hook", gi, go))
    through(torch, x, say, module)


@program
def an_output_that_nothing_used_has_no_gradient(torch, x, say):
    module = pair(torch)
    module.register_full_backward_hook(lambda m, gi, go: say("hook", gi, go))
    module.register_full_backward_pre_hook(lambda m, go: say("before", go))
    through(torch, x, say, module, used=1)


@program
def backward_hooks_replace_gradients(torch, x, say):
    module = pair(torch)
    module.register_full_backward_pre_hook(lambda m, go: (go[0] * 2, go[1] * 3))
    module.register_full_backward_hook(lambda m, gi, go: tuple(g * 10 for g in gi))
    through(torch, x, say, module)


@program
def backward_hooks_return_as_many(torch, x, say):
    module = pair(torch)
    module.register_full_backward_hook(lambda m, gi, go: (gi[0],))
    through(torch, x, say, module)


@program
def backward_pre_hooks_return_as_many(torch, x, say):
    module = pair(torch)
    module.register_full_backward_pre_hook(lambda m, go: (go[0],))
    through(torch, x, say, module)


@program
def inputs_without_gradients(torch, x, say):
    module = torch.nn.Linear(2, 2)
    with torch.no_grad():
        module.weight.copy_(x(2, 2))
        module.bias.copy_(x(2))
    module.register_full_backward_hook(lambda m, gi, go: say("hook", gi, go))
    module(x(3, 2)).sum().backward()
    say(module.weight.grad)


@program
def backward_hooks_of_one_kind(torch, x, say):
    module = torch.nn.ReLU()
    module.register_full_backward_hook(lambda *given: None)
    module.register_backward_hook(lambda *given: None)


@program
def backward_hooks_of_older_programs(torch, x, say):
    module = torch.nn.ReLU()
    module.register_backward_hook(lambda m, gi, go: say("hook", gi, go))
    a = (x(3) - 0.3).requires_grad_()
    module(a).sum().backward()
    say(a.grad)


@program
def outputs_that_are_no_tensors(torch, x, say):
    class Named(torch.nn.Module):
        def forward(self, x, factor=1, *, scale=None):
            return x * factor if scale is None else x * scale, 5

    module = Named()
    module.register_full_backward_hook(lambda m, gi, go: say("hook", gi, go))
    a, b = leaves(x)
    module(a, 2)[0].sum().backward()
    module(a, 2, scale=b)[0].sum().backward()
    say(a.grad, b.grad)


@program
def second_derivatives_pass_backward_hooks(torch, x, say):
    module = torch.nn.Tanh()
    module.register_full_backward_hook(lambda m, gi, go: say("hook", gi, go, gi[0].requires_grad))
    a = x(2).requires_grad_()
    (g,) = torch.autograd.grad(module(a).sum(), a, create_graph=True)
    g.sum().backward()
    say(a.grad)


@program
def hooks_of_every_module(torch, x, say):
    every = torch.nn.modules.module
    handles = [
        every.register_module_forward_pre_hook(lambda m, given: say("forward pre", type(m).__name__, len(given))),
        every.register_module_forward_hook(lambda m, given, out: say("forward", type(m).__name__)),
        every.register_module_full_backward_hook(lambda m, gi, go: say("backward", type(m).__name__, gi, go)),
        every.register_module_full_backward_pre_hook(lambda m, go: say("backward pre", type(m).__name__, go)),
    ]
    module = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU())
    module[0].register_forward_hook(lambda m, given, out: say("own"))
    module[1].register_full_backward_hook(lambda m, gi, go: say("own backward"))
    a = x(3).requires_grad_()
    module(a).sum().backward()
    for handle in handles:
        handle.remove()
    say(module(a))


@program
def hooks_of_a_module_that_passes_on_what_it_lacks(torch, x, say):
    class Around(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Tanh()

        def __getattr__(self, name):
            return super().__getattr__(name) if name == "inner" else getattr(self.inner, name)

        def forward(self, x):
            return self.inner(self.inner(x))

    module = Around()
    module.register_forward_hook(lambda m, given, out: say("after", type(m).__name__, out))
    module.register_forward_pre_hook(lambda m, given: say("before", type(m).__name__, given))
    module.register_state_dict_pre_hook(lambda m, prefix, keep: say("saved", type(m).__name__))
    module(x(3))
    module.state_dict()
    say(len(module.inner._forward_hooks), len(module._forward_hooks))


@program
def hooks_of_every_module_replace(torch, x, say):
    every = torch.nn.modules.module
    handles = [
        every.register_module_forward_hook(lambda m, given, out: out * 2),
        every.register_module_forward_pre_hook(lambda m, given: given[0] + 1),
    ]
    say(torch.nn.ReLU()(x(3)))
    for handle in handles:
        handle.remove()
    say(torch.nn.ReLU()(x(3)))


@program
def hooks_of_what_modules_get(torch, x, say):
    every = torch.nn.modules.module
    handles = [
        every.register_module_module_registration_hook(lambda m, name, one: say("module", name)),
        every.register_module_parameter_registration_hook(lambda m, name, one: say("parameter", name)),
        every.register_module_buffer_registration_hook(lambda m, name, one: say("buffer", name)),
    ]
    module = torch.nn.Module()
    module.inner = torch.nn.Linear(1, 1)
    module.register_buffer("kept", x(1))
    module.own = torch.nn.Parameter(x(1))
    for handle in handles:
        handle.remove()


@program
def hooks_that_are_always_called(torch, x, say):
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    module = Broken()
    module.register_forward_hook(lambda m, given, out: say("always", out), always_call=True)
    module.register_forward_hook(lambda m, given, out: say("never"))
    module(x(1))


# Hooks of functions


@program
def function_hooks_see_both_ends(torch, x, say):
    a = x(3).requires_grad_()
    c = (a * 2).exp()
    handle = c.grad_fn.register_hook(lambda gi, go: say("hook", gi, go))
    c.grad_fn.register_prehook(lambda go: say("before", go))
    c.sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward()
    say(a.grad)


@program
def function_hooks_replace(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    c = b.exp()
    b.grad_fn.register_prehook(lambda go: (go[0] * 0 + 1,))
    c.grad_fn.register_hook(lambda gi, go: (gi[0] * 5,))
    c.sum().backward()
    say(a.grad)


@program
def function_hooks_of_several_inputs(torch, x, say):
    a, b = leaves(x)
    for out in (a * b, torch.nn.functional.softmax(a, 0), a.mean(), a + b[:1]):
        out.grad_fn.register_hook(lambda gi, go: say("hook", gi, go))
        (out * x(*out.shape)).sum().backward()
    say(a.grad, b.grad)


@program
def function_hooks_of_a_leaf(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    function = b.grad_fn.next_functions[0][0]
    say(function.name())
    function.register_prehook(lambda go: say("before", go, a.grad))
    function.register_hook(lambda gi, go: say("hook", gi, go, a.grad))
    b.sum().backward()


@program
def function_hooks_of_a_written_function(torch, x, say):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2, h * 3

    a, b = leaves(x)
    y, _ = Both.apply(a, b)
    y.grad_fn.register_hook(lambda gi, go: say("hook", gi, go))
    y.grad_fn.register_prehook(lambda go: say("before", go))
    y.sum().backward()
    say(a.grad, b.grad)


# Hooks of tensors, and gradients that are kept


@program
def hooks_after_accumulation(torch, x, say):
    a = x(3).requires_grad_()
    handle = a.register_post_accumulate_grad_hook(lambda p: say("after", p.grad))
    for _ in range(2):
        (a * 2).sum().backward()
    handle.remove()
    (a * 2).sum().backward()
    say(a.grad, torch.autograd.grad((a * 2).sum(), a))


@program
def a_step_for_each_parameter(torch, x, say):
    a = x(3).requires_grad_()
    optimizer = torch.optim.SGD([a], lr=0.1)

    def step(parameter):
        optimizer.step()
        optimizer.zero_grad()
        say("stepped", parameter)

    a.register_post_accumulate_grad_hook(step)
    (a * a).sum().backward()
    say(a.grad is None)


@program
def hooks_after_accumulation_return_nothing(torch, x, say):
    a = x(3).requires_grad_()
    a.register_post_accumulate_grad_hook(lambda p: 3)
    (a * 2).sum().backward()


@program
def hooks_after_accumulation_of_leaves_alone(torch, x, say):
    (x(3).requires_grad_() * 2).register_post_accumulate_grad_hook(say)


@program
def hooks_after_accumulation_of_no_gradient(torch, x, say):
    x(3).register_post_accumulate_grad_hook(say)


@program
def kept_gradients_are_those_after_hooks(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    b.register_hook(lambda g: g * 3)
    b.retain_grad()
    b.register_hook(lambda g: g * 5)
    b.sum().backward()
    say(b.grad, a.grad)


@program
def kept_gradients_add_up(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    b.retain_grad()
    b.sum().backward(retain_graph=True)
    (b * 2).sum().backward()
    say(b.grad, a.grad)


@program
def kept_gradients_follow_writes_in_place(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    b.retain_grad()
    b.mul_(3)
    b.sum().backward()
    say(b.grad, a.grad, b.retains_grad)


@program
def hooks_stay_where_writes_in_place_found_them(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    b.register_hook(lambda g: say("first", g))
    b.mul_(3)
    b.register_hook(lambda g: say("second", g))
    b.sum().backward()
    say(a.grad)


@program
def kept_gradients_of_views(torch, x, say):
    a = x(4).requires_grad_()
    b = a * 2
    v = b[:2]
    v.retain_grad()
    v.sum().backward()
    say(v.grad, a.grad)


@program
def nothing_is_kept_without_a_gradient(torch, x, say):
    x(3).retain_grad()


@program
def hooks_of_leaves_are_run_each_time(torch, x, say):
    a = x(3).requires_grad_()
    a.register_hook(lambda g: g * 2)
    a.register_hook(lambda g: say("hook", g))
    for _ in range(2):
        (a * 1).sum().backward()
    say(a.grad, torch.autograd.grad((a * 1).sum(), a))


@program
def hooks_below_what_is_asked_for_do_not_run(torch, x, say):
    a = x(3).requires_grad_()
    b = a * 2
    a.register_hook(lambda g: say("of a leaf", g))
    c = b.exp()
    b.register_hook(lambda g: say("of what is asked for", g))
    say(torch.autograd.grad(c.sum(), b))
    say(torch.autograd.grad(b.sum(), a))


@program
def hooks_return_tensors(torch, x, say):
    b = x(3).requires_grad_() * 2
    b.register_hook(lambda g: 3)
    b.sum().backward()


@program
def hooks_keep_sizes(torch, x, say):
    b = x(3).requires_grad_() * 2
    b.register_hook(lambda g: g[:2])
    b.sum().backward()


@program
def hooks_remove_themselves(torch, x, say):
    b = x(3).requires_grad_() * 2
    handles = []
    handles.append(b.register_hook(lambda g: (say("once", g), handles[0].remove())[0]))
    b.sum().backward(retain_graph=True)
    b.sum().backward()
