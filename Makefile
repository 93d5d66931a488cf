# Each target does its own set-up: it needs Python 3.11 to 3.14, make, and (for the board and the
# tests of the board) Node 20 or newer with npm. The second time it starts at once.

PYTHON ?= python3
# make demo: the folder that is served as a OneDrive folder; without one, the sample documents.
DIR ?=
# make demo: ONCE=1 ends when every file has its outcome; SLOW=1 lets a person watch the stages.
ONCE ?=
SLOW ?=
# make demo: FAIL=1 refuses a download, so that one can see a failure, clear it and retry it.
FAIL ?=
# make test: what pytest gets; for example T="tests/unit -x".
T ?=
# make test: files of tests run side by side, much of their time is waiting; JOBS= runs one by one. A fixed hash
# seed lets all of them collect tests in one order.
JOBS ?= 3
# make soak: MINUTES= of random kills of every part instead of the tests; SEED= repeats their choices.
MINUTES ?=
SEED ?=
# make bench-drive: ITEMS=100000 instead of a million.
ITEMS ?=
# make lock: UPGRADE=1 takes the newest versions that pyproject.toml allows.
UPGRADE ?=

# Where this is set, each of the many processes of a test compiles all that it loads: that takes longer than the
# tests themselves.
unexport PYTHONDONTWRITEBYTECODE

SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
SET_UP := $(PYTHON) scripts/set_up.py
# A folder's name may hold anything but a line break, also what make would expand.
quoted = '$(subst ','\'',$(1))'
switch = $(if $(filter-out 0 no false,$(1)),$(2))

.PHONY: help
help: ## Lists the targets (this list).
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: ## A folder becomes searchable, before your eyes. ONCE=1 ends when done; DIR=folder; SLOW=1; FAIL=1.
	@$(SET_UP) demo
	@exec $(BIN)/drivefeed demo $(if $(value DIR),$(call quoted,$(value DIR))) $(call switch,$(ONCE),--once) $(call switch,$(SLOW),--slow) $(call switch,$(FAIL),--fail)

.PHONY: up
up: ## Runs drivefeed with your settings (DRIVEFEED_CONFIG=file.toml, and the environment).
	@$(SET_UP) demo
	@exec $(BIN)/drivefeed up

.PHONY: board
board: ## Bull Board over the queues of the drivefeed that runs here.
	@$(SET_UP) demo board
	@exec scripts/board.sh

.PHONY: test
test: ## Runs the tests, all of them but the soak tests. T="tests/unit -x" runs some.
	@$(SET_UP) dev board browser
	@$(if $(JOBS),PYTHONHASHSEED=0) exec $(BIN)/python -m pytest -m "not soak" --durations=15 $(if $(JOBS),-n $(JOBS) --dist loadfile --no-loadscope-reorder) $(T) </dev/null

.PHONY: soak
soak: ## Runs the tests that are too long for make test; MINUTES=20 kills parts at random instead. SEED=7 again.
	@$(SET_UP) dev board
	@$(if $(MINUTES),exec $(BIN)/python tests/durability/soak.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)),exec $(BIN)/python -m pytest -m soak --durations=15 $(T)) </dev/null

.PHONY: mutants
mutants: ## Takes the handling of each quirk of Graph out, and sees that a test notices; prints the table.
	@$(SET_UP) dev
	@exec $(BIN)/python scripts/mutants.py </dev/null

.PHONY: check
check: ## Style, types, the arrows between the rooms, generated docs, lock files.
	@$(SET_UP) dev
	@exec $(BIN)/python scripts/check.py

.PHONY: format
format: ## Formats the code, repairs what ruff can, and writes the generated docs.
	@$(SET_UP) dev
	@$(BIN)/ruff check --fix --exit-zero --quiet
	@$(BIN)/ruff format
	@$(BIN)/python scripts/generate_docs.py

.PHONY: bench
bench: ## Measures what bench/ holds; trust the ratios more than the times.
	@$(SET_UP) dev
	@set -e; for script in bench/*.py; do echo "==> $$script"; $(BIN)/python $$script; done

.PHONY: bench-drive
bench-drive: ## A drive of 1,000,000 items, on SQLite and on Postgres, beside raw inserts. ITEMS=100000 is shorter.
	@$(SET_UP) dev
	@exec $(BIN)/python bench/drive.py --items $(or $(ITEMS),1000000) --folders 5000 --changes 10000

.PHONY: lock
lock: ## Writes the lock files from pyproject.toml. UPGRADE=1 takes newer versions.
	@$(SET_UP) dev
	@$(BIN)/python scripts/lock.py $(call switch,$(UPGRADE),--upgrade)
	@$(SET_UP) dev

.PHONY: clean
clean: ## Removes what the other targets made; a demo's documents and your settings stay.
	rm -rf .venv .make dist bull-board/node_modules
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} +
