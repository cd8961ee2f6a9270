# The whole ritual. Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
READY := $(VENV)/.ready

.PHONY: help setup demo test test-unit test-local test-examples test-launch test-engines test-apiserver test-aws test-e2e \
	test-full test-e2e-full test-apiserver-full cluster cluster-down lint format generate picture verify bench lock clean

help: ## say what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(READY) ## make the environment with `pdj` and PaddlePaddle at .venv

$(READY): pyproject.toml requirements.lock
	@echo "== setting up $(VENV): paddlejob, its tools and PaddlePaddle (600 MB the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5'
	@$(BIN)/uv pip sync --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(READY)

demo: setup ## train wide & deep with real PaddlePaddle on this machine
	@$(BIN)/python -m tools.demo

test: setup ## run every tier that this machine can run
	@$(BIN)/python -m tools.run_tests

test-unit: setup ## pure rooms: stories and laws
	@$(BIN)/python -m tools.run_tests unit

test-engines: setup ## the same stories on both engines
	@$(BIN)/python -m tools.run_tests engines

test-apiserver: setup ## the operator against a real kube-apiserver and etcd
	@$(BIN)/python -m tools.run_tests apiserver

test-local: setup ## the embedded engine with real processes and real training
	@$(BIN)/python -m tools.run_tests local

test-examples: setup ## the example programs learn
	@$(BIN)/python -m tools.run_tests examples

test-launch: setup ## the launcher of a plain batch/v1 Job
	@$(BIN)/python -m tools.run_tests launch

test-aws: setup ## a cluster on AWS, without AWS
	@$(BIN)/python -m tools.run_tests aws

test-e2e: setup ## a real cluster with pods that really train, what fits into a few minutes
	@$(BIN)/python -m tools.run_tests e2e

test-full: setup ## all stories of every tier, also the slow ones; an hour
	@$(BIN)/python -m tools.run_tests full

test-e2e-full: setup ## all stories of a real cluster; half an hour
	@$(BIN)/python -m tools.run_tests e2e-full

test-apiserver-full: setup ## all stories of the API server, also the slow ones of the command line
	@$(BIN)/python -m tools.run_tests apiserver-full

cluster: setup ## a shell with kubectl on a real cluster of three nodes, built from Go modules the first time
	@$(BIN)/python -m testbed up

cluster-down: setup ## end that cluster
	@$(BIN)/python -m testbed down

lint: setup ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## let ruff format
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

generate: setup ## write every generated file
	@$(BIN)/python -m tools.generate

picture: setup ## take the picture of the live view that the README shows
	@$(BIN)/python -m tools.picture

verify: setup ## fail where a generated file is not what would be generated
	@$(BIN)/python -m tools.generate --check

bench: setup ## ratios against a floor, in one run
	@$(BIN)/python -m bench.operator
	@$(BIN)/python -m bench.local
	@$(BIN)/python -m bench.data

lock: setup ## choose newer versions of what we depend on
	@$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-header --extra aws --extra paddle --group dev \
		--output-file requirements.lock pyproject.toml

clean: ## remove the environment and caches of this directory
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
