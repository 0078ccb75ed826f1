# Every target creates .venv when it is missing and installs once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TARGET ?= examples/perception.py:workload
MEASURING := $(addprefix tests/,bench checkup cli docs examples hardware loading workload)

.PHONY: install demo test test-slow lint format docs clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/pyrometer check $(TARGET)

# What measures time has the machine to itself; everything else shares it, a file at a time.
test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(MEASURING:%=--ignore=%)
	$(BIN)/python -m pytest $(MEASURING)

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow --timeout 900

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/interrogate --quiet src/pyrometer

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
