"""What linting says about large, well-written code, and a sample of it to be judged by a person.

    python benchmarks/lint_review.py --package PATH… [--sample 100] [--seed 0] [--context 4]

Prints per package its lines, the time of linting, and findings per 10,000 lines by rule; then a sample with its source
lines. A stratum is a rule in a package; each gives one finding in turn until the sample is full, so that rare rules are
judged too. The weight of a finding is how many of its stratum it stands for: judged shares are to be weighted by it.
Lines are those of the files that were looked at.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyrometer.rules.lint.result import LintFinding, LintResult
from pyrometer.rules.lint.run import lint_paths
from pyrometer.rules.settings import RuleSettings


class Package(NamedTuple):
    """What linting one package gave, and what it took."""

    folder: Path
    result: LintResult
    wall_s: float
    cpu_s: float


class Drawn(NamedTuple):
    """One finding of the sample."""

    package: Package
    finding: LintFinding
    weight: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--package", nargs="+", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--context", type=int, default=4, help="lines before and after")
    asked = parser.parse_args()
    packages = [linted(folder) for folder in asked.package]
    tell(packages)
    for number, drawn in enumerate(draw(packages, asked.sample, asked.seed), 1):
        show(number, drawn, asked.context)


def linted(folder: Path) -> Package:
    """Lint a package as the command does, without a cache."""
    start, busy = time.perf_counter(), sum(os.times()[:4])
    result = lint_paths([folder], RuleSettings(), os.cpu_count() or 1)
    return Package(folder, result, time.perf_counter() - start, sum(os.times()[:4]) - busy)


def tell(packages: Sequence[Package]) -> None:
    """The table of packages, and how often each rule speaks in each."""
    for folder, result, wall_s, cpu_s in packages:
        per_10_000 = len(result.findings) / max(result.num_lines, 1) * 10_000
        print(
            f"{folder.name:<16}{result.num_lines:>11,} lines {wall_s:8.1f} s {cpu_s:8.1f} s CPU"
            f" {len(result.findings):6} findings {per_10_000:7.2f} per 10,000 lines"
        )
    counts = [
        Counter((finding.code, finding.name) for finding in package.result.findings) for package in packages
    ]
    print(f"\nPer 10,000 lines{'':26}" + "".join(f"{package.folder.name[:10]:>11}" for package in packages))
    for code, name in sorted(set().union(*counts)):
        rates = [
            count[code, name] / max(package.result.num_lines, 1) * 10_000
            for package, count in zip(packages, counts, strict=True)
        ]
        print(
            f"{code} {name:<35}" + "".join(f"{rate or '':>11.2f}" if rate else f"{'':>11}" for rate in rates)
        )


def draw(packages: Sequence[Package], count: int, seed: int) -> list[Drawn]:
    """A sample stratified by rule and package."""
    strata: dict[tuple[str, str], list[tuple[Package, LintFinding]]] = defaultdict(list)
    for package in packages:
        for finding in package.result.findings:
            strata[finding.code, package.folder.name].append((package, finding))
    chance = random.Random(seed)
    shuffled = [chance.sample(stratum, len(stratum)) for _, stratum in sorted(strata.items())]
    taken = shares([len(stratum) for stratum in shuffled], count)
    return [
        Drawn(package, finding, len(stratum) / size)
        for stratum, size in zip(shuffled, taken, strict=True)
        for package, finding in stratum[:size]
    ]


def shares(sizes: Sequence[int], count: int) -> list[int]:
    """How many to take of each stratum: one each in turn, the large ones first, until there are enough."""
    taken = [0] * len(sizes)
    by_size = sorted(range(len(sizes)), key=lambda row: -sizes[row])
    while sum(taken) < min(count, sum(sizes)):
        for row in by_size:
            if taken[row] < sizes[row] and sum(taken) < count:
                taken[row] += 1
    return taken


def show(number: int, drawn: Drawn, context: int) -> None:
    """One finding with the lines around it."""
    finding = drawn.finding
    print(f"\n[{number}] {finding.code} {finding.name}  weight {drawn.weight:.1f}  {finding.place}")
    print(f"    {finding.message}")
    if finding.cell is not None:
        return
    lines = Path(finding.file).read_text(encoding="utf-8").splitlines()
    for row in range(max(1, finding.line - context), min(len(lines), finding.end_line + context) + 1):
        mark = ">" if finding.line <= row <= finding.end_line else " "
        print(f"    {mark} {row:>5} | {lines[row - 1]}")


if __name__ == "__main__":
    main()
