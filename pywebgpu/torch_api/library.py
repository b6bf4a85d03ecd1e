"""torch.library: operators that programs add, by a schema and kernels, with gradients and rules for batches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from pywebgpu.support.lazy import absent
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api import _ops
from pywebgpu.torch_api.schema import infer_schema as infer_schema
from pywebgpu.utils import _pytree

__getattr__ = absent(__name__)
Devices = str | Sequence[str] | None
TYPES = {
    "cpu": "CPU", "cuda": "CUDA", "mps": "MPS", "xpu": "XPU", "webgpu": "PrivateUse1", "default": _ops.EXPLICIT,
}  # fmt: skip


class Library:
    """The operators that one part of a program adds to a namespace, or gives kernels; it takes them along when it goes.

    kind: "DEF" for a namespace of its own, "FRAGMENT" for a part of one, "IMPL" for kernels alone.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim", "prims") and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[_ops.OpOverload] = []
        self._undo: list[Callable[[], object]] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Adds an operator, and returns its name."""
        operator = _ops.define(self.ns, schema)
        operator.tags = [*tags] if isinstance(tags, tuple | list) else [tags]
        self._defined.append(operator)
        return operator._opname + ("" if operator._overloadname == "default" else f".{operator._overloadname}")

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Gives an operator a kernel, for one dispatch key or for all. Raises RuntimeError where it has one already."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        operator = self._operator(op_name)
        key = _ops.key_name(dispatch_key or self.dispatch_key)
        key = _ops.IMPLICIT if key in ("", _ops.IMPLICIT) else key
        if key in operator.kernels and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding "
                f"{operator._opname}'s behavior for {key or 'default'} dispatch key and {self.ns} namespace."
            )
        kernel = (lambda *args, **options: fn(None, *args, **options)) if with_keyset else fn
        if fn is not fallthrough_kernel:
            operator.kernels[key] = kernel
            self._undo.append(lambda: operator.kernels.pop(key, None))

    def _register_fake(self, op_name: Any, fn: Callable[..., Any], _stacklevel: int = 1, **options: Any) -> None:
        self._operator(op_name).fake = fn

    def _operator(self, name: Any) -> _ops.OpOverload:
        if isinstance(name, _ops.OpOverload | _ops.OpOverloadPacket):
            return _ops.find(name)
        return _ops.find(name if "::" in name else f"{self.ns}::{name}")

    def _destroy(self) -> None:
        """Takes away what it added."""
        while self._undo:
            self._undo.pop()()
        while self._defined:
            _ops.remove(self._defined.pop())


_kept: list[Library] = []  # those that functions of this module made


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def _library(ns: str, lib: Library | None) -> Library:
    if lib is None:
        lib = Library(ns, "FRAGMENT")
        _kept.append(lib)
    return lib


def define(qualname: Any, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Adds the operator "namespace::name" with a schema "(Tensor a) -> Tensor"; in an older form, to a Library."""
    if isinstance(qualname, Library):  # An older form, which decorates the function.
        name = qualname.define(schema)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, function)
            return function

        return decorate
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    ns, _, name = qualname.partition("::")
    if not name:
        raise ValueError(f"Expected `qualname` to be of the form 'namespace::name', got {qualname}")
    _library(ns, lib).define(name + schema, tags=tags)
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Gives an operator a kernel for devices ("cpu", ["cpu", "cuda"], "default"), or dispatch keys; may decorate it."""
    if isinstance(qualname, Library):
        name, key = types, func or ""

        def older(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, function, key)
            return function

        return older

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        operator = _ops.find(qualname)
        for key in (types,) if isinstance(types, str) else types:
            _library(operator.namespace, lib).impl(operator, function, TYPES.get(key, key))
        return function

    return register if func is None else (register(func), None)[1]


def _decorates(give: Callable[[Callable[..., Any]], object], func: Callable[..., Any] | None) -> Any:
    """Gives a function at once, or the one that it decorates."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        give(function)
        return function

    return register if func is None else register(func)


