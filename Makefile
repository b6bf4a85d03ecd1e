# The commands of this project; `make help` lists them.  ARGS="..." goes on to the program: make demo ARGS="--resume"

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo web test test-all check lint bench peers docs wheel shim pyodide lite notebooks vulkan modules browser site

PYTHON := .venv/bin/python
ARGS ?=

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.ready-demo  ## train a small GPT on text: make demo ARGS="--data FILE --resume"
	@$(PYTHON) demos/chargpt/main.py $(ARGS)

web: .venv/.ready-native modules  ## serve the page where a GPT trains in the browser: make web ARGS="--port 8000"
	@$(PYTHON) -m pywebgpu serve $(ARGS)

TESTED := .venv/.ready-test .venv/.ready-demo .venv/.ready-dev .venv-pyodide/.ready vulkan modules browser

test: $(TESTED)  ## run the tests, on every host: make test ARGS="-k matmul"
	@$(PYTHON) -m tests all $(ARGS)

test-all: $(TESTED)  ## before a release: every run of every test, in hours
	@$(PYTHON) -m tests all --whole $(ARGS)

check: .venv/.ready-test .venv/.ready-demo .venv/.ready-dev modules  ## before a commit: lint, and tests on device cpu: make check ARGS="-k matmul"
	@$(PYTHON) -m tests check $(ARGS)

lint: .venv/.ready-dev  ## ruff and mypy
	@$(PYTHON) -m tests lint

bench: .venv/.ready-native  ## measure the workloads: make bench ARGS="mlp gpt --json"
	@$(PYTHON) -m pywebgpu bench $(ARGS)

peers: .venv/.ready-test browser  ## install what make bench ARGS="--host chromium --peer jax-js" measures
	@tools/setup.sh modules
	@tools/setup.sh peers

docs: .venv/.ready-docs  ## make the site of the documentation: docs/_build/index.html
	@$(PYTHON) -m sphinx -W --keep-going -q docs docs/_build
	@echo "docs/_build/index.html"

site: .venv/.ready-docs .venv/.ready-demo modules vulkan  ## the page, the documentation and an exported demo as plain files: dist/site
	@$(PYTHON) tools/static_site.py $(ARGS)

wheel: .venv/.ready-dev  ## build the one wheel of all hosts into dist/, and check it
	@rm -rf dist
	@$(PYTHON) -m build --wheel --outdir dist
	@$(PYTHON) -m twine check --strict dist/*.whl

shim: .venv/.ready-test  ## build a wheel by which pip and programs find pywebgpu as torch: dist/pywebgpu_torch-….whl
	@$(PYTHON) tools/torch_wheel.py dist

pyodide: .venv/.ready-dev .venv-pyodide/.ready modules  ## build a distribution of Pyodide by pyodide-build: dist/pyodide, for loadPackage("pywebgpu")
	@$(PYTHON) tools/distribution.py dist/pyodide

lite: wheel modules .venv/.ready-lite  ## build a JupyterLite site with the notebooks, of plain files: dist/lite
	@$(PYTHON) tools/notebook_site.py dist/*.whl dist/lite

notebooks: .venv/.ready-test .venv/.ready-dev .venv/.ready-lite vulkan modules browser  ## test the wheel in JupyterLite, PyScript and other hosts, in Chromium
	@tools/setup.sh hosts
	@$(PYTHON) -m tests notebooks $(ARGS)

# One stamp a set of packages, so that a second run installs nothing.
.venv/.ready-%: pyproject.toml tools/setup.sh | .venv/bin/python
	@tools/setup.sh packages $*
	@touch $@

.venv/bin/python:
	@tools/setup.sh venv

.venv-pyodide/.ready: pyproject.toml tools/setup.sh
	@tools/setup.sh pyodide

vulkan modules browser:
	@tools/setup.sh $@
