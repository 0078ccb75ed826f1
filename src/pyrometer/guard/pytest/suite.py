"""From what tests measured to the document of the session, through the reports of pytest."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pyrometer.bench.comparison.verdict import sentence
from pyrometer.files import replacing
from pyrometer.guard.pytest.fixture import PyrometerFixture
from pyrometer.guard.pytest.record import SentItem, SuiteItem, SuiteReport
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.record import Environment
from pyrometer.quantity import counted, format_seconds
from pyrometer.record import from_json, to_json
from pyrometer.redaction import redacted
from pyrometer.text import shown_path
from pyrometer.version import __version__


def attach(report: Any, used: PyrometerFixture, config: pytest.Config) -> None:
    """Let a report carry what is new since the last one of its test, and tell of all where it failed."""
    told = [*used.measurements, *used.verdicts, *used.contracts]
    if report.failed and told:
        report.sections.append(("pyrometer", "\n".join(_lines(used))))
    if len(told) == used.num_reported:
        return
    used.num_reported = len(told)
    item = SuiteItem(
        nodeid=report.nodeid,
        worker=getattr(config, "workerinput", {}).get("workerid"),
        outcome=report.outcome,
        measurements=used.measurements,
        verdicts=used.verdicts,
        contracts=used.contracts,
    )
    wanted = config.getoption("pyrometer_json") is not None
    report.pyrometer = to_json(SentItem(item=item, environment=_environment() if wanted else None)).decode()


def _lines(used: PyrometerFixture) -> list[str]:
    return [
        *(f"measured {one.name}: median {format_seconds(one.median_s)}" for one in used.measurements),
        *(f"compared {one.candidate} with {one.baseline}: {sentence(one)}" for one in used.verdicts),
        *(one.sentence for one in used.contracts),
    ]


@cache
def _environment() -> Environment:
    return read_environment()


def _latest(sent: Sequence[str]) -> list[SentItem]:
    """What the last report of each test brought: it holds what earlier ones did."""
    found: dict[str, SentItem] = {}
    for text in sent:
        one = from_json(SentItem, text)
        found.pop(one.item.nodeid, None)
        found[one.item.nodeid] = one
    return list(found.values())


def write_suite(file: Path, sent: Sequence[str], exit_status: int) -> None:
    """Write the document, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    items = _latest(sent)
    environments: list[Environment] = []
    for one in items:
        if one.environment is not None and one.environment not in environments:
            environments.append(one.environment)
    report = SuiteReport(
        tool_version=__version__,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        exit_status=exit_status,
        environments=environments,
        items=[one.item for one in items],
    )
    try:
        with replacing(file) as beside:
            beside.write_bytes(to_json(redacted(report), indent=2) + b"\n")
    except OSError as error:
        raise pytest.UsageError(
            f"--pyrometer-json {file}: {error.strerror}; name a file that can be written"
        ) from error


def summary(sent: Sequence[str], file: Path | None) -> str:
    """What was measured and promised, in a line."""
    items = [one.item for one in _latest(sent)]
    outcomes = Counter(contract.outcome for item in items for contract in item.contracts)
    parts = [f"{number} {outcome}" for outcome, number in outcomes.most_common()]
    num_measured = sum(len(item.measurements) + len(item.verdicts) for item in items)
    text = f"{counted(outcomes.total(), 'contract')}{': ' if parts else ''}{', '.join(parts)}; {counted(num_measured, 'measurement')}"
    return text if file is None else f"{text}; written to {shown_path(file)}"
