"""Predicted against measured gain of the top finding: programs with one fault each, and their fixes.

    python benchmarks/prediction.py [--only tiny_ops] [--rounds 3]

The rules were made with the five classic bottlenecks of `examples/bottlenecks` in view; those of `benchmarks/faults` were
written afterwards, to see whether the predictions hold elsewhere, and are counted apart. Each program is checked as a user
would check it. Its top finding must be the fault that the program has, and the gain that the finding predicts is put beside
the gain of the fixed variant, compared in pairs: how often does the measured ratio lie within the predicted range, and how
wide are the ranges? The rank correlation (Spearman) of the ranges' middles is over all programs and rounds of a set.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from scipy import stats

import pyrometer as pm
from pyrometer.evidence.observe import observe
from pyrometer.evidence.options import ObserveOptions
from pyrometer.quantity import format_percent, significant
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target
from pyrometer.workload.workload import Workload

ROOT = Path(__file__).parents[1]
KNOWN = {
    "inefficient_op": ("PYR515", "PYR516"),
    "item_each_step": ("PYR101",),
    "memory_churn": ("PYR215", "PYR511"),
    "slow_loader": ("PYR301",),
    "tiny_ops": ("PYR109",),
}
FRESH = {
    "average_by_tensor": ("PYR111",),
    "cast_table": ("PYR213",),
    "cloned_input": ("PYR213",),
    "collects_garbage": ("PYR206", "PYR118"),
    "heavy_collate": ("PYR301", "PYR307"),
    "item_by_index": ("PYR101",),
    "loop_over_batch": ("PYR109",),
    "momentum_by_tensor": ("PYR512",),
    "norms_row_by_row": ("PYR109",),
    "one_hot_lookup": ("PYR515",),
    "parsed_lines": ("PYR301",),
    "tensor_condition": ("PYR104",),
    "unfolded_norms": ("PYR508",),
    "unfused_adamw": ("PYR512",),
    "written_out_attention": ("PYR510", "PYR502"),
}
SETS = {
    "examples/bottlenecks": KNOWN,
    "benchmarks/faults": FRESH,
}
"""Folders with the rules that name the fault of each program."""

BUDGET_S = 6.0


class Row(NamedTuple):
    """One program in one round."""

    name: str
    top: Finding | None
    right: bool
    """Whether the top finding is the fault that the program has."""
    others: list[str]
    measured: float
    low: float
    high: float

    @property
    def predicted(self) -> tuple[float, float] | None:
        """The predicted range of the ratio, new over old time."""
        gain = self.top.predicted_gain if self.top is not None else None
        if gain is None or gain.ratio_low is None:
            return None
        return gain.ratio_low, gain.ratio_high if gain.ratio_high is not None else 1.0

    @property
    def within(self) -> bool:
        """Whether the measured ratio lies within the predicted range."""
        return self.predicted is not None and self.predicted[0] <= self.measured <= self.predicted[1]


def look(folder: str, name: str) -> Row:
    """Check a program, and compare it with its fix."""
    file = ROOT / folder / f"{name}.py"

    def variant(factory: str) -> Workload:
        return load_workload(parse_target(f"{file}:{factory}"))

    evidence = observe(variant("workload"), name, ObserveOptions(budget_s=BUDGET_S)).evidence
    findings = explain(evidence, (file,)).findings
    verdict = pm.compare(variant("workload"), variant("fixed"), budget_s=BUDGET_S)
    serious = [finding for finding in findings if finding.severity != "info"]
    low = verdict.ci_low if verdict.ci_low is not None else verdict.ratio
    high = verdict.ci_high if verdict.ci_high is not None else verdict.ratio
    top = findings[0] if findings else None
    right = top is not None and top.code in SETS[folder][name]
    return Row(
        name,
        top,
        right,
        [finding.code for finding in serious if finding is not top],
        verdict.ratio,
        low,
        high,
    )


def said(row: Row) -> str:
    """One line of the table."""
    expected, within = "–", "–"
    if row.predicted is not None:
        expected = "–".join(map(significant, row.predicted))
        within = "within" if row.within else "OUTSIDE"
    code = row.top.code if row.top is not None else "none"
    measured = f"{significant(row.measured)} ({significant(row.low)}–{significant(row.high)})"
    mark = "right" if row.right else "WRONG"
    return (
        f"| {row.name} | {code} | {mark} | {' '.join(row.others) or '–'} | {expected} | {measured} | {within} | "
        f"{os.getloadavg()[0]:.1f} |"
    )


def summed_up(rows: Sequence[Row]) -> str:
    """How good the predictions of a set are."""
    known = [(row, row.predicted) for row in rows if row.predicted is not None]
    width = sum(high - low for _, (low, high) in known) / max(len(known), 1)
    lines = [
        f"{sum(row.right for row in rows)} of {len(rows)} top findings are the fault",
        f"{sum(row.within for row, _ in known)} of {len(known)} measured ratios lie within the predicted range",
        f"a range spans {format_percent(width)} of the step on average",
    ]
    if len(known) > 2:
        middles = [sum(ends) / 2 for _, ends in known]
        found = stats.spearmanr(middles, [row.measured for row, _ in known])
        lines.append(f"rank correlation of predicted and measured: {found.statistic:.2f}")
    return "\n".join(lines)


def main() -> None:
    """Print a table for each set, and how good its predictions are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=sorted({**KNOWN, **FRESH}))
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)  # so that steps are alike on any machine
    for folder, programs in SETS.items():
        names = [name for name in programs if asked.only in (None, name)] * asked.rounds
        if not names:
            continue
        print(f"\n{folder}\n")
        print(
            "| program | top finding | is it the fault? | other serious ones | predicted | measured | is it? | load |"
        )
        print("|:---|:---|:---|:---|:---|:---|:---|---:|")
        rows = []
        for name in names:
            rows.append(look(folder, name))
            print(said(rows[-1]), flush=True)
        print(f"\n{summed_up(rows)}")


if __name__ == "__main__":
    main()
