"""What came of tuning a loader."""

from __future__ import annotations

from typing import Annotated, Any

from torch.utils.data import DataLoader

from pyrometer.bench.comparison.verdict import Outcome
from pyrometer.loading.loader import with_settings
from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc


class TriedSettings(LoaderSettings, frozen=True, kw_only=True):
    """One setting: measured, or refused before or after it was."""

    batch_s: Annotated[
        Seconds | None,
        doc("time per batch with the step, and its part of the workers' start; null when it did not run"),
    ] = None
    low_s: Annotated[Seconds | None, doc("lower end of the 95 % interval")] = None
    high_s: Annotated[Seconds | None, doc("upper end of the 95 % interval")] = None
    predicted_s: Annotated[
        Seconds | None, doc("what the model said before it was measured; null for the first")
    ] = None
    wait_fraction: Annotated[float | None, doc("share of the time spent waiting for batches")] = None
    start_s: Annotated[Seconds | None, doc("until the first batch was there")] = None
    memory_bytes: Annotated[
        Bytes | None,
        doc("of the workers alone and their batches: measured, or predicted where it did not run"),
    ] = None
    refused: Annotated[str | None, doc("why it cannot be chosen; null when it can")] = None


class LoaderGain(Record, frozen=True, kw_only=True):
    """The chosen setting against the loader as it was, in paired blocks of random order."""

    outcome: Outcome
    ratio: Annotated[Ratio, doc("time per batch, new over old; below 1 is faster")]
    ci_low: Annotated[Ratio | None, doc("null when there were too few blocks for a bound")] = None
    ci_high: Annotated[Ratio | None, doc("null when there were too few blocks for a bound")] = None
    confidence: Annotated[float, doc("coverage of the interval, over all looks together")]
    num_blocks: int
    needed_s: Annotated[
        Seconds | None, doc("about how much more time leads to the next look; null when it is decided")
    ] = None
    candidate: Annotated[LoaderSettings, doc("what was compared with the loader as it was")]


class LoaderTuning(Record, frozen=True, kw_only=True):
    """Which settings a loader should have, and the proof."""

    before: Annotated[LoaderSettings, doc("the loader as it was")]
    best: Annotated[LoaderSettings, doc("what to use: as it was, unless something is proved to be better")]
    tried: Annotated[list[TriedSettings], doc("in the order in which they came up")]
    gain: Annotated[LoaderGain | None, doc("null when nothing was worth a comparison")] = None
    knee: Annotated[int, doc("the number of workers from which on more bring nothing, by the model")]
    sentence: str
    use: Annotated[str, doc("the code to write")]
    step_s: Annotated[
        Seconds, doc("the step without its data, that the loader must keep up with; 0 for none")
    ] = 0.0
    elapsed_s: Seconds = 0.0
    notes: list[str] = []

    def apply(self, loader: DataLoader[Any]) -> DataLoader[Any]:
        """The loader with the best settings: the same dataset, sampler, generator, collate function and class.

        >>> best = LoaderSettings(num_workers=2, prefetch_factor=2)
        >>> tuning = LoaderTuning(before=LoaderSettings(), best=best, tried=[], knee=2, sentence="", use="")
        >>> tuning.apply(DataLoader([1, 2, 3])).num_workers
        2
        """
        return with_settings(loader, self.best)
