"""Compute time, idle time and overlap of real traces: ours, an independent oracle's, and HTA's, side by side.

    python benchmarks/trace_exactness.py [--hta-python VENV/bin/python] [--traces FOLDER] [--write docs/trace-exactness.md]

HTA is `traceinsight` on PyPI, installed in an environment of its own; without one ours stand beside the oracle's alone. Our figures must equal the oracle's to the
nanosecond, else the script stops. HTA is run as it comes, and again with its rounding switched off by its own variable.
Its other differences are told by a model: the same figures, computed from the file with HTA's choices of what counts.
Only when the model meets HTA's unrounded figures are its choices given as reasons, and of these only the ones without
which it would not.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- begin table -->", "<!-- end table -->"
EQUAL_US = 1.0
EQUAL_PERCENT = 0.011
"""HTA adds floating-point microseconds and rounds percentages to two digits; less than this is noise."""

HTA = """
import json, logging, sys
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.CRITICAL)
try:
    trace = TraceAnalysis(trace_files={0: sys.argv[1]})
    row = trace.get_temporal_breakdown(visualize=False).iloc[0]
    share = trace.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    found = {
        "compute": float(row["compute_time(us)"]),
        "idle": float(row["idle_time(us)"]),
        "overlap": None if share != share else float(share),
    }
except Exception as error:
    found = {"error": type(error).__name__}
print(json.dumps(found))
"""


class Figures(NamedTuple):
    """What both tools report."""

    compute_us: float | None  # any stream runs a kernel that is not communication
    idle_us: float | None  # from the first to the last device work
    overlap_percent: float | None  # of communication time


class Choices(NamedTuple):
    """What HTA counts otherwise than we do."""

    drops_last_step: bool = True
    drops_orphans: bool = True
    counts_sync_records: bool = True
    counts_operators_with_a_stream: bool = True
    takes_custom_collectives_for_compute: bool = True


REASONS = Choices._make(
    [
        "leaves out what the last step launched",
        "leaves out work whose launch is not in the file",
        "counts synchronisation records as device work",
        "counts host operators that name a stream as device work",
        "counts collectives other than NCCL's as compute",
    ]
)
DEVICE_CATEGORIES = frozenset({"kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset"})
STEP = re.compile(r"^ProfilerStep")


def ours(trace: RankTrace) -> Figures:
    parts, gaps = breakdown(trace), idle(trace)
    if gaps.of == "host":
        return Figures(0.0, None, None)
    share = (
        100 * parts.overlapped_communication_ns / parts.communication_ns if parts.communication_ns else None
    )
    return Figures(parts.parts.compute / 1000, (gaps.attributed_ns + gaps.profiler_ns) / 1000, share)


def check_against_oracle(path: Path, trace: RankTrace, oracle: ModuleType) -> None:
    truth = oracle.measure(oracle.load(path), [], [])
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


def theirs(python: Path, path: Path, *, exact: bool) -> Figures | str:
    """HTA's figures, or its error."""
    environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": str(int(exact)), "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, "-c", HTA, path], capture_output=True, text=True, env=environment, check=False
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return f"exit code {done.returncode}"
    document = json.loads(lines[-1])
    return document.get("error") or Figures(document["compute"], document["idle"], document["overlap"])


def model(events: list[dict[str, Any]], choices: Choices) -> Figures:
    """Our figures, had we made HTA's choices."""
    rows = [event for event in kept(events, choices) if counts(event, choices)]
    origin = min((float(event["ts"]) for event in rows), default=0.0)
    classes: dict[str, list[tuple[float, float]]] = {"compute": [], "communication": [], "other": []}
    for event in rows:
        start = float(event["ts"]) - origin
        classes[class_of(event, choices)].append((start, start + float(event["dur"])))
    compute, communication = merged(classes["compute"]), merged(classes["communication"])
    busy = merged([interval for one in classes.values() for interval in one])
    both = lasts(compute) + lasts(communication) - lasts(merged([*compute, *communication]))
    idle_us = busy[-1][1] - busy[0][0] - lasts(busy) if busy else 0.0
    share = 100 * both / lasts(communication) if communication else None
    return Figures(lasts(compute), idle_us, share)


def kept(events: list[dict[str, Any]], choices: Choices) -> list[dict[str, Any]]:
    """With two steps or more HTA keeps what the host launched before the last of them began."""
    marks = [event for event in events if STEP.match(event["name"]) and not on_stream(event)]
    if len({mark["name"] for mark in marks}) < 2:
        return events
    last = max(float(mark["ts"]) for mark in marks)
    launched: dict[Any, bool] = {}
    for event in events:
        correlation = event["args"].get("correlation")
        if correlation is not None and not on_stream(event):
            launched[correlation] = float(event["ts"]) < last
    keep = {None: not choices.drops_orphans, False: not choices.drops_last_step, True: True}
    return [event for event in events if keep[launched.get(event["args"].get("correlation"))]]


