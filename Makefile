# Everything here prepares itself: it needs python3 (3.11 or newer, with venv) and a package registry.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.batchmill-installed

.PHONY: demo test soak lint types imports wheel-test setup clean

demo: $(READY)
	@$(BIN)/batchmill demo

test: $(READY)
	@$(BIN)/python -m pytest -n 2 $(ARGS)

soak: $(READY)
	@$(BIN)/python -m pytest -m soak $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/pyright

imports: $(READY)
	$(BIN)/lint-imports

wheel-test: $(READY)
	@.ci/wheel-test

setup: $(READY)

# Installed again only when pyproject.toml has changed.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "batchmill needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "batchmill needs Python's venv module; on Debian: apt install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "Installing batchmill into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,cli]'
	@touch $@

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
