"""What one rank's trace says, in one record: the answers of all analyses, of long tables the first rows.

It is small whatever the size of the trace, so that ranks can be reported on in other processes and merged.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import NamedTuple, TypeVar

import msgspec
import polars as pl

from pyrometer.hardware.peaks import Peaks
from pyrometer.record import Record
from pyrometer.trace.analysis.bounds import bounds
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.call_tree import call_tree
from pyrometer.trace.analysis.ceilings import ceilings
from pyrometer.trace.analysis.collectives import collectives
from pyrometer.trace.analysis.copies import copies
from pyrometer.trace.analysis.critical_path import critical_path
from pyrometer.trace.analysis.engine_steps import engine_steps
from pyrometer.trace.analysis.hardware_counters import hardware_counters
from pyrometer.trace.analysis.health import health
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.analysis.kernels import kernel_summary, top_kernels
from pyrometer.trace.analysis.launches import launches
from pyrometer.trace.analysis.memory import memory
from pyrometer.trace.analysis.modules import modules
from pyrometer.trace.analysis.operators import operators
from pyrometer.trace.analysis.over_time import over_time
from pyrometer.trace.analysis.phases import phases
from pyrometer.trace.analysis.recoverable import largest_gains
from pyrometer.trace.analysis.roofline import roofline
from pyrometer.trace.analysis.sequences import sequences
from pyrometer.trace.analysis.synchronisation import sync_points
from pyrometer.trace.analysis.tensor_cores import tensor_cores
from pyrometer.trace.analysis.user_lines import user_lines
from pyrometer.trace.analysis.utilisation import utilisation
from pyrometer.trace.health.issue import Health
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.records.rates import OperatorCounters
from pyrometer.trace.reporting.totals import (
    LineTotal,
    MatrixProduct,
    ModuleTotal,
    OpTotal,
    RoofPoint,
    TreeNode,
)
from pyrometer.trace.steady.steady import Steady, steady
from pyrometer.trace.trace import RankTrace

MOST_ROWS = 20
"""Rows that a report keeps of a long table; `analyze` gives all."""

MOST_SEQUENCES = 10
MOST_MODULES = 100
MOST_NODES = 400
SMALLEST_NODE = 0.005
"""Share of host or device time below which nodes of the call tree are put together."""


class Settled(NamedTuple):
    """A steady state, and what is said of the whole record that it comes from."""

    steady: Steady
    trust: Health
    recorded_span_ns: int
    counters: list[OperatorCounters]


def report_rank(trace: RankTrace, *, peaks: Peaks | None = None) -> RankReport:
    """Run every analysis on the steady state of one rank's trace.

    Args:
        trace: one rank.
        peaks: of the machine that the trace was taken on, measured; without them the vendor's figures are used for a
            device that is known.
    """
    return report_settled(settle(trace), peaks=peaks)


def settle(trace: RankTrace) -> Settled:
    """What a report takes from the whole record; afterwards its steady state is all that is needed, and the record may go."""
    return Settled(
        steady(trace),
        health(trace),
        trace.activity.span_ns,
        hardware_counters(trace)[:MOST_ROWS],  # their times are made up, so that none lies in a cold start
    )


def report_settled(settled: Settled, *, peaks: Peaks | None = None) -> RankReport:
    """The report of a record that is settled; see `report_rank`."""
    with ThreadPoolExecutor(1, thread_name_prefix="pyrometer-analyse") as pool:
        # What rests on the dependency graph takes as long as all else, and both mostly calculate outside of the interpreter.
        for analyse in (critical_path, bounds, largest_gains):
            pool.submit(copy_context().run, analyse, settled.steady.trace)
        return _report(settled, peaks)


def _report(settled: Settled, peaks: Peaks | None) -> RankReport:
    trace, trust = settled.steady.trace, settled.trust
    where_to, found, waited = breakdown(trace), idle(trace), sync_points(trace)
    return RankReport(
        rank=trace.rank,
        path=trace.info.path,
        devices=_devices(trace),
        num_events=trace.info.num_events,
        num_lost_events=trace.info.num_lost_events,
        repaired=trace.info.repaired,
        confidence=trust.confidence,
        health=trust.issues,
        origin_ns=where_to.start_ns,
        span_ns=where_to.span_ns,
        recorded_span_ns=settled.recorded_span_ns,
        left_out=list(settled.steady.left_out),
        breakdown_ns=where_to.parts,
        over_time=over_time(trace),
        steps=where_to.by_step,
        streams=where_to.by_stream,
        device_busy_ns=where_to.device_busy_ns,
        num_kernels=where_to.num_kernels,
        kernel_busy_ns=where_to.kernel_busy_ns,
        kernel_sum_ns=where_to.kernel_sum_ns,
        num_orphans=where_to.num_orphans,
        communication_ns=where_to.communication_ns,
        overlapped_communication_ns=where_to.overlapped_communication_ns,
        idle_gaps=found.gaps,
        idle=found,
        sync_points=waited.points[:MOST_ROWS],
        synchronisation=waited,
        top_ops=rows(operators(trace), OpTotal, MOST_ROWS),
        top_lines=rows(user_lines(trace), LineTotal, MOST_ROWS),
        top_modules=rows(modules(trace), ModuleTotal, MOST_MODULES),
        serving=engine_steps(trace),
        phases=phases(trace),
        call_tree=rows(call_tree(trace, min_share=SMALLEST_NODE), TreeNode, MOST_NODES),
        top_kernels=top_kernels(trace),
        kernels=kernel_summary(trace),
        launches=launches(trace),
        copies=copies(trace),
        memory=memory(trace),
        collectives=collectives(trace).groups[:MOST_ROWS],
        roofline=_roof_points(trace, peaks),
        ceilings=ceilings(trace, peaks),
        utilisation=utilisation(trace, peaks=peaks) if peaks else utilisation(trace),
        sequences=sequences(trace)[:MOST_SEQUENCES],
        tensor_cores=rows(tensor_cores(trace), MatrixProduct, MOST_ROWS),
        hardware_counters=settled.counters,
        critical_path=critical_path(trace),  # begun before all else, and waited for here
        bounds=bounds(trace),
        recoverable=largest_gains(trace),
    )


def _roof_points(trace: RankTrace, peaks: Peaks | None) -> list[RoofPoint]:
    frame = roofline(trace, peaks=peaks) if peaks else roofline(trace)
    return rows(frame.sort("time_ns", descending=True, maintain_order=True), RoofPoint, MOST_ROWS)


def _devices(trace: RankTrace) -> list[str]:
    used = trace.device_work.select(pl.col("device").unique().sort())
    names = {device.id: device.name for device in trace.info.devices}
    return [names.get(index) or f"device {index}" for index in used["device"].drop_nulls().to_list()]


R = TypeVar("R", bound=Record)


def rows(frame: pl.DataFrame, kind: type[R], most: int) -> list[R]:
    """The first rows of a frame as records, which take the columns that they name.

    >>> class Point(Record, frozen=True, kw_only=True):
    ...     x: int
    >>> rows(pl.DataFrame({"x": [1, 2], "y": [3, 4]}), Point, most=1)
    [Point(x=1)]
    """
    named = [name for name in kind.__struct_fields__ if name in frame.columns]
    chosen = frame.head(most).select(named)
    if "name" in named:  # files of other programs hold events without one
        chosen = chosen.with_columns(pl.col("name").fill_null("(no name)"))
    return msgspec.convert(chosen.to_dicts(), list[kind])  # type: ignore[valid-type]
