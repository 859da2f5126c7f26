# `make` alone says what there is to do.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

comma    := ,
PYTHON3  ?= python3
BIN      := .venv/bin
RESULTS  ?= assay-results
DEMO     ?= $(BIN)/assay run gelu conv2d/cuda conv2d/cuda:inline_ptx --dtype fp32 --workloads 4 \
              --rounds 5 --budget 0.5 --out $(RESULTS)/demo.json --report $(RESULTS)/report.html
# A model learns a little of MNIST, and is run with other kernels inside. Its weights stay with the demo.
LEARNT   := --weights $(RESULTS)/mnist-cnn.safetensors
TRAIN    ?= $(BIN)/assay model train mnist-cnn --items 4096 --epochs 2 $(LEARNT) \
              --checkpoint $(RESULTS)/mnist-cnn.checkpoint --out $(RESULTS)/mnist-cnn-training.json
INFER    ?= $(BIN)/assay model infer mnist-cnn --variant torch,njit --batch 16 --arm eager --budget 0.5 --no-score \
              --out $(RESULTS)/mnist-cnn.json
PYTEST   ?= $(BIN)/pytest -n 3 --dist worksteal

# wheelhouse: the other machine's Python and processor, and the largest slice
PYTHON   ?= 3.12
PLATFORM ?= x86_64
SLICE_MB ?= 60
FULL     ?=
PEERS    ?=

# $(call stage,name,command): run it, say its name and its time; stop at the first failure.
define stage
@echo "== $(1)"; start=$$(date +%s%N); rc=0; $(2) || rc=$$?; \
printf '== %s: %s, %d.%d s\n' '$(1)' "$$([ $$rc = 0 ] && echo ok || echo FAILED)" \
  $$((t = ($$(date +%s%N) - start) / 100000000, t / 10)) $$((t % 10)); exit $$rc
endef

.PHONY: help venv demo test lint types layers system pytest slow examples selftest records wheelhouse weights clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: .venv/.stamp ## .venv with everything pinned in constraints.txt

# Built without isolation, so that setuptools too is the pinned one. Modules are compiled by all cores, pip has but one;
# not thousands that hardly anything imports.
.venv/.stamp: pyproject.toml constraints.txt
	$(call stage,venv,{ $(PYTHON3) -m venv .venv && \
	  $(BIN)/pip install -q -c constraints.txt setuptools && \
	  $(BIN)/pip install -q --no-compile -c constraints.txt --no-build-isolation -e '.[all$(comma)dev]' && \
	  { $(BIN)/python -m compileall -q -j 0 -x "/(transformers/models|ray|pip|networkx|mypy|setuptools|torchao|tests?|testing|torch/(ao|distributed|onnx))/" .venv/lib > /dev/null || true; } && touch $@; })

demo: venv ## a first run, with or without a GPU
	$(DEMO)
	$(TRAIN) && $(INFER) $(LEARNT) || { echo "without MNIST: random weights"; $(INFER); }
	@echo "results: $(CURDIR)/$(RESULTS)"

test: venv lint types layers system pytest ## what to run before a commit; CI runs `make slow` too

lint: venv ## ruff: rules and format
	$(call stage,lint,{ $(BIN)/ruff check && $(BIN)/ruff format --check; })

types: venv ## mypy
	$(call stage,types,$(BIN)/mypy src/assay)

layers: venv ## import-linter: the floors of the house
	$(call stage,layers,$(BIN)/lint-imports --no-logo)

# Missing is not failing: what cannot be installed is named, and the tests that need it are skipped.
WANTED = $(if $(shell command -v chromium),,chromium fonts-dejavu-core) \
         $(if $(wildcard /usr/lib/postgresql/*/bin/initdb)$(shell command -v initdb),,postgresql)
system: ## chromium and postgresql for the tests, where root on Debian can bring them
	@wanted="$(strip $(WANTED))"; [ -n "$$wanted" ] || exit 0; \
	if [ "$$(id -u)" != 0 ] || ! grep -qsx ID=debian /etc/os-release; then \
	  echo "== system: left out: $$wanted (not root on Debian; install them to run their tests)"; exit 0; fi; \
	echo "== system: apt-get install $$wanted"; export DEBIAN_FRONTEND=noninteractive; \
	{ apt-get update -qq && apt-get install -qq -y --no-install-recommends $$wanted; } >/dev/null 2>&1 \
	  || echo "== system: left out: $$wanted (apt-get failed; their tests are skipped)"

pytest: venv ## tests that need no GPU and take at most a few seconds each
	$(call stage,pytest,$(PYTEST) -m "not (gpu or slow or whole)")

slow: venv system ## tests of whole commands and studies that take longer
	$(call stage,slow,$(PYTEST) -m "slow and not (gpu or whole)")

examples: venv ## every example: honest kernels pass, planted mistakes are caught (many minutes)
	$(call stage,examples,ASSAY_EXAMPLES=all $(PYTEST) -m "not gpu" tests/test_examples.py)

selftest: venv ## tests that take many minutes: the whole corpus of wrong kernels, every kernel of the library
	$(BIN)/pytest -n 2 --dist worksteal -m whole

# On a GPU machine, which keeps its own Python: `make records DEVICE=h200 RUN="env PYTHONPATH=src python3"`.
DEVICE   ?= cpu
RUN      ?= $(BIN)/python
MUTATED  ?= $(foreach op,gelu gelu_tanh gelu_backward silu softmax layernorm rmsnorm ln_gelu conv2d mx_quantize,$(op)/cuda $(op)/triton)
records: ## what docs/results.md and docs/selftest.md are made of, under results/$(DEVICE)
	$(RUN) -m assay check --all --out results/$(DEVICE)/check.json
	$(RUN) -m assay check examples/*.py --out results/$(DEVICE)/examples.json
	$(RUN) -m assay selftest --out results/$(DEVICE)/selftest.json
	$(RUN) -m assay selftest mutants $(MUTATED) --limit 12 --out results/$(DEVICE)/mutants.json
	$(RUN) -m assay machine --out results/$(DEVICE)/machine.json
	$(RUN) tools/against_ncu.py results/$(DEVICE)
	$(RUN) tools/null_comparisons.py results/$(DEVICE)
	$(RUN) tools/results.py
	$(RUN) tools/mutants.py
	$(RUN) tools/schema.py

wheelhouse: ## wheels for a machine without internet [PYTHON=3.12 PLATFORM=x86_64 SLICE_MB=60 FULL=1 PEERS=1]
	$(PYTHON3) tools/wheelhouse.py --python $(PYTHON) --platform $(PLATFORM) --slice-mb $(SLICE_MB) \
	  $(if $(FULL),--full) $(if $(PEERS),--peers)

weights: venv ## data and weights for a machine without internet [SLICE_MB=60]
	$(BIN)/assay model fetch mnist imdb minilm
	$(PYTHON3) tools/weights.py pack --slice-mb $(SLICE_MB)

clean: ## remove builds and caches (keeps .venv and every result)
	rm -rf build dist wheelhouse src/*.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools -name __pycache__ -prune -exec rm -rf {} +
