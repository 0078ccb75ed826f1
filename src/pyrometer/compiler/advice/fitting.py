"""Which levers a report gives reason to try."""

from __future__ import annotations

import re
from collections import defaultdict

from pyrometer.advice import Advice
from pyrometer.compiler.advice.levers import (
    compile_blocks,
    mark_dynamic,
    missing,
    preload_cache,
    set_stance,
    share_regions,
)
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import Seconds

MANY_BLOCKS = 4
LONG_S: Seconds = 5.0
"""Compiling that takes longer is worth a change to how it is done."""

_NUMBERED = re.compile(r"^(?P<stem>.*?)\.(?P<number>\d+)(?:\.|$)")


def fitting_levers(report: CompileReport) -> list[Advice]:
    """The levers whose reason stands in the report, those that this torch lacks left out.

    Nothing of it is measured: try one, and compare.
    """
    is_long = report.cost.compile_s >= LONG_S
    fitting = [
        (compile_blocks(), is_long and _repeats_blocks(report)),
        (share_regions(), is_long and _repeats_blocks(report)),
        (
            mark_dynamic(),
            any(
                change.kind == "size"
                for recompile in report.recompiles
                for change in recompile.changed_inputs
            ),
        ),
        (set_stance(), bool(report.recompiles)),
        (preload_cache(), is_long and report.cache.state in {"warm", "cold", "mixed"}),
    ]
    return [lever for lever, fits in fitting if fits and missing(lever) is None]


def _repeats_blocks(report: CompileReport) -> bool:
    """Whether modules of one graph are numbered, as `layers.0`, `layers.1`, … are."""
    for graph in report.graph_records:
        numbers = defaultdict[str, set[str]](set)
        for node in graph.nodes:
            match = _NUMBERED.match(node.module)
            if match is not None:
                numbers[match["stem"]].add(match["number"])
        if any(len(number) >= MANY_BLOCKS for number in numbers.values()):
            return True
    return False
