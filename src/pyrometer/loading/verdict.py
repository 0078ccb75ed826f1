"""What a loader does to the training, in a word and a sentence. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pyrometer.loading.report import LoaderReport, LoadingVerdict
from pyrometer.quantity import Seconds, counted, format_percent, format_seconds, significant

HEALTHY = 0.05
"""Below this share of the step nothing is gained worth having."""

AT_LIMIT = 0.85
"""From this share of busy time on, workers have nothing left to give."""

LONG_START = 0.1
"""From this share of an epoch on, the start of the workers is what matters."""


@dataclass(frozen=True)
class LoadingFigures:
    """The figures that a verdict rests on; see `LoaderReport`."""

    has_loader: bool
    num_workers: int
    step_s: Seconds
    data_s: Seconds
    receive_s: Seconds = 0.0
    first_batch_s: Seconds = 0.0
    worker_busy: float | None = None
    occupancy: float | None = None
    starts_anew: bool = False
    epoch_batches: int | None = None

    @property
    def data_share(self) -> float:
        """Of the step, on getting batches."""
        return self.data_s / max(self.step_s, 1e-12)

    @property
    def free_data_ratio(self) -> float:
        """The step without any waiting, over the step."""
        return max(0.0, 1 - self.data_share)

    @property
    def start_share(self) -> float:
        """Of an epoch, until its first batch is there; 0 where that happens once for all epochs."""
        if not self.starts_anew or not self.epoch_batches:
            return 0.0
        return self.first_batch_s / (self.first_batch_s + self.epoch_batches * self.step_s)

    @property
    def starts_slowly(self) -> bool:
        """Whether the start of the workers is what an epoch waits for most."""
        per_step_s = self.first_batch_s / max(self.epoch_batches or 1, 1)
        return self.start_share >= LONG_START and per_step_s > self.data_s

    @property
    def at_limit(self) -> bool:
        """Whether the workers have nothing left to give; by the queue, where their time is not known."""
        if self.worker_busy is not None:
            return self.worker_busy >= AT_LIMIT
        return self.occupancy is not None and self.occupancy < 0.15


def classify(seen: LoadingFigures) -> LoadingVerdict:
    """The verdict.

    >>> classify(LoadingFigures(has_loader=True, num_workers=2, step_s=0.03, data_s=0.02, worker_busy=0.99))
    'starved-steady'
    """
    if not seen.has_loader:
        return "no-loader"
    if not seen.num_workers:
        return "serial" if seen.data_share >= HEALTHY else "healthy"
    if seen.starts_slowly:
        return "slow-start"
    if seen.data_share >= HEALTHY:
        return _waiting(seen)
    return "balanced" if seen.at_limit else "healthy"


def _waiting(seen: LoadingFigures) -> LoadingVerdict:
    if seen.at_limit:
        return "starved-steady"
    return "handover-bound" if seen.receive_s > seen.data_s / 2 else "bursty"


def sentence(seen: LoadingFigures, verdict: LoadingVerdict | None = None) -> str:
    """The verdict with its figures, in one sentence; `verdict` where it is known already."""
    spent = f"{format_seconds(seen.data_s)} of {format_seconds(seen.step_s)} per step ({format_percent(seen.data_share)})"
    free = f"with free data the step would be {significant(1 / max(seen.free_data_ratio, 1e-3), 3)}× faster"
    workers = counted(seen.num_workers, "worker")
    texts: dict[LoadingVerdict, str] = {
        "no-loader": f"the batches come from no DataLoader; getting them takes {spent}",
        "serial": f"loading and computing take turns: {spent} go to loading; {free}",
        "starved-steady": f"the step waits for {workers}, busy all the time: {spent}; {free}",
        "bursty": f"batches come unevenly: {spent} go to waiting, although the {workers} {_busy(seen)}; {free}",
        "handover-bound": f"batches that are ready take long to hand over: {spent} go to getting them from {workers}; {free}",
        "slow-start": f"the start of the workers takes {format_seconds(seen.first_batch_s)} of every epoch "
        f"({format_percent(seen.start_share, 2)}); after that the data is there",
        "balanced": f"the data is just there when it is asked for: waiting takes {spent}, and the {workers} {_busy(seen)}",
        "healthy": f"the step does not wait for its data: {spent}",
    }
    return texts[verdict or classify(seen)]


def retold(report: LoaderReport, *, step_s: Seconds, data_s: Seconds) -> str:
    """The sentence with the figures of other steps than the watched ones; another one where these wait and those did not."""
    if report.verdict == "slow-start":  # which tells of an epoch, not of a step
        return report.sentence
    received = [
        stage.per_step_s for stage in report.stages if stage.name == "receive" and stage.where == "main"
    ]
    seen = LoadingFigures(
        has_loader=report.verdict != "no-loader",
        num_workers=report.settings.num_workers,
        step_s=step_s,
        data_s=data_s,
        receive_s=sum(received),
        worker_busy=report.worker_busy,
        occupancy=report.occupancy,
    )
    alike = (seen.data_share >= HEALTHY) == (report.data_share >= HEALTHY)
    return sentence(seen, report.verdict if alike else None)


def _busy(seen: LoadingFigures) -> str:
    if seen.worker_busy is None:
        return "keep up"
    if seen.num_workers == 1:
        return f"is busy {format_percent(seen.worker_busy, 2)} of the time"
    return f"are busy {format_percent(seen.worker_busy, 2)} of the time"
