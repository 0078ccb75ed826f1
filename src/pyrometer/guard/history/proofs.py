"""Which change points are proved: by a job of their own, of the two ends of the stretch, measured in pairs afterwards.

The jobs in which a change point was found cannot prove it: it was chosen because they were far off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyrometer.guard.gate import Gate
from pyrometer.guard.history.record import Change, ChangePoint, ProofRequest, State
from pyrometer.guard.history.series import Recorded

MOST_PROOFS = 2
"""Jobs of one change: what the second leaves undecided stays so, since trying on would prove anything in the end."""


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
