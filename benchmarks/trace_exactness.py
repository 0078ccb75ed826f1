"""Compute time, idle time and overlap of real traces: ours, an independent oracle's, and HTA's, side by side.

    python benchmarks/trace_exactness.py --hta-python VENV/bin/python [--traces FOLDER] [--write docs/trace-exactness.md]

HTA is `traceinsight` on PyPI, installed in an environment of its own. Our figures must equal the oracle's to the
nanosecond, else the script stops. Where HTA's differ, it is run again with its last step kept, with its rounding
switched off, and with both; the first setting that gives our figure is the reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.kinds import Kind
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- begin table -->", "<!-- end table -->"
EQUAL_US = 1.0
"""HTA adds floating-point microseconds; less than this is noise."""

HTA = """
import json, logging, sys
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.CRITICAL)
found = {}
for last in (False, True):
    try:
        trace = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=last)
        row = trace.get_temporal_breakdown(visualize=False).iloc[0]
        share = trace.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
        found[str(last)] = {
            "compute": float(row["compute_time(us)"]),
            "idle": float(row["idle_time(us)"]),
            "overlap": None if share != share else float(share),
        }
    except Exception as error:
        found[str(last)] = {"error": type(error).__name__}
print(json.dumps(found))
"""


class Figures(NamedTuple):
    """What both tools report."""

    compute_us: float | None  # any stream runs a kernel that is not communication
    idle_us: float | None  # from the first to the last device work
    overlap_percent: float | None  # of communication time


class Setting(NamedTuple):
    """How HTA is run."""

    last_step: bool
    exact: bool
    reason: str


SETTINGS = (
    Setting(last_step=True, exact=False, reason="leaves out the last step"),
    Setting(last_step=False, exact=True, reason="rounds to whole µs"),
    Setting(last_step=True, exact=True, reason="rounds to whole µs and leaves out the last step"),
)


def ours(trace: RankTrace) -> Figures:
    parts, gaps = breakdown(trace), idle(trace)
    if gaps.of == "host":
        return Figures(0.0, None, None)
    share = (
        100 * parts.overlapped_communication_ns / parts.communication_ns if parts.communication_ns else None
    )
    return Figures(parts.parts.compute / 1000, (gaps.attributed_ns + gaps.profiler_ns) / 1000, share)


def check_against_oracle(path: Path, trace: RankTrace, oracle: ModuleType) -> None:
    truth = oracle.measure(oracle.load(path), [])
    parts, gaps = breakdown(trace), idle(trace)
    pairs = {
        "compute": (parts.parts.compute, truth.windows[-1]["compute"]),
        "communication": (parts.communication_ns, truth.communication),
        "overlap": (parts.overlapped_communication_ns, truth.overlapped),
    }
    if gaps.of == "device":
        pairs["idle"] = (gaps.attributed_ns + gaps.profiler_ns, truth.inner_idle)
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if wrong:
        sys.exit(f"{path.name}: ours and the oracle's differ: {wrong}")


def theirs(python: Path, path: Path) -> dict[tuple[bool, bool], Figures | str]:
    """HTA's figures, or its error, by (last step kept, not rounded)."""
    found: dict[tuple[bool, bool], Figures | str] = {}
    for exact in (False, True):
        environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": str(int(exact)), "PYTHONWARNINGS": "ignore"}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            [python, "-c", HTA, path], capture_output=True, text=True, env=environment, check=False
        )
        lines = done.stdout.strip().splitlines()
        told = json.loads(lines[-1]) if done.returncode == 0 and lines else {}
        for last in (False, True):
            one = told.get(str(last), {"error": f"exit code {done.returncode}"})
            found[last, exact] = one.get("error") or Figures(one["compute"], one["idle"], one["overlap"])
    return found


def agree(a: float | None, b: float | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or abs(a - b) < EQUAL_US)


def same(mine: Figures, other: Figures | str) -> bool:
    if isinstance(other, str):
        return False
    near = agree(mine.overlap_percent or 0.0, other.overlap_percent or 0.0)
    return agree(mine.compute_us, other.compute_us) and agree(mine.idle_us, other.idle_us) and near


def reason(trace: RankTrace, mine: Figures, found: dict[tuple[bool, bool], Figures | str]) -> str:
    default = found[False, False]
    if same(mine, default):
        return "equal"
    if mine.idle_us is None:
        return "no device work: the breakdown fails"
    for setting in SETTINGS:
        if same(mine, found[setting.last_step, setting.exact]):
            failed = "fails, because it " if isinstance(default, str) else ""
            return failed + setting.reason
    causes = [
        setting.reason for setting in SETTINGS[:2] if found[setting.last_step, setting.exact] != default
    ]
    if trace.of_kind(Kind.SYNC.value)["stream"].is_not_null().any():
        causes.append("counts synchronisation records as device work")
    return "; ".join(causes) or "not explained"


def cells(mine: float | None, found: Figures | str, name: str, digits: int) -> list[str]:
    if isinstance(found, str):
        return [shown(mine, digits), found]
    other = getattr(found, name)
    if mine is None or other is None or not mine or abs(mine - other) < 10**-digits:
        return [shown(mine, digits), shown(other, digits)]
    return [shown(mine, digits), f"{shown(other, digits)} ({100 * (other / mine - 1):+.1f} %)"]


def shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}".replace(",", " ")


def row(path: Path, python: Path, oracle: ModuleType) -> str:
    trace = read_trace(path).ranks[0]
    check_against_oracle(path, trace, oracle)
    mine, found = ours(trace), theirs(python, path)
    default = found[False, False]
    fields = [
        path.name.removesuffix(".json.gz"),
        *cells(mine.compute_us, default, "compute_us", 3),
        *cells(mine.idle_us, default, "idle_us", 3),
        shown(mine.overlap_percent, 2),
        "–" if isinstance(default, str) else shown(default.overlap_percent, 2),
        reason(trace, mine, found),
    ]
    return f"| {' | '.join(fields)} |"


def load_oracle() -> ModuleType:
    path = ROOT / "tests" / "trace" / "oracle.py"
    spec = importlib.util.spec_from_file_location("trace_oracle", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path}: not found; run this from a checkout")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--hta-python", type=Path, required=True, help="of an environment with traceinsight")
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("PYROMETER_TRACES", "../shared/traces"))
    )
    parser.add_argument("--write", type=Path, help="document whose table is replaced")
    options = parser.parse_args()
    paths = sorted(options.traces.glob("*.json.gz"))
    if not paths:
        sys.exit(f"{options.traces}: no traces; pass --traces FOLDER")
    oracle = load_oracle()
    lines = [
        "| trace | compute, µs | HTA | idle, µs | HTA | overlap, % | HTA | HTA compared with us |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for path in paths:
        lines.append(row(path, options.hta_python, oracle))
        print(lines[-1], file=sys.stderr)
    table = "\n".join(lines)
    if options.write is None:
        print(table)
        return
    text = options.write.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    options.write.write_text(f"{head}{BEGIN}\n{table}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
