"""torch.ops: operators by namespace, with the kernels that programs and libraries gave them.

An operator runs the kernel for the device of its tensors, else one for all. A kernel with a registered gradient runs
without history, and its results have that gradient; a composite one is recorded as it runs.
"""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NoReturn

from pywebgpu.amp import autocast_mode
from pywebgpu.autodiff import grad_mode
from pywebgpu.autograd.function import Function
from pywebgpu.ir.graph import thread_state, used
from pywebgpu.tensor import samples
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api.schema import FunctionSchema, parse_schema
from pywebgpu.utils import _pytree

Kernel = Callable[..., Any]
IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
EVERY = ""  # the key of a kernel for all devices
KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "mps": "MPS", "webgpu": "PrivateUse1"}
# Libraries with operators of their own that this library has: what their files are called, and where it has them.
LIBRARIES = {"torchvision/_C": "pywebgpu.torch_api.vision_operators"}
NAMESPACES = {"torchvision": "pywebgpu.torch_api.vision_operators"}


class _LeftOut(threading.local):
    """The keys whose kernels blocks of a thread leave out, outermost first."""

    def __init__(self) -> None:
        self.blocks: list[frozenset[str]] = []

    def has(self, kind: str) -> bool:
        """Whether keys of a kind are left out."""
        return any(key.startswith(kind) for keys in self.blocks for key in keys)


_left_out = _LeftOut()


@contextmanager
def below_autograd() -> Iterator[None]:
    """A block in which operators are called without their kernels for gradients."""
    _left_out.blocks.append(frozenset({"Autograd"}))
    try:
        with grad_mode.no_grad():
            yield
    finally:
        _left_out.blocks.pop()


