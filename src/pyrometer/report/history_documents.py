"""What is printed with `--json` of several runs, commits or versions."""

from __future__ import annotations

from typing import Annotated

from pyrometer.document import Document
from pyrometer.guard.exchange.past import PastPoint
from pyrometer.guard.history.record import History
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Seconds
from pyrometer.record import doc
from pyrometer.rollout.judging.judgement import Guard, MetricTest, Outcome
from pyrometer.rollout.state import Decision, Point, Status
from pyrometer.store.comparison import Comparison
from pyrometer.tuning.recipe.comparing import RecipeComparison


class GuardHistoryDocument(Document, frozen=True, kw_only=True):
    """`pyrometer guard history --json`."""

    target: Annotated[str, doc("the newest recorded commit")]
    environment: Annotated[Environment | None, doc("of the machine that recorded")] = None
    history: History
    num_elsewhere: Annotated[
        int, doc("recorded jobs of other machines or settings, which count for nothing")
    ] = 0
    past: Annotated[
        list[PastPoint], doc("what other tools measured, the oldest first: for display, never compared")
    ] = []


class RolloutDocument(Document, frozen=True, kw_only=True):
    """`pyrometer rollout status NAME --json`, and what the other verbs of a rollout leave."""

    name: str
    old: Annotated[str, doc("the version that is there")]
    new: Annotated[str, doc("the version that is to replace it")]
    state: Status
    stage: Annotated[int, doc("from 1; all replicas with the old version count as the first")]
    stages: Annotated[list[float], doc("shares of the new version")]
    share: Annotated[float, doc("of the new version, now")]
    attempt: int = 1
    elapsed_s: Annotated[Seconds, doc("in this stage")] = 0.0
    outcome: Annotated[Outcome, doc("what the judge says of the next stage")]
    reason: str
    num_new: Annotated[int, doc("observations of the new version in this stage")] = 0
    num_old: int = 0
    tests: list[MetricTest] = []
    guards: Annotated[list[Guard], doc("broken ones, which need no statistics")] = []
    decisions: Annotated[list[Decision], doc("of this attempt, in order")] = []
    course: Annotated[list[Point], doc("what the tests said as observations came")] = []
    levers: Annotated[list[str], doc("rollouts of single levers below this name")] = []

    @property
    def target(self) -> str:
        """What is rolled out."""
        return self.name


class CompareDocument(Document, frozen=True, kw_only=True):
    """`pyrometer compare A B --json`."""

    target: Annotated[str, doc("what is compared with what")] = ""
    comparison: Comparison
    recipes: Annotated[RecipeComparison | None, doc("of two runs of tune only")] = None
