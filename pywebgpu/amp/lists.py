"""Which functions autocast calls in lower precision, which in float32, and which in the widest dtype they are given.

These are PyTorch's lists, its CUDA ones for every GPU. What stands in none runs in the dtypes that it is given.
A function counts by itself, as `apply` is called with it; an op that several functions share counts by its record.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from pywebgpu.composites import (
    attention,
    channel_norm,
    convolution,
    distance,
    einsum,
    elementwise,
    linear,
    loss,
    normalize,
    other_losses,
    quantile,
    rare_activations,
    recurrent,
    reduce,
    resample,
    scan,
    scattering,
)  # fmt: skip
from pywebgpu.ir.surface import RECORDS


class Rule(Enum):
    """What floating operands become, but for float64, which stays."""

    LOWER = "the dtype of autocast"
    FLOAT32 = "float32"
    FLOAT32_RESULT = "float32, where no dtype was asked for"
    WIDEST = "float32 where one of them is, else as they are"
    BANNED = "an error"


Table = dict[object, Rule]

PRODUCTS = (
    linear.matmul, linear.mm, linear.bmm, linear.linear, linear.addmm, linear.addbmm, linear.baddbmm,
    convolution.conv, convolution.conv_transpose, rare_activations.prelu, attention.scaled_dot_product_attention,
)  # fmt: skip
LOSSES = (
    loss.cross_entropy, loss.nll_loss, other_losses.binary_cross_entropy_with_logits, other_losses.kl_div,
    other_losses.poisson_nll_loss, other_losses.multi_margin_loss,
    distance.mse_loss, distance.l1_loss, distance.smooth_l1_loss, distance.huber_loss,
    distance.soft_margin_loss, distance.cosine_embedding_loss, distance.margin_ranking_loss,
    distance.hinge_embedding_loss, distance.triplet_margin_loss,
)  # fmt: skip

GPU: Table = {
    **{source: Rule[surface.autocast] for source, surface in RECORDS.items() if surface.autocast},
    **dict.fromkeys(PRODUCTS, Rule.LOWER),
    **dict.fromkeys((linear.mv, linear.addmv, linear.addr, einsum.einsum), Rule.LOWER),
    **dict.fromkeys((recurrent.layer, recurrent.cell), Rule.LOWER),
    **dict.fromkeys(LOSSES, Rule.FLOAT32),
    **dict.fromkeys(
        (
            elementwise.pow_, rare_activations.softplus, reduce.norm, reduce.logsumexp,
            normalize.layer_norm, channel_norm.group_norm, normalize.rms_norm, distance.cosine_similarity,
            resample.interpolate,
        ),
        Rule.FLOAT32,
    ),
    **dict.fromkeys(
        (reduce.sum, reduce.prod, reduce.softmax, reduce.log_softmax, scan.cumsum, scan.cumprod), Rule.FLOAT32_RESULT
    ),
    **dict.fromkeys((einsum.bilinear, linear.dot, einsum.tensordot, scattering.scatter_add), Rule.WIDEST),
    other_losses.binary_cross_entropy: Rule.BANNED,
}  # fmt: skip

CPU: Table = {
    **dict.fromkeys(PRODUCTS, Rule.LOWER),
    **dict.fromkeys(LOSSES, Rule.FLOAT32),
    **dict.fromkeys(
        (other_losses.binary_cross_entropy, quantile.quantile, quantile.nanquantile, reduce.prod), Rule.FLOAT32
    ),
}


def rule(table: Table, function: Callable[..., Any]) -> Rule | None:
    """That of a function; of one that applies an op, that of the op."""
    rule_of_function = table.get(function)
    if rule_of_function is None and isinstance(function, partial) and function.args:
        rule_of_function = table.get(function.args[0])
    return rule_of_function
