"""What is known of a suite from commit to commit."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.guard.gate import Kind
from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc

MORE_IS_BETTER = frozenset({"throughput", "cosine"})


class Point(Record, frozen=True, kw_only=True):
    """One commit in a series."""

    run_id: str
    created: str
    base_sha: Annotated[str, doc("the commit recorded before")]
    head_sha: str
    log_ratio: Annotated[float, doc("ln of this commit's figure over that of the commit before")]
    stderr: Annotated[float, doc("of log_ratio, over pairs of processes; 0 for what is counted exactly")]
    chained: Annotated[Ratio, doc("over the first commit of the series")]
    ci_low: Annotated[Ratio, doc("errors of all links together")]
    ci_high: Ratio
    shown: Annotated[
        float | None, doc("the figure itself, taken at its own moment: for display, never compared")
    ] = None


class Series(Record, frozen=True, kw_only=True):
    """One metric of one benchmark, the oldest commit first."""

    benchmark: str
    metric: str
    kind: Kind
    points: list[Point]

    @property
    def more_is_better(self) -> bool:
        """As of throughput."""
        return self.metric in MORE_IS_BETTER

    @property
    def is_exact(self) -> bool:
        """Whether every difference counts."""
        return all(point.stderr == 0 for point in self.points)


class ChangePoint(Record, frozen=True, kw_only=True):
    """A stretch of commits over which a metric changed."""

    benchmark: str
    metric: str
    is_worse: bool
    base_sha: Annotated[str, doc("the last commit before it")]
    head_sha: Annotated[
        str, doc("the last commit of it; any commit after base_sha up to it may be the cause")
    ]
    num_links: Annotated[int, doc("recorded commits in it: 1 is a jump, many are a creeping change")]
    ratio: Annotated[Ratio, doc("over the whole stretch, head over base")]
    ci_low: Ratio
    ci_high: Ratio
    is_exact: Annotated[bool, doc("a counter, which needs no proof")] = False


State = Literal["to prove", "proved", "refuted", "undecided"]


class Change(Record, frozen=True, kw_only=True):
    """A change point, and what is known of it."""

    point: ChangePoint
    state: Annotated[State, doc("proved and refuted by a job of its two ends; counters count as they are")]
    proof_run: Annotated[str | None, doc("run of the job that says so")] = None
    proof_ratio: Ratio | None = None
    proof_ci_low: Ratio | None = None
    proof_ci_high: Ratio | None = None
    commits: Annotated[
        list[str],
        doc("after base_sha up to head_sha, the oldest first; empty where the repository is not at hand"),
    ] = []
    accepted: Annotated[str | None, doc("why it is accepted; null where it is not")] = None

    @property
    def named(self) -> str | None:
        """The commit that did it: where it is proved and the stretch holds one commit only."""
        return self.commits[0] if self.state == "proved" and len(self.commits) == 1 else None

    @property
    def stands(self) -> bool:
        """Whether it is a proved regression that nobody has accepted."""
        return self.state == "proved" and self.point.is_worse and self.accepted is None


class ProofRequest(Record, frozen=True, kw_only=True):
    """One job to run: all change points of the same two ends."""

    base_sha: str
    head_sha: str
    benchmarks: list[str]


class SelfChecks(Record, frozen=True, kw_only=True):
    """How often base against base alarmed, over all stored jobs."""

    num_jobs: int
    num_alarms: int
    rate: Annotated[float | None, doc("alarms per job; null without jobs")]
    ci_low: Annotated[float, doc("Clopper and Pearson's interval")]
    ci_high: float


class History(Record, frozen=True, kw_only=True):
    """What is known of a suite from commit to commit."""

    num_commits: Annotated[int, doc("recorded, in one chain that ends at the newest")]
    first_sha: Annotated[str | None, doc("the commit that ratios are over; null without records")]
    last_sha: str | None
    series: list[Series]
    changes: Annotated[list[Change], doc("the oldest first")]
    to_prove: Annotated[list[ProofRequest], doc("jobs that would prove what is open, the newest first")]
    self_checks: SelfChecks
    num_outside: Annotated[int, doc("recorded jobs that the chain does not reach")] = 0
    num_untrusted: Annotated[int, doc("recorded jobs that alarmed at nothing, and so count for nothing")] = 0

    @property
    def standing(self) -> list[Change]:
        """Proved regressions that nobody has accepted."""
        return [change for change in self.changes if change.stands]
