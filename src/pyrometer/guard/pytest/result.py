"""The outcome of one contract, and how a failure reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.record import Record, doc

ContractOutcome = Literal["kept", "broken", "undecided", "refused"]


class ContractResult(Record, frozen=True, kw_only=True):
    """What was promised, what was measured, and whether it holds."""

    contract: Annotated[str, doc("limit_latency, max_graph_breaks, …")]
    workload: str
    outcome: Annotated[
        ContractOutcome,
        doc(
            "undecided: the measurement does not tell; refused: the work did not run, so that nothing can be told"
        ),
    ]
    promised: Annotated[str, doc("in words")]
    measured: Annotated[str, doc("in words, with the interval where there is one")]
    limit: Annotated[float | None, doc("what is promised, in unit; null where it is no number")] = None
    value: Annotated[float | None, doc("what was measured, in unit")] = None
    low: Annotated[float | None, doc("lower end of its interval; null where it is counted")] = None
    high: float | None = None
    unit: Annotated[str, doc("s, bytes, share, breaks, recompiles, …")] = ""
    reason: Annotated[str | None, doc("why it is undecided or refused")] = None
    where: Annotated[list[str], doc("lines and parts that account for it, most important first")] = []
    advice: Annotated[str | None, doc("what to do next")] = None

    @property
    def sentence(self) -> str:
        """In one line.

        >>> ContractResult(contract="no_leak", workload="net", outcome="kept", promised="no", measured="0 B").sentence
        'no_leak kept: net, 0 B'
        """
        reason = f" ({self.reason})" if self.reason is not None else ""
        return f"{self.contract} {self.outcome}: {self.workload}, {self.measured}{reason}"

    @property
    def text(self) -> str:
        """A failure as an assertion shows it."""
        rows = [("promised", self.promised), ("measured", self.measured)]
        if self.reason is not None:
            rows.append(("reason", self.reason))
        rows += [("where" if number == 0 else "", line) for number, line in enumerate(self.where)]
        if self.advice is not None:
            rows.append(("next", self.advice))
        head = f"{self.contract} {self.outcome}: {self.workload}"
        return "\n".join([head, *(f"  {name:<10}{text}" for name, text in rows)])
