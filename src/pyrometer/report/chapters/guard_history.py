"""What `pyrometer guard history` tells."""

from __future__ import annotations

from pyrometer.guard.exchange.past import PastPoint
from pyrometer.guard.history.history import GATED
from pyrometer.guard.history.record import Change, Series
from pyrometer.quantity import counted
from pyrometer.report.chapters.chapter import Answer, Block, Chapter, Chart, Code, Facts, Rows, Text, Told
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.charts.trend import Trend
from pyrometer.report.facts import guard_history as facts
from pyrometer.report.facts.layout import Fact
from pyrometer.report.history_documents import GuardHistoryDocument

MOST_DRAWN = 12
PROVE = "pyrometer guard history --prove"

CHANGES_HOW = (
    "A change point names a neighbourhood of commits. It is proved, or refuted, by a job of its two ends that is run afterwards; a commit is "
    "named only where that proves it and no other commit lies between."
)
CHANGES_WOULD = "Another proof: the jobs of a change point were chosen because they were far off."
TRENDS_HOW = (
    "Each commit was measured beside the one that was recorded before it; the line multiplies these ratios, and the band holds their errors "
    "together, so that it widens with every commit."
)
TRENDS_WOULD = (
    "Times of different moments are shown and never compared: the machine changes more than the code."
)
CHECKS_HOW = "Every job also runs its base against itself. How often that alarms is how often the guard is wrong on these machines."

PAST_HOW = (
    "Figures of another tool, each taken at its own moment, perhaps on other machines: they show where a benchmark was, and nothing is "
    "compared with them."
)


def tell(document: GuardHistoryDocument) -> Told:
    """What changed and what proves it, where every metric stands, and how far the guard can be trusted."""
    history = document.history
    answer = Answer(
        facts.headline(history),
        facts.subtitle(history),
        tone="slower" if history.standing else "undecided" if history.to_prove else "same",
        cautions=facts.cautions(document),
    )
    chapters = [*_changes(document), *_proofs(document), *_trends(document)]
    chapters.append(Chapter("checks", "False alarms", [Facts(facts.check_facts(history))], how=CHECKS_HOW))
    chapters += _past(document.past)
    chapters += machine(document.environment)
    own = [Fact("newest commit", document.target)]
    return Told(answer, chapters + provenance(document, document.environment, own))


def tell_past(point: PastPoint) -> Told:
    """What another tool measured at one commit."""
    known = [
        Fact("commit", point.commit or "–"),
        *(Fact(name, value) for name, value in point.machine.items()),
    ]
    answer = Answer(
        f"{point.tool}: {counted(len(point.figures), 'figure')}", point.taken_at or "", cautions=point.notes
    )
    return Told(answer, [*_past([point]), *provenance(point, None, known)])


def _past(points: list[PastPoint]) -> list[Chapter]:
    if not points:
        return []
    return [Chapter("past", "What other tools measured", [Rows(facts.past_table(points))], how=PAST_HOW)]


def _changes(document: GuardHistoryDocument) -> list[Chapter]:
    changes = document.history.changes
    if not changes:
        return []
    rows = Rows(facts.change_table(changes))
    return [Chapter("changes", "Changes", [rows], how=CHANGES_HOW, change=CHANGES_WOULD)]


def _proofs(document: GuardHistoryDocument) -> list[Chapter]:
    if not document.history.to_prove:
        return []
    blocks: list[Block] = [Text("This measures both ends of each open change anew:"), Code(PROVE)]
    return [Chapter("proof", "To prove them", blocks)]


def _trends(document: GuardHistoryDocument) -> list[Chapter]:
    history = document.history
    if not history.series:
        return []
    drawn = [one for one in history.series if one.metric in GATED or _changed(document, one)]
    drawn.sort(key=lambda one: not _changed(document, one))
    blocks: list[Block] = [
        Chart("trend", Trend(one, _changed(document, one)), caption=f"{one.benchmark} · {one.metric}")
        for one in drawn[:MOST_DRAWN]
        if len(one.points) > 1
    ]
    blocks.append(Rows(facts.trend_table(history.series)))
    return [Chapter("trends", "Trends", blocks, how=TRENDS_HOW, change=TRENDS_WOULD)]


def _changed(document: GuardHistoryDocument, series: Series) -> list[Change]:
    name = (series.benchmark, series.metric)
    return [one for one in document.history.changes if (one.point.benchmark, one.point.metric) == name]
