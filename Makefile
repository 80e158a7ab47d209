# Everything that a fresh machine needs beforehand: Python 3.10 or newer, for make lint 3.11, and a C
# compiler.
PYTHON ?= python3
BIN := .venv/bin
BUILT := .venv/.built
LINT := .venv/.with-lint
TEST := .venv/.with-test
# The tests start many processes, each of which would compile all of te_select.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow soak peers lint records tvm-ffi docs wheel arm64 install clean

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

install: $(LINT)  ## make .venv, with what tests and lint need

# The extension in C is compiled by the installation, so new sources of it mean a new one.
$(BUILT): pyproject.toml setup.py $(wildcard te_select/runtime/c/*.[ch] te_select/runtime/c/*/*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --progress-bar on --editable .
	touch $@

.venv/.with-%: $(BUILT)
	$(BIN)/python -m pip install --progress-bar on --editable '.[$*]'
	touch $@
$(LINT): $(TEST)

demo: $(BUILT)  ## compile a causal mask, and run it in a process without TVM
	$(BIN)/python examples/python/demo.py

test: $(TEST)  ## run the tests but the slow ones
	$(BIN)/python -m pytest -m "not slow and not long" $(PYTEST_FLAGS)

# Emulated machines, attacks that go on for a while, and real model files.
test-slow: $(TEST)  ## run the slow tests
	$(BIN)/python -m pytest -m "slow and not long" $(PYTEST_FLAGS)

MINUTES ?= 10
soak: $(TEST)  ## run what the pages say, then attack it for MINUTES
	$(if $(SOAK_FLAGS),,$(BIN)/python -m pytest -m long $(PYTEST_FLAGS))
	$(BIN)/python benchmarks/soak --minutes $(MINUTES) $(SOAK_FLAGS)

peers: $(TEST)  ## run the tests of NumPy and its neighbours with our functions in NumPy's place
	$(BIN)/python -m tests.peers $(PEERS_FLAGS)

OWN_HEADERS = $(addprefix -I,te_select/runtime/c $(wildcard te_select/runtime/c/*/))
HEADERS = $(shell $(BIN)/python -c 'import numpy, sysconfig; from tvm_ffi import libinfo; \
	paths = *libinfo.include_paths(), numpy.get_include(), sysconfig.get_path("include"); \
	print(*(f"-isystem{path}" for path in paths))')
lint: $(LINT)  ## check form, types and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	python3 .ci/words.py
	$(BIN)/python .ci/weight.py
	$(BIN)/python .ci/packed.py
	find benchmarks examples schedules te_select tests -regex '.*\.\(c\|h\|cc\|cuh\)' -exec \
		$(BIN)/clang-format --dry-run --Werror {} +
	find te_select -name '*.c' | xargs -P 2 -n 4 sh -c \
		'$(BIN)/clang-tidy --quiet "$$@" -- -std=gnu11 -fopenmp $(OWN_HEADERS) $(HEADERS)' --

# The records that are shipped: of the suite, those that beat the default on this CPU.
records: $(BUILT)  ## tune the suite of the bench on an idle machine, into tuning_logs
	$(BIN)/te-select tune --suite default --tuning-logs build/records
	$(BIN)/te-select logs export tuning_logs --tuning-logs build/records --better

# What the runtime does, with the oldest and the newest release that release/split.py lets it have.
tvm-ffi: $(TEST)  ## check the runtime with the oldest and the newest tvm-ffi
	$(BIN)/python release/with_tvm_ffi.py build/tvm-ffi

# The site of the documents, into build/site. A link that leads nowhere is an error.
docs: $(BUILT)  ## build the site of the documents
	$(BIN)/python -c "import material, mkdocstrings" 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# Two distributions, te-select and te-select-runtime, each as an sdist and wheels that are made from
# it. The runtime has a wheel for each Python from 3.10 on that is found. They bring the kernels of
# te_select.where for these levels, which never lie in the checkout, where they would hide what its
# sources make. They are built by the records that are shipped, not by those of whoever makes them.
MACHINE ?= $(shell uname -m)
ABOVE = $(shell $(BIN)/python -c "from te_select.base.levels import *; print(ABOVE_BASELINE)")
LEVELS ?= $(if $(filter x86_64,$(MACHINE)),$(ABOVE),$(MACHINE))
DIST ?= dist
WORK ?= build/wheel
TOOLS = auditwheel build packaging 'pip>=22.3' 'setuptools>=77' tomlkit wheel
wheel: $(BUILT)  ## build sdists and wheels of te-select and te-select-runtime into dist
	@test "$(filter x86_64 aarch64 riscv64,$(MACHINE))" || \
		(echo "MACHINE is $(MACHINE); expected x86_64, aarch64 or riscv64" >&2; exit 2)
	@echo "This takes some minutes; most of them go into the kernels of te_select.where for $(LEVELS)."
	rm -rf $(WORK) && mkdir -p $(WORK)/sources $(DIST)
	$(BIN)/python -m pip install --quiet --no-index $(TOOLS) 2>/dev/null || \
		$(BIN)/python -m pip install --quiet $(TOOLS)
	$(BIN)/python -m build --no-isolation --sdist --outdir $(WORK) .
	tar -xzf $(WORK)/te_select-*.tar.gz -C $(WORK)/sources --strip-components 1
	$(BIN)/python release/split.py $(WORK)/sources $(WORK)/runtime $(WORK)/builder
	$(BIN)/python -m build --no-isolation --outdir $(WORK)/wheels $(WORK)/builder
	$(BIN)/python -m build --no-isolation --sdist --outdir $(WORK)/wheels $(WORK)/runtime
	XDG_DATA_HOME=$(abspath $(WORK))/data $(BIN)/te-select where build --target $(LEVELS) -o $(WORK)/where.so
	$(BIN)/python release/runtime_wheel.py $(WORK)/runtime $(WORK)/where.so $(WORK)/wheels $(MACHINE)
	$(BIN)/python release/finish.py $(WORK)/wheels/*.whl
	mv $(WORK)/wheels/* $(DIST)

# Hours on two cores. Needs root, Debian's qemu-user-static and mmdebstrap, and Python 3.11, as the root
# has it. The wheel and the library of kernels are made here, and checked there.
ARM64 ?= build/arm64
arm64: $(BUILT)  ## the demo, the tests and 90 kernels on an emulated 64-bit Arm
	$(MAKE) wheel MACHINE=aarch64 DIST=$(ARM64)/dist WORK=$(ARM64)/wheel
	$(BIN)/python release/checked_kernels.py build $(ARM64)/kernels.so aarch64
	release/arm64.sh $(ARM64) sh -c 'python3 -m venv --clear /runtime && \
		/runtime/bin/pip install "$$(ls -t /given/dist/te_select_runtime-*-cp311-*.whl | head -n 1)[cli]" && \
		/runtime/bin/python release/checked_kernels.py check /given/kernels.so'
	release/arm64.sh $(ARM64) make demo
	release/arm64.sh $(ARM64) make test PYTEST_FLAGS="$(PYTEST_FLAGS)"

clean:  ## remove .venv, build and dist
	rm -rf .venv build dist
