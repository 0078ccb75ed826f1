"""Two stored measurements beside each other: for the eye, never for a verdict."""

from __future__ import annotations

import shlex
from typing import Annotated

from pyrometer.bench.measurement import Measurement
from pyrometer.errors import InputError
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc, from_dict
from pyrometer.store.changes import RunChanges, SettingChange, changes_of
from pyrometer.store.run import Run, RunSummary

NOTE = (
    "These two were taken at different moments, so the machine may differ as much as the programs: "
    "these figures are for display and no verdict."
)


class Side(Record, frozen=True, kw_only=True):
    """One of two runs that are looked at together."""

    run: RunSummary
    measurement: Measurement


class Comparison(Record, frozen=True, kw_only=True):
    """Two runs beside each other."""

    a: Side
    b: Side
    ratio_of_medians: Annotated[
        Ratio | None,
        doc("median of B over median of A, no verdict; null where they differ in what a step does"),
    ]
    differ_in: Annotated[
        list[SettingChange],
        doc("why there is no ratio: target, work per step, clock; empty where there is one"),
    ] = []
    note: Annotated[str, doc("why the figures are no verdict")] = NOTE
    prove_with: Annotated[
        str | None, doc("the command that would give a verdict; null where both ran the same code")
    ]
    environment: Annotated[Environment | None, doc("of B; `changes` lists what was different for A")] = None
    changes: Annotated[RunChanges, doc("part by part, as far as both runs looked at it")] = RunChanges()


def compare_runs(a: Run, b: Run) -> Comparison:
    """Put two runs side by side.

    Raises:
        InputError: one of them holds no measurement.
        IncomparableError: they were taken on machines, or with settings, that must not be compared.
    """
    from pyrometer.hardware.fingerprint import require_comparable

    sides = [Side(run=run.summary(), measurement=_measurement(run)) for run in (a, b)]
    environments = [from_dict(Environment, run.environment) for run in (a, b)]
    require_comparable(*environments)
    apart = _apart(*sides)
    medians = [side.measurement.median_s for side in sides]
    if min(medians) <= 0:
        raise InputError(
            f"medians of {medians[0]:g} s and {medians[1]:g} s have no ratio; measure more steps at once"
        )
    return Comparison(
        a=sides[0],
        b=sides[1],
        ratio_of_medians=None if apart else medians[1] / medians[0],
        differ_in=apart,
        note=_note(apart),
        prove_with=_proof(a, b),
        environment=environments[1],
        changes=changes_of(a, b),
    )


def _apart(a: Side, b: Side) -> list[SettingChange]:
    """What makes a ratio of step times meaningless: the two need not do the same work in a step."""
    told = (
        ("target", a.run.target, b.run.target),
        ("work per step", _work(a.measurement), _work(b.measurement)),
        ("clock", a.measurement.clock, b.measurement.clock),
    )
    return [SettingChange(name=name, a=mine, b=other) for name, mine, other in told if mine != other]


def _work(m: Measurement) -> str:
    return f"{m.units_per_step:g} {m.unit}"


def _note(apart: list[SettingChange]) -> str:
    if not apart:
        return NOTE
    text = " and ".join(f"{change.name} ({change.a}, then {change.b})" for change in apart)
    return (
        f"No ratio and no verdict: the two differ in {text}, so that their steps need not do the same work, "
        "and they were taken at different moments."
    )


def _measurement(run: Run) -> Measurement:
    plain = (run.document.get("evidence") or {}).get("measurement") or run.document.get("baseline")
    if plain is None:
        raise InputError(
            f"run {run.id} ({run.kind}) holds no measurement; choose one of pyrometer bench TARGET or check"
        )
    return from_dict(Measurement, plain)


def _proof(a: Run, b: Run) -> str | None:
    """A command that runs the code of both in turns; `None` where there is no second code to run."""
    if a.target != b.target:
        return f"pyrometer bench {_factory(a)} --vs {_factory(b)}"
    if a.id == b.id or (a.commit_sha and a.commit_sha == b.commit_sha and not b.dirty):
        return None  # what the first changed without committing it, no commit holds
    # The same target at two moments: only code that exists twice can be run in turns.
    target = _factory(a)
    before = f"git worktree add ../before {a.commit_sha[:12] if a.commit_sha else 'COMMIT'}"
    if b.dirty or not b.commit_sha:
        return f"{before} && pyrometer bench ../before/{target} --vs {target}"
    after = f"git worktree add ../after {b.commit_sha[:12]}"
    return f"{before} && {after} && pyrometer bench ../before/{target} --vs ../after/{target}"


def _factory(run: Run) -> str:
    """What can be timed in turns: a script cannot, but a factory that is written into it."""
    if (run.document.get("evidence") or {}).get("script") is None:
        return shlex.quote(run.target)
    return shlex.quote(run.target.split()[0]) + ":FACTORY"
