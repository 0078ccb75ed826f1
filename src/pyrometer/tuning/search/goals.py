"""Whether goals are met, and what the hardware leaves where they are not."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.quantity import Seconds
from pyrometer.tuning.levers.choice import Configuration
from pyrometer.tuning.outcome import Goal
from pyrometer.tuning.search.baseline import Baseline
from pyrometer.tuning.search.confirming import Confirmation
from pyrometer.tuning.search.remaining import remaining
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials.protocol import Source


def goals_of(
    source: Source, settings: TuneSettings, base: Baseline, confirmation: Confirmation, limit_s: Seconds
) -> Iterator[Goal]:
    """Each goal that was given, with what was reached: by the recipe where one was confirmed, else by the baseline.

    What the hardware leaves is looked for within a time.
    """
    verdict = confirmation.verdict if confirmation.configuration else None
    if settings.latency_s is not None:
        before = base.measurement.median_s
        # Of the confirmation too, whose figures are those that are told.
        reached = before if verdict is None else (verdict.baseline_s or before) * verdict.ratio
        met = reached <= settings.latency_s
        known = source != Source()  # not of a script
        dtype = _dtype(confirmation.configuration)
        left = "" if met or not known else _left(source, reached, dtype, limit_s)
        yield Goal(name="latency", goal=settings.latency_s, reached=reached, met=met, left=left)
    if settings.memory_bytes is not None:
        peak = confirmation.peak_bytes if confirmation.configuration else base.peak_bytes
        met_memory = None if peak is None else peak <= settings.memory_bytes
        yield Goal(name="memory", goal=settings.memory_bytes, reached=peak, met=met_memory)


def _left(source: Source, reached: Seconds, dtype: str, limit_s: Seconds) -> str:
    """What the hardware leaves; nothing where somebody does not want to wait for that: all else is known by now, and handed over."""
    try:
        return remaining(source, reached, dtype, limit_s)
    except KeyboardInterrupt:
        return ""


def _dtype(configuration: Configuration) -> str:
    """What most of the arithmetic is in."""
    names = {choice.lever for choice in configuration}
    if names & {"autocast_bf16", "cast_bf16", "openvino_bf16"}:
        return "bfloat16"
    return "float16" if "autocast_fp16" in names else "float32"
