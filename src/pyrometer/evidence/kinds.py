"""The parts of evidence, by the names of their fields."""

from __future__ import annotations

from typing import Literal

RecordKind = Literal[
    "measurement",
    "trace",
    "job",
    "compiled",
    "memory",
    "snapshot",
    "loading",
    "program",
    "numerics",
    "environment",
]
"""A part that a rule can need; `job` is the traces of several ranks."""
