"""Layers as functions: torch.nn.functional's names and signatures over pywebgpu.composites.

Its files import what they use under names with an underscore, so that only torch's names are public here.
"""

from importlib import import_module as _import_module

from pywebgpu.support.lazy import names as _names

_NAMES = {
    "channel_norm": "batch_norm group_norm instance_norm local_response_norm",
    "channel_dropout": "dropout1d dropout2d dropout3d",
    "activation": (
        "alpha_dropout celu celu_ dropout elu elu_ feature_alpha_dropout gelu "
        "glu gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ "
        "log_softmax logsigmoid mish prelu relu relu6 relu_ rrelu rrelu_ selu selu_ sigmoid silu softmax "
        "softmin softplus softshrink softsign tanh tanhshrink threshold threshold_"
    ),
    "fractional": (
        "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
        "fractional_max_pool3d_with_indices"
    ),
    "grouped": "grouped_mm",
    "linear_loss": "linear_cross_entropy",
    "loss": "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss",
    "margins": (
        "cosine_embedding_loss cosine_similarity gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss "
        "margin_ranking_loss mse_loss multi_margin_loss multilabel_soft_margin_loss pairwise_distance poisson_nll_loss "
        "smooth_l1_loss soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss pdist"
    ),
    "rows": ("bilinear embedding layer_norm linear normalize one_hot rms_norm scaled_dot_product_attention"),
    "sampling": "affine_grid grid_sample max_unpool1d max_unpool2d max_unpool3d",
    "sequences": "ctc_loss embedding_bag multi_head_attention_forward multilabel_margin_loss",
    "spatial": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices "
        "adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d "
        "channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d fold "
        "interpolate lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool1d_with_indices max_pool2d "
        "max_pool2d_with_indices max_pool3d max_pool3d_with_indices pad pixel_shuffle pixel_unshuffle unfold "
        "upsample upsample_bilinear upsample_nearest"
    ),
}


def _asking(name: str) -> object:
    """What libraries import from here of torch.overrides."""
    is_asking = name == "handle_torch_function" or name.startswith("has_torch_function")
    return getattr(_import_module("pywebgpu.torch_api.overrides"), name) if is_asking else None


__getattr__, __dir__, __all__ = _names(__name__, _NAMES, _asking)
