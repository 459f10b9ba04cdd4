# The commands of the project. Each sets up what it needs by itself; the second time that is quick.
# `make help` lists them. The work is done by the scripts in tools/.
.DEFAULT_GOAL := help
# Steps run in the order written, and the first failure stops.
.NOTPARALLEL:
.PHONY: help demo test bench bench-quick bench-setup bench-regress mutants lint format clean \
        test-lint test-cpp test-asan test-tsan test-cuda-compile test-install test-wheel test-python test-tensorflow test-examples

SHELL := /bin/bash
python := .venv/bin/python
step = @printf '\n=== %s\n' $(1)

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' Makefile | awk -F'|' '{printf "  make %-18s %s\n", $$1, $$2}'

demo:  ## voxelise a point cloud through the Python package, and say what happened
	@tools/setup package
	@tools/install-package
	@$(python) examples/01_voxelize.py

test: test-lint test-cpp test-asan test-tsan test-cuda-compile test-install test-wheel test-python test-tensorflow test-examples  ## every test there is
	$(call step,"all tests passed")

bench: bench-setup  ## speed beside other libraries: bench/results.md, goals and plots; under 30 minutes (not a test)
	@$(python) bench/run.py --write

bench-quick: bench-setup  ## the same in under 3 minutes, rougher, and nothing is written
	@$(python) bench/run.py --quick

bench-setup:
	@tools/setup package bench tensorflow
	@tools/install-package --strict
	@tools/install-tensorflow
	@tools/build-bench

bench-regress:  ## instructions of fixed workloads under callgrind, against a committed baseline
	@tools/setup regress
	@tools/bench-regress

mutants:  ## plant mistakes one by one; the tests must notice each (slow, not part of test)
	@tools/setup cpp
	@tests/mutants/run.sh

lint: test-lint  ## check the form of the sources (clang-format, ruff)

format:  ## put the sources into form
	@tools/setup lint
	@tools/lint --fix

test-lint:
	@tools/setup lint
	$(call step,"lint: clang-format and ruff")
	@tools/lint

test-cpp:  ## C++ tests, optimised build
	@tools/setup cpp
	$(call step,"C++ tests: release build")
	@tools/test-cpp release

test-asan:  ## the same under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/setup cpp
	$(call step,"C++ tests: address and undefined-behaviour sanitizers")
	@tools/test-cpp asan

test-tsan:  ## the same under ThreadSanitizer
	@tools/setup cpp
	$(call step,"C++ tests: thread sanitizer")
	@tools/test-cpp tsan

test-cuda-compile:  ## the engine's steps compile as CUDA (where nvcc is present)
	@tools/setup
	$(call step,"CUDA: the engine's steps compile for sm_80 and sm_90")
	@tools/test-cuda-compile

test-install:  ## cmake --install, then a C++ and a C project that use it
	@tools/setup cpp
	$(call step,"installed package: find_package(tensorhash) from C++ and C")
	@tools/test-install

test-wheel:  ## the wheel: small, NumPy only, works alone
	@tools/setup
	$(call step,"wheel: built as pip builds it and used in a clean environment")
	@tools/test-wheel

test-python:  ## Python tests
	@tools/setup package test
	@tools/install-package --strict
	$(call step,"Python tests")
	@$(python) -m pytest -q tests/python

test-tensorflow:  ## the TensorFlow tables, with a TensorFlow of their own in .venv-tensorflow
	@tools/setup package tensorflow
	@tools/install-tensorflow
	$(call step,"TensorFlow tests")
	@TENSORHASH_CACHE=build/tensorflow-cache TF_CPP_MIN_LOG_LEVEL=2 .venv-tensorflow/bin/python -m pytest -q tests/tensorflow

test-examples:  ## the demo and every other example
	@tools/setup package
	@tools/install-package --strict
	$(call step,"examples")
	@for example in examples/*.py; do echo "--- $$example"; $(python) $$example || exit 1; done

clean:  ## remove everything the commands made
	rm -rf build .venv .venv-tensorflow .ruff_cache .pytest_cache .hypothesis
