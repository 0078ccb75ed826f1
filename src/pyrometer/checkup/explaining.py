"""What a check makes of all that was observed: findings, and the profile read in order."""

from __future__ import annotations

import msgspec

from pyrometer.checkup.checkup import Checkup
from pyrometer.checkup.options import CheckOptions
from pyrometer.evidence.evidence import Evidence
from pyrometer.rules.explain import explain


def explained(found: Checkup, options: CheckOptions) -> Checkup:
    """The same checkup with its findings and the reading of its profile."""
    diagnosis = explain(evidence_of(found), options.entries, options.rules)
    return msgspec.structs.replace(
        found,
        findings=diagnosis.findings,
        reading=diagnosis.reading,
        suppressed=diagnosis.suppressed,
        notes=[*failed(found), *found.notes, *diagnosis.notes],
    )


def failed(found: Checkup) -> list[str]:
    """What ended the program before its time: all that follows is about the steps before."""
    if found.measurement is not None and found.measurement.failure is not None:
        return []  # the measurement says so itself, before all else
    if found.script is not None and found.script.exit_code:
        return [f"the script ended with exit status {found.script.exit_code}"]
    return []


def evidence_of(found: Checkup) -> Evidence:
    """A checkup as evidence."""
    return Evidence(
        target=found.target,
        measurement=found.measurement,
        environment=found.environment,
        trace=found.trace,
        trace_verdict=found.trace_verdict,
        capture=found.capture,
        compiled=found.compiled,
        memory=found.memory_profile,
        loading=found.loading,
        program=found.program,
        numerics=found.numerics,
    )
