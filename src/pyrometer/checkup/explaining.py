"""What a check makes of all that was observed: findings, and the profile read in order."""

from __future__ import annotations

import msgspec

from pyrometer.checkup.checkup import Checkup
from pyrometer.checkup.options import CheckOptions
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.evidence import Evidence
from pyrometer.rules.explain import explain
from pyrometer.rules.hiding import hidden_by
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.program import program_modules


def explained(found: Checkup, options: CheckOptions) -> Checkup:
    """The same checkup with its findings and the reading of its profile."""
    evidence, notes = evidence_of(found, options)
    diagnosis = diagnose_evidence(evidence, options.rules)
    return msgspec.structs.replace(
        found,
        findings=diagnosis.findings,
        reading=diagnosis.reading,
        suppressed=diagnosis.suppressed,
        notes=[*failed(found), *found.notes, *notes, *diagnosis.notes],
    )


def failed(found: Checkup) -> list[str]:
    """What ended the program before its time: all that follows is about the steps before."""
    if found.measurement is not None and found.measurement.failure is not None:
        return []  # the measurement says so itself, before all else
    if found.script is not None and found.script.exit_code:
        return [f"the script ended with exit status {found.script.exit_code}"]
    return []


def evidence_of(found: Checkup, options: CheckOptions) -> tuple[Evidence, list[str]]:
    """A checkup as evidence, with the user's own source files.

    Args:
        found: what was observed.
        options: the files that the program begins with, and the limits of the rules.

    Returns:
        The evidence, and what of the sources could not be read.
    """
    modules, notes = program_modules(options.entries, options.rules.limits)
    evidence = Evidence(
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
        modules=tuple(modules),
        limits=options.rules.limits,
    )
    return evidence, notes


def diagnose_evidence(evidence: Evidence, settings: RuleSettings) -> Diagnosis:
    """Ask the rules that the user chose, and leave out what the user does not want to see."""
    return explain(evidence, settings.chosen(), hidden_by(evidence.modules, settings))
