"""Was all of it recorded? Damage, lost launches, and steps that hold no device work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from pyrometer.quantity import format_percent
from pyrometer.trace.health.issue import LINKED, PER_STEP, TOTALS, HealthIssue
from pyrometer.trace.kinds import CALLS, DEVICE_WORK, HOST, Kind, is_kind
from pyrometer.trace.rows import among, row_numbers
from pyrometer.trace.trace import RankTrace

FEW_EVENTS = 10
LOST_SHARE = 0.01
ORPHAN_SHARE = 0.05
LOST_LAUNCHES = 0.05


def empty(trace: RankTrace) -> Iterator[HealthIssue]:
    """Next to nothing was recorded."""
    events = trace.number_of(Kind.CPU_OP, *DEVICE_WORK)
    if events < FEW_EVENTS:
        yield HealthIssue(
            code="near_empty",
            severity="error" if not events else "warning",
            message=f"only {events} operators and device events were recorded, so that no figure is typical; "
            "record at least one whole step, and export before the schedule's next cycle begins",
            unreliable=list(TOTALS),
            count=events,
        )


def damage(trace: RankTrace) -> Iterator[HealthIssue]:
    """The file was cut off, or parts of it were lost or mended."""
    info = trace.info
    cut = next((repair for repair in info.repaired if repair.code == "truncated"), None)
    if cut is not None:
        yield HealthIssue(
            code="truncated",
            severity="warning",
            message=f"the file is cut off after {info.num_events} events ({cut.message}); sums stop there, and work at the "
            "end is missing; export again, and let the program finish writing",
            unreliable=[*TOTALS, "critical_path"],
            count=info.num_events,
        )
    lost = info.num_lost_events
    share = lost / max(info.num_events + lost, 1)
    if lost and cut is None:
        yield HealthIssue(
            code="lost_events",
            severity="error" if share > LOST_SHARE else "warning",
            message=f"{lost} events ({format_percent(share)}) could not be read and are missing from every sum; "
            "export the trace again",
            unreliable=[*TOTALS, "critical_path"] if share > LOST_SHARE else [],
            count=lost,
            share=share,
        )
    mended = [repair for repair in info.repaired if repair.code != "truncated" and repair.num_events]
    if mended:
        count = sum(repair.num_events for repair in mended)
        yield HealthIssue(
            code="repaired",
            severity="info",
            message=f"{count} damaged events were mended and kept ({', '.join(r.code for r in mended)}); their times are "
            "right, names or arguments may differ; PYROMETER_STRICT=1 refuses such files",
            count=count,
        )


def orphaned_work(trace: RankTrace) -> Iterator[HealthIssue]:
    """Device work whose launch is not in the trace."""
    orphans, work = trace.links.num_orphans, trace.device_work.height
    if not orphans or not trace.number_of(*HOST):
        return
    share = orphans / work
    yield HealthIssue(
        code="orphans",
        severity="warning" if share > ORPHAN_SHARE else "info",
        message=f"{orphans} of {work} device events ({format_percent(share)}) have no launch in the trace, so that no "
        "operator, line or step is charged with them; record one more warm-up step",
        unreliable=list(LINKED) if share > ORPHAN_SHARE else [],
        count=orphans,
        share=share,
    )


def lost_work(trace: RankTrace) -> Iterator[HealthIssue]:
    """Launches that left nothing on a device: dropped records, or the capture of a graph."""
    launches = trace.chosen(trace.of_kind(*CALLS), pl.col("name").str.contains("(?i)launch"))
    left = among(row_numbers(launches["event"]), row_numbers(trace.device_work["parent"]))
    missing = launches.filter(pl.Series(~left))
    share = missing.height / max(launches.height, 1)
    if share < LOST_LAUNCHES or missing.height < 5:
        return
    captures = bool(trace.mask(is_kind(*CALLS) & pl.col("name").str.contains("(?i)BeginCapture")).any())
    yield HealthIssue(
        code="launches_without_work",
        severity="info" if captures else "warning",
        message=f"{missing.height} of {launches.height} launches ({format_percent(share)}) left no device event, "
        + (
            "since they were captured into a graph; read the trace of its replay for device times"
            if captures
            else "so that device time is missing; record one more warm-up step, or a shorter window"
        ),
        unreliable=[*TOTALS, "launches", "roofline", "critical_path"],
        count=missing.height,
        share=share,
    )


def steps_without_work(trace: RankTrace) -> Iterator[HealthIssue]:
    """Steps that hold no device work while others do."""
    steps, work = trace.steps, trace.device_work
    if not work.height or steps.height < 2:
        return
    starts = np.sort(work["start_ns"].to_numpy())
    within = np.searchsorted(starts, steps["end_ns"]) - np.searchsorted(starts, steps["start_ns"])
    launched = np.bincount(work["step"].drop_nulls().to_numpy(), minlength=steps.height)
    idle = (within == 0) & (launched == 0)
    if not idle.any():
        return
    leads = bool(idle[: int(idle.sum())].all())
    lost = "the window was dropped at its start" if leads else "device records were lost"
    yield HealthIssue(
        code="dropped_window" if leads else "steps_without_device_work",
        severity="error" if idle.mean() > 0.5 else "warning",
        message=f"{int(idle.sum())} of {steps.height} steps hold no device event while others do: {lost}, or these steps "
        "do no device work; sums and idle time over all steps mislead; record fewer steps, with one more to warm up",
        unreliable=list(PER_STEP),
        count=int(idle.sum()),
        share=float(idle.mean()),
    )
