"""torch.hub: weights from the network, kept in a folder; models of a folder with a hubconf.py."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib import request
from urllib.parse import urlparse

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
ENV_TORCH_HOME, ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR = "TORCH_HOME", "XDG_CACHE_HOME", "~/.cache"
READ_DATA_CHUNK = 128 * 1024
MODULE_HUBCONF = "hubconf.py"
_hub_dir: str | None = None


def _get_torch_home() -> str:
    """The folder of what is kept: TORCH_HOME, or "torch" below the user's folder of caches."""
    below = os.path.join(os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, below))


def get_dir() -> str:
    """The folder of models and weights."""
    return _hub_dir or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets that folder."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Writes what is at an address to a file. Raises RuntimeError where its SHA-256 does not begin so, and
    urllib.error.URLError where the address cannot be reached."""
    sha256, target = hashlib.sha256(), Path(dst).expanduser()
    asked = request.Request(url, headers={"User-Agent": "torch.hub"})
    with request.urlopen(asked) as source, tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        while chunk := source.read(READ_DATA_CHUNK):
            file.write(chunk)
            sha256.update(chunk)
    digest = sha256.hexdigest()
    if hash_prefix and not digest.startswith(hash_prefix):
        os.unlink(file.name)
        raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
    os.replace(file.name, target)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What torch.load reads of the file at an address, which is kept: a second call needs no network.

    check_hash: the name of the file has the begin of its SHA-256, "resnet18-5c106cde.pth", which must hold. Raises:
    urllib.error.URLError where the file is not kept and the address cannot be reached.
    """
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match[1] if match else None, progress)
    if zipfile.is_zipfile(path) and not zipfile.Path(path, "archive/").exists():
        with zipfile.ZipFile(path) as archive:  # An older way to keep weights: one file in an archive.
            names = archive.namelist()
            if len(names) == 1:
                archive.extractall(folder)
                path = os.path.join(folder, names[0])
    return import_module("pywebgpu").load(path, map_location=map_location, weights_only=weights_only)


def _hubconf(repo_or_dir: str | os.PathLike[str], source: str) -> Any:
    """The module of a folder that says what models are in it. Raises NotImplementedError for what is no folder."""
    if source != "local":
        raise NotImplementedError(
            'torch.hub takes no programs from the network here: download the folder, and say source="local"'
        )
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, os.path.join(repo_or_dir, MODULE_HUBCONF))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.fspath(repo_or_dir))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.fspath(repo_or_dir))
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: Any, name: str) -> Any:
    function = getattr(module, name, None)
    if not callable(function) or name.startswith("_"):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """What a function of a folder's hubconf.py returns; source="local" only."""
    for name in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(name, None)
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **kwargs)


def list(github: Any, *args: Any, source: str = "github", **options: Any) -> Any:
    """The functions of a folder's hubconf.py; source="local" only."""
    module = _hubconf(github, source)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: Any, model: str, *args: Any, source: str = "github", **options: Any) -> Any:
    """What a function of a folder's hubconf.py says about itself; source="local" only."""
    return _entry(_hubconf(github, source), model).__doc__
