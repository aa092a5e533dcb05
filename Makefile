# Everything a person needs from a fresh clone: make demo, make test, make bench.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install demo check test durations lint bench lock clean

help:
	@echo "make demo   set up, simulate an epidemic, sample its surrogate and a scenario, draw them"
	@echo "make check  set up, then lint, types, import contract and the fast tests: two minutes"
	@echo "make test   set up, then lint, types, import contract and all tests"
	@echo "make bench  set up with the peers, then measure ours against them"
	@echo "make clean  remove the environment and everything made"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	@echo "setting up $(VENV): some minutes, the first time"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@touch $@

install: $(STAMP)

demo: $(STAMP)
	mkdir -p demo
	$(BIN)/surrogate simulate esirs --initial S=95,I=5 -o demo/trajectories.nc --force
	$(BIN)/surrogate plot demo/trajectories.nc --force
	$(BIN)/surrogate simulate esirs -o demo/uniform.nc --force
	$(BIN)/surrogate sample esirs -o demo/samples.nc --force
	$(BIN)/surrogate evaluate demo/samples.nc --against demo/uniform.nc
	$(BIN)/surrogate plot demo/samples.nc --against demo/uniform.nc --force
	$(BIN)/surrogate sample esirs --bridge S0=95,I0=5,S25=30 --samples 1000 -o demo/bridge.nc --force
	$(BIN)/surrogate reference esirs --bridge S0=95,I0=5,S25=30 --samples 1000 -o demo/reference.nc --force
	$(BIN)/surrogate report demo/bridge.nc --against demo/reference.nc --force
	@echo "look at demo/trajectories.png, demo/samples.png and demo/bridge.html"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# --dist worksteal: a process that has nothing left to do takes half of what another has
check: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

# measures the CPU time of every test, for tests/slow.txt
durations: $(STAMP)
	rm -f durations.txt
	CPU_TIMES=durations.txt $(BIN)/python -m pytest
	$(BIN)/python -m tests.slow durations.txt
	rm durations.txt

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,bench]'
	$(BIN)/python benchmarks/simulator.py --save
	$(BIN)/python benchmarks/constraint_speed.py --save
	$(BIN)/python benchmarks/surrogate_quality.py --save
	$(BIN)/python benchmarks/systems.py --minutes 15 --save
	$(BIN)/python benchmarks/sampler.py --save
	$(BIN)/python benchmarks/scaling.py --save
	$(BIN)/python benchmarks/paper.py --paper-samples 1000 --save

# pins everything that an install of this checkout brings in, the peers included
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade -e '.[all,dev,bench]' torch==2.13.0
	{ head -1 constraints.txt; $(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu$$//'; } > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) demo build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
