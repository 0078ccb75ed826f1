"""From a trace file to answers: ours beside HTA (`traceinsight` on PyPI), each in a fresh process, nothing cached.

    python benchmarks/trace_analyse.py --hta-python VENV/bin/python [--traces FOLDER] [--rounds 3]
    python benchmarks/trace_analyse.py --command [--large]

Both load the file and then do the same four analyses: step (temporal) breakdown, kernels, idle time, launches. Times are
without imports, and memory is the peak of the whole process. The two are not equal: ours keeps every event, and its
parts sum to the span to the nanosecond; see docs/trace-exactness.md. `report` is everything that `pyrometer trace` prints.

`--command` holds the whole of `pyrometer trace FILE`, imports and start of the interpreter included, against `json.loads`
of the same unpacked file in the same round; `--large` adds that file ten times over, each copy at later times.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trace_load import LARGE_COPIES, shifted

FILES = ("v100_ddp_5steps", "h100_qwen_orphans")

PRELUDE = """
import json, sys, time
path = sys.argv[1]
def finish(took):
    with open('/proc/self/status') as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith('VmHWM')) * 1024
    print(json.dumps([took, peak]))
"""
OURS = """
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.analysis.registry import analyses, analyze
analyses()
start = time.perf_counter()
trace = read_trace(path, cache=None)
for name in ("breakdown", "kernels", "idle", "launches"):
    analyze(trace, name)
finish(time.perf_counter() - start)
"""
REPORT = """
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
start = time.perf_counter()
report_rank(read_trace(path, cache=None).ranks[0])
finish(time.perf_counter() - start)
"""
HTA = """
import logging
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.CRITICAL)
start = time.perf_counter()
trace = TraceAnalysis(trace_files={0: path})
failed = []
for run in (
    lambda: trace.get_temporal_breakdown(visualize=False),
    lambda: trace.get_gpu_kernel_breakdown(visualize=False),
    lambda: trace.get_idle_time_breakdown(visualize=False),
    lambda: trace.get_cuda_kernel_launch_stats(visualize=False),
):
    try:
        run()
    except Exception as error:
        failed.append(f"{type(error).__name__}: {error}")
took = time.perf_counter() - start
print(failed, file=sys.stderr)
finish(took)
"""


def measured(python: str, code: str, path: Path) -> tuple[float, int, str]:
    """Seconds, peak bytes, and what was said on the way."""
    done = subprocess.run(
        [python, "-c", PRELUDE + code, str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{path.name}: {done.stderr.strip()[-500:]}")
    took, peak = json.loads(done.stdout.strip().splitlines()[-1])
    return took, peak, done.stderr.strip()


LOADS = """
import json, os, sys, time
text = open(sys.argv[1], 'rb').read()
busy = time.process_time()
held = json.loads(text)
print(time.process_time() - busy, flush=True)
os._exit(0)
"""


ENVIRONMENT = {**os.environ, "PYROMETER_CACHE": "off"}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once


def whole_command(path: Path) -> tuple[float, float, int]:
    """CPU seconds, seconds and peak bytes of `pyrometer trace FILE`, with nothing cached."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrometer", "trace", str(path)],
        stdout=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{path.name}: pyrometer trace ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss * 1024


def compare_commands(source: Path, rounds: int, *, large: bool) -> None:
    """One row per size: medians, and ratios of each round's pair, so that a busy moment hits both."""
    text = gzip.decompress(source.read_bytes()).decode()
    print(
        f"{'MB':>6}{'json.loads CPU':>16}{'command CPU':>13}{'ratio (range)':>22}{'wall':>8}{'peak MB':>9}{'÷ raw':>7}"
    )
    for copies in (1, LARGE_COPIES) if large else (1,):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            with path.open("w") as file:
                file.writelines(shifted(text, copies))
            rows = []
            whole_command(path)
            for _ in range(rounds):
                said = subprocess.check_output([sys.executable, "-c", LOADS, str(path)], text=True)
                rows.append((float(said), *whole_command(path)))
            raw = path.stat().st_size
        loads, busy, wall, peak = (statistics.median(column) for column in zip(*rows, strict=True))
        ratios = [row[1] / row[0] for row in rows]
        middle = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        print(
            f"{raw / 1e6:6.0f}{loads:15.2f}s{busy:12.2f}s{middle:>22}{wall:7.1f}s{peak / 1e6:9.0f}{peak / raw:7.2f}"
        )


def main() -> None:
    """Print one table per file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("PYROMETER_TRACES", "../shared/traces"))
    )
    parser.add_argument("--hta-python", help="interpreter of an environment with traceinsight")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--command", action="store_true", help="the whole command beside json.loads, alone")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.command:
        source = (arguments.traces / f"{FILES[0]}.json.gz").resolve()
        compare_commands(source, arguments.rounds, large=arguments.large)
        return
    contenders = {
        "pyrometer, four analyses": (sys.executable, OURS),
        "pyrometer, whole report": (sys.executable, REPORT),
    }
    if arguments.hta_python:
        contenders["HTA, four analyses"] = (arguments.hta_python, HTA)
    for name in FILES:
        path = (arguments.traces / f"{name}.json.gz").resolve()
        times: dict[str, list[float]] = {contender: [] for contender in contenders}
        peaks: dict[str, int] = {}
        for _ in range(arguments.rounds):  # interleaved, so that a busy moment hits all of them
            for contender, (python, code) in contenders.items():
                took, peaks[contender], said = measured(python, code, path)
                times[contender].append(took)
                if contender.startswith("HTA") and said not in {"", "[]"}:
                    print(f"  HTA said: {said.splitlines()[-1][:200]}")
        base = statistics.median(times["pyrometer, four analyses"])
        print(f"\n{name}\n{'':28}{'median':>9}{'lowest':>9}{'highest':>9}{'ratio':>8}{'peak':>10}")
        for contender, seconds in times.items():
            middle = statistics.median(seconds)
            print(
                f"{contender:28}{middle:8.2f}s{min(seconds):8.2f}s{max(seconds):8.2f}s{middle / base:7.1f}×"
                f"{peaks[contender] / 1e6:7.0f} MB"
            )


if __name__ == "__main__":
    main()
