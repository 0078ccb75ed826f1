"""What the judge looks at: counts per epoch of shares, and for replicas per block of time."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc
from pyrometer.rollout.counts import Counts, add_counts

OLD = "old"
NEW = "new"


class Reported(Record, frozen=True, kw_only=True):
    """What one process counted of one version under one share; a later report of the same process takes its place."""

    epoch: int
    arm: Annotated[str, doc("old or new")]
    reporter: Annotated[str, doc("process, or replica, that counted")]
    block: Annotated[int, doc("of time, for replicas; 0 for what chance assigns")] = 0
    counts: Counts = Counts()


class Epoch(Record, frozen=True, kw_only=True):
    """All that was counted under one share."""

    share: float
    new: Counts = Counts()
    old: Counts = Counts()


class Observed(Record, frozen=True, kw_only=True):
    """All that was counted since the rollout started."""

    epochs: list[Epoch]
    reports: Annotated[list[Reported], doc("of replicas, one by one; empty where chance assigns")] = []


def observed(shares: list[float], reports: list[Reported], *, keep_reports: bool) -> Observed:
    """Add up reports; `shares` are those of the epochs, in order."""
    found: dict[tuple[int, str], list[Counts]] = {}
    for report in reports:
        found.setdefault((report.epoch, report.arm), []).append(report.counts)
    epochs = [
        Epoch(
            share=share,
            new=add_counts(found.get((number, NEW), [])),
            old=add_counts(found.get((number, OLD), [])),
        )
        for number, share in enumerate(shares)
    ]
    return Observed(epochs=epochs, reports=reports if keep_reports else [])
