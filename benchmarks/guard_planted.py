"""Ten changes with one regression of 10 to 30 % each among harmless hunks: what the gates say, and which hunk blame names.

::

    python benchmarks/guard_planted.py                  # every change, and the same without the regression
    python benchmarks/guard_planted.py --only config    # one of them
    python benchmarks/guard_planted.py --from more.py   # the changes of another file, as its CHANGES

Without its regression a change alters nothing that takes time: any gate that fails there is a false alarm.
"""

from __future__ import annotations

import argparse
import io
import os
import runpy
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pyrometer.errors import PyrometerError
from pyrometer.guard.blaming import Blame, blame_in
from pyrometer.guard.check import GuardOptions, opened_job
from pyrometer.guard.gate import GuardReport

Edit = tuple[str, str, str]
"""A file, a text in it, and what stands in its place afterwards; a file that is new has no text before."""


@dataclass(frozen=True)
class Change:
    """A repository and a change of it.

    Attributes:
        files: of the base.
        harmless: edits that cost nothing.
        guilty: the edits that together cost time or memory.
        metric: which fails, of those that are the same in every run, or `median_s`.
    """

    files: dict[str, str]
    harmless: list[Edit]
    guilty: list[Edit]
    metric: str = "median_s"
    wheels: dict[str, str] = field(default_factory=dict)


