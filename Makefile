# On a fresh machine, `make demo` and `make test` set up everything they need.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
READY := $(VENV)/.ready

.PHONY: help setup demo test test-unit test-local test-examples test-launch test-engines test-apiserver test-aws test-web test-e2e \
	test-full test-e2e-full test-apiserver-full cluster cluster-down lint format generate picture docs docs-serve verify bench mutants chaos lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

setup: $(READY) ## install `pdj`, PaddlePaddle and the development tools into .venv

$(READY): pyproject.toml requirements.lock src/paddlejob/__init__.py
	@echo "== Setting up $(VENV): paddlejob, PaddlePaddle and development tools (downloads 600 MB the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5'
	@$(BIN)/uv pip sync --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(READY)

demo: setup ## train Wide & Deep with real PaddlePaddle on this machine
	@$(BIN)/python -m tools.demo

test: setup ## run every test tier that this machine supports
	@$(BIN)/python -m tools.run_tests

test-unit: setup ## unit and property tests
	@$(BIN)/python -m tools.run_tests unit

test-engines: setup ## the same tests on both engines
	@$(BIN)/python -m tools.run_tests engines

test-apiserver: setup ## the operator against a real kube-apiserver and etcd
	@$(BIN)/python -m tools.run_tests apiserver

test-local: setup ## the embedded engine with real processes and real training
	@$(BIN)/python -m tools.run_tests local

test-examples: setup ## the example programs learn
	@$(BIN)/python -m tools.run_tests examples

test-launch: setup ## the launcher for plain batch/v1 Jobs
	@$(BIN)/python -m tools.run_tests launch

test-web: setup ## `pdj web` in a real browser
	@$(BIN)/python -m tools.run_tests web

test-aws: setup ## `pdj aws` against a simulated AWS
	@$(BIN)/python -m tools.run_tests aws

test-e2e: setup ## pods that really train on a real cluster; a few minutes
	@$(BIN)/python -m tools.run_tests e2e

test-full: setup ## every test of every tier, including slow ones; an hour
	@$(BIN)/python -m tools.run_tests full

test-e2e-full: setup ## every test on a real cluster; half an hour
	@$(BIN)/python -m tools.run_tests e2e-full

test-apiserver-full: setup ## every test against an API server, including slow ones
	@$(BIN)/python -m tools.run_tests apiserver-full

cluster: setup ## start a real three-node cluster and a shell with kubectl; built from Go modules the first time
	@$(BIN)/python -m testbed up

cluster-down: setup ## stop the clusters that `make cluster` started
	@$(BIN)/python -m testbed down

lint: setup ## check with ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## format the code with ruff
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

generate: setup ## regenerate all generated files
	@$(BIN)/python -m tools.generate

picture: setup ## record the pictures of the documentation from real runs, and draw its diagrams and plots
	@$(BIN)/python -m tools.picture
	@$(BIN)/python -m tools.web_picture
	@$(BIN)/python -m tools.generate

docs: setup ## build the documentation site in English and Chinese into dist/docs
	@$(BIN)/python -m tools.docs check
	@$(BIN)/python -m tools.docs build

docs-serve: setup ## build the documentation site and serve it on this machine; PORT=n
	@$(BIN)/python -m tools.docs serve $(PORT)

verify: setup ## fail if a generated file is out of date, or a page, its Chinese twin or a link is missing
	@$(BIN)/python -m tools.generate --check
	@$(BIN)/python -m tools.docs check

bench: setup ## measure performance as a ratio to a lower bound, and write bench/figures.json; half an hour
	@$(BIN)/python -m bench

mutants: setup ## how many small defects the quick tests notice; 20 minutes; MUTANTS=n SEED=n PACKAGE=plan,engine
	@$(BIN)/python -m tools.mutants $(if $(MUTANTS),--mutants=$(MUTANTS)) $(if $(SEED),--seed=$(SEED)) \
		$(if $(PACKAGE),--package=$(PACKAGE)) $(if $(TESTS),--tests=$(TESTS))

chaos: setup ## random faults on a real three-node cluster, then checks of what must hold; MINUTES=n SEED=n
	@$(BIN)/python -m tools.chaos $(if $(SEED),--seed=$(SEED)) $(if $(MINUTES),--minutes=$(MINUTES))

lock: setup ## update requirements.lock to the newest versions
	@$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-header --extra aws --extra paddle --group dev \
		--output-file requirements.lock pyproject.toml

clean: ## remove .venv and the caches in this directory
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
