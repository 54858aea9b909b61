# Two commands on a fresh machine: `make demo` and `make test`. Each makes the virtual environment that it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-portable fuzz mutants lint bench publish compare ablation reproduce docs clean
.DEFAULT_GOAL := test

# One stamp per set of extras: make reinstalls when pyproject.toml changes, and not otherwise.
$(VENV)/.%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "givens needs Python 3.11 or later: make PYTHON=/path/to/python"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing givens[$*] into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@

demo: $(VENV)/.cli
	@$(BIN)/givens demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# As other machines would run them: other processors, random order, 500 new examples for each property, the oldest and the
# newest dependencies. ONLY=prescott,oldest makes the runs that have one of these, SEED=1 repeats a run.
test-portable: $(VENV)/.test $(VENV)/.portable
	$(BIN)/python tests/portable.py $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED)) $(ARGS)

# Random attacks for so many minutes, in processes with limits; SEED=1 repeats a run. INTERRUPTS=100 sends Ctrl-C instead, so many
# times to every estimator and every command.
MINUTES ?= 5
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz $(if $(INTERRUPTS),--interrupts $(INTERRUPTS),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

# How many of 60 small errors in the source the tests notice: at most an hour; SEED=1 makes others.
mutants: $(VENV)/.test
	$(BIN)/python -m tests.net.mutants $(if $(SEED),--seed $(SEED)) $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Goes on with what this version of the code has not measured yet; ONLY=a,b measures these anew, FRESH=1 everything.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(FRESH),--fresh)

# Writes docs/benchmarks.md from the results of a full `make bench`.
publish: $(VENV)/.bench
	$(BIN)/python -m benchmarks --publish

# Time, value and memory of an earlier version beside the present one: make compare OLD=COMMIT. ONLY="ICA|decompose" takes rows with
# one of these in their names, ROUNDS=10 makes more rounds, COLD=1 measures first fits with nothing compiled.
compare: $(VENV)/.bench
	$(BIN)/python -m benchmarks.compare $(OLD) $(if $(ONLY),--only "$(ONLY)") $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(COLD),--cold) $(ARGS)

# Every mechanism on and off, on the rows of `make compare`; goes on where it was interrupted, ONLY="starts" measures these anew.
ablation: $(VENV)/.bench
	$(BIN)/python -m benchmarks.ablation $(if $(ONLY),--only "$(ONLY)") $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

# The paper's figures, into reproduced/: all of them, or ONLY=prostate; QUICK=1 takes small data and few repetitions.
reproduce: $(VENV)/.cli,plot
	$(BIN)/python -m paper $(or $(ONLY),all) $(if $(QUICK),--quick) $(ARGS)

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-* site build dist reproduced benchmarks/results
