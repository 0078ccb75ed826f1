"""Which change points are proved: by a job of their own, of the two ends of the stretch, measured in pairs afterwards.

The jobs in which a change point was found cannot prove it: it was chosen because they were far off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pyrometer.guard.gate import Gate
from pyrometer.guard.history.changes import ChangePoint
from pyrometer.guard.history.series import Recorded
from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc

MOST_PROOFS = 2
"""Jobs of one change: what the second leaves undecided stays so, since trying on would prove anything in the end."""

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


def with_proofs(
    points: Iterable[ChangePoint], proofs: Sequence[Recorded], accepted: Mapping[str, str]
) -> list[Change]:
    """What is known of change points.

    Args:
        points: as they were found.
        proofs: jobs of two ends, the oldest first.
        accepted: reasons by commit; a commit stands for every change whose last commit it is.
    """
    by_ends: dict[tuple[str, str], list[Recorded]] = {}
    for job in proofs:
        if job.report.trusted:
            by_ends.setdefault(job.ends, []).append(job)
    return [_judged(point, by_ends, accepted.get(point.head_sha)) for point in points]


def _judged(
    point: ChangePoint, by_ends: Mapping[tuple[str, str], Sequence[Recorded]], reason: str | None
) -> Change:
    if point.is_exact:
        return Change(point=point, state="proved", accepted=reason)
    jobs = by_ends.get((point.base_sha, point.head_sha), [])
    told = [(job, gate) for job in jobs if (gate := _gate(job, point)) is not None]
    if not told:
        return Change(point=point, state="to prove", accepted=reason)
    job, gate = told[-1]
    state = _state(gate, point)
    return Change(
        point=point,
        state="to prove" if state == "undecided" and len(told) < MOST_PROOFS else state,
        proof_run=job.run_id,
        proof_ratio=gate.ratio,
        proof_ci_low=gate.ci_low,
        proof_ci_high=gate.ci_high,
        accepted=reason,
    )


def _gate(job: Recorded, point: ChangePoint) -> Gate | None:
    wanted = (point.benchmark, point.metric)
    return next((gate for gate in job.report.gates if (gate.benchmark, gate.metric) == wanted), None)


def _state(gate: Gate, point: ChangePoint) -> State:
    """A change that was proved to be one is one, though within its limit."""
    is_worse = gate.outcome == "regressed" or gate.warning is not None
    if is_worse if point.is_worse else gate.outcome == "improved":
        return "proved"
    return "undecided" if gate.outcome == "undecided" else "refuted"


def requests(changes: Iterable[Change]) -> list[ProofRequest]:
    """The jobs that would prove what is open, the newest change first; each job runs once for all that it proves."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        if change.state == "to prove":
            benchmarks = wanted.setdefault((change.point.base_sha, change.point.head_sha), [])
            if change.point.benchmark not in benchmarks:
                benchmarks.append(change.point.benchmark)
    return [
        ProofRequest(base_sha=base, head_sha=head, benchmarks=benchmarks)
        for (base, head), benchmarks in reversed(wanted.items())
    ]
