"""Is the top finding the fault, and does its predicted range hold the measured gain? A table over `benchmarks/pairs`.

    python benchmarks/prediction.py [--letters n-z] [--only e2_state_by_step] [--folder FOLDER] [--save rows.json]
    python benchmarks/prediction.py --record EVIDENCE     # observe each program and keep that in this folder
    python benchmarks/prediction.py --recorded EVIDENCE   # ask the rules of that: in seconds, as often as they change

With `--recorded` only programs are run of which the folder holds nothing, or nothing that this version can read.

Each slow program is checked as a user would check it, in a process of its own with one thread. Its first finding is right
where its place lies within the lines of the planted fault, or, of a finding without a line there, where the judgement in
`judged.toml` says that its code names the fault. The predicted ratio (new over old time) is put beside the measured one,
which `pairs/verify.py` wrote; a program without a right finding counts as one for which no gain was predicted (1.0) in the
rank correlation (Spearman). Clean programs must have nothing loud: no error, and no warning with a predicted gain.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from scipy import stats

from pyrometer.errors import InputError
from pyrometer.record import from_json
from pyrometer.report.documents import CheckDocument
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding

PAIRS = Path(__file__).parent / "pairs"
LOUD_SHARE = 0.05
"""Predicted saving of a warning that calls a clean program slow."""

MOST_S = 600

PROGRAMS = "/programs"
"""Stands in a record for the folder of the programs."""


class Row(msgspec.Struct, kw_only=True):
    """What a check said of one program."""

    name: str
    measured: float | None
    """Fast over slow time; null for clean programs."""
    codes: list[str]
    right: bool
    rank: int | None
    """Of the first finding that is the fault, from 1; null where none is."""
    predicted: tuple[float, float] | None
    """By the first finding that is the fault."""
    loud: list[str]
    top: str
    load: float

    @property
    def within(self) -> bool:
        """Whether the measured ratio lies within the predicted range."""
        return (
            self.predicted is not None
            and self.measured is not None
            and self.predicted[0] <= self.measured <= self.predicted[1]
        )


def check(target: str) -> str:
    """The document of a check."""
    script = [sys.executable, "-m", "pyrometer", "check", target, "--json"]
    command = script if ":" not in target else [*script, "--budget", "5s"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=MOST_S, check=False, cwd="/tmp"
    )
    # A script prints what it prints; the document is the last JSON object.
    start = re.search(r"^\{", run.stdout, re.MULTILINE)
    if start is None:
        raise RuntimeError(f"{target}: exit {run.returncode}: {run.stderr[-300:]}")
    return run.stdout[start.start() :]


def target_of(folder: Path, name: str, *, planted: bool) -> str:
    """What to check of one program: a pair's slow version, or a clean one."""
    file = folder / f"{name}.py"
    if not file.exists():
        return str(folder / f"{name}_slow.py")
    factory = re.search(rf"^def ({'slow' if planted else 'workload'})\(", file.read_text(), re.MULTILINE)
    return f"{file}:{factory[1]}" if factory else str(file)


def findings_of(target: str, kept: Path | None, *, recorded: bool) -> list[Finding]:
    """What a check finds, in order.

    Args:
        target: what to check.
        kept: the record of it; `None` keeps none.
        recorded: do not run the program where a record of it is kept, but ask the rules of that.
    """
    path = Path(target.partition(":")[0])
    known = recorded_of(path, kept) if recorded and kept is not None else None
    if known is not None:
        return explain(known.evidence, (path,)).findings
    text = check(target)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(gzip.compress(text.replace(str(path.parent), PROGRAMS).encode()))
    return from_json(CheckDocument, text).diagnosis.findings


def recorded_of(path: Path, kept: Path) -> CheckDocument | None:
    """The record of a program; None where there is none, or one of another version."""
    if not kept.exists():
        return None
    text = gzip.decompress(kept.read_bytes()).decode().replace(PROGRAMS, str(path.parent))
    try:
        return from_json(CheckDocument, text)
    except InputError as error:
        print(f"{kept.name}: {error}; observed anew", file=sys.stderr)
        return None


def is_fault(finding: Finding, truth: dict[str, Any], judged: Sequence[str]) -> bool:
    """Whether a finding is at the place of the planted fault, or judged to name it."""
    where = finding.where
    if finding.code in judged:
        return True
    if Path(where.file or "").name not in (truth["file"], *truth.get("files", ())):
        return False
    places = [truth["lines"], *truth.get("also", ())]
    return any(first <= (where.line or 0) <= last for first, last in places)


def predicted_by(finding: Finding) -> tuple[float, float] | None:
    """The range of the ratio that a finding predicts."""
    gain = finding.advice.gain
    if gain is None or gain.ratio_low is None:
        return None
    return gain.ratio_low, 1.0 if gain.ratio_high is None else gain.ratio_high


