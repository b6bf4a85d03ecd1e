"""torch.func's names: derivatives of functions, functions of batches, modules called with other parameters."""

from pywebgpu.support.lazy import names as _names

_NAMES = {
    "batch": "vmap",
    "derivatives": "grad grad_and_value hessian jacfwd jacrev jvp linearize vjp",
    "modules": "debug_unwrap functional_call functionalize replace_all_batch_norm_modules_ stack_module_state",
}
__getattr__, __dir__, __all__ = _names(__name__, _NAMES)
