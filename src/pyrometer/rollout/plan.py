"""What a rollout means to do: the versions, the stages, what is tested, and how much harm is tolerable. Fixed before it starts."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

import msgspec

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.rollout.counts import DISAGREED, ERRORS, LATENCY
from pyrometer.settings import require

STAGES = (0.01, 0.05, 0.2, 0.5, 1.0)
Assignment = Literal["batch", "unit", "replicas"]
FEWEST_REPLICAS = 3
FEWEST_CALM_BLOCKS = 40


class Metric(Record, frozen=True, kw_only=True):
    """One thing that must not become worse."""

    name: str
    kind: Annotated[
        Literal["events", "values", "above", "agreement"],
        doc(
            "events: how often something happens; values: the mean logarithm of a quantity; above: how often a quantity exceeds "
            "a limit; agreement: how often outputs of the shadow differ from those that were answered"
        ),
    ]
    of: Annotated[str, doc("event or quantity that is counted; the name where empty")] = ""
    worse: Annotated[Literal["more", "less"], doc("which direction is harm")] = "more"
    tolerate: Annotated[float, doc("ratio to the old version that is no harm yet; 1 finds every harm")] = 1.0
    margin: Annotated[float, doc("ratio that must be ruled out before the last stages; wider before")] = 1.5
    allowed: Annotated[
        float | None, doc("share of observations below which events are fine whatever the old version does")
    ] = None
    limit: Annotated[
        float | None, doc("of above: the threshold; of agreement: the share that may differ")
    ] = None

    def __post_init__(self) -> None:
        """Refuse what cannot be tested."""
        where = f"metric {self.name!r}"
        require(self.margin > self.tolerate > 0, where, f"margin={self.margin:g}, tolerate={self.tolerate:g}",
                 "a margin above what is tolerated, such as margin=1.5, tolerate=1")  # fmt: skip
        needs_limit = self.kind in {"above", "agreement"}
        require(not needs_limit or (self.limit or 0) > 0, where, f"limit={self.limit}", "a limit above 0")
        require(self.kind != "agreement" or (self.limit or 0) < 1, where, f"limit={self.limit}", "a share below 1")  # fmt: skip

    @property
    def counted(self) -> str:
        """The event or quantity."""
        return self.of or self.name


class Plan(Record, frozen=True, kw_only=True):
    """A rollout before it starts.

    Raises:
        InputError: stages, shares or times that make no rollout.
    """

    name: str
    old: Annotated[str, doc("the version that is there")]
    new: Annotated[str, doc("the version that is to replace it, by a name or hash of its artefact")]
    stages: Annotated[list[float], doc("shares of the new version, rising, the last one 1")] = msgspec.field(
        default_factory=lambda: list(STAGES)
    )
    gates: Annotated[list[float], doc("shares that are left only after somebody approved")] = []
    min_s: Annotated[Seconds, doc("a stage takes at least so long")] = 60.0
    min_samples: Annotated[int, doc("observations of the new version in each stage")] = 200
    deadline_s: Annotated[Seconds, doc("a stage without a verdict for so long is taken back")] = 86400.0
    lease_s: Annotated[
        Seconds, doc("a process that cannot read the state for so long answers with the old version alone")
    ] = 60.0
    alpha: Annotated[float, doc("chance that a version like the old one is ever rolled back")] = 0.05
    metrics: list[Metric] = []
    control: Annotated[
        str,
        doc(
            "name of a second copy of the old version that gets as much as the new one and is what it is compared with: whatever "
            "answers rarely is slow to answer, since caches and threads are cold; empty compares with all of the old version"
        ),
    ] = ""
    assignment: Annotated[
        Assignment, doc("who is assigned by chance; replicas and groups of devices are not")
    ] = "batch"
    key: Annotated[str, doc("of the hash that assigns units")] = ""
    block_s: Annotated[Seconds, doc("replicas only: how long a block of observations is")] = 10.0
    most_blocks: Annotated[
        int, doc("replicas only: calm ones, and ones since, after which nothing more is expected of waiting")
    ] = 720
    max_failures: Annotated[int, doc("attempts after which a version is refused")] = 3

    def __post_init__(self) -> None:
        """Refuse what cannot be carried out."""
        where, stages = f"rollout {self.name!r}", self.stages
        rising = all(a < b for a, b in pairwise(stages))
        shares = bool(stages) and rising and stages[0] > 0 and stages[-1] == 1
        require(bool(self.name) and self.name.isprintable() and len(self.name) <= 120, where, repr(self.name)[:130], "a name of 1 to 120 printable characters")  # fmt: skip
        require(self.old != self.new and bool(self.old) and bool(self.new), where, f"old={self.old!r}, new={self.new!r}", "two different versions")  # fmt: skip
        require(self.control not in {self.old, self.new} and not (self.control and self.assignment == "replicas"), where, f"control={self.control!r}", "the name of a second copy of the old version, where chance assigns")  # fmt: skip
        require(shares, where, f"stages={stages}", "rising shares above 0 that end in 1, such as 0.01, 0.05, 0.2, 0.5, 1")  # fmt: skip
        require(set(self.gates) <= set(stages), where, f"gates={self.gates}", f"some of the stages, {stages}")  # fmt: skip
        require(0 < self.alpha < 0.5, where, f"alpha={self.alpha:g}", "above 0 and below 0.5, such as 0.05")
        require(self.min_s >= 0 and self.min_samples > 0, where, f"min_s={self.min_s:g}, min_samples={self.min_samples}", "0 s or more, and 1 sample or more")  # fmt: skip
        require(self.deadline_s > self.min_s, where, f"deadline_s={self.deadline_s:g}", f"more than min_s={self.min_s:g}")  # fmt: skip
        require(
            self.most_blocks >= 2 * FEWEST_CALM_BLOCKS,
            where,
            f"most_blocks={self.most_blocks}",
            f"{2 * FEWEST_CALM_BLOCKS} or more",
        )
        require(self.block_s > 0 and self.lease_s > 0 and self.max_failures > 0, where, f"block_s={self.block_s:g}, lease_s={self.lease_s:g}, max_failures={self.max_failures}", "above 0")  # fmt: skip
        names = [metric.name for metric in self.metrics]
        require(bool(names) and len(set(names)) == len(names), where, f"metrics={names}", "one or more metrics, each with a name of its own")  # fmt: skip

    def control_share(self, share: float) -> float:
        """What the second copy of the old version gets beside a share of the new one."""
        return min(share, 1 - share) if self.control else 0.0

    def tested_share(self, share: float) -> float:
        """Of the new version among what is compared.

        >>> plan = Plan(name="p", old="v1", new="v2", control="v1b", metrics=default_metrics())
        >>> plan.control_share(0.2), plan.tested_share(0.01), plan.tested_share(0.0)
        (0.2, 0.5, 0.0)
        """
        beside = self.control_share(share) if self.control else 1 - share
        return share / (share + beside) if share else 0.0

    @property
    def is_randomised(self) -> bool:
        """Whether chance assigns each observation."""
        return self.assignment != "replicas"


def default_metrics(
    thresholds_s: dict[str, Seconds] | None = None, *, agreement: float | None = None, tolerate: float = 1.0
) -> list[Metric]:
    """Errors, latency, and how often latency exceeds thresholds that are fixed now.

    Args:
        thresholds_s: by name, such as p50, p95 and p99 of the old version.
        agreement: share of outputs of the shadow that may differ; untested where null.
        tolerate: ratio of latencies that is no harm.
    """
    margins = {"p50": 1.3, "p95": 1.5}
    metrics = [
        Metric(name=ERRORS, kind="events", margin=2.0, allowed=0.001),
        Metric(name=LATENCY, kind="values", margin=max(1.05, tolerate * 1.05), tolerate=tolerate),
    ]
    metrics += [
        Metric(
            name=f"above-{name}", kind="above", of=LATENCY, margin=margins.get(name, 2.0), limit=limit_s,
            allowed=0.001,
        )
        for name, limit_s in (thresholds_s or {}).items()
    ]  # fmt: skip
    if agreement is not None:
        metrics.append(Metric(name=DISAGREED, kind="agreement", margin=2.0, limit=agreement))
    return metrics
