"""Predicted against measured gain of the top finding: five programs with one classic bottleneck each, and their fixes.

    python benchmarks/prediction.py [--only tiny_ops] [--rounds 3]

Each program of `examples/bottlenecks` is checked as a user would check it. Its top finding must be the fault that the
program has, and the gain that the finding predicts is put beside the gain of the fixed variant, compared in pairs.
The rank correlation (Spearman) is over all programs and rounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import torch
from scipy import stats

import pyrometer as pm
from pyrometer.checkup.options import CheckOptions
from pyrometer.checkup.workload import check_workload
from pyrometer.quantity import significant
from pyrometer.rules.finding import Finding
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target
from pyrometer.workload.workload import Workload

FOLDER = Path(__file__).parents[1] / "examples" / "bottlenecks"
EXPECTED = {
    "inefficient_op": ("PYR515", "PYR516"),
    "item_each_step": ("PYR101",),
    "memory_churn": ("PYR215", "PYR511"),
    "slow_loader": ("PYR301",),
    "tiny_ops": ("PYR109",),
}
BUDGET_S = 6.0


class Row(NamedTuple):
    """One program in one round."""

    name: str
    top: Finding | None
    others: list[str]
    measured: float
    low: float
    high: float

    @property
    def predicted(self) -> float | None:
        """Middle of the predicted ratio, new over old time."""
        gain = self.top.predicted_gain if self.top is not None else None
        if gain is None or gain.ratio_low is None:
            return None
        return (gain.ratio_low + (gain.ratio_high if gain.ratio_high is not None else 1.0)) / 2

    @property
    def right(self) -> bool:
        """Whether the top finding is the fault that the program has."""
        return self.top is not None and self.top.code in EXPECTED[self.name]


def variant(name: str, factory: str) -> Workload:
    """One variant of an example."""
    return load_workload(parse_target(f"{FOLDER / name}.py:{factory}"))


def look(name: str) -> Row:
    """Check a program, and compare it with its fix."""
    options = CheckOptions(budget_s=BUDGET_S, entries=(FOLDER / f"{name}.py",))
    found = check_workload(variant(name, "workload"), name, options).findings
    verdict = pm.compare(variant(name, "workload"), variant(name, "fixed"), budget_s=BUDGET_S)
    serious = [one for one in found if one.severity != "info"]
    low = verdict.ci_low if verdict.ci_low is not None else verdict.ratio
    high = verdict.ci_high if verdict.ci_high is not None else verdict.ratio
    top = found[0] if found else None
    return Row(name, top, [one.code for one in serious if one is not top], verdict.ratio, low, high)


def said(row: Row) -> str:
    """One line of the table."""
    gain = row.top.predicted_gain if row.top is not None else None
    expected = "–"
    if gain is not None and gain.ratio_low is not None:
        high = gain.ratio_high if gain.ratio_high is not None else 1.0
        expected = f"{significant(gain.ratio_low)}–{significant(high)} ({gain.method})"
    code = row.top.code if row.top is not None else "none"
    measured = f"{significant(row.measured)} ({significant(row.low)}–{significant(row.high)})"
    mark = "right" if row.right else "WRONG"
    return f"| {row.name} | {code} | {mark} | {' '.join(row.others) or '–'} | {expected} | {measured} |"


def main() -> None:
    """Print the table and the rank correlation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=sorted(EXPECTED))
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)  # so that steps are alike on any machine
    print(
        "| program | top finding | is it the fault? | other serious ones | predicted ratio | measured ratio |"
    )
    print("|:---|:---|:---|:---|:---|:---|")
    rows = []
    for _ in range(asked.rounds):
        for name in [asked.only] if asked.only else sorted(EXPECTED):
            rows.append(look(name))
            print(said(rows[-1]), flush=True)
    known = [row for row in rows if row.predicted is not None]
    if len(known) > 2:
        found = stats.spearmanr([row.predicted for row in known], [row.measured for row in known])
        print(f"\nrank correlation of predicted and measured: {found.statistic:.2f} over {len(known)} pairs")
    print(f"{sum(row.right for row in rows)} of {len(rows)} top findings are the fault")


if __name__ == "__main__":
    main()
