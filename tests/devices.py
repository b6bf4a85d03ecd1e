"""The devices that this run tests, and what must stand in the environment before wgpu-py is imported."""

import functools
import glob
import os
import sys
import tempfile
from pathlib import Path

# Where Debian keeps the drivers that play a GPU on the CPU. lavapipe has 16-bit floats and lets bindings start
# anywhere; SwiftShader, which is inside Chromium, compiles a kernel in a fifth of the time.
_SOFTWARE_DRIVERS = {
    "lavapipe": "/usr/share/vulkan/icd.d/lvp_icd*.json",
    "swiftshader": "/usr/lib/chromium/vk_swiftshader_icd.json",
}
_GPU_NODES = ("/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/dxg")
_SHADERS = Path(__file__).parents[1] / ".cache" / "shaders"  # what Mesa compiled in earlier runs


def prepare_environment() -> None:
    """Points Vulkan at a software driver where Linux shows no GPU, and keeps Mesa quiet.

    Only for Linux; elsewhere the system's own drivers are the only ones.
    """
    if sys.platform != "linux":
        return
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    if "MESA_SHADER_CACHE_DIR" not in os.environ:
        _SHADERS.mkdir(parents=True, exist_ok=True)  # Mesa makes the last folder of the path alone.
        os.environ["MESA_SHADER_CACHE_DIR"] = str(_SHADERS)
    if SOFTWARE:
        os.environ.setdefault("VK_DRIVER_FILES", next(iter(SOFTWARE.values())))


def _software_drivers() -> dict[str, str]:
    """The drivers that tests may choose from, by name: none where there is a GPU, or where the user chose one."""
    chosen_by_user = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} & os.environ.keys()
    if sys.platform != "linux" or chosen_by_user or any(glob.glob(pattern) for pattern in _GPU_NODES):
        return {}
    files = {name: sorted(glob.glob(pattern)) for name, pattern in _SOFTWARE_DRIVERS.items()}
    return {name: paths[0] for name, paths in files.items() if paths}


SOFTWARE = _software_drivers()


def is_software() -> bool:
    """Whether a CPU plays the GPU of this run."""
    driver = os.environ.get("VK_DRIVER_FILES", "") + os.environ.get("VK_ICD_FILENAMES", "")
    return "lvp_icd" in driver or "swiftshader" in driver


@functools.cache
def why_no_webgpu() -> str:
    """Why tests on device webgpu cannot run here; "" when they can."""
    prepare_environment()
    from pywebgpu.devices import adapters  # After the environment, which Vulkan reads once.

    trouble = adapters.problem()
    return trouble and f"{trouble}; python -m pywebgpu doctor says what to install"


def why_no_node() -> str:
    """Why tests in Node cannot run here; "" when they can."""
    try:
        node_command()
    except RuntimeError as error:
        return str(error)
    return ""


def node_command() -> list[str]:
    """The Node that runs scripts. Raises InstallationError."""
    from pywebgpu.support import installation  # After the environment, as above.

    installation.find_modules()
    return [str(installation.find_node().path)]


def open_another(name: str) -> None:
    """Opens one more device of a kind, "cpu:1" or "webgpu:1", also where users have no second one to ask for."""
    from pywebgpu import devices  # After the environment, as above.

    kind, _, index = name.partition(":")
    if name not in devices._open:
        devices._open[name] = devices._backend(kind).open_device(int(index))


def live_bytes(device: str) -> int:
    """Bytes that buffers of this device hold now."""
    from pywebgpu.devices import open_device  # After the environment, as above.

    return open_device(device).counters["live_bytes"]
