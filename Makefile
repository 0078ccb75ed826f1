# Every target creates .venv when it is missing and installs once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TARGET ?= examples/perception.py:workload
MEASURING := tests/bench tests/checkup tests/hardware tests/loading
BESIDE := tests/memory tests/compiler
RULES := tests/rules tests/numerics
COMMANDS := tests/cli tests/docs tests/examples
PAGES := tests/report tests/dashboard
# Slow ones that measure; the other slow tests of the command line do not mind company.
MEASURING_COMMANDS := tests/cli/test_bench_modes.py tests/cli/test_measuring_verbs.py
MODULES := web/node_modules/.installed

.PHONY: install demo test test-most test-commands test-trace test-memory test-compiler test-rules
.PHONY: test-slow slow-most slow-pages slow-memory slow-compiler lint format docs web web-check clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/pyrometer check $(TARGET)

# Two processes at a time, the longest first, so that both end at about the same time; with threads that sleep while they
# wait, or each would spin on the other's cores. Memory and the compiler have processes of their own: many tests of memory
# look through the whole heap, which the compiler makes twice as large. Then what measures time has the machine to itself.
test: $(STAMP)
	OMP_WAIT_POLICY=passive $(MAKE) --no-print-directory --jobs 2 --output-sync=target \
		test-memory test-trace test-compiler test-commands test-rules test-most
	$(BIN)/python -m pytest --durations=15 $(MEASURING)

test-most: $(STAMP)
	$(BIN)/python -m pytest --durations=15 \
		--ignore=tests/trace $(BESIDE:%=--ignore=%) $(RULES:%=--ignore=%) $(COMMANDS:%=--ignore=%) $(MEASURING:%=--ignore=%)

test-trace: $(STAMP)
	$(BIN)/python -m pytest --durations=15 tests/trace

test-commands: $(STAMP)
	$(BIN)/python -m pytest --durations=15 $(COMMANDS)

test-memory: $(STAMP)
	$(BIN)/python -m pytest --durations=15 tests/memory

test-compiler: $(STAMP)
	$(BIN)/python -m pytest --durations=15 tests/compiler

test-rules: $(STAMP)
	$(BIN)/python -m pytest $(RULES)

# Two processes at a time here too; then alone what measures time.
test-slow: $(STAMP)
	OMP_WAIT_POLICY=passive $(MAKE) --no-print-directory --jobs 2 --output-sync=target \
		slow-most slow-memory slow-pages slow-compiler
	$(BIN)/python -m pytest -m slow --timeout 900 --durations=15 $(MEASURING) $(MEASURING_COMMANDS)

slow-most: $(STAMP)
	$(BIN)/python -m pytest -m slow --timeout 900 --durations=15 $(MEASURING_COMMANDS:%=--ignore=%) \
		$(BESIDE:%=--ignore=%) $(PAGES:%=--ignore=%) $(MEASURING:%=--ignore=%)

slow-pages: $(STAMP)
	$(BIN)/python -m pytest -m slow --timeout 900 --durations=15 $(PAGES)

slow-memory: $(STAMP)
	$(BIN)/python -m pytest -m slow --timeout 900 --durations=15 tests/memory

slow-compiler: $(STAMP)
	$(BIN)/python -m pytest -m slow --timeout 900 --durations=15 tests/compiler

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

# The interactive part of the report; needs Node. What it builds is kept among the package's assets.
web: $(MODULES)
	cd web && node build.mjs

web-check: $(MODULES)
	cd web && npm run --silent check && npm test --silent && node build.mjs --check

$(MODULES): web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	touch $(MODULES)

clean:
	rm -rf web/node_modules $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
