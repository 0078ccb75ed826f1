"""Which peak is which: tensors, allocator and process, each under one name in all views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyrometer.bench.measurement import MemoryUse
from pyrometer.memory.profile import MemoryProfile, ProcessLevels, WholeRun
from pyrometer.quantity import Bytes, counted, format_bytes, significant
from pyrometer.report.documents import CheckDocument
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.report.facts.measurement import measured_name
from pyrometer.trace.records.memory import Memory

TENSORS = "tensors and scratch"
"""What `MemoryProfile.peak_bytes` is of: the headline of memory."""

DRAWN = "tensors alone"
"""What a drawing over time is of."""


class Peak(NamedTuple):
    """One figure under its name."""

    name: str
    nbytes: Bytes
    meaning: str


def chapter(
    profile: MemoryProfile, measured: MemoryUse | None = None, traced: Memory | None = None
) -> Section:
    """Every peak that is known of one program, and what else is known of its process and device."""
    rows = [(peak.name, format_bytes(peak.nbytes), peak.meaning) for peak in peaks(profile, measured, traced)]
    how = (
        "Each line is another way to look at one program, or another run of it. The process holds more than its tensors: Python, "
        "libraries, what its allocator keeps for later, and what ran before in the same process."
    )
    table = Table(("peak of", "bytes", "what it is"), rows, frozenset({2}))
    return Section("levels", "Which peak is which", _besides(profile), table, how)


def of_check(document: CheckDocument) -> Section | None:
    """The same with what else a check has seen of memory; `None` without a profile."""
    if document.evidence.memory is None:
        return None
    traced = document.evidence.trace.memory if document.evidence.trace is not None else None
    measured = document.evidence.measurement.memory if document.evidence.measurement is not None else None
    return chapter(document.evidence.memory, measured, traced)


def headline_figure(figures: Sequence[Fact], profile: MemoryProfile | None) -> list[Fact]:
    """The figures of a measurement, whose peak of the process gives way to the headline of memory where there is one."""
    facts = list(figures)
    if profile is None or not facts or not facts[-1].label.startswith("Peak of"):
        return facts
    return [
        *facts[:-1],
        Fact(
            f"Peak of {TENSORS}", format_bytes(profile.peak_bytes), f"{_whose(facts[-1])}: {facts[-1].value}"
        ),
    ]


def _whose(figure: Fact) -> str:
    return figure.label.removeprefix("Peak of ")


def peaks(profile: MemoryProfile, measured: MemoryUse | None, traced: Memory | None) -> Iterator[Peak]:
    """The figures, the headline first."""
    how = f"; obtained from {profile.source}" if profile.source else ""
    what = "the headline: most that was alive at one instant"
    if profile.whole_run is not None:
        what = f"most that was alive at one instant of the first {counted(profile.whole_run.recorded_steps, 'step')}"
    yield Peak(TENSORS, profile.peak_bytes, f"{what}{how}")
    if profile.whole_run is not None:
        yield _of_whole_run(profile.whole_run)
    drawn = max(profile.timeline.total_bytes, default=0)
    if 0 < drawn < profile.peak_bytes:
        yield Peak(
            DRAWN, drawn, "the drawing over time, in which scratch memory inside of operators is not seen"
        )
    yield from _of_levels(profile.levels)
    if measured is not None:
        yield Peak(measured_name(measured), measured.peak_bytes, f"{measured.source}, while steps were timed")
    for device in traced.devices if traced is not None else []:
        rise = "above the start of the trace" if device.is_relative else "by the allocations in the trace"
        yield Peak(f"traced steps, {device.device}", device.peak_bytes, f"{rise}, under the profiler")


def _of_whole_run(whole: WholeRun) -> Peak:
    later = (
        f"{'about, ' if whole.is_transient else ''}in step {whole.peak_step:,}"
        if whole.peak_step is not None
        else "that of the recorded steps"
    )
    closer = f", to within {format_bytes(whole.resolution_bytes)}" if whole.resolution_bytes else ""
    meaning = f"{later}{closer}; obtained from {whole.source}, read wherever a phase begins or ends"
    return Peak(f"all {whole.num_steps:,} steps", whole.peak_bytes, meaning)


def _of_levels(levels: ProcessLevels) -> Iterator[Peak]:
    known = (
        (
            "allocator, allocated",
            levels.allocated_peak_bytes,
            "blocks of torch's allocator with a tensor in them",
        ),
        ("allocator, reserved", levels.reserved_peak_bytes, "what torch's allocator took from the device"),
    )
    for name, nbytes, meaning in known:
        if nbytes is not None:
            yield Peak(name, nbytes, meaning)
    if levels.rss_peak_bytes is not None:
        before = (
            f", {format_bytes(levels.rss_start_bytes)} before" if levels.rss_start_bytes is not None else ""
        )
        meaning = f"resident set size while memory was recorded{before}"
        yield Peak("the process, recording", levels.rss_peak_bytes, meaning)


def _besides(profile: MemoryProfile) -> list[Fact]:
    levels, told = profile.levels, []
    for label, value in (
        ("pinned", levels.pinned_bytes),
        ("device, all processes", levels.device_used_bytes),
        ("device", levels.device_total_bytes),
        ("tensors after the last step", profile.steady_bytes),
    ):
        if value is not None:
            told.append(Fact(label, format_bytes(value)))
    if profile.units_per_gib is not None:
        told.append(Fact("memory efficiency", f"{significant(profile.units_per_gib)} {profile.unit} per GiB"))
    return told