class _Operator:
    """What is called with tensors, whose classes and modes may answer for it."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if used.overrides is not None:
            return used.overrides(self, self._run, args, kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """What it computes, once nobody else answered."""
        raise NotImplementedError


class OpOverload(_Operator):
    """One operator: a schema, and kernels by the device that they are for."""

    _schema: FunctionSchema

    def __init__(self, packet: OpOverloadPacket, schema: FunctionSchema | None, overload: str = "") -> None:
        self.overloadpacket, self._overloadname = packet, overload or "default"
        self.namespace, self._opname = packet._namespace, packet.__name__
        if schema is not None:
            self._schema = schema
        self.kernels: dict[str, Kernel] = {}
        self.gradient: Gradient | None = None
        self.fake: Kernel | None = None
        self.batched: Kernel | None = None
        self.function: Any = None  # of autograd, with the gradient
        self.tags: list[Any] = []
        self.__name__ = self.__qualname__ = f"{self._opname}.{self._overloadname}"
        self.__module__ = f"torch.ops.{self.namespace}"
        self._operator_path = f"{self.namespace}.{self.__name__}"

    def name(self) -> str:
        """Its name, "namespace::operator.overload"."""
        end = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{end}"

    @property
    def has_effect(self) -> Any:
        """Whether calls change their arguments."""
        schema = getattr(self, "_schema", None)
        if schema is not None:
            return schema.is_mutable
        return self._overloadname.endswith("out") or (self._opname.endswith("_") and not self._opname.endswith("__"))

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if (schema := getattr(self, "_schema", None)) is not None:
            schema.bind(args, kwargs)
        kernel, key = self._kernel(tensors)
        rule = self.batched
        level = samples.innermost(tensors) if thread_state.transforms and rule is not None else None
        if level is not None and rule is not None:
            kernel = functools.partial(_by_rule, level, self._operator_path, rule)
            if samples.is_last(level):
                return kernel(*args, **kwargs)
        if key in (IMPLICIT, "Autograd"):
            return kernel(*args, **kwargs)
        wants = thread_state.grad and any(tensor.requires_grad for tensor in tensors)
        if wants and self.gradient is not None and not _left_out.has("Autograd"):
            return self.gradient.call(self, kernel, args, kwargs)
        with grad_mode.no_grad():
            return kernel(*args, **kwargs)

    def _kernel(self, tensors: list[Tensor]) -> tuple[Kernel, str]:
        """What runs for these tensors, and for what it was registered."""
        kind = tensors[0].device.type if tensors else "cpu"
        own = KEYS.get(kind, kind.upper())
        if own == "Meta" and self.fake is not None:
            return self.fake, own
        autograd = () if _left_out.has("Autograd") else (f"Autograd{own}", "Autograd")
        cast = self.kernels.get(f"Autocast{own}") if thread_state.autocast and not _left_out.has("Autocast") else None
        if cast is not None and autocast_mode.is_autocast_enabled(kind):
            return cast, IMPLICIT
        for key in (*autograd, own, EXPLICIT, IMPLICIT, EVERY):
            if key in self.kernels:
                return self.kernels[key], "Autograd" if key in autograd else key
        raise NotImplementedError(
            f"Could not run '{self.name()}' with arguments from the '{own}' backend: it has kernels for "
            f"{sorted(self.kernels) or 'nothing'}"
        )

    def redispatch(self, keyset: object, *args: Any, **kwargs: Any) -> Any:
        """As a call."""
        return self(*args, **kwargs)

    def has_kernel_for_dispatch_key(self, key: object) -> bool:
        """Whether a kernel was given for a key."""
        return key_name(key) in self.kernels

    def py_impl(self, key: object) -> Callable[[Kernel], Kernel]:
        """Decorates a kernel for a key."""

        def decorate(kernel: Kernel) -> Kernel:
            self.kernels[key_name(key)] = kernel
            return kernel

        return decorate

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return self._operator_path

    def __deepcopy__(self, memo: object) -> OpOverload:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _operator, (self.namespace, self._opname, self._overloadname)


def _by_rule(level: samples.Samples, name: str, rule: Kernel, *args: Any, **kwargs: Any) -> Any:
    return level.by_rule(name, rule, args, kwargs)


class OpOverloadPacket(_Operator):
    """The operators of one name, which differ in their arguments."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace, self.__name__, self.__qualname__ = namespace, name, name
        self.__module__ = f"torch.ops.{namespace}"
        self._qualified_op_name = f"{namespace}::{name}"
        self._operator_path = f"{namespace}.{name}"
        self._overloads: dict[str, OpOverload] = {}

    def overloads(self) -> list[str]:
        """The names of its operators."""
        return [*self._overloads]

    def __getattr__(self, overload: str) -> OpOverload:
        own = self.__dict__.get("_overloads", {})
        if overload in own:
            return own[overload]  # type: ignore[no-any-return]
        raise AttributeError(
            f"The underlying op of '{self.__dict__.get('_operator_path')}' has no overload name '{overload}'"
        )

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        operators = [*self._overloads.values()]
        if len(operators) > 1:
            fitting = [operator for operator in operators if operator._schema.accepts(args, kwargs)]
            operators = fitting or operators
        return operators[0](*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._operator_path}')>"

    def __str__(self) -> str:
        return self._operator_path

    def __iter__(self) -> Iterator[str]:
        return iter(self._overloads)

    def __deepcopy__(self, memo: object) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _operator, (self._namespace, self.__name__, None)


