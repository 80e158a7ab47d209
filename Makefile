# Everything that a fresh machine needs beforehand: Python 3.10 or newer, and a C compiler.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test test-slow soak lint docs install clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[lint,test]'
	touch $@

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py

test: $(INSTALLED)
	$(BIN)/python -m pytest -m "not slow" $(PYTEST_FLAGS)

# Emulated machines, attacks that go on for a while, and real model files.
test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow $(PYTEST_FLAGS)

MINUTES ?= 10
soak: $(INSTALLED)
	$(BIN)/python benchmarks/soak --minutes $(MINUTES) $(SOAK_FLAGS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	find benchmarks examples schedules te_select tests -regex '.*\.\(c\|h\|cc\|cuh\)' -exec \
		$(BIN)/clang-format --dry-run --Werror {} +

# The site of the documents, into build/site. A link that leads nowhere is an error.
docs: $(INSTALLED)
	$(BIN)/python -c "import material, mkdocstrings" 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

clean:
	rm -rf .venv build dist
