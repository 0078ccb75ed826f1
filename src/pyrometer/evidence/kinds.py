"""The parts of evidence, by the names of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

RecordKind = Literal[
    "measurement",
    "trace",
    "host",
    "ceilings",
    "job",
    "compiled",
    "memory",
    "snapshot",
    "loading",
    "program",
    "numerics",
    "dataflow",
    "environment",
]
"""A part that a rule can need; `job` is the traces of several ranks."""

SEEN_BY: Mapping[str, frozenset[RecordKind]] = MappingProxyType({
    "audit": frozenset({"measurement", "trace", "host", "ceilings", "compiled", "memory", "loading", "program", "numerics", "dataflow", "environment"}),
    "bench": frozenset({"measurement", "loading", "environment"}),
    "check": frozenset({"measurement", "trace", "job", "host", "ceilings", "compiled", "memory", "loading", "program", "numerics", "dataflow", "environment"}),
    "compile": frozenset({"compiled", "program", "environment"}),
    "memory": frozenset({"memory", "snapshot", "program", "environment"}),
    "trace": frozenset({"trace", "job", "program", "environment"}),
})  # fmt: skip
"""The kinds that a verb can observe, each where its target has it; beside them all read the source of a target."""
