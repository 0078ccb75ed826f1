"""What differs between two stored documents of the same kind, part by part; no verdicts, for the eye only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pyrometer.bench.measurement import PhaseTime
from pyrometer.record import Record, doc, from_dict
from pyrometer.rules.finding import Finding
from pyrometer.store.run import Run
from pyrometer.trace.records.breakdown import Parts


class Amount(Record, frozen=True, kw_only=True):
    """One part on both sides; a side that does not have it counts nothing."""

    name: str
    a: float
    b: float


class SettingChange(Record, frozen=True, kw_only=True):
    """A version or a setting of the machine that differs."""

    name: str
    a: str
    b: str


class RunChanges(Record, frozen=True, kw_only=True):
    """Two documents beside each other; what neither holds is empty."""

    phases_s: Annotated[list[Amount], doc("mean time per step of each phase, seconds")] = []
    parts: Annotated[list[Amount], doc("where traced time went, shares of it")] = []
    ledger_bytes: Annotated[list[Amount], doc("memory at the peak by category, bytes")] = []
    compiled: Annotated[list[Amount], doc("graphs, breaks and recompilations, counts")] = []
    findings_gone: Annotated[list[Finding], doc("of A that B does not have")] = []
    findings_new: Annotated[list[Finding], doc("of B that A does not have")] = []
    num_findings_kept: int = 0
    settings: Annotated[list[SettingChange], doc("versions and settings that differ")] = []


_COUNTS = {"graphs": "graphs", "breaks": "graph breaks", "recompiles": "recompilations"}


def changes_of(a: Run, b: Run) -> RunChanges:
    """Lay two documents beside each other.

    Findings are the same where rule, file and operator are: lines move as a program is worked on.
    """
    looked = all(_part(run, "diagnosis").get("reading") for run in (a, b))
    before, after = (_findings(a), _findings(b)) if looked else ({}, {})
    return RunChanges(
        phases_s=_amounts(_phases(a), _phases(b)),
        parts=_amounts(_parts(a), _parts(b)),
        ledger_bytes=_amounts(_ledger(a), _ledger(b)),
        compiled=_amounts(_counts(a), _counts(b)),
        findings_gone=[finding for key, finding in before.items() if key not in after],
        findings_new=[finding for key, finding in after.items() if key not in before],
        num_findings_kept=len(before.keys() & after.keys()),
        settings=_settings(a.environment, b.environment),
    )


def _part(run: Run, name: str) -> dict[str, Any]:
    """The evidence or the diagnosis of a run; empty where it has none."""
    part: dict[str, Any] = run.document.get(name) or {}
    return part


def _amounts(a: Mapping[str, float], b: Mapping[str, float]) -> list[Amount]:
    if not (a and b):
        return []  # only one of them looked
    return [Amount(name=name, a=a.get(name, 0.0), b=b.get(name, 0.0)) for name in dict.fromkeys([*a, *b])]


def _phases(run: Run) -> dict[str, float]:
    measured = _part(run, "evidence").get("measurement") or {}
    plain = measured.get("phases") or []
    return {phase.name: phase.mean_s for phase in (from_dict(PhaseTime, one) for one in plain)}


def _parts(run: Run) -> dict[str, float]:
    trace = _part(run, "evidence").get("trace")
    if trace is None:
        return {}
    parts = from_dict(Parts, trace["breakdown_ns"])
    named = {name: getattr(parts, name) for name in parts.__struct_fields__}
    whole = sum(named.values())
    return {name: value / whole for name, value in named.items() if value and whole}


def _ledger(run: Run) -> dict[str, float]:
    profile = _part(run, "evidence").get("memory") or {}
    return {name: float(value) for name, value in profile.get("ledger_bytes", {}).items() if value}


def _counts(run: Run) -> dict[str, float]:
    report = _part(run, "evidence").get("compiled")
    return {} if report is None else {name: float(_count(report[key])) for key, name in _COUNTS.items()}


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else int(value)


def _findings(run: Run) -> dict[tuple[str, str | None, str | None], Finding]:
    findings = [from_dict(Finding, one) for one in _part(run, "diagnosis").get("findings") or []]
    return {(finding.code, finding.where.file, finding.where.op): finding for finding in findings}


def _settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[SettingChange]:
    flat_a, flat_b = _flat(a), _flat(b)
    return [
        SettingChange(name=name, a=flat_a.get(name, "–"), b=flat_b.get(name, "–"))
        for name in dict.fromkeys([*flat_a, *flat_b])
        if flat_a.get(name) != flat_b.get(name)
    ]


def _flat(environment: Mapping[str, Any]) -> dict[str, str]:
    """Versions and settings by name; what the machine is made of must be equal anyway."""
    plain = {name: value for name, value in environment.items() if isinstance(value, (str, int, float, bool))}
    return {name: str(value) for name, value in {**plain, **environment.get("settings", {})}.items()}
