"""What a verb may load before it answers: who only looks something up waits for no library that computes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pyrometer.store.store import Store

OURS = {"pyrometer.evidence.evidence", "pyrometer.rules.rule", "pyrometer.trace.analysis"}
HEAVY = {"torch", "scipy", "numpy", "polars", "psutil", "sqlalchemy", "alembic", "jinja2", "rich", *OURS}

MAY_LOAD = {
    "--help": set(),
    "--version": set(),
    "bench --help": set(),
    "check --help": set(),
    "lint --help": set(),
    "runs --help": set(),
    "lint model.py": {"pyrometer.rules.rule"},
    "rule PYR101 --json": {"pyrometer.rules.rule"},
    "rule": {"rich", "pyrometer.rules.rule"},
    "rule PYR101": {"rich", "pyrometer.rules.rule"},
    "rule item-in-hot-loop": {"rich", "pyrometer.rules.rule"},
    "runs": {"rich", "sqlalchemy"},
    "runs --json": {"sqlalchemy"},
    "show last --json": {"sqlalchemy"},
    "show last": {"rich", "sqlalchemy", "pyrometer.evidence.evidence"},
    "prune --keep 5": {"rich", "sqlalchemy"},
    "trace trace.json": {"rich", "numpy", "polars", *OURS},
    "trace trace.json --json": {"numpy", "polars", *OURS},
}
"""By command line."""

EACH_IN_ITS_OWN = """
import json, os, sys
from pyrometer.cli.main import main

heavy, lines = json.loads(sys.argv[1])
for line in lines:
    if os.fork() == 0:
        code = main(line.split())
        print(json.dumps([line, code, [name for name in heavy if name in sys.modules]]), file=sys.stderr)
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""
"""Processes that have loaded the command line and nothing else, one per verb."""

KERNEL = {"ph": "X", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.0, "dur": 5.0, "cat": "kernel", "args": {"device": 0, "stream": 7}}  # fmt: skip


@pytest.mark.slow
def test_a_verb_loads_no_more_than_it_needs(measured: ModuleType, tmp_path: Path) -> None:
    Store.open(tmp_path / ".pyrometer").save(measured.measured_run())
    (tmp_path / "model.py").write_text("import torch\n")
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [KERNEL]}))
    asked = json.dumps([sorted(HEAVY), list(MAY_LOAD)])
    done = subprocess.run(
        [sys.executable, "-c", EACH_IN_ITS_OWN, asked],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('["')]
    assert [line for line, *_ in told] == list(MAY_LOAD)
    assert not [line for line, code, _ in told if code]
    assert not {line: extra for line, _, loaded in told if (extra := set(loaded) - MAY_LOAD[line])}


def test_one_rule_is_found_without_those_of_other_families() -> None:
    code = "import sys; from pyrometer.rules.registry import find_rule; find_rule({!r}); print(*sys.modules)"
    for which in ("PYR101", "item-in-hot-loop"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(which)], capture_output=True, text=True, check=True
        )
        assert "pyrometer.rules.host.item_in_hot_loop" in done.stdout.split()
        assert "pyrometer.rules.kernels.nchw_convolutions" not in done.stdout.split()
