"""What sampling the host costs, and how far it is off, on small programs whose lines time themselves.

Each program is written out twice: as it is, for the sampler, and with a clock around each line, for the truth. Shares of the
step are compared per line: the error is the largest difference between a line's sampled and its true share. The overhead is in time of the
processor, of pairs of blocks of steps, sampled and not, with the 95 % interval of its centre: a busy machine makes it wider, not larger.

    python benchmarks/host_overhead.py [--budget 3] [--only NAME]
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

import pyrometer as pm
from pyrometer.bench.cutting.measuring import interval_of
from pyrometer.host.build import build_profile
from pyrometer.host.sampling import sample_host

HELPERS = """
class Tokens:
    def __init__(self, n):
        self.rows = [f"{i} {i * i}" for i in range(n)]

    def count(self):
        total = 0
        for row in self.rows:
            total += len(row.split())
        return total

def tree(depth):
    return 1 if depth == 0 else tree(depth - 1) + tree(depth - 1)

def pieces(n):
    for i in range(n):
        yield i * i
"""

SETUP = """
import copy, io, json, logging, os, pickle, re, threading, time
import numpy as np
import torch
from helpers import Tokens, pieces, tree

torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(256, 256)
w = torch.randn(256, 256)
small = torch.randn(32)
array = np.arange(4000.0)
pattern = re.compile(r"(\\w+)@(\\w+)")
text = "someone@example and others " * 3000
table = {str(i): list(range(20)) for i in range(800)}
state = {str(i): torch.randn(64, 64) for i in range(20)}
handler = logging.FileHandler(os.devnull)
log = logging.getLogger("bench"); log.addHandler(handler); log.propagate = False; log.setLevel("INFO")
lock = threading.Lock()
tokens = Tokens(3000)
file = open(os.path.join(os.path.dirname(__file__), "log.txt"), "a")
"""

PROGRAMS: dict[str, list[str]] = {
    "regex": ["found = pattern.findall(text)", "y = x @ w"],
    "json": ["doc = json.dumps(table)", "back = json.loads(doc)"],
    "logging": ["for i in range(200): log.info('step %d', i)", "y = x @ w"],
    "fsync": ["file.write('x'); file.flush(); os.fsync(file.fileno())", "y = x @ w"],
    "torch.save": ["buffer = io.BytesIO()", "torch.save(state, buffer)", "y = x @ w"],
    "pickle": ["blob = pickle.dumps(table)", "same = pickle.loads(blob)", "twin = copy.deepcopy(table)"],
    "numpy scalars": [
        "s = 0.0",
        "for i in range(len(array)): s += array[i]",
        "total = array.sum()",
        "y = x @ w",
    ],
    "item": ["out = []", "for i in range(500): out.append(small[i % 32].item())", "y = x @ w"],
    "allocation": ["z = [torch.zeros(200, 200) for _ in range(30)]", "y = x @ w"],
    "lock": ["for _ in range(5000): lock.acquire(); lock.release()", "y = x @ w"],
    "sleep": ["time.sleep(0.002)", "y = x @ w"],
    "python loop": ["n = 0", "for i in range(20000): n += i % 7", "y = x @ w"],
    "tiny operators": ["y = small", "for _ in range(200): y = y * 0.5 + small", "z = torch.relu(x @ w)"],
    "operators as signs": ["a = x @ w", "b = a * x + w", "c = torch.relu(small)", "d = x @ a"],
    "recursion": ["n = tree(12)", "y = x @ w"],
    "comprehension": [
        "squares = [i * i for i in range(20000)]",
        "names = {i: str(i) for i in range(5000)}",
        "y = x @ w",
        "del squares, names",
    ],
    "generator": ["total = sum(pieces(20000))", "y = x @ w"],
    "method of a module": ["n = tokens.count()", "y = x @ w"],
}
"""Statements of a step; each has a line of its own."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of sampling per program")
    parser.add_argument("--only", help="one program by name")
    chosen = parser.parse_args()
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {torch.get_num_threads()} threads")
    print(
        f"{'program':20s} {'step':>9s} {'overhead':>22s} {'error':>7s} {'looks':>6s}  largest line: true, sampled, leaf"
    )
    overheads, errors = [], []
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        (Path(folder) / "helpers.py").write_text(HELPERS)
        for name, lines in PROGRAMS.items():
            if chosen.only in {None, name}:
                overhead, error = report(Path(folder), name, lines, chosen.budget)
                overheads.append(overhead)
                errors.append(error)
    print(
        f"overhead: median {statistics.median(overheads):.1%}, largest {max(overheads):.1%}, "
        f"above 5 % {sum(one > 0.05 for one in overheads)} of {len(overheads)}; "
        f"error of a line's share: median {statistics.median(errors):.1%}, largest {max(errors):.1%}"
    )


def report(folder: Path, name: str, lines: list[str], budget_s: float) -> tuple[float, float]:
    """One row of the table."""
    before = true_shares(folder, name, lines)
    module = imported(folder, f"plain_{name.replace(' ', '_').replace('.', '_')}", plain(lines))
    samples = sample_host(pm.Call(module.step), budget_s=budget_s)
    profile = build_profile(samples)
    after = true_shares(folder, name, lines)
    truth = [(one + other) / 2 for one, other in zip(before, after, strict=True)]
    first = module.FIRST
    by_line = {line.where.line: line for line in profile.lines if line.where.file == module.__file__}
    sampled = [
        profile.share(by_line[first + i].total_s) if first + i in by_line else 0.0 for i in range(len(lines))
    ]
    error = max(abs(one - other) for one, other in zip(truth, sampled, strict=True))
    largest = max(range(len(lines)), key=lambda i: truth[i])
    line = by_line.get(first + largest)
    leaf = f"{line.leaves[0].kind} {line.leaves[0].name}" if line and line.leaves else "calls"
    overhead, low, high = interval_of(np.array(samples.overheads))
    print(
        f"{name:20s} {profile.step_s * 1e3:6.2f} ms {overhead:7.1%} ({low:5.1%} to {high:5.1%}) {error:7.1%} {profile.samples:6d}  "
        f"{truth[largest]:.0%}, {sampled[largest]:.0%}, {leaf}"
    )
    return overhead, error


def plain(lines: list[str]) -> str:
    """A module with a step of these lines; `FIRST` is the number of the first."""
    head = f"{SETUP}\nFIRST = {SETUP.count(chr(10)) + 4}\ndef step():\n"
    return head + textwrap.indent("\n".join(lines), "    ") + "\n"


def true_shares(folder: Path, name: str, lines: list[str]) -> list[float]:
    """The share of each line, by a clock around it."""
    timed = [f"{line}\nmark({i})" for i, line in enumerate(lines)]
    text = f"{SETUP}\nfrom time import perf_counter as clock\nspent = [0.0] * {len(lines)}\n"
    text += "def step():\n    last = clock()\n    def mark(i):\n        nonlocal last\n"
    text += "        now = clock(); spent[i] += now - last; last = clock()\n"
    text += textwrap.indent("\n".join(timed), "    ") + "\n"
    module = imported(folder, f"timed_{name.replace(' ', '_').replace('.', '_')}", text)
    ends = time.perf_counter() + 0.7
    while time.perf_counter() < ends:
        module.step()
    return [part / sum(module.spent) for part in module.spent]


def imported(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
