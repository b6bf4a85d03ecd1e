"""What autocast does to a function: which dtype comes out of it on a GPU's lists and on those of the CPU.

`args` are made of float32 operands by shape; the functions are named as in PyTorch's namespace, F's with a dot.
"""

from dataclasses import dataclass
from typing import Any

LOWER, FLOAT32, GIVEN = "lower", "float32", "given"  # GIVEN: that of the operand, which is the lower one


@dataclass(frozen=True, slots=True)
class AutocastCase:
    """A call of `function` with tensors of `shapes`, the first of the dtype of autocast, the others of float32."""

    function: str
    shapes: tuple[tuple[int, ...], ...]
    gpu: str
    cpu: str
    kwargs: tuple[tuple[str, Any], ...] = ()
    extra: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return self.function


M = (4, 4)
CALLS = (
    AutocastCase("matmul", (M, M), LOWER, LOWER),
    AutocastCase("mm", (M, M), LOWER, LOWER),
    AutocastCase("bmm", ((2, 3, 4), (2, 4, 3)), LOWER, LOWER),
    AutocastCase("addmm", (M, M, M), LOWER, LOWER),
    AutocastCase("baddbmm", ((2, 4, 4),) * 3, LOWER, LOWER),
    AutocastCase("F.linear", (M, (3, 4), (3,)), LOWER, LOWER),
    AutocastCase("F.conv1d", ((1, 2, 8), (3, 2, 3), (3,)), LOWER, LOWER),
    AutocastCase("F.conv2d", ((1, 2, 5, 5), (3, 2, 3, 3)), LOWER, LOWER),
    AutocastCase("F.conv_transpose2d", ((1, 2, 5, 5), (2, 3, 3, 3)), LOWER, LOWER),
    AutocastCase("F.prelu", (M, (1,)), LOWER, LOWER),
    AutocastCase("F.scaled_dot_product_attention", ((2, 3, 4),) * 3, LOWER, LOWER),
    AutocastCase("exp", (M,), FLOAT32, GIVEN),
    AutocastCase("log1p", (M,), FLOAT32, GIVEN),
    AutocastCase("log2", (M,), FLOAT32, GIVEN),
    AutocastCase("reciprocal", (M,), FLOAT32, GIVEN),
    AutocastCase("rsqrt", (M,), FLOAT32, GIVEN),
    AutocastCase("pow", (M,), FLOAT32, GIVEN, extra=(2.0,)),
    AutocastCase("sum", (M,), FLOAT32, GIVEN),
    AutocastCase("prod", (M,), FLOAT32, FLOAT32),
    AutocastCase("cumsum", (M,), FLOAT32, GIVEN, (("dim", 0),)),
    AutocastCase("norm", (M,), FLOAT32, GIVEN),
    AutocastCase("logsumexp", (M,), FLOAT32, GIVEN, (("dim", 0),)),
    AutocastCase("softmax", (M,), FLOAT32, GIVEN, (("dim", 0),)),
    AutocastCase("log_softmax", (M,), FLOAT32, GIVEN, (("dim", 0),)),
    AutocastCase("F.softplus", (M,), FLOAT32, GIVEN),
    AutocastCase("F.layer_norm", (M,), FLOAT32, GIVEN, (("normalized_shape", (4,)),)),
    AutocastCase("F.group_norm", (M,), FLOAT32, GIVEN, (("num_groups", 2),)),
    AutocastCase("F.mse_loss", (M, M), FLOAT32, FLOAT32),
    AutocastCase("F.l1_loss", (M, M), FLOAT32, FLOAT32),
    AutocastCase("F.smooth_l1_loss", (M, M), FLOAT32, FLOAT32),
    AutocastCase("F.huber_loss", (M, M), FLOAT32, FLOAT32),
    AutocastCase("F.kl_div", (M, M), FLOAT32, FLOAT32, (("reduction", "batchmean"),)),
    AutocastCase("F.poisson_nll_loss", (M, M), FLOAT32, FLOAT32),
    AutocastCase("F.cosine_similarity", (M, M), FLOAT32, FLOAT32),
    AutocastCase("F.binary_cross_entropy_with_logits", (M, M), FLOAT32, FLOAT32),
    AutocastCase("dot", ((4,), (4,)), FLOAT32, ""),
    AutocastCase("tensordot", (M, M), FLOAT32, ""),
    AutocastCase("add", (M, M), FLOAT32, FLOAT32),
    AutocastCase("F.relu", (M,), GIVEN, GIVEN),
    AutocastCase("F.gelu", (M,), GIVEN, GIVEN),
    AutocastCase("tanh", (M,), GIVEN, GIVEN),
    AutocastCase("mean", (M,), GIVEN, GIVEN),
    AutocastCase("F.max_pool2d", ((1, 2, 4, 4),), GIVEN, GIVEN, (("kernel_size", 2),)),
)
