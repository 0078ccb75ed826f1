"""Whether memory grows: the series, the growth that the verdict states laid through it, and who holds what stays."""

from __future__ import annotations

import statistics
from typing import Annotated

from pyrometer.memory.profile import LeakReport, LeakSite
from pyrometer.quantity import Bytes, format_bytes
from pyrometer.record import Record, doc
from pyrometer.report.facts.trace_words import short_path

MOST_SITES = 40


class GrowthLine(Record, frozen=True, kw_only=True):
    """The growth per step, through the middle of the points behind the warm-up."""

    steps: Annotated[list[float], doc("where the line begins, where it is anchored, and where it ends")]
    bytes: Annotated[list[float], doc("on the line")]
    low_bytes: Annotated[
        list[float], doc("the least that the interval of the growth allows; empty without one")
    ] = []
    high_bytes: Annotated[list[float], doc("the most")] = []


class HeldSite(Record, frozen=True, kw_only=True):
    """One place whose allocations stay."""

    place: Annotated[str, doc("file:line, or the operator")]
    source: str
    bytes_per_step: float
    kind: str
    holder: str
    holder_place: str
    container: str
    root: str
    chain: Annotated[list[str], doc("from the root to the tensor, hop by hop")]
    graph: Annotated[str, doc("what the autograd graph behind it keeps alive; empty for nothing")]
    every: Annotated[str, doc("how often a step leaks; empty for each")]
    fix: Annotated[str, doc("what to write instead; empty when nothing is known")]


class LeakSeries(Record, frozen=True, kw_only=True):
    """Live bytes after steps, and who holds what grows."""

    verdict: str
    sentence: str
    grows: bool
    warmup_steps: int
    steps: list[int]
    live_bytes: list[Bytes]
    line: GrowthLine | None = None
    sites: Annotated[list[HeldSite], doc("the largest first")] = []
    more_sites: Annotated[int, doc("that are not listed")] = 0


def leak_series(leak: LeakReport) -> LeakSeries:
    """What the page draws of a watch for leaks."""
    return LeakSeries(
        verdict=leak.verdict,
        sentence=leak.sentence,
        grows=leak.bytes_per_step > 0 and bool(leak.sites or leak.unbounded),
        warmup_steps=leak.warmup_steps,
        steps=leak.steps,
        live_bytes=leak.live_bytes,
        line=_line(leak),
        sites=[_site(site) for site in leak.sites[:MOST_SITES]],
        more_sites=max(0, len(leak.sites) - MOST_SITES),
    )


def _line(leak: LeakReport) -> GrowthLine | None:
    warm = [
        (step, held)
        for step, held in zip(leak.steps, leak.live_bytes, strict=False)
        if step >= leak.warmup_steps
    ]
    if not leak.bytes_per_step or len(warm) < 3:
        return None
    first, last = warm[0][0], warm[-1][0]
    anchor = statistics.median(step for step, _ in warm)
    level = statistics.median(held - leak.bytes_per_step * (step - anchor) for step, held in warm)
    steps = [float(first), float(anchor), float(last)]
    lines = [
        [level + slope * (step - anchor) for step in steps]
        for slope in (leak.bytes_per_step, *(leak.ci if len(leak.ci) == 2 else ()))
    ]
    return GrowthLine(
        steps=steps,
        bytes=lines[0],
        low_bytes=[min(ends) for ends in zip(*lines[1:], strict=True)],
        high_bytes=[max(ends) for ends in zip(*lines[1:], strict=True)],
    )


def _site(site: LeakSite) -> HeldSite:
    place = f"{short_path(site.file)}:{site.line}" if site.file else site.operator or "unknown"
    return HeldSite(
        place=f"{place} in {site.module}" if site.module else place,
        source=site.source or "",
        bytes_per_step=site.bytes_per_step,
        kind=site.kind,
        holder=site.holder or "not found",
        holder_place=site.holder_place or "",
        container=site.container or "",
        root=site.root or "",
        chain=site.chain,
        graph=_graph(site),
        every=f"every {site.period:.3g} steps" if site.period is not None and site.period >= 1.5 else "",
        fix=site.fix or "",
    )


def _graph(site: LeakSite) -> str:
    parts = [f"{format_bytes(site.graph_bytes)}"] if site.graph_bytes else []
    if site.nodes_per_step:
        parts.append(f"{site.nodes_per_step:.3g} nodes more with each step")
    elif site.graph_nodes:
        parts.append(f"{site.graph_nodes:,} nodes")
    return ", ".join(parts)
