"""The devices that this run tests, and what must stand in the environment before wgpu-py is imported."""

import functools
import glob
import os
import sys
import tempfile

# Where Debian keeps the drivers that play a GPU on the CPU: lavapipe, then the SwiftShader inside Chromium.
_SOFTWARE_DRIVERS = ("/usr/share/vulkan/icd.d/lvp_icd*.json", "/usr/lib/chromium/vk_swiftshader_icd.json")
_GPU_NODES = ("/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/dxg")


def prepare_environment() -> None:
    """Points Vulkan at a software driver where Linux shows no GPU, and keeps Mesa quiet.

    Only for Linux; elsewhere the system's own drivers are the only ones.
    """
    if sys.platform != "linux":
        return
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    chosen_by_user = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} & os.environ.keys()
    if chosen_by_user or any(glob.glob(pattern) for pattern in _GPU_NODES):
        return
    drivers = [path for pattern in _SOFTWARE_DRIVERS for path in sorted(glob.glob(pattern))]
    if drivers:
        os.environ["VK_DRIVER_FILES"] = drivers[0]


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
    from pywebgpu import installation  # After the environment, as above.

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
