"""Lines per second and memory of `pyrometer monitor analyze`, on a log with planted causes.

Version v2.2 replaces v2.1 after 60 % of the time and takes 20 % longer; latency grows with the batch; each new shape recompiles; the
second device fails now and then. One line in a thousand is none: truncated, NUL bytes, or of another program.

    python benchmarks/monitor_logs.py [--lines 4000000] [--keep FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from pyrometer.monitor.logs.analyze import analyze
from pyrometer.monitor.logs.record import stamp

BATCHES = (1, 4, 8)
HOSTILE = (b'{"timestamp":"2026-01-01T00:00:0', b"\0" * 200, b"INFO:     127.0.0.1 - GET /health 200 OK")
BEGINS_S = 1_780_000_000.0


def write_log(
    path: Path, lines: int, *, hostile: bool = True, rate_per_s: float = 500.0, seed: int = 0
) -> None:
    """Write a log of so many good lines, some hundred thousand at a time."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        for start in range(0, lines, 200_000):
            count = min(200_000, lines - start)
            places = np.arange(start, start + count)
            batches = rng.integers(0, len(BATCHES), count)
            new = places > 0.6 * lines
            latency = 0.004 * (1 + np.asarray(BATCHES)[batches]) ** 0.5 * np.exp(rng.normal(0, 0.3, count))
            latency *= np.where(new, 1.2, 1.0)
            sizes = 224 + 32 * (places * 40 // lines)  # forty sizes, one after the other
            devices, failed = rng.integers(0, 2, count), rng.random(count)
            for i in range(count):
                at_s = BEGINS_S + places[i] / rate_per_s
                batch = BATCHES[batches[i]]
                line = {
                    "timestamp": stamp(at_s),
                    "event": "sample",
                    "model": "perception",
                    "version": "v2.2" if new[i] else "v2.1",
                    "device": f"cuda:{devices[i]}",
                    "host": "car-7",
                    "pid": 4242,
                    "call": "infer",
                    "shape": f"{batch}x3x{sizes[i]}x{sizes[i]}",
                    "batch": batch,
                    "latency_s": round(float(latency[i]), 7),
                    "compilations": 0.0,
                    "graph_breaks": 0.0,
                    "trace_id": f"{places[i]:032x}",
                }
                if places[i] * 40 // lines != (places[i] - 1) * 40 // lines:
                    line |= {"compilations": 1.0, "latency_s": 2.5}
                if devices[i] == 1 and failed[i] < 0.002:
                    line |= {
                        "event": "error",
                        "error": f"RuntimeError: CUDA error in block {int(failed[i] * 1e6)}",
                    }
                file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
                if hostile and failed[i] > 0.999:
                    file.write(HOSTILE[i % 3] + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=4_000_000)
    parser.add_argument("--keep", type=Path, help="write the log here, and read it where it is there already")
    parser.add_argument("--clean", action="store_true", help="without lines that are none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "events.jsonl"
        if not path.exists():
            write_log(path, options.lines, hostile=not options.clean)
        for share, title in ((0.25, "a quarter"), (1.0, "all of it")):
            part = Path(folder) / "part.jsonl"
            left = int(path.stat().st_size * share)
            with path.open("rb") as whole, part.open("wb") as copy:
                while left > 0 and (chunk := whole.read(min(left, 1 << 20))):
                    left -= copy.write(chunk)
            cpu_s, wall_s = time.process_time(), time.perf_counter()
            found = analyze([part])
            cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{title}: {found.lines:,} lines, {part.stat().st_size / 2**20:,.0f} MiB; {found.lines / wall_s / 1e6:.2f} M lines/s, "
                f"{cpu_s / found.lines * 1e6:.2f} µs of CPU per line, peak of the process {peak:.0f} MiB"
            )
        print(
            json.dumps(
                {
                    "left_out": found.left_out,
                    "changes": [(c.at, c.quantile, round(c.ratio, 3)) for c in found.change_points],
                }
            )
        )


if __name__ == "__main__":
    main()
