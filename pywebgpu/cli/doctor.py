"""`pywebgpu doctor`: what this machine has, which device is the default and why, and what to install.

It imports no part of the library that could fail here, so it still speaks where a package or a driver is missing.
"""

import argparse
import ctypes.util
import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata

from pywebgpu import version
from pywebgpu.devices import adapters, features
from pywebgpu.devices.adapters import AdapterInfo
from pywebgpu.errors import CannotWaitError
from pywebgpu.settings import Settings, default_cache, settings
from pywebgpu.support import installation
from pywebgpu.support.installation import Found, InstallationError

_SHOWN_LIMITS = (
    "max-storage-buffers-per-shader-stage",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroups-per-dimension",
)


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that is missing, what it is for, and the command that brings it."""

    missing: str
    purpose: str
    install: str


@dataclass(frozen=True, slots=True)
class Used:
    """What `pywebgpu node` runs or loads, and why this one; `path` is "" where there is none."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    python: str
    platform: str
    versions: dict[str, str | None]
    adapters: list[AdapterInfo]
    default_device: str
    reason: str
    node: dict[str, Used]  # the program and its packages; empty inside of a browser or of Node
    page: dict[str, str]  # what Pyodide is and can do here; empty elsewhere
    settings: dict[str, object]  # those that environment variables set, by their names in settings.py
    advice: list[Advice]


def examine() -> Report:
    """Everything that doctor says, as data."""
    inside = sys.platform == "emscripten"
    versions: dict[str, str | None] = {"pywebgpu": version.own}
    versions |= {name: _version(name) for name in ("wgpu", "numpy") if name != "wgpu" or not inside}
    tool = adapters.adapters()
    try:
        device, reason = adapters.choose_default()
    except CannotWaitError as error:
        device, reason = "not known yet", str(error)
    node = {} if inside else _node()
    page = _page() if inside else {}
    return Report(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
        versions=versions,
        adapters=tool,
        default_device=device,
        reason=reason,
        node=node,
        page=page,
        settings=asdict(settings),
        advice=_advise_page(page) if inside else _advise(versions, tool) + _advise_node(node),
    )


def as_text(report: Report) -> str:
    """The report for people."""
    versions = "  ".join(f"{name} {version or 'not installed'}" for name, version in report.versions.items())
    lines = [report.python, report.platform, versions, *(f"{name}: {said}" for name, said in report.page.items()), ""]
    if adapters.problem():
        lines.append(f"no device webgpu: {adapters.problem()}")
    for number, adapter in enumerate(report.adapters):
        lines += _adapter_lines(number, adapter)
    lines += ["", f"default device: {report.default_device}, because {report.reason}"]
    if report.node:
        lines += ["", "pywebgpu node"]
        lines += [f"    {name}: {used.path or 'none'}, because {used.reason}" for name, used in report.node.items()]
    if report.settings:
        usual = asdict(replace(Settings(), cache=default_cache()))
        changed = [name for name, value in report.settings.items() if value != usual[name]]
        lines += ["", "settings, by PYWEBGPU_ and the name" + (f"; changed: {', '.join(changed)}" if changed else "")]
        lines += [f"    {name} = {value!r}" for name, value in report.settings.items()]
    for advice in report.advice:
        lines += ["", f"missing: {advice.missing} ({advice.purpose})", f"    {advice.install}"]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """The command. Exits with 0 also where something is missing, since device cpu or null may be all that is wanted."""
    parser = argparse.ArgumentParser(prog="pywebgpu doctor", description="Says what this machine can run, and why.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    report = examine()
    print(json.dumps(asdict(report), indent=2) if options.json else as_text(report))
    return 0


def _adapter_lines(number: int, adapter: AdapterInfo) -> list[str]:
    nature = "software" if adapter.is_software else "hardware"
    limits = [f"    {name} = {adapter.limits[name]:,}" for name in _SHOWN_LIMITS if name in adapter.limits]
    profile = adapter.profile
    family = f"{profile.family or 'not known'}{f' under {profile.translator}' if profile.translator else ''}"
    cores = f", {profile.cores} cores" if profile.cores else ""
    nature += "" if adapter.is_complete else ", not used"
    head = f"adapter {number}: {adapter.name}, {adapter.backend}, {adapter.kind} ({nature})"
    lines = [f"    driver: {adapter.driver or 'not named'}", f"    family: {family}{cores}", *limits]
    return [head, *lines, f"    features: {features.described(profile)}"]


def _node() -> dict[str, Used]:
    return {"node": _used(installation.find_node), "packages": _used(installation.find_modules)}


def _used(find: Callable[[], Found]) -> Used:
    try:
        usable = find()
    except InstallationError as error:
        return Used("", str(error))
    return Used(str(usable.path), usable.reason)


def _page() -> dict[str, str]:
    import js
    import pyodide

    # PyScript's workers have a document, too: the page's.
    where = "Node" if hasattr(js, "process") else "a worker" if hasattr(js, "WorkerGlobalScope") else "a page"
    waits = "yes, through JSPI, but in functions that JavaScript calls, as event handlers are"
    if not hasattr(js.WebAssembly, "Suspending"):
        waits = "no, JSPI is missing: await torch.webgpu.init(), await x.item_async() and their like do all"
    gpu = "there" if getattr(js.navigator, "gpu", None) else "missing"
    secure = "yes" if getattr(js, "isSecureContext", True) else "no"
    return {"Pyodide": f"{pyodide.__version__}, in {where}", "Python can wait": waits, "navigator.gpu": gpu} | (
        {} if where == "Node" else {"secure": secure, "browser": str(js.navigator.userAgent)}
    )


def _advise_page(page: dict[str, str]) -> list[Advice]:
    if page["navigator.gpu"] == "there":
        return []
    if page.get("secure") == "no":
        return [Advice("a secure address", "browsers offer WebGPU there only", "open it by https, or as localhost")]
    browsers = "Chrome or Edge 113, Safari 26, Firefox 141, or newer; elsewhere: pywebgpu doctor natively, or in Node"
    return [Advice("WebGPU", "runs device webgpu", browsers)]


def _advise_node(node: dict[str, Used]) -> list[Advice]:
    if all(used.path for used in node.values()):
        return []
    purpose = "runs scripts in Pyodide: pywebgpu node"
    return [Advice("Node with pyodide and webgpu", purpose, f"{installation.install_command()}    (or: make modules)")]


def _advise(versions: dict[str, str | None], index: list[AdapterInfo]) -> list[Advice]:
    advice: list[Advice] = []
    extra = 'pip install "pywebgpu[native]"    (in a checkout: pip install -e ".[native]")'
    if versions["numpy"] is None:
        advice.append(Advice("numpy", "runs device cpu", extra))
    if versions["wgpu"] is None:
        advice.append(Advice("wgpu", "runs device webgpu outside a browser", extra))
    is_served = any(adapter.is_complete for adapter in index)
    if sys.platform == "linux" and versions["wgpu"] is not None and not is_served:
        advice += _advise_vulkan()
    return advice


def _advise_vulkan() -> list[Advice]:
    if ctypes.util.find_library("vulkan") is None:
        loader = Advice("libvulkan.so.1", "finds the Vulkan drivers", "apt-get install libvulkan1 mesa-vulkan-drivers")
        return [loader]
    purpose = "AMD, Intel and software adapters; NVIDIA's comes with its own driver"
    return [Advice("a Vulkan driver", purpose, "apt-get install mesa-vulkan-drivers")]


def _version(name: str) -> str | None:
    """The installed version. A checkout that is only on the path has none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
