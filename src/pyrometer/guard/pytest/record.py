"""What a test-suite measured and promised: the document of `--pyrometer-json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement
from pyrometer.guard.pytest.result import ContractResult
from pyrometer.hardware.record import Environment
from pyrometer.record import Record, doc


class SuiteItem(Record, frozen=True, kw_only=True):
    """One test that used the fixture."""

    nodeid: Annotated[str, doc("as pytest names it")]
    worker: Annotated[str | None, doc("of pytest-xdist; null without")] = None
    outcome: Annotated[Literal["passed", "failed", "skipped"], doc("of the phase that measured")]
    measurements: list[Measurement] = []
    verdicts: list[Verdict] = []
    contracts: list[ContractResult] = []


class SuiteReport(Record, frozen=True, kw_only=True):
    """Everything that one pytest session measured."""

    schema_version: int = 1
    tool_version: str
    created: Annotated[str, doc("when the session ended, ISO 8601 with time zone")]
    exit_status: Annotated[int, doc("of pytest: 0 all passed, 1 some failed, 2 interrupted, …")]
    environments: Annotated[
        list[Environment], doc("machines that measured, each once; more than one where workers are remote")
    ] = []
    items: Annotated[list[SuiteItem], doc("in the order in which they ended")] = []


class SentItem(Record, frozen=True, kw_only=True):
    """What travels with a report of pytest, from a worker to the process that writes the document."""

    item: SuiteItem
    environment: Environment | None = None
