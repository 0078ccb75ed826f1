"""What it costs to load a trace: ours beside bare JSON decoders and beside HTA, each in a fresh process.

    python benchmarks/trace_load.py [--traces FOLDER] [--hta-python VENV/bin/python] [--rounds 3] [--large] [--ranks 64]

Times are without imports; `CPU` is processor time, of all threads, which other load on the machine disturbs less. Ours end with typed columns, the bare decoders' with Python objects, HTA's (`traceinsight` on
PyPI) with its data frame. Peak memory is of the whole process, libraries included; `start` is what it held before.
`--large` adds a file of about 500 MB, a real one repeated at later times. `--ranks N` reads N files of about 50 MB one
after the other and reduces each, to see that time is linear and memory flat.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILES = ("v100_ddp_5steps", "h100_qwen_orphans")
LARGE_COPIES = 10

PRELUDE = """
import gzip, json, os, sys, time
def memory(field):
    for line in open('/proc/self/status'):
        if line.startswith(field):
            return int(line.split()[1]) * 1024
"""

CONTENDERS = {
    "pyrometer": "from pyrometer.trace.reading.read import read_trace\nrun = lambda: read_trace(path, cache=None)",
    "pyrometer, first open": "from pyrometer.trace.reading.read import read_trace\nfrom pathlib import Path\n"
    "run = lambda: read_trace(path, cache=Path(folder))",
    "pyrometer, second open": "from pyrometer.trace.reading.read import read_trace\nfrom pathlib import Path\n"
    "run = lambda: read_trace(path, cache=Path(folder))",
    "gunzip alone": "run = lambda: gzip.open(path).read()",
    "msgspec, untyped": "import msgspec\nrun = lambda: msgspec.json.decode(gzip.open(path).read())",
    "orjson": "import orjson\nrun = lambda: orjson.loads(gzip.open(path).read())",
    "json": "run = lambda: json.loads(gzip.open(path).read())",
}
HTA = {
    "HTA, parser alone": "import logging\nfrom hta.common.trace import parse_trace_file\n"
    "logging.disable(logging.CRITICAL)\nrun = lambda: parse_trace_file(path)",
    "HTA, TraceAnalysis": "import logging\nfrom hta.trace_analysis import TraceAnalysis\n"
    "logging.disable(logging.CRITICAL)\nrun = lambda: TraceAnalysis(trace_files={0: path}, trace_dir='/')",
}
MEASURE = """
path, folder = sys.argv[1:3]
before = memory('VmRSS')
start, busy = time.perf_counter(), time.process_time()
held = run()
took, busy = time.perf_counter() - start, time.process_time() - busy
print(json.dumps([took, memory('VmHWM'), before, busy]))
"""

RANKS = """
from pyrometer.trace.reading.read import read_trace
import polars as pl
run = None
start, rows = time.perf_counter(), []
for path in sys.argv[1:]:
    table = read_trace(path, cache=None).ranks[0].tables['events']
    busy = table.filter(pl.col('kind') == 'kernel')['dur_ns'].sum()
    del table
    rows.append([time.perf_counter() - start, memory('VmRSS'), busy])
