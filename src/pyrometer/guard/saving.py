"""The report of a job becomes a run of the store, kind `guard`, from which histories are drawn."""

from __future__ import annotations

from pyrometer.guard.gate import GuardReport
from pyrometer.hardware.environment import Environment
from pyrometer.record import from_dict, to_dict
from pyrometer.store.place import Location
from pyrometer.store.run import Run
from pyrometer.store.saving import save_result

KIND = "guard"


def save_guard(
    report: GuardReport, location: Location, *, environment: Environment, command: list[str]
) -> Run:
    """Store the report of a job.

    Args:
        report: what was decided; its ratios are to the adjacent base, and `log_ratios` hold one value per pair.
        location: folder of the store, or its address.
        environment: of the machine that ran both sides.
        command: what made it, without secrets.

    Raises:
        StoreError: the store cannot be opened or written.
    """
    target = report.head.ref if report.head else ""
    return save_result(
        location, to_dict(report), kind=KIND, target=target, environment=environment, command=command
    ).run


def guard_report_of(run: Run) -> GuardReport:
    """The report that a stored run holds; fields of the document beside it are left out."""
    own = {name: run.document[name] for name in GuardReport.__struct_fields__ if name in run.document}
    return from_dict(GuardReport, own)
