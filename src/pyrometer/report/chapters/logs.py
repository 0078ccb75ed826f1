"""What `pyrometer monitor analyze` tells."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.monitor.logs.record import LogAnalysis
from pyrometer.report.chapters.chapter import Answer, Block, Chapter, Chart, Figures, Rows, Told
from pyrometer.report.chapters.surroundings import provenance
from pyrometer.report.charts.latency_trend import LatencyTrend
from pyrometer.report.facts import logs as of_logs
from pyrometer.report.facts.layout import Fact

MOST_FEATURES = 4


def tell(document: LogAnalysis) -> Told:
    """Latency over time, what it goes with, what compiles anew, and which errors there are."""
    answer = Answer(
        of_logs.headline(document),
        f"{document.lines:,} lines of {len(document.files)} logs" if len(document.files) > 1 else f"{document.lines:,} lines of one log",
        bound=of_logs.bound(document),
        cautions=document.notes,
    )  # fmt: skip
    chapters = [
        Chapter("figures", "Latency in all", [Figures(of_logs.figures(document))], place="story"),
        _trend(document),
        *_correlations(document),
        *_triggers(document),
        *_clusters(document),
        *provenance(document, None, _facts(document)),
    ]
    return Told(answer, chapters)


def _trend(document: LogAnalysis) -> Chapter:
    trend = LatencyTrend(document.trend, document.change_points)
    blocks: list[Block] = [Chart("latency-trend", trend, "Latency over time")]
    if document.change_points:
        blocks.append(Rows(of_logs.change_table(document.change_points), "Changes of the level"))
    how = (
        "The solid line is the median, the dashed one P99, of the requests in each stretch of time. A vertical line is a change of "
        "level that lasted, and more than the noise and its memory explain."
    )
    change = "What changed at the same time need not be the cause: compare the two in one process, or roll one back."
    return Chapter(
        "trend",
        "Latency over time",
        blocks,
        how=how,
        change=change,
        says=of_logs.bound(document),
        label="Trend",
    )


def _correlations(document: LogAnalysis) -> Iterator[Chapter]:
    if not document.correlations:
        return
    blocks: list[Block] = [Rows(of_logs.correlation_table(document.correlations), "Features and latency")]
    blocks += [
        Rows(of_logs.value_table(one), f"By {one.feature}") for one in document.correlations[:MOST_FEATURES]
    ]
    how = (
        "A feature explains the share of the variance of log-latency that lies between its values; by itself is what no other feature "
        "explains as well. The last column compares a value's share of the slowest 1 % with its share of all requests."
    )
    change = "Features that always go together cannot be told apart by a log: vary one of them alone."
    yield Chapter("correlations", "What latency goes with", blocks, how=how, change=change, label="Features")


def _triggers(document: LogAnalysis) -> Iterator[Chapter]:
    if document.triggers:
        rows = Rows(of_logs.trigger_table(document.triggers), "What triggers compilations")
        how = "A pattern is listed when it holds more of the events than chance would put there."
        yield Chapter(
            "triggers", "What triggers compilations and graph breaks", [rows], how=how, label="Compiled"
        )


def _clusters(document: LogAnalysis) -> Iterator[Chapter]:
    if document.clusters:
        rows = Rows(of_logs.cluster_table(document.clusters), "Clusters of errors")
        how = "Errors whose texts differ in figures, names and addresses alone are one cluster."
        yield Chapter("errors", "Errors", [rows], how=how, label="Errors")


def _facts(document: LogAnalysis) -> list[Fact]:
    facts = [Fact("logs", ", ".join(document.files)), Fact("Pyrometer", document.tool_version)]
    if document.begins and document.ends:
        facts.insert(1, Fact("time", f"{of_logs.clock(document.begins)} to {of_logs.clock(document.ends)}"))
    return [
        *facts,
        Fact("slow lines", f"{document.num_slow:,}", "logged beside the sample, and in no quantile"),
    ]
