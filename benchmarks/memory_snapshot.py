"""What it costs to read a memory snapshot: ours, checked and in columns, beside a bare `pickle.load`, each in a fresh process.

    python benchmarks/memory_snapshot.py [--megabytes 500] [--rounds 3] [--depth 24] [--packed] [--bare]

The file is synthetic, as torch 2.13 writes it: one device, allocations of changing sizes with three events each, and call
stacks shared by reference. Times are without imports; `CPU` is processor time, which other load on the machine disturbs
less. Peak memory is of the process, less what it held before; `÷ file` is the figure to keep below 3. A bare `pickle.load`
runs whatever a file says and leaves dictionaries, so that it is a measure and not an alternative.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

KEYS = (
    "action",
    "addr",
    "size",
    "stream",
    "time_us",
    "compile_context",
    "user_metadata",
    "pool_id",
    "frames",
)
ACTIONS = ("alloc", "free_requested", "free_completed")
BATCH = 1000
STACKS = 400
FRAMES = 600

MEASURE = """
import json, sys, time
def memory(field):
    for line in open('/proc/self/status'):
        if line.startswith(field):
            return int(line.split()[1]) * 1024
path = sys.argv[1]
{imports}
before = memory('VmRSS')
start, busy = time.perf_counter(), time.process_time()
held = run(path)
took, busy = time.perf_counter() - start, time.process_time() - busy
print(json.dumps([took, busy, memory('VmHWM') - before]))
"""
READ = "from pyrometer.memory.snapshots.read import read_snapshot"
CONTENDERS = {
    "read_snapshot": f"{READ}\nrun = read_snapshot",
    "and report_snapshot": f"{READ}\nfrom pyrometer.memory.snapshots.build import report_snapshot\n"
    "run = lambda path: report_snapshot(read_snapshot(path))",
    "bare pickle.load": "import pickle\nrun = lambda path: pickle.load(open(path, 'rb'))",
}


class Writer:
    """Writes the opcodes of protocol 4 with its memo, without holding what it writes."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.memo = 0
        self.known: dict[str, bytes] = {}
        file.write(b"\x80\x04")

    def memoized(self) -> bytes:
        """The instruction that pushes what was just stored."""
        number = self.memo
        self.memo += 1
        return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)

    def text(self, value: str) -> bytes:
        """Text, stored the first time and referred to later."""
        if value in self.known:
            return self.known[value]
        raw = value.encode()
        self.known[value] = self.memoized()
        return b"X" + struct.pack("<I", len(raw)) + raw + b"\x94"

    def integer(self, value: int) -> bytes:
        """A number, as short as may be."""
        if 0 <= value < 256:
            return b"K" + bytes([value])
        if value < 1 << 31:
            return b"J" + struct.pack("<i", value)
        raw = value.to_bytes((value.bit_length() + 8) // 8, "little")
        return b"\x8a" + bytes([len(raw)]) + raw

    def empty(self, code: bytes) -> bytes:
        """A new list or dictionary."""
        self.memo += 1
        return code + b"\x94"


def write_synthetic(path: Path, megabytes: float, depth: int, seed: int = 0) -> int:
    """Write a file of about that size; returns the number of events."""
    rng = random.Random(seed)
    with path.open("wb") as file:
        writer = Writer(file)
        file.write(writer.empty(b"}") + b"(" + writer.text("segments") + writer.empty(b"]"))
        file.write(writer.text("device_traces") + writer.empty(b"]") + writer.empty(b"]"))
        stacks = Stacks(writer, rng, depth)
        events = 0
        while file.tell() < megabytes * 1e6:
            file.write(b"(")
            for _ in range(BATCH // len(ACTIONS)):
                allocation(writer, stacks, rng, events)
                events += len(ACTIONS)
            file.write(b"e")
        file.write(b"au.")
    return events


class Stacks:
    """Frames, each written once and referred to from then on."""

    def __init__(self, writer: Writer, rng: random.Random, depth: int) -> None:
        self.writer = writer
        self.frames: dict[int, bytes] = {}
        self.numbers = [[rng.randrange(FRAMES) for _ in range(depth)] for _ in range(STACKS)]

    def frame(self, number: int) -> bytes:
        """One frame, or a reference to it."""
        if number in self.frames:
            return self.frames[number]
        writer, file = self.writer, f"/home/me/project/module{number % 50}.py"
        made = writer.empty(b"}")
        self.frames[number] = reference(writer.memo - 1)
        made += b"(" + writer.text("name") + writer.text(f"function{number}")
        made += writer.text("filename") + writer.text(file)
        return made + writer.text("line") + writer.integer(number) + b"u"

    def written(self, number: int) -> bytes:
        """A new list of frames."""
        made = self.writer.empty(b"]")
        return made + b"(" + b"".join(self.frame(one) for one in self.numbers[number]) + b"e"


def reference(number: int) -> bytes:
    return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)


def allocation(writer: Writer, stacks: Stacks, rng: random.Random, count: int) -> None:
    """One allocation and its free: three events, which share a list of frames."""
    size, stack = rng.randrange(512, 1 << 24), b""
    for i, action in enumerate(ACTIONS):
        made = writer.empty(b"}") + b"("
        values = (
            action,
            0x7F0000000000 + count % 4096 * 1024 * 1024,
            size,
            0,
            10**15 + 7 * (count + i),
            "N/A",
            "",
        )
        for key, value in zip(KEYS, values, strict=False):
            made += writer.text(key) + (
                writer.text(value) if isinstance(value, str) else writer.integer(value)
            )
        made += writer.text("pool_id") + b"K\x00K\x00\x86\x94"
        writer.memo += 1
        made += writer.text("frames")
        if stack:
            made += stack
        else:
            stack = reference(writer.memo)
            made += stacks.written(rng.randrange(STACKS))
        writer.file.write(made + b"u")


def in_fresh_process(code: str, path: Path) -> tuple[float, float, float] | None:
    """Seconds, CPU seconds and bytes; None where it fails."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(imports=code), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"    failed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    took, busy, peak = json.loads(done.stdout)
    return took, busy, peak


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def compare(path: Path, size: int, rounds: int, *, bare: bool) -> None:
    """All in turn, round after round, so that the machine's mood is shared."""
    chosen = {name: code for name, code in CONTENDERS.items() if bare or not name.startswith("bare")}
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name, code in chosen.items():
            row = in_fresh_process(code, path)
            if row is not None:
                rows[name].append(row)
    print(f"  {'':22}{'seconds (range)':>24}{'CPU s (range)':>24}{'MB/s':>7}{'peak ÷ file (range)':>24}")
    for name, found in rows.items():
        if found:
            took, busy = ([row[i] for row in found] for i in (0, 1))
            memory = [row[2] / size for row in found]
            rate = size / 1e6 / statistics.median(took)
            print(f"  {name:22}{spread(took):>24}{spread(busy):>24}{rate:7.0f}{spread(memory):>24}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depth", type=int, default=24, help="frames per call stack")
    parser.add_argument("--packed", action="store_true", help="the same file packed by gzip too")
    parser.add_argument(
        "--bare", action="store_true", help="beside a bare pickle.load, which takes several times the file"
    )
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        events = write_synthetic(path, options.megabytes, options.depth)
        size = path.stat().st_size
        print(
            f"{size / 1e6:.0f} MB, {events:,} events, stacks of {options.depth} frames, {options.rounds} rounds"
        )
        compare(path, size, options.rounds, bare=options.bare)
        if options.packed:
            packed = path.with_suffix(".pickle.gz")
            with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=1) as file:
                shutil.copyfileobj(plain, file)
            print(f"packed to {packed.stat().st_size / 1e6:.0f} MB")
            compare(packed, size, options.rounds, bare=False)
    print(f"took {time.perf_counter() - start:.0f} s; load average now {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
