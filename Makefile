# `make demo` and `make test` need Python 3.11 or newer and nothing else: the venv is theirs to make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
RESULTS ?= work/results
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-spark check bench docs study clean

help:
	@echo "make demo    the product at work on embedded data, about a minute after installing"
	@echo "make test    all tests;  make check: lint, types, import contract"
	@echo "make bench   ratios against pinned peers;  make docs: tables and pictures of docs/"
	@echo "make study   the whole study on the data at hand (hours; resumes)"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ploc needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.lab: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[lab]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt peers.txt
	$(PIP) --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement peers.txt
	@touch $@ $(VENV)/.lab

demo: $(VENV)/.lab
	$(BIN)/ploc demo
	$(BIN)/ploc-lab demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not spark'
	$(BIN)/python -m pytest -m spark

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

docs: $(VENV)/.dev
	$(BIN)/python -m docs

study: $(VENV)/.lab
	$(BIN)/ploc-lab run --out $(RESULTS)
	$(BIN)/ploc-lab report --results $(RESULTS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
