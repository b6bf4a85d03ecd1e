"""torch.__future__: what converting a module does to its parameters, of which there are three ways.

Their contents change in place, as ever; or the module gets new parameters; or old and new ones change places.
"""

from pywebgpu.nn.parameter import conversion as _conversion


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether to(), float() and their like give a module new parameters."""
    _conversion.overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    return _conversion.overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether they, and load_state_dict, exchange each parameter with a new one by torch.utils.swap_tensors. It goes
    before set_overwrite_module_params_on_conversion."""
    _conversion.swaps = value


def get_swap_module_params_on_conversion() -> bool:
    return _conversion.swaps
