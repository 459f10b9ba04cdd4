# The commands of the project; `make help` lists them. Each sets up what it needs, which is fast the
# second time. The scripts in tools/ do the work.
.DEFAULT_GOAL := help
# Steps run in the order written. The first failure stops the run.
.NOTPARALLEL:

SHELL := /bin/bash
python := .venv/bin/python
DEVICE ?= cuda:0
step = @printf '\n=== %s\n' $(1)

# The steps of `make test`, in this order: fast steps that find most errors come first.
# Builds that run ahead use the folder of test-asan, so test-device comes after it.
test_steps := test-setup test-lint test-cpp test-cuda test-ptx test-install test-wheel test-python test-tensorflow \
              test-examples test-asan test-tsan test-device test-workflow
# The further steps of `make test-release`.
release_steps := test-tidy test-device-in-full test-cuda-all test-asan-all-kinds test-tsan-all-kinds test-ptx-in-full \
                 test-python-in-full test-wheel-isolated test-subproject test-repeat test-fuzz test-process-ends \
                 test-long-examples test-open3d test-compilers test-arm test-demo test-browser test-docs wheel wheel-cuda wheel-tensorflow \
                 mutants bench-regress

# Examples that train for minutes: part of test-release only.
long_examples := examples/04_segmentation.py

.PHONY: help demo gpu check test test-release bench bench-quick bench-setup docs lint format wheel clean $(test_steps) $(release_steps)

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' Makefile | awk -F'|' '{printf "  make %-21s %s\n", $$1, $$2}'

demo:  ## real LiDAR scans: times beside NumPy's, nine pictures and a report in build/demo; under 90 s; TORCH=1 adds torch
	@tools/setup package demo $(if $(TORCH),test)
	@tools/install-package
	@$(python) -m tensorhash demo --output build/demo $(if $(TORCH),--torch)

check:  ## between two edits: release build, C++ tests, Python tests without torch and JAX
	@tools/setup cpp check
	@tools/check

test:  ## all tests except the slow ones; prints the seconds of each step
	@tools/run-steps $(test_steps)

test-release:  ## make test and all slow steps; skips steps that passed on these sources; writes docs/evidence.md
	@tools/run-steps --keep-going --record docs/evidence.md $(test_steps) $(release_steps)

bench: bench-setup  ## measure speed beside other libraries; writes bench/results.md and plots; under 30 minutes
	@$(python) bench/run.py --write

bench-quick: bench-setup  ## the same in under 3 minutes; less precise, writes nothing
	@$(python) bench/run.py --quick

bench-setup:
	@tools/setup package bench tensorflow
	@tools/install-package --strict
	@tools/install-tensorflow
	@# Compiles the ops now, not in the time of a suite.
	@TENSORHASH_CACHE=build/tensorflow-cache TF_CPP_MIN_LOG_LEVEL=2 .venv-tensorflow/bin/python -c 'import tensorhash.tensorflow'
	@tools/build-bench
	@tools/build-before || echo '    continuing without the older version of the library'

bench-regress:  ## instruction counts of fixed workloads (callgrind) against a committed baseline
	@tools/setup regress
	@tools/bench-regress

mutants:  ## plant bugs one by one; the tests must notice each (slow: part of test-release)
	@tools/setup cpp
	@tests/mutants/run.sh

docs: test-docs  ## the documentation as web pages in build/docs/html

lint: test-lint test-workflow  ## check format (clang-format, ruff), types (mypy) and the CI workflows (schema, actionlint)

format:  ## format the sources
	@tools/setup lint
	@tools/lint --fix

# Frameworks are installed while C++ compiles. A step that needs them waits for the installation.
test-setup:
	@tools/setup package lint cpp device
	@mkdir -p build && (tools/setup test tensorflow workflow >build/setup.log 2>&1 &)

test-lint:
	@tools/setup lint
	$(call step,"lint: sources and types")
	@tools/lint

test-workflow:
	@tools/setup lint workflow
	$(call step,"lint: CI workflows")
	@tools/lint-workflow

test-cpp:  ## C++ tests, optimised build, all key kinds
	@tools/setup cpp
	$(call step,"C++ tests: release build")
	@tools/test-cpp release

test-asan:  ## the same under AddressSanitizer and UndefinedBehaviorSanitizer, a sample of key kinds
	@tools/setup cpp
	$(call step,"C++ tests: address and undefined-behaviour sanitizers")
	@tools/test-cpp asan

test-tsan:  ## the same under ThreadSanitizer
	@tools/setup cpp
	$(call step,"C++ tests: thread sanitizer")
	@tools/test-cpp tsan

test-tidy:  ## clang-tidy: bugprone, performance and names
	@tools/setup tidy cuda
	@tools/test-tidy

test-asan-all-kinds:  ## test-asan with all key kinds
	@tools/setup cpp
	@TENSORHASH_TEST_IN_FULL=1 tools/test-cpp asan

test-tsan-all-kinds:  ## test-tsan with all key kinds
	@tools/setup cpp
	@TENSORHASH_TEST_IN_FULL=1 tools/test-cpp tsan

test-repeat:  ## C++ tests in random order, five times
	@tools/setup cpp
	@tools/build release tensorhash_tests
	@build/release/tests/tensorhash_tests --gtest_brief=1 --gtest_shuffle --gtest_repeat=5

