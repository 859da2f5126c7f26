# `make` alone says what there is to do.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

comma    := ,
PYTHON3  ?= python3
BIN      := .venv/bin
RESULTS  ?= assay-results
DEMO     ?= $(BIN)/assay run gelu layernorm conv2d transpose --dtype fp32,bf16 --workloads 8 --out $(RESULTS)/demo.json
PYTEST   ?= $(BIN)/pytest -n 2 -m "not gpu and not browser"

# wheelhouse: the other machine's Python and processor, and the largest slice
PYTHON   ?= 3.12
PLATFORM ?= x86_64
SLICE_MB ?= 60
FULL     ?=

# $(call stage,name,command): run it, say its name and its time; stop at the first failure.
define stage
@echo "== $(1)"; start=$$(date +%s%N); rc=0; $(2) || rc=$$?; \
printf '== %s: %s, %d.%d s\n' '$(1)' "$$([ $$rc = 0 ] && echo ok || echo FAILED)" \
  $$((t = ($$(date +%s%N) - start) / 100000000, t / 10)) $$((t % 10)); exit $$rc
endef

.PHONY: help venv demo test lint types layers pytest records wheelhouse clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: .venv/.stamp ## .venv with everything pinned in constraints.txt

# Built without isolation, so that setuptools too is the pinned one.
.venv/.stamp: pyproject.toml constraints.txt
	$(call stage,venv,{ $(PYTHON3) -m venv .venv && \
	  $(BIN)/pip install -q -c constraints.txt setuptools && \
	  $(BIN)/pip install -q -c constraints.txt --no-build-isolation -e '.[all$(comma)dev]' && touch $@; })

demo: venv ## a first run, with or without a GPU
	$(DEMO)
	@echo "results: $(CURDIR)/$(RESULTS)"

test: venv lint types layers pytest ## all that CI runs

lint: venv ## ruff: rules and format
	$(call stage,lint,{ $(BIN)/ruff check && $(BIN)/ruff format --check; })

types: venv ## mypy
	$(call stage,types,$(BIN)/mypy src/assay)

layers: venv ## import-linter: the floors of the house
	$(call stage,layers,$(BIN)/lint-imports --no-logo)

pytest: venv ## tests that need no GPU and no browser
	$(call stage,pytest,$(PYTEST))

# On a GPU machine, which keeps its own Python: `make records DEVICE=h200 RUN="env PYTHONPATH=src python3"`.
DEVICE   ?= cpu
RUN      ?= $(BIN)/python
records: ## records of check and selftest, under results/$(DEVICE)
	$(RUN) -m assay check --all --out results/$(DEVICE)/check.json
	$(RUN) -m assay selftest --out results/$(DEVICE)/selftest.json
	$(RUN) tools/results.py

wheelhouse: ## wheels for a machine without internet [PYTHON=3.12 PLATFORM=x86_64 SLICE_MB=60 FULL=1]
	$(PYTHON3) tools/wheelhouse.py --python $(PYTHON) --platform $(PLATFORM) --slice-mb $(SLICE_MB) $(if $(FULL),--full)

clean: ## remove builds and caches (keeps .venv and every result)
	rm -rf build dist wheelhouse src/*.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools -name __pycache__ -prune -exec rm -rf {} +
