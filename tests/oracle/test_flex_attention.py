"""flex_attention gives PyTorch's values, statistics and gradients."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.attention.flex_attention as oracle
from torch._higher_order_ops.flex_attention import math_attention

import pywebgpu
import pywebgpu.nn.attention.flex_attention as flex
from tests.cases.flex_attention import MASKS, SCORES

SHAPES = ((2, 2, 21, 8), (2, 2, 21, 8)), ((1, 4, 13, 7), (1, 2, 30, 7))
NAMES = [
    *((mask, score) for mask in ("sliding", "causal_documents") for score in SCORES),
    *((one, "") for one in MASKS),
]


def operands(lib: Any, device: str, shapes: Any) -> list[Any]:
    query, key = shapes
    numbers = np.random.default_rng(0)
    return [
        lib.tensor(numbers.standard_normal(shape).astype("f4"), device=device).requires_grad_()
        for shape in (query, key, key)
    ]


def expected(mask: str, score: str, shapes: Any) -> list[Any]:
    """PyTorch's own flex_attention has no gradients on a CPU; what it computes there has."""
    given = operands(torch, "cpu", shapes)
    function = SCORES[score](torch) if score else lambda x, *at: x
    block = oracle.create_block_mask(
        MASKS[mask][0](torch, oracle, "cpu"), None, shapes[0][1], *lengths(shapes), "cpu", 4
    )
    out, lse, largest = math_attention(*given, function, block.as_tuple(), shapes[0][3] ** -0.5, {})
    lse, largest = lse * math.log(2), largest * math.log(2)
    grads = torch.autograd.grad(summed(out, lse if score else None), given)
    return [out, *grads, *((lse, largest) if score else ()), block.to_dense(), torch.tensor(block.sparsity())]


def found(mask: str, score: str, shapes: Any, device: str) -> list[Any]:
    given = operands(pywebgpu, device, shapes)
    made = MASKS[mask][0](pywebgpu, flex, device)
    block = flex.create_block_mask(made, None, shapes[0][1], *lengths(shapes), device, 4)
    options = {"enable_gqa": shapes[0][1] != shapes[1][1], "block_mask": block}
    aux = flex.AuxOutput()
    if score:
        request = flex.AuxRequest(lse=True, max_scores=True)
        out, aux = flex.flex_attention(*given, SCORES[score](pywebgpu), return_aux=request, **options)
    else:
        out = flex.flex_attention(*given, **options)
    grads = pywebgpu.autograd.grad(summed(out, aux.lse), given)
    statistics = (aux.lse, aux.max_scores) if score else ()
    return [out, *grads, *statistics, block.to_dense(), pywebgpu.tensor(block.sparsity())]


def lengths(shapes: Any) -> tuple[int, int]:
    return shapes[0][2], shapes[1][2]


def summed(out: Any, lse: Any) -> Any:
    return (out * out).sum() + (0 if lse is None else lse.masked_fill(lse == -math.inf, 0).square().sum())


@pytest.mark.one_in(8)
@pytest.mark.parametrize("shapes", SHAPES, ids=["square", "groups"])
@pytest.mark.parametrize(("mask", "score"), NAMES)
def test_flex_attention_is_pytorchs(mask: str, score: str, shapes: Any, device: str) -> None:
    for one, other in zip(found(mask, score, shapes, device), expected(mask, score, shapes), strict=True):
        np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("variant", ["causal_upper_left", "causal_lower_right"])
def test_causal_biases_are_pytorchs(variant: str, device: str) -> None:
    def out(lib: Any, device: str) -> Any:
        bias = getattr(__import__(f"{lib.__name__}.nn.attention.bias", fromlist=["*"]), variant)(5, 9)
        query, key, value = operands(lib, device, ((1, 2, 5, 8), (1, 2, 9, 8)))
        return lib.nn.functional.scaled_dot_product_attention(query, key, value, bias).numpy(force=True)

    np.testing.assert_allclose(out(pywebgpu, device), out(torch, "cpu"), rtol=1e-4, atol=1e-5)


BAD: dict[str, dict[str, Any]] = {
    "heads": {"key": (2, 1, 21, 8)},
    "length": {"key": (2, 2, 22, 8), "mask": True},
    "axes": {"query": (2, 21, 8)},
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_calls_fail_as_in_pytorch(name: str) -> None:
    def failure(lib: Any, module: Any) -> type[Exception]:
        query = lib.zeros(BAD[name].get("query", (2, 2, 21, 8)))
        key = lib.zeros(BAD[name].get("key", query.shape))
        mask = (
            module.create_block_mask(lambda b, h, q, k: q >= k, None, None, 21, 21, "cpu")
            if "mask" in BAD[name]
            else None
        )
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            module.flex_attention(query, key, key, block_mask=mask)
        return caught.type

    assert failure(pywebgpu, flex) is failure(torch, oracle)
