# Every target creates .venv when it is missing and installs once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SITE   := $(VENV)/.site
TARGET ?= examples/perception.py:workload
MODULES := web/node_modules/.installed

# The tests of a file share a process. Three keep two cores busy where tests wait for servers, browsers and children half of the time.
# Threads sleep while they wait, or one would spin on another's core.
# What is compiled is kept: the processes that tests start read it, as do those of the next run.
PYTEST  := OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
FILES   := --dist loadfile --no-loadscope-reorder
BESIDE  := -n 2 $(FILES)
WAITING := -n 3 $(FILES)
ALONE   := -n 0

# What fails is run once more, alone. A test that passes only then has been named as failed all the same, and is to be mended.
AGAIN = $(1) $(ALONE) --maxfail 1 --last-failed --last-failed-no-failures none
ONCE_MORE = $(1) || { test $$? -eq 1 && $(AGAIN); }
# What measures may meet other programs on the machine twice.
TWICE_MORE = $(1) || { test $$? -eq 1 && { $(AGAIN) || $(AGAIN); }; }

BASE   ?= $(shell git describe --tags --abbrev=0 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)

.PHONY: install native demo demo-canary demo-monitor guard test test-slow test-exhaustive recordings lint format docs docs-site web web-check clean

$(STAMP): pyproject.toml constraints.txt hatch_build.py $(wildcard native/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $(STAMP)

install: $(STAMP)

# An install compiles this, too, where a compiler is; all of it is also done in Python.
native:
	$(BIN)/python native/build.py

demo: $(STAMP)
	$(BIN)/pyrometer check $(TARGET)

# A worse version of a served model is taken back before it answers a quarter of the requests, and why.
demo-canary: $(STAMP)
	$(BIN)/python examples/canary.py

# Three robots under watch, and three faults: each is seen, explained and answered.
demo-monitor: $(STAMP)
	$(BIN)/python examples/robot_fleet.py

# What walks through all objects of a process, again and again: there are a third where other tests are not collected. Who holds a
# tensor is asked of each of them, against a clock.
HEAP := tests/memory tests/guard tests/bench tests/test_garbage.py src/pyrometer/memory
HOLDERS := tests/memory/holders

test: $(STAMP)
	$(call ONCE_MORE,$(PYTEST) $(WAITING) $(HEAP:%=--ignore=%))
	$(call ONCE_MORE,$(PYTEST) $(BESIDE) $(HEAP) --ignore=$(HOLDERS))
	$(call ONCE_MORE,$(PYTEST) $(BESIDE) $(HOLDERS))

SLOW := "slow and not exhaustive and not measuring"

# What measures has the machine to itself.
test-slow: $(STAMP)
	$(call ONCE_MORE,$(PYTEST) $(WAITING) --timeout 900 -m $(SLOW) $(HEAP:%=--ignore=%))
	$(call ONCE_MORE,$(PYTEST) $(BESIDE) --timeout 900 -m $(SLOW) $(HEAP))
	$(call TWICE_MORE,$(PYTEST) $(ALONE) --timeout 900 -m "measuring and not exhaustive")

# Whole matrices, simulations of statistics, and hundreds of new examples of every property.
test-exhaustive: $(STAMP)
	HYPOTHESIS_PROFILE=exhaustive $(PYTEST) $(BESIDE) --timeout 3600 -m "exhaustive or searching" $(ROOM)

# What the checks of real programs are tested on; needed where an example changes, or what evidence means.
recordings: $(STAMP)
	$(BIN)/python tests/support/record_programs.py

# Whether a change makes Pyrometer itself slower: benchmarks/perf_*.py against the last tag, or the commit where main was left.
guard: $(STAMP)
	$(BIN)/pyrometer guard check --base $(BASE) --undecided warn

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

# The documentation in a browser: site/index.html, English and Chinese. Fails at a broken link, or a page that no menu leads to.
docs-site: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(SITE): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	touch $(SITE)

# The interactive part of the report; needs Node. What it builds is kept among the package's assets.
web: $(MODULES)
	cd web && node build.mjs

web-check: $(MODULES)
	cd web && npm run --silent check && npm test --silent && node build.mjs --check

$(MODULES): web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	touch $(MODULES)

clean:
	rm -rf web/node_modules $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