test-fuzz:  ## 10^6 random row operations for each of 10 seeds, and 10^5 damaged files
	@tools/setup cpp
	@tools/build release tensorhash_fuzz
	@build/release/tests/tensorhash_fuzz --seeds 10 --rows 1000000 --files 100000

test-process-ends:  ## processes that end with a distributed table alive, 50 times
	@tools/setup package test
	@tools/install-package --strict
	@TENSORHASH_END_RUNS=50 $(python) -m pytest -q tests/python/test_distributed_end.py

test-open3d:  ## tensorhash.core beside Open3D's wheel, sparse convolutions beside spconv's
	@tools/setup package test bench
	@tools/install-package --strict
	@$(python) -m pytest -q tests/open3d tests/spconv

test-compilers:  ## g++ 11 and 12, clang 16 and 22: no warnings, tests pass
	@tools/setup cpp
	@tools/test-compilers

test-arm:  ## C++ tests for aarch64, under qemu
	@tools/setup cpp
	@tools/test-arm

test-subproject:  ## tensorhash as part of another CMake project, and as a static library
	@tools/setup
	@tools/test-subproject

test-device:  ## kernel bodies on the fiber emulator, contract tests on an emulated device; no GPU
	@tools/setup cpp device package test
	@tools/install-package --strict
	$(call step,"device: kernel bodies on fibers and tables on an emulated device")
	@tools/test-device $(python)

test-device-in-full:  ## the same with 50 seeds
	@tools/setup cpp device package test
	@tools/install-package --strict
	@TENSORHASH_TEST_IN_FULL=1 tools/test-device $(python)

gpu:  ## for owners of a GPU: tests and measurements on DEVICE (cuda:0; emu:0 without a GPU) and a report for an issue
	@tools/gpu $(DEVICE)

test-cuda:  ## steps and kernel bodies compile with nvcc for two architectures, within their registers; no GPU
	@tools/setup cuda
	$(call step,"CUDA: steps and kernel bodies compile for sm_80 and sm_90")
	@tools/test-cuda-compile

test-cuda-all:  ## the same for all six architectures
	@tools/setup cuda
	@tools/test-cuda-compile --all

test-ptx:  ## device code as PTX (clang 22), interpreted with a race detector
	@tools/setup ptx
	$(call step,"PTX: device code interpreted with a race detector")
	@tools/test-ptx

test-ptx-in-full:  ## the same with 50 seeds
	@tools/setup ptx
	@TENSORHASH_TEST_IN_FULL=1 tools/test-ptx

test-install:  ## cmake --install, then a C++ and a C project that use it
	@tools/setup cpp
	$(call step,"installed package: find_package(tensorhash) from C++ and C")
	@tools/test-install

test-wheel:  ## the wheel is small, needs only NumPy and works alone
	@tools/setup cpp
	$(call step,"wheel: checked and used in a clean environment")
	@tools/test-wheel

wheel:  ## source distribution and repaired wheel in dist/, checked and used in a clean environment
	@tools/setup package wheel
	@tools/wheel

wheel-cuda:  ## the wheel tensorhash-cu13 in build/wheel-cuda, used beside tensorhash in a clean environment; no GPU
	@tools/setup package cuda
	@tools/install-package --strict
	@tools/wheel-cuda

wheel-tensorflow:  ## the wheel tensorhash-tf in build/wheel-tensorflow: TensorFlow's ops for each version from 2.19 on, used without a compiler
	@tools/setup package
	@tools/install-package --strict
	@tools/wheel-tensorflow

test-wheel-isolated:  ## the same, built as pip builds it for a user
	@tools/setup
	@tools/test-wheel --isolated

test-python:  ## Python tests
	@tools/setup package test demo
	@tools/install-package --strict
	$(call step,"Python tests")
	@tools/test-python $(python) tests/python

test-python-in-full:  ## Python tests with full loops, and those that need gigabytes
	@tools/setup package test demo
	@tools/install-package --strict
	@TENSORHASH_TEST_IN_FULL=1 tools/test-python $(python) tests/python

test-tensorflow:  ## tests of the TensorFlow tables, in .venv-tensorflow
	@tools/setup package tensorflow
	@tools/install-tensorflow
	$(call step,"TensorFlow tests")
	@TENSORHASH_CACHE=build/tensorflow-cache TF_CPP_MIN_LOG_LEVEL=2 tools/test-python .venv-tensorflow/bin/python tests/tensorflow

test-demo:  ## the demo with the real scans and with the synthetic street
	@tools/setup package demo test
	@tools/install-package --strict
	@tools/test-demo

test-browser:  ## tensorhash view in Chromium; screenshots in build/browser
	@tools/setup package browser
	@tools/install-package --strict
	@$(python) -m pytest -q tests/browser

test-docs:  ## the documentation builds without warnings, and its links lead somewhere
	@tools/setup package test docs
	@tools/install-package --strict
	$(call step,"documentation")
	@tools/build-docs

test-examples:  ## run all examples
	@tools/setup package
	@tools/install-package --strict
	$(call step,"examples")
	@for example in $(filter-out $(long_examples),$(wildcard examples/*.py)); do \
		echo "--- $$example"; $(python) $$example || exit 1; done

test-long-examples:  ## run the examples that train for minutes
	@tools/setup package test
	@tools/install-package --strict
	$(call step,"examples that train for minutes")
	@for example in $(long_examples); do echo "--- $$example"; $(python) $$example || exit 1; done

clean:  ## remove all files that these commands made
	rm -rf build dist .venv .venv-tensorflow .ruff_cache .pytest_cache .hypothesis
