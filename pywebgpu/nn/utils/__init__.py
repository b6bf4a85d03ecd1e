"""torch.nn.utils: functions of the parameters and gradients of whole models, and of sequences of several lengths."""

from importlib import import_module

from pywebgpu.support.lazy import names as _names

_NAMES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "reparametrized": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
    "skipping": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format skip_init",
}
_MODULES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")


def _module(name: str) -> object:
    return import_module(f"pywebgpu.nn.utils.{name}") if name in _MODULES else None


__getattr__, __dir__, __all__ = _names(__name__, _NAMES, _module)
__all__ += [*_MODULES]
