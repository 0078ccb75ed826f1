"""What `pyrometer rollout status` tells."""

from __future__ import annotations

from typing import Literal

from pyrometer.report.chapters.chapter import Alerts, Answer, Block, Chapter, Chart, Figures, Rows, Text, Told
from pyrometer.report.chapters.surroundings import provenance
from pyrometer.report.charts.course import Course
from pyrometer.report.facts import rollout as of_rollout
from pyrometer.report.facts.layout import Fact
from pyrometer.report.history_documents import RolloutDocument

Tone = Literal["slower", "faster", "undecided"]

TESTS_HOW = (
    "Harm is proved where the evidence reaches what is needed; the next stage comes where every interval stays within its margin. Both hold "
    "however often one looks. The margin is wider before early stages, where little traffic is at stake."
)
TESTS_WOULD = "More observations narrow every interval; Welch's test is shown for reference, and would be wrong for whoever looks twice."
COURSE_HOW = (
    "The line is the ratio of the new version to the old, the band its interval, from left to right as observations of the new version came. "
    "The dashed line is the margin of the next stage; a vertical line is a change of share."
)
COURSE_WOULD = (
    "A band that leaves 1 upwards takes the version back; one that falls below the margin lets it on."
)


def tell(document: RolloutDocument) -> Told:
    """Where a rollout stands and why, each test with its course, and all that was decided."""
    tone: Tone = {"rolled back": "slower", "promoted": "faster"}.get(document.state, "undecided")  # type: ignore[assignment]
    answer = Answer(of_rollout.headline(document), of_rollout.reason(document), leading=1, tone=tone)
    chapters = [Chapter("figures", "Where it stands", [Figures(of_rollout.figures(document))], place="story")]
    if document.guards:
        chapters.append(
            Chapter("guards", "Broken guards", [Alerts([guard.said for guard in document.guards])])
        )
    if document.tests:
        rows = Rows(of_rollout.test_table(document.tests), is_whole=True)
        chapters.append(Chapter("tests", "Tests", [rows], how=TESTS_HOW, change=TESTS_WOULD))
    chapters += _courses(document)
    decided: list[Block] = (
        [Rows(of_rollout.decision_table(document.decisions), is_whole=True)]
        if document.decisions
        else [Text("nothing was decided yet")]
    )
    chapters.append(Chapter("decisions", "Decisions", decided))
    own = [Fact("rollout", document.name), Fact("attempt", f"{document.attempt}")]
    return Told(answer, [*chapters, *provenance(document, None, own)])


def _courses(document: RolloutDocument) -> list[Chapter]:
    if len(document.course) < 2:
        return []
    blocks: list[Block] = [
        Chart("course", Course(test.metric, document.course, test.margin), test.metric)
        for test in document.tests
    ]
    return [
        Chapter("course", "Course of the tests", blocks, how=COURSE_HOW, change=COURSE_WOULD, label="Course")
    ]
