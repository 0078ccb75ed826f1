"""Which levers a report gives reason to try."""

from __future__ import annotations

import re
from collections import Counter

from pyrometer.advice import Advice
from pyrometer.compiler.advice.levers import (
    compile_blocks,
    compile_dynamic,
    mark_dynamic,
    preload_cache,
    set_stance,
    shape_buckets,
    share_regions,
)
from pyrometer.compiler.advice.varying import axes_of, varying_sizes
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import Seconds

MANY_BLOCKS = 4
LONG_S: Seconds = 5.0
"""Compiling that takes longer is worth a change to how it is done."""

_NUMBERED = re.compile(r"^(?P<stem>.*?)\.(?P<number>\d+)(?:\.|$)")


def fitting_levers(report: CompileReport) -> list[Advice]:
    """The levers whose reason stands in the report, in names of the model.

    Nothing of it is measured: try one, and compare.
    """
    is_long = report.cost.compile_s >= LONG_S
    blocks = _repeated_blocks(report) if is_long else []
    fitting = [compile_blocks(blocks), share_regions(blocks)] if blocks else []
    fitting += _for_sizes(report)
    if report.recompiles:
        fitting.append(set_stance())
    if is_long and report.cache.state in {"warm", "cold", "mixed"}:
        fitting.append(preload_cache())
    return fitting


def _for_sizes(report: CompileReport) -> list[Advice]:
    sizes = varying_sizes(change for recompile in report.recompiles for change in recompile.changed_inputs)
    if not sizes:
        return []
    axes = axes_of(sizes)
    return [mark_dynamic(sizes), compile_dynamic(), *([] if axes is None else [shape_buckets(axes)])]


def _repeated_blocks(report: CompileReport) -> list[str]:
    """Names of the modules that hold alike blocks, as `layers` holds `layers.0`, `layers.1`, …, the largest first."""
    lists: dict[str, int] = {}
    for graph in report.graph_records:
        blocks: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for node in graph.nodes:
            if node.op == "call" and (match := _NUMBERED.match(node.module)) is not None:
                inner = node.module[match.end("number") :]
                blocks.setdefault((match["stem"], match["number"]), []).append((inner, node.target))
        alike = Counter((stem, tuple(calls)) for (stem, _), calls in blocks.items())
        for (stem, calls), count in alike.items():
            if count >= MANY_BLOCKS:
                lists[stem] = max(lists.get(stem, 0), count * len(calls))
    return sorted(lists, key=lambda stem: -lists[stem])
