# Weir: `make run` starts a router, `make test` runs the tests, `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# The tests start hundreds of Python processes; without bytecode each of them compiles all of Weir and its libraries.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIPELINE_VENV := .venv-pipeline
PIPELINE_BIN := $(PIPELINE_VENV)/bin
CODE := services operator
ALL_CODE := $(CODE) tests $(wildcard scripts)
# The environment is current when it was made from exactly these files.
STAMP := $(VENV)/.made-from-$(shell cat requirements/dev.txt pyproject.toml | sha256sum | cut -c1-16)
PIPELINE_STAMP := $(PIPELINE_VENV)/.made-from-$(shell cat requirements/pipeline-dev.txt pyproject.toml services/weir/pipeline/jars.py | sha256sum | cut -c1-16)
UP_ARGS ?= --home data
PYTEST_ARGS ?=
# Tests wait about as long as they compute, so more of them run at once than there are cores.
WORKERS ?= 4
FUZZ_SECONDS ?= 60
# Fault runs: the first seed, how many, how long things fail in each, and how many at a time.
SEED ?= 1
RUNS ?= 10
SECONDS ?= 10
JOBS ?= 2
CAN_CLUSTER := [ "$$(id -u)" -eq 0 ] && PATH="$$PATH:/usr/local/go/bin" command -v go >/dev/null

.PHONY: help setup run test test-all check lint fmt types layers tests vectors fuzz fuzz-edge soak faults bench lock
.PHONY: test-cluster test-cluster-pipeline image clean setup-pipeline test-pipeline pipeline-demo

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the pinned dependencies and the weir command

$(STAMP): requirements/dev.txt pyproject.toml
	@bash scripts/setup.sh "$(PYTHON)" "$(VENV)" requirements/dev.txt
	@rm -f $(VENV)/.made-from-* && touch $@

setup-pipeline: $(PIPELINE_STAMP) ## make .venv-pipeline: Spark, and all else that weir pipeline needs

$(PIPELINE_STAMP): requirements/pipeline-dev.txt pyproject.toml services/weir/pipeline/jars.py
	@bash scripts/packages.sh
	@bash scripts/setup.sh "$(PYTHON)" "$(PIPELINE_VENV)" requirements/pipeline-dev.txt
	@$(PIPELINE_BIN)/weir pipeline jars
	@rm -f $(PIPELINE_VENV)/.made-from-* && touch $@

run: setup ## start a router here: 2 edges, embedded Redis, data in data/ (UP_ARGS="…" changes it)
	@exec $(BIN)/weir up $(UP_ARGS)

test: ## lint, types, layers and every test that needs no Kubernetes: a few minutes
	@# Packages of the system arrive while the environment is made and the code is checked.
	@bash scripts/packages.sh & packages=$$!; $(MAKE) setup check; status=$$?; wait $$packages; exit $$status
	@echo "== tests"; $(MAKE) tests
	@echo "make test: passed. make test-all adds $(REST)"

check: setup ## lint, types and layers
	@echo "== lint";   $(MAKE) lint
	@echo "== types";  $(MAKE) types
	@echo "== layers"; $(MAKE) layers

test-all: test ## make test, then the tests that take long or need Kubernetes: about half an hour
	@# The cluster's binaries first: the chart's own tests need its helm.
	@if $(CAN_CLUSTER); then echo "== cluster's binaries (12 to 17 minutes the first time)"; tests/cluster/build.sh; fi
	@echo "== the rest of the tests"; $(MAKE) tests PYTEST_ARGS="-m 'all and not cluster and not spark' $(PYTEST_ARGS)"
	@echo "== pipeline"; $(MAKE) test-pipeline
	@echo "== cluster"; \
	if $(CAN_CLUSTER); then $(MAKE) test-cluster; \
	else echo "cluster: left out; its tests need root and Go (Debian: apt install golang-go), then make test-cluster"; fi

REST := the other kinds and versions of Redis, longer fault schedules, the chart, the image, Spark, a Kubernetes cluster

