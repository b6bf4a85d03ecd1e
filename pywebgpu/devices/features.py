"""What adapters have, told alike for wgpu-py and for JavaScript: features, subgroups, whose they are, their cores."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pywebgpu.kernels import tuning
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import CLOCK, F16, MATRICES, SUBGROUPS, Features, SubgroupMatrix, Target
from pywebgpu.settings import settings

# What a device is asked for, where the adapter has it, by wgpu-native's names and by WebGPU's.
NATIVE = {"shader-f16": F16, "subgroup": SUBGROUPS, "subgroup-barrier": SUBGROUPS, "timestamp-query": CLOCK}
COUNTED = 8 << 30  # bytes: 2^31 elements of four, whose numbers fit in an i32
KINDS = {"DiscreteGPU": "discrete", "IntegratedGPU": "integrated", "CPU": "cpu"}
# By words of an adapter's name, of its vendor and of its architecture; a CPU's come before a vendor's.
FAMILIES = {
    "llvmpipe": "llvmpipe|lavapipe",
    "swiftshader": "swiftshader",
    "warp": "basic render driver|warp",
    "nvidia": "nvidia|geforce|quadro|tesla|rtx|gtx",
    "amd": "amd|radeon|gfx|rdna|gcn",
    "apple": r"apple|\bm[1-9]\b",
    "intel": "intel|iris|arc|gen-(?:9|11|12)|xe",
    "qualcomm": "qualcomm|adreno",
    "arm": "arm|mali|immortalis|valhall|bifrost",
}
EMULATED = ("swiftshader",)  # Their workgroups are coroutines of a CPU, and their pipelines take longest to make.
# Kernels whose loops are left to drivers to write out. Through Naga, where it checks nothing, large blocks of products
# take 5 % less time so on an H200, smaller ones 10 to 36 % more, and attention 5 to 8.
UNROLLING = {("nvidia", "tint"): ("large", "products", "sums", "attention"), ("nvidia", "naga"): ("large",)}
# Multiprocessors (NVIDIA), compute units (AMD), GPU cores (Apple), as their makers' data sheets have them.
CORES = {
    "H200": 132, "H100 PCIe": 114, "H100": 132, "A100": 108, "A10": 72, "L40S": 142, "L4": 58, "T4": 40, "V100": 80,
    "RTX 5090": 170, "RTX 5080": 84, "RTX 4090": 128, "RTX 4080": 76, "RTX 4070": 46, "RTX 4060": 24,
    "RTX 3090": 82, "RTX 3080": 68, "RTX 3070": 46, "RTX 3060": 28, "RTX 2080 Ti": 68, "RTX 2080": 46,
    "RX 7900 XTX": 96, "RX 7900 XT": 84, "RX 6900 XT": 80, "RX 6800 XT": 72,
    "M1 Ultra": 64, "M1 Max": 32, "M1 Pro": 16, "M1": 8, "M2 Ultra": 76, "M2 Max": 38, "M2 Pro": 19, "M2": 10,
    "M3 Max": 40, "M3 Pro": 18, "M3": 10, "M4 Max": 40, "M4 Pro": 20, "M4": 10,
}  # fmt: skip


def wanted(available: Collection[str]) -> list[str]:
    """The features that a device of wgpu-py is asked for."""
    return [name for name in NATIVE if name in available]


def native(info: Mapping[str, Any], available: Collection[str]) -> Features:
    """Of an adapter of wgpu-py."""
    names = {NATIVE[name] for name in wanted(available)}
    if not {"subgroup", "subgroup-barrier"} <= set(available):
        names.discard(SUBGROUPS)
    low, high = (int(_first(info, f"subgroup_{end}_size", f"stackgroup_{end}_size")) for end in ("min", "max"))
    text = f"{info['vendor']} {info['architecture']} {info['device']} {info['description']}"
    sizes = (low, high) if SUBGROUPS in names else (0, 0)
    kind = KINDS.get(info["adapter_type"], "")
    return Features(tuple(sorted(names)), sizes, (), family(text), kind, "naga", cores(text))


def bridged(info: Mapping[str, Any], *, is_software: bool) -> Features:
    """Of an adapter that js_bridge has opened."""
    names = tuple(sorted(info["features"]))
    sizes = (int(info["subgroupSizes"][0]), int(info["subgroupSizes"][1])) if SUBGROUPS in names else (0, 0)
    matrices = tuple([SubgroupMatrix(*sizes) for sizes in info["matrices"]]) if MATRICES in names else ()
    text = f"{info['vendor']} {info['architecture']} {info['name']}"
    # Gecko and WebKit have translators of their own; what is known of Chromium's holds there better than nothing.
    return Features(names, sizes, matrices, family(text), "cpu" if is_software else "", "tint", cores(text))


def target(limits: Mapping[str, int], profile: Features, own: str) -> Target:
    """What the compiler must know of a device. limits: by wgpu-py's names.  own: what is kept of the adapter's tuning.

    Where exports are made for any device, what WebGPU promises everywhere.
    """
    if settings.portable:
        return Target(wgsl=True, limits=Limits())
    largest = limits["max-buffer-size"]
    limits_of_device = Limits(
        workgroup_size=min(256, limits["max-compute-invocations-per-workgroup"]),
        bindings=min(limits["max-storage-buffers-per-shader-stage"], 16),
        binding_bytes=min(limits["max-storage-buffer-binding-size"], largest),
        buffer_bytes=min(largest, COUNTED),
        shared_bytes=limits["max-compute-workgroup-storage-size"],
        unrolls=UNROLLING.get((profile.family, profile.translator), ()),
        emulated=profile.family in EMULATED,
    )
    return Target(True, limits_of_device, profile, tuning.of(profile, own))


def family(text: str) -> str:
    """Whose adapter this is, by what it is called; "" where nothing says so."""
    return next((name for name, words in FAMILIES.items() if re.search(rf"\b(?:{words})", text, re.IGNORECASE)), "")


def cores(text: str) -> int:
    """How many cores an adapter of this name has; 0 where that is not known. The longest name that fits counts."""
    if "Laptop" in text or "Max-Q" in text:  # Those have fewer.
        return 0
    names_of_cores = [name for name in CORES if re.search(rf"\b{name}\b", text)]
    return CORES[max(names_of_cores, key=len)] if names_of_cores else 0


def _first(info: Mapping[str, Any], *names: str) -> Any:
    """wgpu-py 0.32 misspells the names of two fields."""
    return next((info[name] for name in names if name in info), 0)


def described(features: Features) -> str:
    """One line for people."""
    low, high = features.subgroup_sizes
    parts: Sequence[str] = [f"{name} of {low} to {high}" if name == SUBGROUPS else name for name in features.names]
    parts = [
        *parts,
        *(f"{matrix.component} {matrix.m}x{matrix.n}x{matrix.k} to {matrix.result}" for matrix in features.matrices),
    ]
    return ", ".join(parts) or "none of those that it uses"