def loud(findings: Sequence[Finding]) -> Iterator[str]:
    """What would alarm the owner of a clean program."""
    for finding in findings:
        gain = predicted_by(finding)
        saving = 1 - sum(gain) / 2 if gain is not None else 0.0
        if finding.severity == "error" or (finding.severity == "warning" and saving >= LOUD_SHARE):
            yield finding.code


def judge(name: str, findings: Sequence[Finding], truth: dict[str, Any] | None, judged: Sequence[str]) -> Row:
    """Hold the findings of one program against what is planted in it; nothing in clean ones."""
    faults = [is_fault(finding, truth, judged) if truth else False for finding in findings]
    rank = faults.index(True) if True in faults else None
    top = findings[0] if findings else None
    return Row(
        name=name,
        measured=1 / truth["gain"] if truth else None,
        codes=[finding.code for finding in findings if finding.severity != "info"],
        right=rank == 0,
        rank=None if rank is None else rank + 1,
        predicted=None if rank is None else predicted_by(findings[rank]),
        loud=list(loud(findings)),
        top=f"{top.code} line {top.where.line}: {top.message}" if top else "none",
        load=os.getloadavg()[0],
    )


def drawn(row: Row) -> str:
    """One line of the table."""
    mark = (
        "clean"
        if row.measured is None
        else "right"
        if row.right
        else f"rank {row.rank}"
        if row.rank
        else "MISSED"
    )
    expected = "–" if row.predicted is None else f"{row.predicted[0]:.2f}–{row.predicted[1]:.2f}"
    measured = "–" if row.measured is None else f"{row.measured:.2f}"
    within = "–" if row.predicted is None else "within" if row.within else "OUTSIDE"
    codes = (
        " ".join(row.codes[:4]) if row.measured is not None else f"loud: {' '.join(row.loud) or 'nothing'}"
    )
    return f"| {row.name} | {mark} | {codes} | {expected} | {measured} | {within} | {row.top[:110]} | {row.load:.1f} |"


def summed_up(rows: Sequence[Row]) -> str:
    """How good findings and predictions are."""
    pairs = [row for row in rows if row.measured is not None]
    clean = [row for row in rows if row.measured is None]
    known = [(row, row.predicted) for row in pairs if row.predicted is not None]
    width = sum(high - low for _, (low, high) in known) / max(len(known), 1)
    lines = [
        (
            f"{sum(row.right for row in pairs)} of {len(pairs)} top findings are the fault; named somewhere "
            f"{sum(row.rank is not None for row in pairs)}"
        ),
        (
            f"{sum(row.within for row, _ in known)} of {len(known)} measured ratios lie within the predicted range, "
            f"of mean width {width:.2f}"
        ),
        f"{sum(bool(row.loud) for row in clean)} of {len(clean)} clean programs have a loud finding",
    ]
    if len(pairs) > 2:
        middles = [sum(row.predicted) / 2 if row.predicted is not None else 1.0 for row in pairs]
        correlation = stats.spearmanr(middles, [row.measured for row in pairs]).statistic
        lines.append(
            f"rank correlation of predicted and measured, missing findings as 1.0: {correlation:.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table row by row, then how good it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--letters", default="a-z", help="programs whose names begin with these; clean ones always"
    )
    parser.add_argument("--only", nargs="*", help="these programs alone")
    parser.add_argument("--folder", type=Path, default=PAIRS)
    parser.add_argument("--save", type=Path, help="write the rows as JSON")
    parser.add_argument("--record", type=Path, help="observe everything and keep it in this folder")
    parser.add_argument(
        "--recorded",
        type=Path,
        help="ask the rules of what is kept in this folder; what is missing is observed and kept",
    )
    asked = parser.parse_args()
    records: Path | None = asked.recorded or asked.record
    folder = asked.folder.resolve()
    truth = tomllib.loads((folder / "truth.toml").read_text())
    judged_file = folder / "judged.toml"
    judged = tomllib.loads(judged_file.read_text()) if judged_file.exists() else {}
    first, last = asked.letters.split("-")
    names = [name for name in truth if first <= name[0] <= last]
    names += sorted(path.stem for path in folder.glob("clean_*.py"))
    rows: list[Row] = []
    print("| program | top finding | codes | predicted | measured | | it says | load |")
    print("|:---|:---|:---|---:|---:|:---|:---|---:|")
    for name in names:
        if asked.only and name not in asked.only:
            continue
        target = target_of(folder, name, planted=name in truth)
        kept = None if records is None else records / folder.name / f"{name}.json.gz"
        try:
            findings = findings_of(target, kept, recorded=asked.recorded is not None)
            rows.append(judge(name, findings, truth.get(name), judged.get(name, {}).get("codes", [])))
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"| {name} | FAILED | {error} |", flush=True)
            continue
        print(drawn(rows[-1]), flush=True)
        if asked.save:
            asked.save.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    print(f"\n{summed_up(rows)}")


if __name__ == "__main__":
    main()