def wheel(module: str, version: str, text: str) -> bytes:
    """A package of one module, as pip installs it without a network."""
    kept = io.BytesIO()
    info = f"{module}-{version}.dist-info"
    files = {
        f"{module}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(kept, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return kept.getvalue()


HOT_LOOP = Change(
    files={
        "scores.py": """'Scores of players.'

LIMIT = 1500


def expected(own, other):
    return 1.0 / (1.0 + 10.0 ** ((other - own) / 400.0))


def name_of(number):
    return "player %d" % number


def update(ratings, games):
    for winner, loser in games:
        gain = 32.0 * (1.0 - expected(ratings[winner], ratings[loser]))
        ratings[winner] += gain
        ratings[loser] -= gain
    return ratings


def best(ratings):
    return max(ratings)
""",
        "perf_scores.py": """import random

from scores import update

COIN = random.Random(1)
GAMES = [tuple(COIN.sample(range(50), 2)) for _ in range(2500)]


def perf_update():
    update([1500.0] * 50, GAMES)
""",
    },
    harmless=[
        ("scores.py", "LIMIT = 1500\n", "LIMIT = 1600  # since the last season\n"),
        ("scores.py", '"player %d" % number', 'f"player {number}"'),
        ("scores.py", "return max(ratings)", "return max(ratings, default=0.0)"),
        ("perf_scores.py", "import random\n", '"""How long a season takes."""\n\nimport random\n'),
    ],
    guilty=[
        (
            "scores.py",
            "        ratings[winner] += gain\n",
            "        gain = abs(gain)\n        ratings[winner] += gain\n",
        )
    ],
)

OPERATORS = Change(
    files={
        "attention.py": """import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width=128, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        b, n, w = x.shape
        return x.view(b, n, self.heads, w // self.heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / 5.6
        weights = torch.softmax(scores, -1)
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.out(mixed)


def count(model):
    return sum(p.numel() for p in model.parameters())
""",
        "perf_attention.py": """import torch
from attention import Attention


def perf_attention():
    return Attention(), torch.randn(8, 96, 128)
""",
    },
    harmless=[
        ("attention.py", "import torch\nfrom torch", '"""Attention, by hand."""\n\nimport torch\nfrom torch'),
        (
            "attention.py",
            "    def split(self, x):\n",
            "    def split(self, x):\n        # heads before positions\n",
        ),
        (
            "attention.py",
            "        return self.out(mixed)",
            "        result = self.out(mixed)\n        return result",
        ),
        ("attention.py", "p.numel() for", "p.numel()\n        for"),
    ],
    guilty=[
        (
            "attention.py",
            "torch.softmax(scores, -1)",
            "torch.softmax(scores - scores.amax(-1, keepdim=True), -1)",
        )
    ],
)

LOADER = Change(
    files={
        "data.py": """import json

import torch
from torch.utils.data import Dataset


def line_of(number):
    return json.dumps({"id": number, "values": [((number * 31 + i) % 97) / 97 for i in range(24)]})


class Lines(Dataset):
    def __init__(self, size):
        self.lines = [line_of(i) for i in range(size)]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        row = json.loads(self.lines[index])
        x = torch.tensor(row["values"])
        return x, x.sum()
""",
        "train.py": """import torch
from torch import nn
from torch.utils.data import DataLoader

import pyrometer as pm
from data import Lines


def loss(model, batch):
    x, y = batch
    return nn.functional.mse_loss(model(x).squeeze(-1), y)


def workload():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 1))
    return pm.Training(
        model, loss, torch.optim.SGD(model.parameters(), lr=0.01), DataLoader(Lines(2048), batch_size=64)
    )
""",
        "perf_train.py": """from train import workload


def perf_training():
    return workload()
""",
    },
    harmless=[
        ("train.py", "def loss(model, batch):\n", 'def loss(model, batch):\n    """Squared error."""\n'),
        ("data.py", "import json\n\n", '"""Rows of numbers, one a line."""\n\nimport json\n\n'),
        ("data.py", "    def __len__(self):\n", "    def __len__(self):\n        # of lines\n"),
        ("perf_train.py", "    return workload()", "    made = workload()\n    return made"),
    ],
    guilty=[
        (
            "data.py",
            "        x = torch.tensor(row",
            '        row["values"] = [round(float(v), 6) for v in row["values"]]\n        x = torch.tensor(row',
        )
    ],
)

TOKENS = Change(
    files={
        "words.py": """import re

WORD = re.compile(r"\\w+|[^\\w\\s]")
UNKNOWN = 0


class Vocabulary:
    def __init__(self, words):
        self.ids = {word: i + 1 for i, word in enumerate(words)}

    def __len__(self):
        return len(self.ids)

    def encode(self, text):
        ids = []
        for word in WORD.findall(text.lower()):
            ids.append(self.ids.get(word, UNKNOWN))
        return ids

    def decode(self, ids):
        back = {number: word for word, number in self.ids.items()}
        return " ".join(back.get(i, "?") for i in ids)
""",
        "perf_words.py": """from words import Vocabulary

TEXT = "The quick brown fox, which jumps over a lazy dog; and again: it jumps! " * 60
VOCABULARY = Vocabulary(sorted(set(TEXT.lower().split())))


def perf_encode():
    VOCABULARY.encode(TEXT)


def perf_decode():
    VOCABULARY.decode(range(12))
""",
    },
    harmless=[
        ("words.py", "UNKNOWN = 0\n", "UNKNOWN = 0  # what no word has\n"),
        ("words.py", 'back.get(i, "?") for i in ids', 'back.get(one, "?") for one in ids'),
        ("words.py", "import re\n\n", '"""Words and their numbers."""\n\nimport re\n\n'),
    ],
    guilty=[
        (
            "words.py",
            "            ids.append(self.ids.get(word, UNKNOWN))",
            "            key = word.strip()\n            ids.append(self.ids.get(key, UNKNOWN))",
        )
    ],
)

MEMORY = Change(
    files={
        "blocks.py": """import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.up(x)
        h = h.relu_()
        return self.down(h)


class Net(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(Mixer(width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x
""",
        "perf_blocks.py": """import torch
from blocks import Net


def perf_net():
    return Net(), torch.randn(2048, 64)
""",
    },
    harmless=[
        (
            "blocks.py",
            "class Mixer(nn.Module):\n",
            'class Mixer(nn.Module):\n    """Widens and narrows."""\n\n',
        ),
        ("blocks.py", "            x = x + block(x)\n", "            y = block(x)\n            x = x + y\n"),
        ("perf_blocks.py", "import torch\n", '"""A network of mixers."""\n\nimport torch\n'),
    ],
    guilty=[("blocks.py", "        h = h.relu_()", "        h = h.relu()")],
    metric="peak_bytes",
)

IMPORTS = Change(
    files={
        "app/__init__.py": """import json
import logging

from app.table import lookup

__all__ = ["lookup", "main"]
log = logging.getLogger(__name__)


def main():
    print(json.dumps(lookup(1)))
""",
        "app/table.py": """import dataclasses


@dataclasses.dataclass
class Row:
    number: int
    name: str = ""


def lookup(number):
    return dataclasses.asdict(Row(number))
""",
        "perf_import.py": """import subprocess
import sys


def perf_import():
    subprocess.run([sys.executable, "-I", "-c", "import sys; sys.path.insert(0, '.'); import app"], check=True)
""",
    },
    harmless=[
        ("app/__init__.py", "import json\nimport", '"""A small program."""\n\nimport json\nimport'),
        ("app/table.py", '    name: str = ""\n', '    name: str = "none"\n'),
        ("app/__init__.py", "    print(json.dumps(lookup(1)))", "    print(json.dumps(lookup(2)))"),
    ],
    guilty=[
        (
            "app/table.py",
            "import dataclasses\n\n",
            "import dataclasses\nimport csv\nimport decimal\n\n",
        )
    ],
)

SUMS = """def total(rows):
    found = 0
    for row in rows:
        {extra}found += row[0] * row[1]
    return found
"""
DEPENDENCY = Change(
    files={
        "requirements.txt": "# what the shop needs\n./wheels/summing-1.0-py3-none-any.whl\n",
        "shop.py": """from summing import total

TAX = 0.19


def bill(orders):
    return total(orders) * (1 + TAX)


def shown(amount):
    return "%.2f" % amount
""",
        "perf_shop.py": """from shop import bill

ORDERS = [(i % 7, i % 11) for i in range(6000)]


def perf_bill():
    bill(ORDERS)
""",
    },
    harmless=[
        ("shop.py", '"%.2f" % amount', 'f"{amount:.2f}"'),
        ("shop.py", "TAX = 0.19\n", "TAX = 0.2\n"),
        ("perf_shop.py", "from shop", '"""A long bill."""\n\nfrom shop'),
    ],
    guilty=[("requirements.txt", "summing-1.0", "summing-1.1")],
    wheels={"1.0": SUMS.format(extra=""), "1.1": SUMS.format(extra="found += 0\n        ")},
)

CONFIG = Change(
    files={
        "config.toml": '[reader]\nname = "plain"\nchunk = 64\nlimit = 100000\n\n[writer]\nname = "plain"\n',
        "reading.py": """import tomllib
from pathlib import Path

CONFIG = tomllib.loads((Path(__file__).parent / "config.toml").read_text())


def checksums(data):
    size = CONFIG["reader"]["chunk"]
    found = []
    for start in range(0, len(data), size):
        part = data[start : start + size]
        found.append(sum(part) % 251)
    return found


def describe():
    return CONFIG["reader"]["name"]
""",
        "perf_reading.py": """from reading import checksums

DATA = bytes(range(256)) * 200


def perf_checksums():
    checksums(DATA)
""",
    },
    harmless=[
        ("config.toml", "limit = 100000", "limit = 200000"),
        ("config.toml", '[writer]\nname = "plain"', '[writer]\nname = "fancy"'),
        ("reading.py", "def describe():\n", 'def describe():\n    """By name."""\n'),
    ],
    guilty=[("config.toml", "chunk = 64", "chunk = 36")],
)

SEVERAL = Change(
    files={
        "lists.py": "".join(
            f"def step{i}(rows):\n    # step {i}\n    kept = [row for row in rows if row[{i % 3}] != {i}]\n    return sorted(kept, key=lambda row: row[{(i + 1) % 3}])\n\n\n"
            for i in range(8)
        ),
        "perf_lists.py": """import lists

ROWS = [(i * 7 % 101, i * 13 % 89, i * 3 % 97) for i in range(800)]


def perf_all():
    rows = ROWS
    for number in range(8):
        rows = getattr(lists, f"step{number}")(rows)
""",
    },
    harmless=[
        ("lists.py", f"    # step {i}\n", f"    # step {i}: leaves rows out, then sorts them\n")
        for i in range(8)
    ]
    + [("lists.py", f"if row[{i % 3}] != {i}]", f"if {i} != row[{i % 3}]]") for i in (1, 4, 6)],
    guilty=[
        (
            "lists.py",
            "    kept = [row for row in rows if row[2] != 5]\n",
            "    kept = [tuple(list(row)) for row in rows if row[2] != 5 and row[0] >= 0]\n    kept = sorted(kept)\n",
        )
    ],
)

FUNCTION = """def smooth(values, width):
    found = []
    for i in range(len(values)):
        part = values[max(i - width, 0) : i + width + 1]
        found.append({value})
    return found
"""
MOVED = Change(
    files={
        "signal_tools.py": '"""Signals."""\n\nimport math\n\n\ndef wave(n):\n    return [math.sin(i / 9) for i in range(n)]\n\n\n'
        + FUNCTION.format(value="sum(part) / len(part)"),
        "filters.py": '"""Filters."""\n\n\ndef clip(values, low, high):\n    return [min(max(v, low), high) for v in values]\n',
        "pipeline.py": "from signal_tools import smooth, wave\n\n\ndef run(n):\n    return smooth(wave(n), 12)\n",
        "perf_pipeline.py": "from pipeline import run\n\n\ndef perf_run():\n    run(3000)\n",
    },
    harmless=[
        ("filters.py", '"""Filters."""', '"""Filters of signals."""'),
        ("signal_tools.py", '"""Signals."""', '"""Signals to try filters on."""'),
        ("perf_pipeline.py", "    run(3000)", "    run(3_000)"),
    ],
    guilty=[
        (
            "filters.py",
            "for v in values]\n",
            "for v in values]\n\n\n" + FUNCTION.format(value="sum(part) / max(len(part), 1)"),
        ),
        (
            "pipeline.py",
            "from signal_tools import smooth, wave",
            "from filters import smooth\nfrom signal_tools import wave",
        ),
        ("signal_tools.py", "\n\n" + FUNCTION.format(value="sum(part) / len(part)"), ""),
    ],
)

CHANGES = {
    "hot_loop": HOT_LOOP,
    "operators": OPERATORS,
    "loader": LOADER,
    "tokens": TOKENS,
    "memory": MEMORY,
    "imports": IMPORTS,
    "dependency": DEPENDENCY,
    "config": CONFIG,
    "several": SEVERAL,
    "moved": MOVED,
}


def repository(root: Path, change: Change, *, guilty: bool) -> None:
    """The base as a tag `before`, and the change on top of it."""
    git(root, "init", "-q")
    for name, text in change.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for version, text in change.wheels.items():
        (root / "wheels").mkdir(exist_ok=True)
        (root / "wheels" / f"summing-{version}-py3-none-any.whl").write_bytes(wheel("summing", version, text))
    commit(root, "before")
    git(root, "tag", "before")
    for file, old, new in [*change.harmless, *(change.guilty if guilty else [])]:
        text = (root / file).read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{file}: {old!r} stands there {text.count(old)} times")
        (root / file).write_text(text.replace(old, new))
    commit(root, "after")


def git(root: Path, *arguments: str) -> None:
    """Run git in a repository."""
    command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@a", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def commit(root: Path, message: str) -> None:
    """Everything that is there."""
    git(root, "add", "--all")
    git(root, "commit", "-q", "-m", message)


def told(report: GuardReport) -> str:
    """The outcomes of a job in a line."""
    counts = dict(Counter(gate.outcome for gate in report.gates))
    loud = [
        f"{gate.metric} {gate.ratio:.2f}" if gate.ratio else gate.metric
        for gate in report.gates
        if gate.outcome in {"regressed", "improved"} or (gate.outcome == "undecided" and gate.decisive)
    ]
    more = [f"{one.benchmark}: {one.reason}" for one in report.missed] + report.notes
    return f"exit {int(report.exit_code())} {counts} {loud} {report.num_pairs} pairs, trusted {report.trusted} {more}"


def is_right(root: Path, change: Change, found: Blame) -> bool:
    """Whether blame names hunks of the regression, and no other."""
    places = set()
    for file, _, new in change.guilty:
        text = (root / file).read_text()
        start = text[: text.index(new)].count("\n") + 1 if new else 0
        places |= {(file, line) for line in range(start, start + new.count("\n") + 1)}
        places |= {(file, None)} | ({(file, line) for line in range(1, 400)} if not new else set())
    hits = [
        any(
            (hunk.file, line) in places
            for line in range(hunk.line or 0, (hunk.line or 0) + len(hunk.lines) + 1)
        )
        for hunk in found.hunks
    ]
    return bool(hits) and all(hits)


def tried(name: str, change: Change, *, guilty: bool) -> None:
    """One change, with its regression or without: what the gates say, and what blame names."""
    with tempfile.TemporaryDirectory() as folder:
        root, begin = Path(folder), time.monotonic()
        repository(root, change, guilty=guilty)
        kind = "planted" if guilty else "clean"
        try:
            with opened_job(root, GuardOptions(base="before", explain=False)) as job:
                report = job.run()
                say(name, kind, begin, told(report))
                if any(gate.outcome == "regressed" for gate in report.gates):
                    found = blame_in(job, report)
                    verdict = "right" if is_right(root, change, found) else "WRONG"
                    places = [hunk.place for hunk in found.hunks]
                    say(
                        name,
                        "blame",
                        begin,
                        f"{verdict}: {found.metric} by {places} of {found.num_hunks} hunks, {found.num_trials} parts tried",
                    )
        except PyrometerError as error:
            say(name, kind, begin, f"error: {error}")


def say(name: str, what: str, begin: float, text: str) -> None:
    """A line of the table, with the time so far and the load of the machine."""
    spent = time.monotonic() - begin
    print(f"{name:11} {what:8} {spent:4.0f} s  load {os.getloadavg()[0]:4.1f}  {text}", flush=True)


def main() -> int:
    """Try the changes that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--from", dest="file")
    parser.add_argument(
        "--as", dest="kinds", nargs="*", choices=["planted", "clean"], default=["planted", "clean"]
    )
    given = parser.parse_args()
    found: dict[str, Change] = runpy.run_path(given.file)["CHANGES"] if given.file else CHANGES
    for name, change in found.items():
        if not given.only or name in given.only:
            for kind in given.kinds:
                tried(name, change, guilty=kind == "planted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