lint: setup
	@$(BIN)/ruff check --quiet $(ALL_CODE) && $(BIN)/ruff format --quiet --check $(ALL_CODE) \
	  || { echo "lint: 'make fmt' mends what can be mended"; exit 1; }

fmt: setup ## format the code and mend what lint can
	@$(BIN)/ruff check --quiet --fix $(ALL_CODE); $(BIN)/ruff format $(ALL_CODE)

types: setup
	@$(BIN)/mypy --strict $(CODE)

layers: setup
	@$(BIN)/lint-imports --no-cache

tests: setup ## the tests alone (PYTEST_ARGS="-k name" narrows them)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

test-pipeline: setup-pipeline ## the tests of the pipeline that need Spark
	@$(PIPELINE_BIN)/python -m pytest -m "$(SPARK_TESTS)" $(or $(PYTEST_ARGS),tests/pipeline)

SPARK_TESTS ?= spark and not all

pipeline-demo: setup-pipeline ## two simulated weeks of routers, and the report about them: two minutes
	@$(PIPELINE_BIN)/weir pipeline demo

vectors: setup ## check golden bytes: make vectors FILE=path/to/vectors.json
	@test -n "$(FILE)" || { echo "vectors: say which file, e.g. make vectors FILE=tests/vectors/vectors.json"; exit 2; }
	@$(BIN)/python -m tests.vectors.check "$(FILE)"

fuzz: setup ## fuzz every decoder, FUZZ_SECONDS=60 each
	@$(BIN)/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS)

fuzz-edge: setup ## send mutated commands to both routers, FUZZ_SECONDS=60 each (SEED=N repeats a run)
	@$(BIN)/python -m tests.fuzz.edge --seconds $(FUZZ_SECONDS) $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.fuzz.ntf --seconds $(FUZZ_SECONDS) $(if $(SEED),--seed $(SEED))

soak: setup ## kill edges, Redis and clients during a long run of messages; nothing may be lost
	@$(BIN)/python -m pytest -m soak --timeout 3600 $(PYTEST_ARGS)

faults: setup ## break edges, Redis, network and clocks by a seeded plan (SEED=1 RUNS=10 SECONDS=10); docs/reliability.md
	@$(BIN)/python -m tests.faults --seed $(SEED) --runs $(RUNS) --seconds $(SECONDS) --jobs $(JOBS)

bench: setup ## measure this machine's bars (docs/bench.md)
	@$(BIN)/weir bench all

lock: setup ## make requirements/*.txt anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet pyproject.toml $(LOCK) -o requirements/run.txt --extra operator
	@$(BIN)/uv pip compile --quiet pyproject.toml $(LOCK) -o requirements/dev.txt --extra operator --group dev
	@$(BIN)/uv pip compile --quiet pyproject.toml $(LOCK) $(AS_DEV) -o requirements/pipeline.txt --extra pipeline
	@$(BIN)/uv pip compile --quiet pyproject.toml $(LOCK) $(AS_DEV) -o requirements/pipeline-dev.txt \
	  --extra operator --extra pipeline --group dev --group pipeline

LOCK := --python-version 3.11 --universal --generate-hashes --no-header --no-emit-index-url --no-emit-find-links
AS_DEV := --constraint requirements/dev.txt --no-annotate

test-cluster: setup ## the tests that need a real Kubernetes cluster (makes one here: root and Go)
	@$(BIN)/python -m pytest -m cluster --timeout 3600 --ignore $(CLUSTER_PIPELINE) $(PYTEST_ARGS)

test-cluster-pipeline: setup ## the pipeline on a real Kubernetes cluster, with its own image: ten minutes
	@$(BIN)/python -m pytest -m cluster --timeout 3600 $(CLUSTER_PIPELINE) $(PYTEST_ARGS)

CLUSTER_PIPELINE := tests/cluster/test_pipeline.py

image: setup ## build the container image
	@$(BIN)/python scripts/image.py

clean: ## remove the environment and what was built; data/ stays
	@rm -rf $(VENV) $(PIPELINE_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