def register_kernel(op: Any, device_types: Devices, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Gives an operator a kernel for devices, or, with None, for all; may decorate it."""
    operator = _ops.find(op)

    def give(function: Callable[..., Any]) -> None:
        kinds = (device_types,) if isinstance(device_types, str) or device_types is None else device_types
        for kind in kinds:
            operator.kernels[_ops.EVERY if kind is None else TYPES.get(kind, kind.upper())] = function

    return _decorates(give, func)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """Says what an operator gives for tensors without values; may decorate the function."""
    operator = _ops.find(op)
    return _decorates(lambda function: setattr(operator, "fake", function), func)


def impl_abstract(qualname: Any, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The older name of register_fake."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Gives an operator its gradient: setup_context(ctx, inputs, output), then backward(ctx, *grads)."""
    operator = _ops.find(op)
    if operator._schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {operator._schema}. Please "
            "create a functional operator and register an autograd formula for that."
        )
    operator.gradient = _ops.Gradient(backward, setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Gives an operator its rule for batches: func(info, in_dims, *args) -> (output, out_dims); may decorate it.

    Without, torch.func.vmap makes the batch of what the kernel does.
    """
    operator = _ops.find(op)
    return _decorates(lambda function: setattr(operator, "batched", function), func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Inputs of an operator get a dtype where autocast is on: not here. Raises NotImplementedError."""
    raise NotImplementedError("torch.library.register_autocast is not here: cast in the kernel")


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """What a class with `__torch_dispatch__` does with an operator: not here. Raises NotImplementedError."""
    raise NotImplementedError("torch.library.register_torch_dispatch is not here: use __torch_function__")


def fallthrough_kernel() -> None:
    """Stands for no kernel of its own."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class FakeImplCtx:
    """What the function for tensors without values may ask."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that depends on values: none is known. Raises NotImplementedError."""
        raise NotImplementedError("a size that depends on values has no meaning before the kernel runs")

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> FakeImplCtx:
    """What the function for tensors without values may ask."""
    return FakeImplCtx()


class CustomOpDef:
    """An operator that custom_op made of a function; calling it calls the operator."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self._lib = Library(namespace, "FRAGMENT")
        known = _ops.namespace(namespace)._packets.get(name)
        if known is not None:
            _ops.remove(_ops.find(known))
        self._lib.define(name + schema, tags=tags or ())
        self._opoverload = _ops.find(f"{namespace}::{name}")
        if any(item.kwarg_only and item.type.startswith("Tensor") for item in self._opoverload._schema.arguments):
            self._lib._destroy()
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {name}{schema}"
            )
        self._opoverload.gradient = _ops.Gradient(None, None)
        if self._opoverload._schema.is_mutable:
            self._opoverload.gradient = None
        self.__name__, self.__doc__ = name, fn.__doc__

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Devices, fn: Any = None, /) -> Any:
        """Gives it a kernel for devices; may decorate it."""
        return register_kernel(self._opoverload, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Says what it gives for tensors without values."""
        self._opoverload.fake = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Gives it its gradient."""
        register_autograd(self._opoverload, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """Says what it does with batches."""
        return register_vmap(self._opoverload, func)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A block in which the kernel for a device is used or not."""
        kernels, key = self._opoverload.kernels, TYPES.get(device_type, device_type.upper())
        before = kernels.get(key)
        try:
            if not enabled:
                kernels.pop(key, None)
            yield
        finally:
            if before is not None:
                kernels[key] = before


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Devices = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator "namespace::name" of a function, which may be decorated.

    mutates_args: the arguments that it changes. device_types: what it is for; all devices, if none is named. schema: of
    its annotations, if none is given. Raises ValueError for annotations that schemas do not have.
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        ns, _, own = name.partition("::")
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        definition = CustomOpDef(ns, own, text, function, tags)
        register_kernel(definition._opoverload, device_types, function)
        return definition

    return make if fn is None else make(fn)


TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """An operator is not what its schema and its registrations say."""


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Holds an operator against what it says of itself, for some arguments; by test "SUCCESS", or what is wrong.

    test_schema: it changes what its schema says, and its results are new. test_autograd_registration: it has a gradient
    where its arguments ask for one. test_faketensor: its rule for tensors without values gives the kernel's shapes and
    dtypes. test_aot_dispatch_dynamic: its gradients are the same twice.
    """
    operator = _ops.find(op)
    tests = {
        "test_schema": _check_schema, "test_autograd_registration": _check_gradient, "test_faketensor": _check_fake,
        "test_aot_dispatch_dynamic": _check_twice,
    }  # fmt: skip
    results: dict[str, Any] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        try:
            tests[name](operator, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _check_schema(operator: _ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    bound = operator._schema.bind(args, kwargs)
    before = {name: [(tensor._version, tensor.detach().clone()) for tensor in _tensors(v)] for name, v in bound.items()}
    result = operator(*args, **kwargs)
    for argument in operator._schema.arguments:
        changed = any(
            tensor._version != version or not bool(((tensor == value) | (tensor != tensor)).all())
            for tensor, (version, value) in zip(_tensors(bound[argument.name]), before[argument.name], strict=True)
        )
        if changed and not argument.is_write:
            raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
    inputs = {id(tensor._storage) for tensor in _tensors(bound)}
    aliases = any("(" in item for item in operator._schema.text.rpartition("->")[2].split("Tensor")[1:2])
    if not (operator._schema.is_mutable or aliases) and any(id(t._storage) in inputs for t in _tensors(result)):
        raise RuntimeError(
            f"{operator.name()}: a result shares memory with an argument, and the schema does not say so"
        )


def _check_gradient(operator: _ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not any(tensor.requires_grad for tensor in _tensors((args, kwargs))):
        return
    keys = {*operator.kernels}
    if operator.gradient is None and not keys & {_ops.IMPLICIT, "Autograd", "AutogradCPU", "AutogradCUDA"}:
        raise RuntimeError(
            f"{operator.name()}: there is no gradient, and an argument requires one: use register_autograd"
        )


def _check_fake(operator: _ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    expected = operator(*args, **kwargs)
    if _ops.IMPLICIT in operator.kernels:
        return
    if operator.fake is None:
        raise RuntimeError(f"{operator.name()}: there is no rule for tensors without values: use register_fake")
    fakes = operator.fake(*args, **kwargs)
    for own, theirs in zip(_tensors(fakes), _tensors(expected), strict=True):
        if own.shape != theirs.shape or own.dtype != theirs.dtype:
            raise RuntimeError(
                f"{operator.name()}: the rule for tensors without values gives {own.dtype} {[*own.shape]}, the kernel "
                f"{theirs.dtype} {[*theirs.shape]}"
            )


def _check_twice(operator: _ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def gradients() -> list[Tensor]:
        inputs = _pytree.tree_map_only(Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), args)
        results = [t for t in _tensors(operator(*inputs, **kwargs)) if t.requires_grad]
        for result in results:
            result.sum().backward(retain_graph=True)
        return [t.grad for t in _tensors(inputs) if t.grad is not None]

    if operator._schema.is_mutable:
        return
    for first, second in zip(gradients(), gradients(), strict=True):
        if not bool(((first == second) | (first != first)).all()):
            raise RuntimeError(f"{operator.name()}: two calls give different gradients")


def get_kernel(op: Any, dispatch_key: Any) -> Any:
    """The kernel of an operator for a dispatch key; its call_boxed(keyset, *args) calls it."""
    kernel = _ops.find(op).kernels[_ops.key_name(dispatch_key)]
    return SimpleNamespace(call_boxed=lambda keyset, *args, **kwargs: kernel(*args, **kwargs))
