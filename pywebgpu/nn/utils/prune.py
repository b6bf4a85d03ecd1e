"""Weights of which some are 0 for good: module.weight is computed as weight_orig * weight_mask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn.module import Module
from pywebgpu.nn.tree import Computed, ModuleTree
from pywebgpu.nn.utils import convert_parameters
from pywebgpu.tensor import create, random
from pywebgpu.tensor.tensor import Tensor


class BasePruningMethod(Computed):
    """A way to choose what becomes 0. A subclass gives PRUNING_TYPE and compute_mask.

    PRUNING_TYPE: "unstructured", where compute_mask sees the elements that are left, in one dimension; "structured",
    where it sees the channels that are left along self.dim; "global", where it sees all.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask of 0 and 1 of the shape of `t`, which keeps the zeros of `default_mask`."""
        raise NotImplementedError

    def apply_mask(self, module: ModuleTree) -> Tensor:
        """The pruned tensor."""
        original: Tensor = getattr(module, f"{self._tensor_name}_orig")
        mask: Tensor = getattr(module, f"{self._tensor_name}_mask")
        return mask.to(original.dtype) * original

    compute_weight = apply_mask

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes a parameter, or prunes it further. importance_scores: what is compared in its place."""
        known = module.__dict__.setdefault("_computed_tensors", {})
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        before = known.get(name)
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        scores = original if importance_scores is None else importance_scores
        hooks = module._forward_pre_hooks
        for key in [key for key, hook in hooks.items() if hook is before]:
            del hooks[key]
        if isinstance(before, BasePruningMethod):
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method, mask = container, getattr(module, f"{name}_mask").clone()
        else:
            mask = create.ones_like(original)
        with grad_mode.no_grad():
            mask = method.compute_mask(scores.detach(), default_mask=mask)
        if before is None:
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
        module.register_buffer(f"{name}_mask", mask)
        known[name] = method
        module.register_forward_pre_hook(method)
        return method

    def __call__(self, module: ModuleTree, inputs: object) -> None:
        """The hook before each forward pass, by which programs find it: the weight is computed when read."""

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """The pruned tensor, of one that belongs to no module."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        mask = create.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned value the parameter."""
        name, own = self._tensor_name, module.__dict__["_computed_tensors"]
        with grad_mode.no_grad():
            weight = self.apply_mask(module)
        original: Any = module._parameters.pop(f"{name}_orig")
        hooks = module._forward_pre_hooks
        for key in [key for key, hook in hooks.items() if hook is own[name]]:
            del hooks[key]
        del own[name], module._buffers[f"{name}_mask"]
        original.data = weight.detach()
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Methods that were applied to one tensor, in their order."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Of the method added last, among what the others left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        left: Any = (slice(None),) * t.dim()
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim: int = method.dim % t.dim()  # type: ignore[attr-defined]
            kept = mask.sum([axis for axis in range(t.dim()) if axis != dim]) != 0
            left = tuple(kept if axis == dim else slice(None) for axis in range(t.dim()))
        elif method.PRUNING_TYPE != "global":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        part_mask = method.compute_mask(t[left], default_mask=mask[left])
        mask = mask.clone()
        mask[left] = part_mask.to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Nothing becomes 0."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


def _validate_pruning_amount_init(amount: float) -> None:
    """Raises TypeError for what is no number, ValueError for one that is neither a share in [0, 1] nor a count."""
    if not isinstance(amount, int | float):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, int) and amount > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    """Raises ValueError for a count above the number of elements."""
    if isinstance(amount, int) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """A count, or a share of the elements, as a count."""
    return amount if isinstance(amount, int) else round(amount * tensor_size)


class _Amount(BasePruningMethod):
    """A number of elements or channels, or a share of them in [0, 1]."""

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _count(self, size: int) -> int:
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if self.PRUNING_TYPE == "unstructured":
            scores, shape = self._scores(t).reshape(-1), tuple(t.shape)
        else:
            if t.dim() <= 1:
                raise ValueError(
                    "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                    f"{t.shape} with {t.dim()} dims"
                )
            if self.dim >= t.dim():
                raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
            dim = self.dim % t.dim()
            scores, shape = self._scores(t), tuple(-1 if axis == dim else 1 for axis in range(t.dim()))
        count = self._count(scores.numel())
        if count == 0:
            return default_mask
        lowest = scores.topk(count, largest=False).indices
        kept = create.ones_like(scores).index_fill(0, lowest, 0).reshape(shape)
        return default_mask * kept.to(default_mask.dtype)

    def _scores(self, t: Tensor) -> Tensor:
        """What is lowest becomes 0: one number for each element, or each channel along self.dim."""
        raise NotImplementedError


class RandomUnstructured(_Amount):
    """Elements drawn by chance."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        super().__init__(amount)

    def _scores(self, t: Tensor) -> Tensor:
        return -random.rand_like(t)


class L1Unstructured(_Amount):
    """The elements nearest to 0."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        super().__init__(amount)

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class RandomStructured(_Amount):
    """Channels drawn by chance."""

    PRUNING_TYPE = "structured"

    def _scores(self, t: Tensor) -> Tensor:
        return random.rand(t.shape[self.dim], device=t.device)


class LnStructured(_Amount):
    """The channels of the smallest norm `n`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        return t.norm(self.n, [axis for axis in range(t.dim()) if axis != self.dim % t.dim()])


class CustomFromMask(BasePruningMethod):
    """What a mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Makes a parameter a pruned one, of which nothing is pruned."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes a share, or a number, of elements by chance."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prunes the elements that are smallest in magnitude, or least important."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes whole slices along an axis by chance."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the slices along an axis whose norm is smallest."""
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes where a mask is 0."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters as if they were one."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, dict | None):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pruned, scores = list(parameters), importance_scores or {}
    method: Any = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    values = [(module, name, getattr(module, name).detach()) for module, name in pruned]
    masks = [getattr(module, f"{name}_mask", create.ones_like(value)) for module, name, value in values]
    method._tensor_name = "all"
    mask = PruningContainer(method).compute_mask(
        convert_parameters.parameters_to_vector([scores.get((module, name), value) for module, name, value in values]),
        convert_parameters.parameters_to_vector(masks),
    )
    start = 0
    for module, name, value in values:
        custom_from_mask(module, name, mask=mask[start : start + value.numel()].view(value.shape))
        start += value.numel()


def remove(module: Module, name: str) -> Module:
    """Makes a pruned value the parameter. Raises: ValueError where it is not pruned."""
    method = module.__dict__.get("_computed_tensors", {}).get(name)
    if not isinstance(method, BasePruningMethod):
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    method.remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether the module, or one below it, has a pruned parameter."""
    computed = (method for part in module.modules() for method in part.__dict__.get("_computed_tensors", {}).values())
    return any(isinstance(method, BasePruningMethod) for method in computed)
