"""Does the score of an audit order programs, and is it the same each time? Over `benchmarks/pairs`.

    python benchmarks/audit_order.py [--letters n-z] [--only e2_state_by_step] [--runs 1] [--save scores.json]
    python benchmarks/audit_order.py --record EVIDENCE     # keep what was observed of each program, in this folder
    python benchmarks/audit_order.py --recorded EVIDENCE   # score that again: in seconds, as often as rules change

Each program of a pair is observed as a user would, in a process of its own with one thread; slow ones are kept under the names that
`prediction.py` gives them. A pair is ordered right where the slow program has the lower score in the first run; with `--runs 4` the
spread of a program is the largest score less the smallest.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prediction import PAIRS, PROGRAMS, check
from pyrometer.record import from_json
from pyrometer.report.documents import CheckDocument
from pyrometer.rules.explain import explain


def main() -> None:
    """Audit both programs of every pair that is asked for, and print a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--letters", default="a-z")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=PAIRS)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--record", type=Path, help="keep what was observed in this folder")
    parser.add_argument("--recorded", type=Path, help="score what --record kept; nothing is run")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    records = asked.recorded or asked.record
    scores: dict[str, dict[str, list[float]]] = {}
    truth = tomllib.loads((folder / "truth.toml").read_text())
    print(f"{'pair':28} {'gain':>6} {'slow':>6} {'fast':>6}  spread")
    for name in names(truth, asked.letters, asked.only):
        scores[name] = {}
        try:
            for side in ("slow", "fast"):
                kept = [record_of(records, folder, name, side, run) for run in range(asked.runs)]
                target = target_of(folder, name, side)
                scores[name][side] = [scored(target, one, recorded=bool(asked.recorded)) for one in kept]
        except (OSError, RuntimeError) as error:
            print(f"{name:28} FAILED {error}", flush=True)
            del scores[name]
            continue
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


def target_of(folder: Path, name: str, side: str) -> str:
    """A target within the file of a pair, or its script."""
    script = folder / f"{name}_{side}.py"
    return str(script) if script.exists() else f"{folder / name}.py:{side}"


def record_of(records: Path | None, folder: Path, name: str, side: str, run: int) -> Path | None:
    """Where what was observed of one run is kept."""
    suffix = ("_fast" if side == "fast" else "") + (f"_{run + 1}" if run else "")
    return None if records is None else records / folder.name / f"{name}{suffix}.json.gz"


def scored(target: str, kept: Path | None, *, recorded: bool) -> float:
    """The score of one run, which is observed and kept, unless it is `recorded`."""
    path, folder = Path(target.partition(":")[0]), str(Path(target).parent)
    if recorded and kept is not None:
        text = gzip.decompress(kept.read_bytes()).decode().replace(PROGRAMS, folder)
    else:
        text = check(target)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(gzip.compress(text.replace(folder, PROGRAMS).encode()))
    audit = explain(from_json(CheckDocument, text).evidence, (path,), with_audit=True).audit
    return 100.0 if audit is None or audit.score is None else audit.score


if __name__ == "__main__":
    main()
