"""Gradients that become NaN, or raise, for detect_anomaly: each names a function in PyTorch and here alike."""

from collections.abc import Callable
from typing import Any

Fault = Callable[[Any, str], None]


def _leaf(torch: Any, device: str, *values: float) -> Any:
    return torch.tensor(values, device=device, requires_grad=True)


def log_of_zero(torch: Any, device: str) -> None:
    (_leaf(torch, device, 0.0, 1.0).log() * 0).sum().backward()


def root_of_zero(torch: Any, device: str) -> None:
    (_leaf(torch, device, 4.0, 0.0).sqrt() * 0).sum().backward()


def division_of_zero_by_zero(torch: Any, device: str) -> None:
    (_leaf(torch, device, 0.0) / _leaf(torch, device, 0.0)).sum().backward()


def product_with_infinity(torch: Any, device: str) -> None:
    ((_leaf(torch, device, 1.0) * torch.tensor([torch.inf], device=device)) * 0).sum().backward()


def given_gradient(torch: Any, device: str) -> None:
    (_leaf(torch, device, 1.0).exp()).backward(torch.tensor([torch.nan], device=device))


def by_grad(torch: Any, device: str) -> None:
    x = _leaf(torch, device, 0.0)
    torch.autograd.grad((x.log() * 0).sum(), x)


def forward_without_detection(torch: Any, device: str) -> None:
    with torch.autograd.set_detect_anomaly(False):
        y = (_leaf(torch, device, 0.0).log() * 0).sum()
    y.backward()


def own_function(torch: Any, device: str) -> None:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad * torch.nan

    Own.apply(_leaf(torch, device, 1.0), _leaf(torch, device, 2.0)).sum().backward()


def own_function_that_raises(torch: Any, device: str) -> None:
    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("no gradient today")

    Raises.apply(_leaf(torch, device, 1.0)).sum().backward()


def infinite_gradient(torch: Any, device: str) -> None:
    _leaf(torch, device, 0.0).log().sum().backward()


def forward_nan_alone(torch: Any, device: str) -> None:
    (_leaf(torch, device, -1.0).log() + 1).sum().backward()


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        log_of_zero, root_of_zero, division_of_zero_by_zero, product_with_infinity, given_gradient, by_grad,
        forward_without_detection, own_function, own_function_that_raises, infinite_gradient, forward_nan_alone,
    )
}  # fmt: skip
