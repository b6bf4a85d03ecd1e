"""torch.fft, stft and istft, and windows: lengths with small factors and large, norms, sizes, axes."""

from typing import Any

from tests.cases.case import Case, Function, Input, randn, resolve
from tests.cases.complex_numbers import over

CASES: list[Case] = []


def case(name: str, fn: Function, *inputs: Input, count: int | None = None, **options: Any) -> None:
    whole = over(fn, len(inputs) if count is None else count)
    CASES.append(Case(name, whole, inputs, tolerance="reduction", **options))


def of(name: str, *args: Any, **options: Any) -> Function:
    return lambda torch, x: resolve(torch, name)(x, *args, **options)


LENGTHS = (1, 2, 3, 8, 15, 64, 67, 100, 128)
for n in LENGTHS:
    for name in ("fft", "ifft"):
        case(f"{name}_{n}", of(f"fft.{name}"), randn(2, n, 2))
    for name in ("rfft", "ihfft"):
        case(f"{name}_{n}", of(f"fft.{name}"), randn(2, n), count=0)
    for name in ("irfft", "hfft"):
        case(f"{name}_{n}", of(f"fft.{name}", n=n), randn(2, n // 2 + 1, 2))
case("fft_2048", of("fft.fft"), randn(2048, 2), grad=False)
case("rfft_1021", of("fft.rfft"), randn(1021), count=0, grad=False)
case("fft_1031", of("fft.fft"), randn(1031, 2), grad=False)  # the least prime that is a convolution

for norm in ("backward", "ortho", "forward"):
    for name in ("fft2", "ifftn", "irfftn", "hfft2"):
        case(f"{name}_{norm}", of(f"fft.{name}", norm=norm), randn(3, 4, 5, 2))
    for name in ("rfft2", "ihfftn", "fftn"):
        case(f"{name}_{norm}_of_real", of(f"fft.{name}", norm=norm), randn(3, 4, 5), count=0)
SIZES: dict[str, dict[str, Any]] = {
    "s": {"s": (2, 7)}, "dim": {"dim": (0, 2)}, "both": {"s": (6, 3), "dim": (2, 0)}, "one": {"s": (3,), "dim": (-2,)},
}  # fmt: skip
for title, options in SIZES.items():
    for name in ("fftn", "ifftn", "irfftn", "hfftn"):
        case(f"{name}_{title}", of(f"fft.{name}", **options), randn(3, 4, 5, 2))
    for name in ("rfftn", "ihfftn"):
        case(f"{name}_{title}", of(f"fft.{name}", **options), randn(3, 4, 5), count=0)
for name in ("fft", "ifft", "irfft", "hfft"):
    case(f"{name}_cut", of(f"fft.{name}", n=3, dim=0), randn(4, 5, 2))
    case(f"{name}_padded", of(f"fft.{name}", n=9), randn(4, 5, 2))
case("fft_of_int", lambda torch: torch.fft.fft(torch.arange(5)), grad=False)
for n in (1, 4, 5):
    case(f"frequencies_{n}", lambda torch, n=n: [torch.fft.fftfreq(n, 0.5), torch.fft.rfftfreq(n)], grad=False)
for dim in (None, 1, (0, 2)):
    fn = lambda torch, x, dim=dim: [torch.fft.fftshift(x, dim), torch.fft.ifftshift(x, dim)]  # noqa: E731
    case(f"shifted_{dim}", fn, randn(3, 4, 5, 2))

# Frames.
FRAMES: dict[str, dict[str, Any]] = {
    "plain": {}, "hop": {"hop_length": 5}, "short_window": {"win_length": 12}, "not_centred": {"center": False},
    "normalized": {"normalized": True}, "whole": {"onesided": False}, "constant": {"pad_mode": "constant"},
    "pairs": {"return_complex": False},
}  # fmt: skip
for title, options in FRAMES.items():
    given = {"return_complex": True, **options}

    def framed(torch: Any, x: Any, given: dict[str, Any] = given) -> list[Any]:
        window = torch.hann_window(given.get("win_length", 16))
        return [torch.stft(x, 16, **given), x[0].stft(16, window=window, **given)]

    case(f"stft_{title}", framed, randn(2, 70), count=0)
case("stft_of_complex", of("stft", 16, return_complex=True), randn(2, 70, 2))
SIGNALS: dict[str, dict[str, Any]] = {
    "plain": {}, "hop": {"hop_length": 5}, "length": {"length": 60}, "longer": {"length": 85},
    "whole": {"center": False},
    "normalized": {"normalized": True}, "short_window": {"win_length": 12, "hop_length": 3},
}  # fmt: skip
for title, options in SIGNALS.items():
    case(f"istft_{title}", of("istft", 16, **options), randn(2, 9, 18, 2))


def found_again(torch: Any, x: Any) -> Any:
    window = torch.hann_window(16)
    return torch.istft(torch.stft(x, 16, window=window, return_complex=True), 16, window=window, length=x.shape[-1])


case("istft_of_stft", found_again, randn(70), count=0)
case("istft_of_complex", of("istft", 16, return_complex=True, onesided=False), randn(2, 16, 18, 2))

# Windows.
WINDOWS: dict[str, tuple[dict[str, Any], ...]] = {
    "exponential": ({}, {"tau": 2.0}, {"center": 1.0, "sym": False}), "cosine": ({}, {"sym": False}),
    "gaussian": ({}, {"std": 0.5, "sym": False}), "kaiser": ({}, {"beta": 3.0, "sym": False}, {"beta": 0.0}),
    "hamming": ({}, {"sym": False}), "hann": ({},), "blackman": ({}, {"sym": False}), "bartlett": ({}, {"sym": False}),
    "nuttall": ({},), "general_hamming": ({"alpha": 0.3},), "general_cosine": ({"a": [0.1, 0.2, 0.3, 0.4]},),
}  # fmt: skip
for name, variants in WINDOWS.items():
    for at, options in enumerate(variants):

        def windows(torch: Any, name: str = name, options: dict[str, Any] = options) -> list[Any]:
            return [getattr(torch.signal.windows, name)(n, **options) for n in (0, 1, 2, 9)]

        case(f"window_{name}_{at}", windows, grad=False)
case("kaiser_window", lambda torch: [torch.kaiser_window(n, p, 5.0) for n in (1, 8) for p in (True, False)], grad=False)
