"""How the ranks of a job ran beside each other."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Annotated

from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc
from pyrometer.trace.records.rank import TraceVerdict
from pyrometer.workload.ranks.record import Stall


class RankOutcome(Record, frozen=True, kw_only=True):
    """One rank, as its own script was seen; what its trace tells is in `job`."""

    rank: int
    host: str | None = None
    exit_code: Annotated[int, doc("exit status; negative is the signal that ended it")]
    num_steps: int
    step_s: Annotated[Seconds | None, doc("median of the regular steps that nothing disturbed")] = None
    data_share: Annotated[Ratio | None, doc("of these steps, waiting for data")] = None
    peak_bytes: Annotated[Bytes | None, doc("highest resident memory")] = None
    allocated_peak_bytes: Annotated[Bytes | None, doc("of torch's allocator")] = None
    micro_batch: Annotated[int | None, doc("samples of a batch of its loader; null without one")] = None
    accumulation: Annotated[int | None, doc("backward passes per step of the optimizer")] = None
    is_traced: bool = False


class LaunchOutcome(Record, frozen=True, kw_only=True):
    """All ranks of a job that ran under observation."""

    num_ranks: int
    ranks: list[RankOutcome]
    leading: Annotated[int | None, doc("the rank that the measurement is of")]
    stalls: Annotated[list[Stall], doc("times in which ranks did not move")] = []
    restarts: Annotated[int, doc("times that the launcher began anew; the last attempt is told")] = 0

    @property
    def missing(self) -> list[int]:
        """Ranks of which nothing was seen."""
        return sorted(set(range(self.num_ranks)) - {one.rank for one in self.ranks})

    @property
    def failed(self) -> list[RankOutcome]:
        """Ranks that did not end well, those that the launcher ended last."""
        return failed_ranks(self.ranks)

    @property
    def global_batch(self) -> int | None:
        """Ranks times micro-batch times accumulation; `None` where ranks differ or one of them is not known."""
        batches = {(one.micro_batch, one.accumulation) for one in self.ranks}
        if len(batches) != 1:
            return None
        micro, times = batches.pop()
        return None if micro is None or times is None else self.num_ranks * micro * times


def failed_ranks(ranks: Sequence[RankOutcome]) -> list[RankOutcome]:
    """Ranks that did not end well; those that a launcher ended by SIGTERM after another had failed come last."""
    return sorted((one for one in ranks if one.exit_code), key=lambda one: one.exit_code == -signal.SIGTERM)


def leading_rank(ranks: Sequence[RankOutcome], verdict: TraceVerdict | None) -> int | None:
    """The rank whose figures are told where one is: the first that failed, else the one that the verdict is about."""
    failed = failed_ranks(ranks)
    if failed:
        return failed[0].rank
    if verdict is not None:
        return verdict.rank
    return ranks[0].rank if ranks else None
