"""What a guard decided: one gate per benchmark and metric, and whether the job itself can be trusted."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.bench.comparison.verdict import ReferenceTests, Verdict
from pyrometer.document import Document
from pyrometer.errors import ExitCode
from pyrometer.hardware.record import Environment
from pyrometer.place import Place
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc

Kind = Literal["time", "counter", "memory", "accuracy"]
GateOutcome = Literal["regressed", "improved", "unchanged", "undecided"]
UndecidedPolicy = Literal["fail", "warn", "pass"]


class Cause(Record, frozen=True, kw_only=True):
    """One difference between the two sides that explains a gate."""

    text: Annotated[str, doc("what changed, with both figures")]
    place: Annotated[Place | None, doc("the line that it happens at, on the head's side")] = None


class Gate(Record, frozen=True, kw_only=True):
    """One metric of one benchmark, base against head."""

    benchmark: Annotated[str, doc("file, function and parameters: perf_model.py::perf_forward[batch=8]")]
    metric: Annotated[str, doc("median_s, p95_s, peak_bytes, graph_breaks, …")]
    kind: Kind
    outcome: GateOutcome
    ratio: Annotated[Ratio | None, doc("head over base; null where the base is zero")] = None
    ci_low: Ratio | None = None
    ci_high: Ratio | None = None
    base: Annotated[float | None, doc("the base's figure, in the unit that the metric's name says")] = None
    head: float | None = None
    limit: Annotated[float | None, doc("the ratio, or for accuracy the figure, beyond which it fails")] = None
    decisive: Annotated[
        bool, doc("whether an undecided outcome counts for the job; false for tails and first calls")
    ] = True
    warning: Annotated[str | None, doc("worse, but proved to be within the limit")] = None
    p_value: Annotated[float | None, doc("of no change, two-sided, before false discovery control")] = None
    log_ratios: Annotated[list[float], doc("ln(head/base), one value per pair of fresh processes")] = []
    heads: Annotated[list[float], doc("of median_s: the head's figure in each pair")] = []
    measured_as: Annotated[str | None, doc("of median_s: wall_min, cpu or device, as in `bench --vs`")] = None
    reference: Annotated[
        ReferenceTests | None, doc("textbook statistics of the pairs, never used for the outcome")
    ] = None
    why: list[Cause] = []


class Revision(Record, frozen=True, kw_only=True):
    """One side's commit."""

    ref: Annotated[str, doc("as it was named")]
    sha: str
    dirty: Annotated[bool, doc("whether changes that were not committed are part of it")] = False


class Missed(Record, frozen=True, kw_only=True):
    """A benchmark that could not be compared."""

    benchmark: str
    side: Annotated[Literal["base", "head"], doc("the side that lacks it, or where it failed")]
    reason: str
    failed: Annotated[bool, doc("whether it was there and raised; false where there is none of its name")]


class GuardReport(Document, frozen=True, kw_only=True):
    """`pyrometer guard check --json`: every gate of one job, and the base against itself."""

    target: Annotated[str, doc("the head, as it was named")] = ""
    environment: Annotated[Environment | None, doc("of the machine that ran both sides")] = None

    trusted: Annotated[bool, doc("whether base against base found no difference")]
    self_check: Annotated[Verdict | None, doc("base against base; null where nothing was timed")] = None
    gates: list[Gate] = []
    elapsed_s: Seconds = 0.0
    base: Revision | None = None
    head: Revision | None = None
    missed: Annotated[list[Missed], doc("benchmarks without a comparison, and why")] = []
    renamed: Annotated[
        dict[str, str],
        doc("benchmarks that the base knows by another name, which is told, and that do the same"),
    ] = {}
    num_pairs: Annotated[int, doc("pairs of fresh processes that were run")] = 0
    interrupted: Annotated[bool, doc("whether it was ended before its time; what was measured is kept")] = (
        False
    )
    notes: list[str] = []

    def exit_code(self, undecided: UndecidedPolicy = "fail") -> ExitCode:
        """How the job ends: 0 fine, 1 regressed, 2 no data, 3 undecided or not to be trusted.

        A failure on the head where the base works is no data: a guard without data never passes.

        Args:
            undecided: whether a job that decided nothing fails (3), or passes with or without a warning.

        >>> int(GuardReport(trusted=True).exit_code())
        2
        """
        if not self.gates or any(miss.failed and miss.side == "head" for miss in self.missed):
            return ExitCode.FAILURE
        if self.trusted and any(gate.outcome == "regressed" for gate in self.gates):
            return ExitCode.FOUND
        open_gates = any(gate.outcome == "undecided" and gate.decisive for gate in self.gates)
        if (open_gates or not self.trusted or self.interrupted) and undecided == "fail":
            return ExitCode.UNDECIDED
        return ExitCode.OK
