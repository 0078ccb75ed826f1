"""Does the score of an audit order programs, and is it the same each time? Over `benchmarks/pairs`.

    python benchmarks/audit_order.py [--letters n-z] [--only e2_state_by_step] [--runs 1] [--budget 5s] [--save scores.json]

Each program of a pair is audited as a user would, in a process of its own with one thread. A pair is ordered right where the slow
program has the lower score in the first run; with `--runs 4` the spread of a program is the largest score less the smallest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAIRS = Path(__file__).parent / "pairs"
MOST_S = 600
AUDIT = "from pyrometer.cli.main import run; run()"


def main() -> None:
    """Audit both programs of every pair that is asked for, and print a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--letters", default="a-z")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--budget", default="5s")
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    scores: dict[str, dict[str, list[float]]] = {}
    truth = tomllib.loads((PAIRS / "truth.toml").read_text())
    print(f"{'pair':28} {'gain':>6} {'slow':>6} {'fast':>6}  spread")
    for name in names(truth, asked.letters, asked.only):
        scores[name] = {
            side: [audited(target_of(name, side), asked.budget) for _ in range(asked.runs)]
            for side in ("slow", "fast")
        }
        slow, fast = scores[name]["slow"], scores[name]["fast"]
        mark = "" if slow[0] < fast[0] else "  wrong"
        widest = max(max(runs) - min(runs) for runs in (slow, fast))
        print(
            f"{name:28} {truth[name]['gain']:6.2f} {slow[0]:6.1f} {fast[0]:6.1f}  {widest:6.1f}{mark}",
            flush=True,
        )
    if asked.save:
        asked.save.write_text(json.dumps(scores, indent=1))
    print(summary(scores))


def summary(scores: dict[str, dict[str, list[float]]]) -> str:
    """How many pairs are ordered right, and how far apart the scores of one program lie."""
    right = sum(pair["slow"][0] < pair["fast"][0] for pair in scores.values())
    spreads = [max(runs) - min(runs) for pair in scores.values() for runs in pair.values()]
    near = sum(spread <= 4 for spread in spreads)  # within ± 2
    return (
        f"ordered right: {right} of {len(scores)}; within ± 2 over the runs: {near} of {len(spreads)} programs, "
        f"largest spread {max(spreads, default=0):.1f}"
    )


def names(truth: dict[str, Any], letters: str, only: list[str]) -> Iterator[str]:
    """Pairs of these letters, in the order of the file."""
    first, _, last = letters.partition("-")
    for name, planted in truth.items():
        is_pair = "gain" in planted and not name.startswith("clean")
        if is_pair and first <= name[0] <= (last or first) and (not only or name in only):
            yield name


def target_of(name: str, side: str) -> str:
    """A target within the file of a pair, or its script."""
    script = PAIRS / f"{name}_{side}.py"
    return script.name if script.exists() else f"{name}.py:{side}"


def audited(target: str, budget: str) -> float:
    """The score of one run."""
    command = [sys.executable, "-c", AUDIT, "audit", target, "--json", "--no-store", "--budget", budget]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=PAIRS, env=environ, capture_output=True, text=True, check=False, timeout=MOST_S
    )
    start = re.search(r"^\{", done.stdout, re.MULTILINE)  # what a script prints comes before the document
    if start is None:
        raise SystemExit(f"{target}: {done.stderr.strip()}")
    score: float | None = json.loads(done.stdout[start.start() :])["diagnosis"]["audit"]["score"]
    return 100.0 if score is None else score


if __name__ == "__main__":
    main()