class HigherOrderOperator(_Operator):
    """An operator that a program writes as a class or with kernels by dispatch key; functions may be its arguments.

    vmap and derivatives follow what its kernel records, so that kernels for function transforms are never called.
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self.py_kernels: dict[str, Kernel] = {}

    def name(self) -> str:
        """Its name."""
        return self._name

    def py_impl(self, key: object) -> Callable[[Kernel], Kernel]:
        """Decorates a kernel for a dispatch key, a mode or a function transform."""

        def decorate(kernel: Kernel) -> Kernel:
            self.py_kernels[key_name(key)] = kernel
            return kernel

        return decorate

    def has_kernel_for_dispatch_key(self, key: object) -> bool:
        """Whether a kernel was given for a key."""
        return key_name(key) in self.py_kernels

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        own = KEYS.get(kind := tensors[0].device.type if tensors else "cpu", kind.upper())
        for key in (f"Autograd{own}", "Autograd", own, EXPLICIT, IMPLICIT):
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        raise NotImplementedError(f"There was no kernel registered for {self._name} and the device of its arguments")

    def __str__(self) -> str:
        return self._name


class Gradient:
    """The gradient that was registered for an operator."""

    def __init__(self, backward: Kernel | None, setup_context: Kernel | None) -> None:
        self.backward, self.setup_context = backward, setup_context

    def call(self, operator: OpOverload, kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The kernel's results, with this gradient."""
        bound = operator._schema.bind(args, kwargs)
        only_names = {item.name for item in operator._schema.arguments if item.kwarg_only}
        named = {name: value for name, value in bound.items() if name in only_names}
        inputs = tuple(value for name, value in bound.items() if name not in only_names)
        leaves, spec = _pytree.tree_flatten(inputs)
        call = SimpleNamespace(operator=operator, kernel=kernel, gradient=self, named=named, spec=spec, out_spec=None)
        if operator.function is None:
            name = operator._operator_path.replace(".", "_")
            operator.function = type(f"GeneratedBackwardFor_{name}", (_Called,), {})
        results = operator.function.apply(*leaves, call)
        return _pytree.tree_unflatten([*results], call.out_spec)


