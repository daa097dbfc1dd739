# `make demo` shows what gpcert does; CI runs it, `make test`, then `make check` (.ci/run).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# two test processes with one BLAS thread each: threads that wait for each other doubled the time
export OMP_NUM_THREADS ?= 1
# byte code is kept where the environment says otherwise: every process would compile 900 files anew
export PYTHONDONTWRITEBYTECODE =
INSTALLED := $(VENV)/.installed
# Not a dependency: wheels with CUDA libraries take several GB. Any build of this version will do.
TORCH := torch==2.13.0
# `make test TESTED=FILE`: FILE lists tests, which are left out, and gains those that ran (tests/tested.py).
TESTED :=
# Libraries whose models the adapters take; and all that the tests of `make check` must find.
LIBRARIES := gpytorch botorch optuna scikit-optimize panel
EXPECTED := torch,gpytorch,botorch,optuna,skopt,panel,GPy,distributed
# GPflow asks for a NumPy older than ours, though it runs with this one: an environment of its own.
GPFLOW_VENV := .venv-gpflow
GPFLOW_NUMPY := "numpy>=2.1,<2.3"
# JAX and its two GP libraries.
JAX_VENV := .venv-jax

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test coverage test-slow lint format types imports torch libraries test-gpflow test-jax browser check mutants mutants-tenth hunt bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(INSTALLED) ## virtual environment with gpcert, its extras (`all`) and the development tools

# pip understands dependency groups from 25.1 on
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

demo: setup ## certify two small models; tables, a picture and JSON in demo_output/
	$(BIN)/gpcert demo

test: setup ## tests and doctests, each kind in few variants
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" \
	  $(if $(TESTED),-p tests.tested --tested=$(TESTED))

docs: setup ## the documentation site in build/docs, its tutorials run; links and pages are tested
	$(BIN)/python -c "import sphinx_gallery, latex2mathml" 2>/dev/null || $(BIN)/python -m pip install --quiet --group docs
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m sphinx -b html -q -W --keep-going docs build/docs
	GPCERT_SITE=build/docs $(BIN)/python -m pytest -q tests/docs/test_built_site.py tests/docs/test_pages.py

coverage: setup ## the same, and which lines they reach
	$(BIN)/python -m pytest -n 2 -m "not slow" --cov=gpcert --cov-report=term:skip-covered

test-slow: setup ## the long studies: all tests with five times the examples, and those marked slow
	GPCERT_THOROUGH=1 $(BIN)/python -m pytest -n 2

lint: setup ## style
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: setup ## put the style right
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: setup ## static types
	$(BIN)/pyright

imports: setup ## who may import whom
	$(BIN)/lint-imports

torch: setup ## the optional torch backend, for its tests
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --quiet $(TORCH)

browser: ## chromium, which the tests of `gpcert report` open its pages in; they are skipped without
	command -v chromium || apt-get install --yes --quiet --no-install-recommends chromium \
	  || echo "no chromium: the report is not tested in a browser"

libraries: torch ## GP libraries whose models are taken, for the tests of their adapters
	$(BIN)/python -c "import gpytorch, botorch, optuna, panel, skopt" 2>/dev/null || $(BIN)/python -m pip install --quiet $(TORCH) $(LIBRARIES)

test-gpflow: ## tests of the GPflow adapter, in an environment with TensorFlow (minutes to install)
	test -x $(GPFLOW_VENV)/bin/python || $(PYTHON) -m venv $(GPFLOW_VENV)
	$(GPFLOW_VENV)/bin/python -c "import gpflow, gpcert, flint" 2>/dev/null || \
	  ( $(GPFLOW_VENV)/bin/python -m pip install --quiet gpflow && \
	    $(GPFLOW_VENV)/bin/python -m pip install --quiet --editable ".[plots,testing]" && \
	    $(GPFLOW_VENV)/bin/python -m pip install --quiet $(GPFLOW_NUMPY) )
	GPCERT_EXPECT=gpflow $(GPFLOW_VENV)/bin/python -m pytest tests/adapters/test_gpflow.py tests/adapters/test_examples.py

test-jax: ## tests of the GPJax and tinygp adapters, in an environment with JAX
	test -x $(JAX_VENV)/bin/python || $(PYTHON) -m venv $(JAX_VENV)
	$(JAX_VENV)/bin/python -c "import gpjax, tinygp, gpcert, flint" 2>/dev/null || \
	  $(JAX_VENV)/bin/python -m pip install --quiet --editable ".[gpjax,tinygp,plots,testing]"
	GPCERT_EXPECT=gpjax,tinygp $(JAX_VENV)/bin/python -m pytest tests/adapters/test_gpjax.py tests/adapters/test_tinygp.py \
	  tests/adapters/test_examples.py

check: export GPCERT_EXPECT = $(EXPECTED)
check: libraries browser docs lint types imports mutants-tenth test ## the site, lint, types, contracts, a tenth of the mutants, tests with more libraries

mutants-tenth: setup ## a seeded tenth of the mutants, another after every change of src
	$(BIN)/python tools/mutants.py --tenth --no-baseline --jobs 2

mutants: setup ## break the bounds on purpose: the tests must notice, the slow ones at the latest
	$(BIN)/python tools/mutants.py

hunt: setup ## random models and questions against the definitions; LENGTH=100000 cases, HUNT="--jobs 2"
	$(BIN)/python -m tests.hunt.hunt_study $(or $(LENGTH),2000) $(HUNT)

bench: setup ## benchmarks; options in BENCH="--data FOLDER ..."
	$(BIN)/python benchmarks/engine.py $(BENCH)

clean: ## remove what the other targets made
	rm -rf $(VENV) $(GPFLOW_VENV) $(JAX_VENV) demo_output dist build docs/generated .pytest_cache .ruff_cache .hypothesis .coverage
	rm -rf .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
