"""What a `Calibration` says: which differences this machine can tell apart, and its peaks."""

from __future__ import annotations

from pyrometer.bench.calibration import Calibration, Resolution
from pyrometer.hardware.peaks import Peak, Peaks
from pyrometer.quantity import counted, format_percent, format_rate, format_seconds
from pyrometer.report.facts.layout import Table
from pyrometer.report.facts.verdict import METRIC_NAMES


def headline(calibration: Calibration) -> str:
    """The difference that a minute resolves, from the easiest to the hardest program."""
    shares = sorted(resolution.resolves_60s for resolution in calibration.resolutions)
    low, high = format_percent(shares[0], 2), format_percent(shares[-1], 2)
    reach = low if low == high else f"{low} to {high}"
    return f"a minute on this machine tells apart programs that differ by {reach}"


def subtitle(calibration: Calibration) -> str:
    """What it rests on."""
    blocks = sum(resolution.num_blocks for resolution in calibration.resolutions)
    return f"A/A trials: the same program on both sides · {counted(blocks, 'paired block')} · took {format_seconds(calibration.elapsed_s)}"


def resolution_table(calibration: Calibration) -> Table:
    """One row per program."""
    columns = (
        "program",
        "step",
        "compared by",
        "noise per block",
        "resolves in 10 s",
        "in 60 s",
        "wrong verdicts",
    )
    return Table(columns, [_resolution_row(resolution) for resolution in calibration.resolutions])


def peak_table(peaks: Peaks) -> Table:
    """Every measured peak, and the vendor's figure where the device is known."""
    flops = [("matmul", peaks.matmul_flop_per_s), ("convolution", peaks.conv_flop_per_s)]
    rows = [
        _peak_row(f"{what} {dtype}", peak, "FLOP/s") for what, found in flops for dtype, peak in found.items()
    ]
    rows += [_peak_row(f"copy {what}", peak, "B/s") for what, peak in peaks.copy_bytes_per_s.items()]
    rows += [
        (what.replace("_", " "), format_seconds(peak.best), format_seconds(peak.median), peak.work)
        for what, peak in peaks.cost_s.items()
    ]
    return Table(("peak", "best", "median", "of"), rows)


def skipped_table(peaks: Peaks) -> Table:
    """What was not measured, and why."""
    return Table(("not measured", "because"), sorted(peaks.skipped.items()))


def trust(calibration: Calibration) -> str:
    """What there is to say when nothing makes the machine noisy."""
    return f"Nothing made the machine noisy while {counted(len(calibration.resolutions), 'program')} ran."


def _resolution_row(resolution: Resolution) -> tuple[str, ...]:
    return (
        resolution.name,
        format_seconds(resolution.step_s),
        METRIC_NAMES[resolution.metric].partition(",")[0],
        format_percent(resolution.noise, 2),
        f"±{format_percent(resolution.resolves_10s, 2)}",
        f"±{format_percent(resolution.resolves_60s, 2)}",
        f"{format_percent(resolution.false_share, 2)} of relabelled trials",
    )


def _peak_row(name: str, peak: Peak, unit: str) -> tuple[str, ...]:
    return name, format_rate(peak.best, unit), format_rate(peak.median, unit), peak.work
