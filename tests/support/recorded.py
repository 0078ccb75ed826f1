"""Real programs, each observed once: what rules, readings and views make of them is tested on the record.

A record names no machine: the folder of the program, the virtual environment, Python and this repository have names of their own
in it. `make recordings` observes all programs anew, as is needed where an example or the meaning of evidence has changed.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import Annotated

from pyrometer.evidence.evidence import Evidence
from pyrometer.record import Record, doc, from_json
from pyrometer.report import html
from pyrometer.report.documents import CheckDocument
from pyrometer.rules.case import Case
from pyrometer.rules.explain import explain
from pyrometer.source.module import Module

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "recorded"
EXAMPLES = ROOT / "examples"
PROGRAM = "/program"
"""Stands for the folder of the program."""

BOTTLENECKS = ("inefficient_op", "item_each_step", "memory_churn", "slow_loader", "tiny_ops")
FILES = {
    **{name: EXAMPLES / "bottlenecks" / f"{name}.py" for name in BOTTLENECKS},
    **{name: EXAMPLES / f"{name}.py" for name in ("video_encoder", "robot_controller", "broken_perception")},
    "rows": RECORDED / "rows.py",
    "job": ROOT / "tests" / "rules" / "distributed" / "ddp_worker.py",
}
"""Programs by name."""
JOBS = ("every", "last", "late")
"""Gradients reduced in every micro-batch, in the last one, and there with one rank late."""
CHECKED = tuple(name for name in FILES if name != "job")
"""Those that are observed as by `pyrometer check`."""


class Recording(Record, frozen=True, kw_only=True):
    """What was observed of one variant of a program."""

    source: Annotated[str, doc("hash of the file")]
    evidence: Evidence


def hash_of(file: Path) -> str:
    """Tells whether a program is still the one that was recorded."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def recording(name: str, file: Path) -> Recording:
    """The record `tests/recorded/<name>.json.gz`, as if its program had been this file."""
    text = gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()).decode()
    text = text.replace(f"{name.partition('-')[0]}.py", file.name).replace(PROGRAM, str(file.parent))
    return from_json(Recording, text)


@cache
def evidence_of(program: str, variant: str = "workload") -> Evidence:
    """What was observed of a program, as `pyrometer check` does."""
    return recording(f"{program}-{variant}", FILES[program]).evidence


def case_of_program(program: str, variant: str, *kinds: str) -> Case:
    """Only these kinds of evidence of a program, with its source."""
    evidence, file = evidence_of(program, variant), FILES[program]
    module = Module.parse(str(file), file.read_text(encoding="utf-8"))
    return Case(target="test", modules=(module,), **{kind: getattr(evidence, kind) for kind in kinds})


@cache
def checked(program: str, variant: str = "workload") -> CheckDocument:
    """What a check says of a program."""
    evidence = evidence_of(program, variant)
    return CheckDocument(evidence=evidence, diagnosis=explain(evidence, (FILES[program],)))


@cache
def page_of(program: str) -> str:
    """The page of that check."""
    return html.page(checked(program))