class _Called(Function):
    """A call of a kernel: its last argument says of which, the others are the leaves of the kernel's."""

    @staticmethod
    def forward(ctx: Any, *leaves: Any) -> Any:
        *values, call = leaves
        inputs = _pytree.tree_unflatten(values, call.spec)
        with below_autograd():
            output = call.kernel(*inputs, **call.named)
        ctx.call = call
        if call.gradient.setup_context is not None:
            options = {"keyword_only_inputs": call.named} if call.named else {}
            call.gradient.setup_context(ctx=ctx, inputs=inputs, output=output, **options)
        results, call.out_spec = _pytree.tree_flatten(output)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call = ctx.call
        if call.gradient.backward is None:
            raise RuntimeError(
                f"Trying to backward through {call.operator.name()} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        outputs = _pytree.tree_unflatten([*grads], call.out_spec)
        returned = call.gradient.backward(ctx, *(outputs if isinstance(outputs, tuple) else (outputs,)))
        parts = returned if isinstance(returned, tuple) else (returned,)
        leaves: list[Any] = []
        for part, spec in zip(parts, call.spec.children_specs, strict=False):
            leaves += [None] * spec.num_leaves if part is None else spec.flatten_up_to(part)
        return (*leaves, None)


class _Refused:
    """An operator of quantised models, with its overloads, that can be had and not called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, overload: str) -> _Refused:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"torch.ops.quantized_decomposed.{self.__name__}: models are not quantised here")


class _OpNamespace:
    """The operators of a namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._packets: dict[str, OpOverloadPacket] = {}
        self.__file__ = "torch.ops"

    def __getattr__(self, name: str) -> Any:
        packets = self.__dict__.get("_packets", {})
        if name not in packets and not name.startswith("__"):
            own = self.__dict__.get("name")
            if own in NAMESPACES:
                import_module(NAMESPACES[own])
            elif own == "aten":
                packets[name] = import_module("pywebgpu.torch_api.aten").find(name)
        if name in packets:
            return packets[name]
        if self.__dict__.get("name") == "quantized_decomposed":  # Of torch.ao: they can be named, and not called.
            return _Refused(name)
        raise AttributeError(f"'_OpNamespace' '{self.__dict__.get('name')}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return sorted(self._packets)

    def __iter__(self) -> Iterator[str]:
        return iter(self._packets)


@functools.cache
def namespace(name: str) -> _OpNamespace:
    """torch.ops.NAME, which is there whether it has operators or not."""
    return _OpNamespace(name)


def define(space: str, text: str) -> OpOverload:
    """Adds an operator by its schema. Raises RuntimeError for one that is there already."""
    schema = parse_schema(f"{space}::{text}")
    name = schema.name.rpartition("::")[2]
    packet = namespace(space)._packets.setdefault(name, OpOverloadPacket(space, name))
    overload = schema.overload_name or "default"
    if overload in packet._overloads:
        raise RuntimeError(
            f"Tried to register an operator ({space}::{text}) with the same name and overload name multiple times."
        )
    packet._overloads[overload] = OpOverload(packet, schema, overload)
    return packet._overloads[overload]


def remove(operator: OpOverload) -> None:
    """Takes an operator away."""
    packets = namespace(operator.namespace)._packets
    packet = packets.get(operator._opname)
    if packet is not None and packet._overloads.get(operator._overloadname) is operator:
        del packet._overloads[operator._overloadname]
        if not packet._overloads:
            del packets[operator._opname]


def find(name: Any) -> OpOverload:
    """An operator by its name, "namespace::operator.overload"; an operator itself. Raises RuntimeError for none."""
    if isinstance(name, OpOverload):
        return name
    if isinstance(name, OpOverloadPacket):
        return next(iter(name._overloads.values()))
    own = getattr(name, "_opoverload", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    space, _, rest = str(name).partition("::")
    operator, _, overload = rest.partition(".")
    try:
        return getattr(getattr(namespace(space), operator), overload or "default")  # type: ignore[no-any-return]
    except AttributeError:
        raise RuntimeError(f"operator {name} does not exist") from None


DispatchKey = enum.Enum(
    "DispatchKey",
    "Undefined CPU CUDA MPS XPU Meta PrivateUse1 BackendSelect Python Functionalize ADInplaceOrView AutogradOther "
    "AutogradCPU AutogradCUDA AutogradMeta AutogradPrivateUse1 AutocastCPU AutocastCUDA AutocastXPU "
    "AutocastPrivateUse1 Autograd CompositeImplicitAutograd CompositeExplicitAutograd SparseCPU SparseCUDA "
    "QuantizedCPU FuncTorchBatched FuncTorchVmapMode",
)


class DispatchKeySet:
    """Some dispatch keys."""

    def __init__(self, *keys: Any) -> None:
        self.keys = frozenset(keys)

    def has(self, key: Any) -> bool:
        """Whether a key is among them."""
        return key in self.keys

    def add(self, key: Any) -> DispatchKeySet:
        """With one more."""
        return DispatchKeySet(*self.keys, key)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)


class ExcludeDispatchKeyGuard:
    """A block without kernels for some keys: those for gradients or autocast, if such keys are among them."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._keys = frozenset(map(key_name, keys.keys))

    def __enter__(self) -> None:
        _left_out.blocks.append(self._keys)

    def __exit__(self, *error: object) -> None:
        _left_out.blocks.pop()


def left_out() -> DispatchKeySet:
    """The keys whose kernels this thread leaves out."""
    names = {name for keys in _left_out.blocks for name in keys}
    return DispatchKeySet(*(key for key in DispatchKey if key.name in names))


def key_name(key: object) -> str:
    """A dispatch key as a text."""
    return str(getattr(key, "name", key)).removeprefix("DispatchKey.")


def _operator(space: str, name: str, overload: str | None) -> Any:
    packet = getattr(namespace(space), name)
    return packet if overload is None else getattr(packet, overload)


loaded_libraries: set[str] = set()


def load_library(path: object) -> None:
    """Adds the operators of a library, where this one has them. Raises OSError for any other: it cannot be loaded."""
    text = str(path).replace("\\", "/")
    for part, module in LIBRARIES.items():
        if part in text:
            import_module(module)
            loaded_libraries.add(str(path))
            return
    raise OSError(f"Could not load this library: {path}: it is compiled for PyTorch's own, and there is none here")


class _Ops:
    """torch._ops.ops, which is torch.ops."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("pywebgpu.ops"), name)


ops = _Ops()
