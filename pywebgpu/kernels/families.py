"""Rules of thumb for adapters that nobody has measured, by whose they are: public figures of their makers and others.

What a tuning says goes before them (see tuning.py), and no launch is among those of a device that cannot run it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pywebgpu.kernels.target import Features


@dataclass(frozen=True, slots=True)
class Family:
    """registers: words that an invocation has before it takes the place of others. cores: where a device tells none.

    stages: whether workgroup memory is faster than the caches.
    """

    registers: int
    cores: int
    stages: bool = True


# Of a discrete GPU that says no more, and of those below which a table was measured for.
UNKNOWN = Family(128, 64)
FAMILIES = {
    "nvidia": Family(255, 64),
    # RDNA: 256 vector registers, of which waves of 32 share 1,024 to 1,536 a lane; 64 KiB of LDS for two waves of 1,024
    # or four of 512 invocations (AMD, RDNA 3 instruction set architecture; RDNA performance guide).
    "amd": Family(192, 32),
    # 32 lanes, 128 registers, and fewer for each let more run; 32 KiB of workgroup memory (dougallj.github.io/applegpu;
    # Apple, Metal feature set tables).
    "apple": Family(128, 10),
    # 128 registers of 32 bytes for a thread of 8, 16 or 32 lanes: 64 words a lane of 16; 64 KiB of shared local memory
    # a subslice (Intel, oneAPI GPU optimization guide: registers and occupancy).
    "intel": Family(64, 24),
    # Waves of 64 or 128, which share their registers; 32 KiB of workgroup memory (Mesa, freedreno_devices.py).
    "qualcomm": Family(64, 6),
    # 64 registers, and half as many invocations above 32; workgroup memory is main memory behind the same caches, so
    # nothing is won by copying there (Arm, Mali Bifrost and Valhall OpenCL developer guide, 7.3.2 and 9.6).
    "arm": Family(64, 10, stages=False),
}


def of(features: Features) -> Family:
    return FAMILIES.get(features.family, UNKNOWN)
