"""Evidence of traces: files of one or many ranks, or a capture."""

from __future__ import annotations

from typing import Any

from pyrometer.evidence.evidence import Evidence
from pyrometer.trace.reporting.job_report import JobReport
from pyrometer.trace.reporting.verdict import judge_all


def evidence_of_trace(target: str, report: JobReport, **beside: Any) -> Evidence:
    """What traces tell of a program; the rank that is looked at is the one that the verdict is about.

    Args:
        target: as it was typed.
        report: on all ranks.
        beside: other parts that are known, such as `environment` and `capture`.
    """
    return Evidence(target=target, **parts_of_trace(report), **beside)


def parts_of_trace(report: JobReport) -> dict[str, Any]:
    """The parts of evidence that traces fill, by name."""
    verdict = judge_all(report.ranks, report.job)
    about = None if verdict is None else verdict.rank
    return {
        "trace": next((rank for rank in report.ranks if rank.rank == about), None),
        "trace_verdict": verdict,
        "ranks": report.ranks if len(report.ranks) > 1 else [],
        "job": report.job,
    }
