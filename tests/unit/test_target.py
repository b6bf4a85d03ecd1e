"""What an adapter has becomes data that the compiler, the caches and the wire see."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pywebgpu.compiler.driver import compile_graph
from pywebgpu.devices import features, open_device
from pywebgpu.devices.loaded import Pipelines
from pywebgpu.errors import CompileError
from pywebgpu.exporter.export import Exported
from pywebgpu.kernels import ir, launch, wgsl
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.target import F16, MATRICES, NEEDED, SUBGROUPS, Features, SubgroupMatrix, Target
from pywebgpu.runtime import program_cache
from tests.devices import why_no_webgpu
from tests.unit import compiled

LLVMPIPE = {
    "vendor": "llvmpipe", "architecture": "", "device": "llvmpipe (LLVM 15.0.6, 256 bits)", "adapter_type": "CPU",
    "description": "Mesa 22.3.6", "subgroup_min_size": 4, "subgroup_max_size": 128,
}  # fmt: skip
DAWN = {
    "vendor": "nvidia", "architecture": "hopper", "name": "NVIDIA H200", "subgroupSizes": [32, 32],
    "features": ["subgroups", MATRICES, "shader-f16"], "matrices": [["f16", "f32", 16, 16, 16]],
}  # fmt: skip
NAMES = {
    "NVIDIA GeForce RTX 4090": ("nvidia", 128),
    "NVIDIA GeForce RTX 4090 Laptop GPU": ("nvidia", 0),
    "NVIDIA RTX 6000": ("nvidia", 0),
    "AMD Radeon RX 7900 XTX (RADV NAVI31)": ("amd", 96),
    "Apple M2 Max": ("apple", 38),
    "Apple M2": ("apple", 10),
    "apple metal-3": ("apple", 0),
    "intel gen-12lp": ("intel", 0),
    "Mali-G78": ("arm", 0),
    "Adreno (TM) 740": ("qualcomm", 0),
    "google swiftshader SwiftShader driver 5.0.0": ("swiftshader", 0),
    "Microsoft Basic Render Driver": ("warp", 0),
    "llvmpipe (LLVM 15.0.6, 256 bits)": ("llvmpipe", 0),
    "unnamed adapter": ("", 0),
}
SHUFFLING = """enable subgroups;
@group(0) @binding(0) var<storage, read_write> b0: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {
  b0[lane] = subgroupShuffleXor(b0[lane], 1u);
}
"""


def shuffling() -> Kernel:
    """A kernel that needs subgroups."""
    data, lane = ir.Array("storage", "b0", ir.F32), ir.LANE
    value = ir.call("subgroupShuffleXor", ir.F32, data[lane], ir.Const(ir.U32, 1))
    body: ir.Block = [ir.Assign(data[lane], value)]
    numbers = ir.Array("uniform", "numbers", ir.Type("u32", 4), 1)
    return wgsl.kernel(ir.Function("shuffling", 64, (1, 1, 1), (data,), (), numbers, body))


def test_wgpu_tells_features_by_webgpus_names() -> None:
    found = features.native(LLVMPIPE, ["subgroup", "subgroup-barrier", "shader-f16", "shader-f64"])
    assert found == Features((F16, SUBGROUPS), (4, 128), (), "llvmpipe", "cpu", "naga")


def test_misspelt_sizes_of_subgroups_are_read() -> None:
    """wgpu-py 0.32 has "stackgroup" for "subgroup"."""
    given = {key.replace("subgroup", "stackgroup"): value for key, value in LLVMPIPE.items()}
    assert features.native(given, ["subgroup", "subgroup-barrier"]).subgroup_sizes == (4, 128)


def test_subgroups_without_their_barrier_are_none() -> None:
    assert features.native(LLVMPIPE, ["subgroup"]) == Features((), (0, 0), (), "llvmpipe", "cpu", "naga")


def test_dawn_tells_subgroup_matrices() -> None:
    found = features.bridged(DAWN, is_software=False)
    names = tuple(sorted((F16, SUBGROUPS, MATRICES)))
    assert found == Features(names, (32, 32), (SubgroupMatrix("f16", "f32", 16, 16, 16),), "nvidia", "", "tint", 132)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_adapters_tell_whose_they_are_and_their_cores(name: str) -> None:
    assert (features.family(name), features.cores(name)) == NAMES[name]


def test_a_kernel_says_what_it_needs_and_enables_it() -> None:
    found = shuffling()
    assert (found.wgsl, found.needs) == (SHUFFLING, (SUBGROUPS,))
    assert set(found.needs) <= set(NEEDED)


def test_a_kernel_that_needs_nothing_says_nothing() -> None:
    found = compiled.kernel(compiled.leaf(8).exp())
    assert found.needs == ()
    assert "enable" not in found.wgsl


def test_what_a_kernel_needs_travels_with_it() -> None:
    from pywebgpu.compiler import serialization, wire

    program = compiled.for_limits(Limits(), compiled.leaf(8).exp())
    needing = replace(program, kernels=tuple(replace(kernel, needs=(SUBGROUPS,)) for kernel in program.kernels))
    back = serialization.from_json(wire.to_json(needing))
    assert [kernel.needs for kernel in back.kernels] == [(SUBGROUPS,)]
    assert "needs" not in wire.to_json(program)


@pytest.mark.skipif(bool(why_no_webgpu()), reason=why_no_webgpu())
def test_a_device_refuses_what_it_lacks() -> None:
    gpu: Any = open_device("webgpu")
    with pytest.raises(CompileError, match="shuffling: this device lacks subgroups"):
        Pipelines(gpu._gpu, dict(gpu.counters), []).get([shuffling()])


@pytest.mark.skipif(bool(why_no_webgpu()), reason=why_no_webgpu())
def test_what_was_begun_for_a_program_that_came_to_nothing_goes() -> None:
    gpu: Any = open_device("webgpu")
    pipelines = Pipelines(gpu._gpu, dict(gpu.counters), [])
    wanted, other = (compiled.kernel(compiled.leaf(n).exp()) for n in (8, 9))
    broken = replace(wanted, wgsl="fn main() { nothing; }")
    for kernel in (broken, other, wanted):
        pipelines.begin(kernel)
    begun = pipelines._coming[wanted.wgsl, wanted.checks]
    assert pipelines.get([wanted]) == [begun.result()]  # Nobody asked for the broken one.
    assert not pipelines._coming
    pipelines.begin(broken)
    with pytest.raises(CompileError, match="the shader does not compile"):
        pipelines.get([other, broken])
    assert not pipelines._coming


@pytest.mark.skipif(bool(why_no_webgpu()), reason=why_no_webgpu())
def test_naga_takes_a_kernel_of_subgroups() -> None:
    gpu: Any = open_device("webgpu")
    if SUBGROUPS not in gpu.target.features:
        pytest.skip(f"{gpu.adapter} has no subgroups")
    low, high = gpu.target.features.subgroup_sizes
    assert 4 <= low <= high <= 128
    Pipelines(gpu._gpu, dict(gpu.counters), gpu.target.features.names).get([shuffling()])


def test_a_variant_is_compiled_where_its_feature_is() -> None:
    """One launch of rows shuffles: a tuning that names it counts only on a target with subgroups."""
    x = compiled.leaf(5, 37)
    chosen = Launch("shuffled", 64, each=(4,), split=8)
    features_ = Features((SUBGROUPS,), (4, 4), family="swiftshader", translator="tint")
    tuning = {launch.Case("rows", (8, 64), (), "along"): chosen}
    for given, needs in ((features_, (SUBGROUPS,)), (Features(), ()), (replace(features_, family=""), ())):
        roots = (x.sum(1)._node,)
        (kernel,) = compile_graph(roots, Target(True, Limits(), given, tuning)).kernels
        assert kernel.needs == needs
        assert ("subgroupShuffleXor" in kernel.wgsl) == bool(needs)


def test_an_export_tells_what_it_needs() -> None:
    done = Exported(Path("folder"), ["step"], [], 4, 8, needs=[SUBGROUPS])
    assert "needs a device with subgroups; PYWEBGPU_PORTABLE=1 does without" in str(done)
    assert "needs" not in str(replace(done, needs=[]))


def test_other_features_are_another_key() -> None:
    plain = Target(wgsl=True, limits=Limits())
    assert plain.digest == Target(wgsl=True, limits=Limits()).digest
    others = [
        replace(plain, features=Features((SUBGROUPS,), (4, 4))),
        replace(plain, features=Features((SUBGROUPS,), (32, 32))),
        replace(plain, limits=Limits(bindings=10)),
    ]
    assert len({plain.digest, *(other.digest for other in others)}) == 4


def test_a_device_whose_target_changed_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    device = compiled.NULL
    x = compiled.leaf(5)
    program_cache.clear()

    def run() -> int:
        before = len(device.loaded)
        y = x * 3
        compiled.settle()
        del y
        return len(device.loaded) - before

    assert [run(), run()] == [1, 0]
    monkeypatch.setattr(device, "target", replace(device.target, features=Features((F16,))))
    assert [run(), run()] == [1, 0]