def counts(event: dict[str, Any], choices: Choices) -> bool:
    category = (event.get("cat") or "").lower()
    if category in DEVICE_CATEGORIES:
        return True
    if category == "cuda_sync":
        return choices.counts_sync_records and on_stream(event)
    return choices.counts_operators_with_a_stream and category == "cpu_op" and on_stream(event)


def on_stream(event: dict[str, Any]) -> bool:
    return isinstance(event["args"].get("stream"), int) and event["args"]["stream"] != -1


def class_of(event: dict[str, Any], choices: Choices) -> str:
    name = event["name"].lower()
    custom = "multimem" in name or "cross_device_reduce" in name
    if "nccl" in name or (custom and not choices.takes_custom_collectives_for_compute):
        return "communication"
    is_other = (event.get("cat") or "").lower() == "cuda_sync" or name.startswith(("memcpy", "memset"))
    return "other" if is_other else "compute"


def merged(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def lasts(intervals: list[tuple[float, float]]) -> float:
    return sum(end - start for start, end in intervals)


def agree(a: float | None, b: float | None, limit: float) -> bool:
    return abs((a or 0.0) - (b or 0.0)) < limit


def same(one: Figures, other: Figures | str) -> bool:
    if isinstance(other, str):
        return False
    return (
        agree(one.compute_us, other.compute_us, EQUAL_US)
        and agree(one.idle_us, other.idle_us, EQUAL_US)
        and agree(one.overlap_percent, other.overlap_percent, EQUAL_PERCENT)
    )


def verdict(path: Path, mine: Figures, default: Figures | str, exact: Figures | str) -> str:
    """How HTA's figures compare with ours, and why they differ."""
    if same(mine, default):
        return "equal"
    if isinstance(default, str) and isinstance(exact, str):
        return "fails" if mine.idle_us is not None else "fails without device work"
    events = raw_events(path)
    every = model(events, Choices())
    reasons = ["fails where rounding makes a duration negative"] if isinstance(default, str) else []
    if not isinstance(default, str) and not (not isinstance(exact, str) and same(default, exact)):
        reasons.append("rounds to whole µs")
    if not same(every, exact):
        return "; ".join([*reasons, "not all explained"])
    for field, reason in zip(Choices._fields, REASONS, strict=True):
        if not same(model(events, Choices()._replace(**{field: False})), every):
            reasons.append(reason)
    return "; ".join(reasons)


def raw_events(path: Path) -> list[dict[str, Any]]:
    document = json.loads(gzip.decompress(path.read_bytes()))
    return [
        {**event, "args": event.get("args") or {}, "dur": event.get("dur") or 0}
        for event in document["traceEvents"]
        if event.get("ph") == "X" and event.get("name") is not None
    ]


def cells(mine: float | None, found: Figures | str, name: str, digits: int) -> list[str]:
    if isinstance(found, str):
        return [shown(mine, digits), found]
    other = getattr(found, name)
    if mine is None or other is None or not mine or abs(mine - other) < 10**-digits:
        return [shown(mine, digits), shown(other, digits)]
    return [shown(mine, digits), f"{shown(other, digits)} ({100 * (other / mine - 1):+.1f} %)"]


def shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}".replace(",", " ")


def row(path: Path, python: Path | None, oracle: ModuleType) -> str:
    trace = read_trace(path, cache=None).ranks[0]
    check_against_oracle(path, trace, oracle)
    mine = ours(trace)
    if python is None:
        figures = (shown(mine.compute_us, 3), shown(mine.idle_us, 3), shown(mine.overlap_percent, 2))
        return f"| {path.name.removesuffix('.json.gz')} | {' | '.join(figures)} |"
    default, exact = (theirs(python, path, exact=exact) for exact in (False, True))
    fields = [
        path.name.removesuffix(".json.gz"),
        *cells(mine.compute_us, default, "compute_us", 3),
        *cells(mine.idle_us, default, "idle_us", 3),
        shown(mine.overlap_percent, 2),
        "–" if isinstance(default, str) else shown(default.overlap_percent, 2),
        verdict(path, mine, default, exact),
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
    parser.add_argument("--hta-python", type=Path, help="of an environment with traceinsight")
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("PYROMETER_TRACES", "../shared/traces"))
    )
    parser.add_argument("--write", type=Path, help="document whose table is replaced")
    options = parser.parse_args()
    paths = sorted(options.traces.resolve().glob("*.json.gz"))
    if not paths:
        sys.exit(f"{options.traces}: no traces; pass --traces FOLDER")
    if options.write and not options.hta_python:
        sys.exit("--write: the table holds HTA's figures; pass --hta-python")
    oracle = load_oracle()
    lines = ["| trace | compute, µs | idle, µs | overlap, % |", "|---|--:|--:|--:|"]
    if options.hta_python:
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
