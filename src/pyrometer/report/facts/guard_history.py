"""What a suite's history says."""

from __future__ import annotations

from pyrometer.guard.exchange.past import PastPoint
from pyrometer.guard.history.record import Change, History, Series
from pyrometer.quantity import Ratio, counted, format_bytes, format_seconds
from pyrometer.report.facts.layout import Fact, Table, percent
from pyrometer.report.history_documents import GuardHistoryDocument

DIGITS = 9
"""Of a commit."""


def headline(history: History) -> str:
    """Whether something got worse and stays so."""
    if history.standing:
        return f"{counted(len(history.standing), 'regression')} proved and not accepted"
    if history.to_prove:
        return f"{counted(len(history.to_prove), 'change')} to prove"
    return "nothing got worse" if history.num_commits else "no commit is recorded yet"


def subtitle(history: History) -> str:
    """Over which commits."""
    said = f"{counted(history.num_commits, 'recorded commit')}"
    return f"{said} · since {history.first_sha[:DIGITS]}" if history.first_sha else said


def cautions(document: GuardHistoryDocument) -> list[str]:
    """What does not count, and why."""
    history = document.history
    told = (
        (history.num_untrusted, "that alarmed at nothing: record those commits again"),
        (history.num_outside, "that no chain leads to: their base was not recorded"),
        (document.num_elsewhere, "of another machine or of other settings"),
    )
    return [f"left out: {counted(count, 'job')} {why}" for count, why in told if count]


def check_facts(history: History) -> list[Fact]:
    """How often the guard alarms where nothing changed."""
    checks = history.self_checks
    if checks.rate is None:
        return [Fact("base against base", "not run yet")]
    interval = f"{percent(checks.ci_low)} to {percent(checks.ci_high)}, 99 % confidence"
    return [
        Fact("base against base", f"{checks.num_alarms:,} of {counted(checks.num_jobs, 'job')} alarmed"),
        Fact("rate of false alarms", percent(checks.rate), interval),
    ]


def change_table(changes: list[Change]) -> Table:
    """Each change with its proof, the newest first."""
    columns = ("benchmark", "metric", "change", "state", "commits")
    return Table(columns, [_change(change) for change in reversed(changes)], frozenset({1, 3, 4}))


def _change(change: Change) -> tuple[str, ...]:
    point = change.point
    if change.proof_ratio is not None:
        how_much = _percent(change.proof_ratio, change.proof_ci_low, change.proof_ci_high)
    else:
        how_much = _percent(point.ratio, point.ci_low, point.ci_high)
    state = change.state if change.accepted is None else f"accepted: {change.accepted}"
    return point.benchmark, point.metric, how_much, state, where(change)


def where(change: Change) -> str:
    """The commit where it is proved, else the range of commits that it lies in."""
    if change.named is not None:
        return change.named[:DIGITS]
    ends = f"{change.point.base_sha[:DIGITS]}..{change.point.head_sha[:DIGITS]}"
    return f"{ends}, {counted(len(change.commits), 'commit')}" if change.commits else ends


def _percent(ratio: Ratio, low: Ratio | None, high: Ratio | None) -> str:
    said = f"{(ratio - 1) * 100:+.1f} %"
    if low is None or high is None or low == high:
        return said
    return f"{said} ({(low - 1) * 100:+.1f} to {(high - 1) * 100:+.1f})"


def trend_table(series: list[Series]) -> Table:
    """Where each metric stands, against the first commit."""
    columns = ("benchmark", "metric", "commits", "since the first", "last figure")
    return Table(columns, [_trend(one) for one in series], frozenset({1}))


def _trend(series: Series) -> tuple[str, ...]:
    last = series.points[-1]
    since = _percent(last.chained, last.ci_low, last.ci_high)
    shown = "–" if last.shown is None else figure(series.metric, last.shown)
    return series.benchmark, series.metric, f"{len(series.points):,}", since, shown


def past_table(points: list[PastPoint]) -> Table:
    """Of each benchmark of another tool on one machine the first figure and the last."""
    found: dict[tuple[str, ...], list[float]] = {}
    for point in points:
        tool, machine = (
            point.tool.partition(" ")[0],
            point.machine.get("machine") or point.machine.get("node", "–"),
        )
        for one in point.figures:
            found.setdefault((one.benchmark, one.metric, tool, machine), []).append(one.value)
    rows = [
        (*key, f"{len(values):,}", figure(key[1], values[0]), figure(key[1], values[-1]))
        for key, values in found.items()
    ]
    columns = ("benchmark", "metric", "tool", "machine", "commits", "first figure", "last figure")
    return Table(columns, rows, frozenset({1, 2, 3}))


def figure(metric: str, value: float) -> str:
    """A figure in the unit that the name of its metric says.

    >>> figure("median_s", 0.0123), figure("peak_bytes", 2**20), figure("operators", 41.0)
    ('12.3 ms', '1.00 MiB', '41')
    """
    if metric.endswith("_s"):
        return format_seconds(value)
    return format_bytes(round(value)) if metric.endswith("_bytes") else f"{value:,.4g}"
