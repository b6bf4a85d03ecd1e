"""Programs with classes and modes that say what functions do: `__torch_function__`. See programs.py."""

from tests.cases.programs import program


def named(torch, func):
    """The name of a function that asks."""
    return torch.overrides.resolve_name(func)


def logging_class(torch, log):
    """A class of tensors that notes each call."""

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((named(torch, func), [kind.__name__ for kind in types]))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged


@program
def results_of_a_subclass_are_of_it(torch, x, say):
    class Own(torch.Tensor):
        pass

    a, m = x(2).as_subclass(Own), x(2, 2).as_subclass(Own)
    F = torch.nn.functional
    results = (
        a + 1, 1 - a, x(2) + a, x(2).add(a), torch.add(a, 1), torch.add(x(2), a), F.relu(a), torch.stack([a, a]),
        a.sum(), a[0], a.data, m.T, m @ x(2, 2), x(2, 2) @ m, torch.linalg.norm(a), torch.fft.fft(a), a > 1, a.clone(),
        torch.special.entr(a), a.detach(), a.to(torch.float64), torch.nn.Linear(2, 3)(a), torch.lgamma(a),
        torch.where(a > 0, a, a),
    )  # fmt: skip
    say(*(type(result).__name__ for result in results))
    say(*results[:8])
    say([type(part).__name__ for part in m.split(1)], [type(part).__name__ for part in a.max(0)])
    a.add_(1)
    say(type(a).__name__, a, a.size(), a.tolist())


@program
def gradients_flow_through_a_subclass(torch, x, say):
    class Own(torch.Tensor):
        pass

    w = x(3).requires_grad_()
    loss = (w.as_subclass(Own) * 3).square().sum()
    loss.backward()
    say(type(loss).__name__, w.grad, type(w.grad) is torch.Tensor)


@program
def a_class_sees_what_is_called(torch, x, say):
    log = []
    a = x(2, 2).as_subclass(logging_class(torch, log))
    F = torch.nn.functional
    calls = (
        lambda: a + 1, lambda: 1 + a, lambda: 1 - a, lambda: a * 2, lambda: a / 2, lambda: 2 / a, lambda: a // 2,
        lambda: a % 2, lambda: a**2, lambda: -a, lambda: abs(a), lambda: a @ a, lambda: x(2, 2) @ a, lambda: a == 1,
        lambda: a < 1, lambda: a[0], lambda: len(a), lambda: a.T, lambda: a.data, lambda: a.sum(0), lambda: a.add_(1),
        lambda: torch.sum(a), lambda: torch.add(x(2, 2), a), lambda: torch.cat([a, x(2, 2)]),
        lambda: F.softmax(a, 0), lambda: F.linear(x(2, 2), a), lambda: torch.linalg.norm(a), lambda: torch.fft.fft(a),
        lambda: torch.special.entr(a), lambda: torch.nn.Linear(2, 3)(a), lambda: torch.ones_like(a),
    )  # fmt: skip
    for call in calls:
        log.clear()
        call()
        say(*log[:1])


@program
def a_class_that_is_no_tensor_is_asked(torch, x, say):
    class Diagonal:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            answers = {torch.mean: "mean", torch.add: "add", torch.cat: "cat", torch.Tensor.add: "method"}
            answers |= {torch.nn.functional.linear: "linear"}
            return answers.get(func, NotImplemented)

    d = Diagonal()
    say(torch.mean(d), torch.add(x(2), d), torch.add(d, 1), torch.cat([d, d]), torch.cat([x(2), d]), x(2).add(d))
    say(torch.nn.functional.linear(d, x(2, 2)), torch.overrides.is_tensor_like(d), torch.overrides.is_tensor_like(1))
    for call in (lambda: torch.sum(d), lambda: torch.nn.functional.softmax(d, 0), lambda: x(2) + d):
        try:
            call()
        except TypeError:
            say("TypeError")


@program
def subclasses_are_asked_before_their_bases(torch, x, say):
    class Base(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            say("base", len(types))
            return NotImplemented

    class Derived(Base):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            say("derived", [kind.__name__ for kind in types])
            return NotImplemented

    a, b = x(2).as_subclass(Base), x(2).as_subclass(Derived)
    for call in (lambda: torch.add(a, b), lambda: a.mul(b), lambda: torch.mul(b, 2)):
        try:
            call()
        except TypeError:
            say("TypeError")


@program
def modes_see_every_call(torch, x, say):
    log = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((self.name, named(torch, func)))
            return func(*args, **(kwargs or {}))

    a = x(3)
    with Mode("outer"):
        b = torch.sin(a * 2)
        with Mode("inner"):
            torch.nn.functional.relu(b)
        a.sum()
    torch.cos(a)
    say(*log, b)


@program
def a_mode_may_answer_by_itself(torch, x, say):
    class Doubled(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.exp else result

    with Doubled():
        say(torch.exp(x(2)), torch.log(x(2).abs() + 1))
    say(torch.exp(x(2)))


@program
def rules_can_be_turned_off(torch, x, say):
    log = []
    kind = logging_class(torch, log)
    a = x(2).as_subclass(kind)
    with torch._C.DisableTorchFunctionSubclass():
        say(type(a + 1) is torch.Tensor, type(torch.exp(a)) is torch.Tensor)
    say(*log, torch.overrides.has_torch_function((a,)))

    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    b = x(2).as_subclass(Plain)
    say(type(b + 1) is torch.Tensor, type(torch.nn.Parameter(x(2)) * 2) is torch.Tensor)


@program
def functions_of_a_program_can_ask(torch, x, say):
    class Own:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(types), args[1:], kwargs

    def scaled(a, by=2):
        if torch.overrides.has_torch_function((a,)):
            return torch.overrides.handle_torch_function(scaled, (a,), a, by=by)
        return a * by

    @torch.overrides.wrap_torch_function(lambda a, b: (a, b))
    def joined(a, b):
        return a + b

    say(scaled(Own(), by=3), joined(Own(), 1))


@program
def a_class_may_make_its_tensors_itself(torch, x, say):
    class Own(torch.Tensor):
        @staticmethod
        def __new__(cls, data, scale=1.0):
            made = torch.as_tensor(data).as_subclass(cls)
            made.scale = scale
            return made

    class Kept(torch.Tensor):
        @staticmethod
        def __new__(cls, data, name):
            return super().__new__(cls, data)

        def __init__(self, data, name):
            super().__init__()
            self.name_of_it = name

    a, b = Own(x(2), 3.0), Kept([1.0, 2.0], "b")
    say(type(a).__name__, a.scale, a, type(b).__name__, b.name_of_it, b, b * 2)


@program
def a_class_is_asked_once_for_the_function_that_was_called(torch, x, say):
    class Matrix:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    say(torch.logdet(Matrix()), torch.det(Matrix()), torch.stack([Matrix()]))