print(json.dumps([rows, memory('VmHWM')]))
"""


def in_fresh_process(python: str, code: str, *arguments: str) -> Any:
    """Run code and decode the last line that it prints; None where it fails."""
    done = subprocess.run(
        [python, "-c", PRELUDE + code, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"    failed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def shifted(text: str, copies: int) -> Iterator[str]:
    """The text of a real trace with its events repeated, each time later by the span of the file."""
    begin = text.index("[", text.index('"traceEvents"')) + 1
    end = text.rindex("]", 0, text.rindex('"traceName"') if '"traceName"' in text else len(text))
    events = text[begin:end]
    times = [int(us) for us in re.findall(r'"ts": (\d+)', events)]
    later = sorted(times)[-2] - sorted(times)[1] + 1000
    yield text[:begin]
    for i in range(copies):
        yield "," if i else ""
        yield re.sub(r'"ts": (\d+)', lambda found, by=i * later: f'"ts": {int(found[1]) + by}', events)
    yield text[end:]


def write_repeated(source: Path, target: Path, copies: int, rank: int | None = None) -> Path:
    """A larger file, or the same for another rank."""
    text = gzip.decompress(source.read_bytes()).decode()
    if rank is not None:
        text = re.sub(r'"rank": \d+', f'"rank": {rank}', text, count=1)
    with gzip.open(target, "wt", compresslevel=1) as file:
        file.writelines(shifted(text, copies))
    return target


def raw_megabytes(path: Path) -> float:
    size = 0
    with gzip.open(path) as file:
        while block := file.read(1 << 22):
            size += len(block)
    return size / 1e6


def spread(values: list[float], digits: int = 3) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def compare(path: Path, hta_python: str | None, rounds: int) -> None:
    """All contenders in turn, round after round, so that the machine's mood is shared."""
    raw = raw_megabytes(path)
    print(f"\n{path.name}: {raw:.1f} MB of JSON, {path.stat().st_size / 1e6:.1f} MB packed, {rounds} rounds")
    contenders = [(name, sys.executable, code) for name, code in CONTENDERS.items()]
    if hta_python:
        contenders += [(name, hta_python, code) for name, code in HTA.items()]
    found: dict[str, list[Any]] = {name: [] for name, _, _ in contenders}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name, python, code in contenders:
                row = in_fresh_process(python, code + MEASURE, str(path), folder)
                if row is not None:
                    found[name].append(row)
    print(
        f"  {'':24}{'seconds (range)':>26}{'MB/s':>7}{'CPU s':>7}{'× ours':>8}{'peak MB':>9}{'÷ raw':>7}{'start MB':>10}"
    )
    if not found["pyrometer"]:
        return
    ours = statistics.median(row[3] for row in found["pyrometer"])
    for name, rows in found.items():
        if rows:
            times = [row[0] for row in rows]
            peak, before = (statistics.median(row[i] for row in rows) / 1e6 for i in (1, 2))
            busy = statistics.median(row[3] for row in rows)
            middle = statistics.median(times)
            print(
                f"  {name:24}{spread(times):>26}{raw / middle:7.0f}{busy:7.2f}{busy / ours:8.2f}"
                f"{peak:9.0f}{peak / raw:7.2f}{before:10.0f}"
            )


def read_ranks(source: Path, count: int, folder: Path) -> None:
    """Time and memory against the number of ranks."""
    paths = [
        str(write_repeated(source, folder / f"rank{i}.json.gz", 1, rank=i)) for i in range(min(count, 4))
    ]
    every = []
    for i in range(count):  # a link is enough for a further rank
        link = folder / f"read_{i}_rank{i}.json.gz"
        os.link(paths[i % len(paths)], link)
        every.append(str(link))
    result = in_fresh_process(sys.executable, RANKS, *every)
    if result is None:
        return
    rows, peak = result
    print(f"\n{count} ranks of {raw_megabytes(Path(paths[0])):.0f} MB, read and reduced one after the other")
    print(f"  {'ranks':>7}{'seconds':>10}{'per rank':>10}{'memory MB':>11}")
    for done in sorted({1, max(1, count // 4), max(1, count // 2), count}):
        seconds, memory, _ = rows[done - 1]
        print(f"  {done:7}{seconds:10.2f}{seconds / done:10.3f}{memory / 1e6:11.0f}")
    print(f"  peak {peak / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("PYROMETER_TRACES", "../shared/traces"))
    )
    parser.add_argument("--hta-python", help="interpreter of an environment with traceinsight")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--ranks", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    for name in FILES:
        compare((options.traces / f"{name}.json.gz").resolve(), options.hta_python, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        source = options.traces / f"{FILES[0]}.json.gz"
        if options.large:
            large = write_repeated(source, Path(folder) / "large.json.gz", LARGE_COPIES)
            compare(large, options.hta_python, 1)
        if options.ranks:
            read_ranks(source, options.ranks, Path(folder))
    print(f"\ntook {time.perf_counter() - start:.0f} s; load average now {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
