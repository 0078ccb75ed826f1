"""Recording and alert rules: error budgets burnt over two windows each, latency, unsound outputs, memory, compilation, the monitor itself.

An alert of severity `page` wants somebody now, a `ticket` within days.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pyrometer.monitor.dashboards.objectives import Objectives
from pyrometer.monitor.export.metrics import PREFIX

BY = "model, version, call"
WINDOWS = ("5m", "30m", "1h", "6h")


class Recording(NamedTuple):
    """A figure that is kept, since several rules and panels need it."""

    record: str
    expr: str


class Alert(NamedTuple):
    """A condition, and whom it concerns."""

    alert: str
    expr: str
    severity: Literal["page", "ticket"]
    summary: str
    advice: str
    hold: str | None = None


def error_ratio(window: str) -> str:
    """Name of the recorded share of calls that failed."""
    return f"pyrometer:request_errors:ratio_{window}"


def latency(quantile: str) -> str:
    """Name of a recorded quantile of latency."""
    return f"pyrometer:request_latency_seconds:{quantile}_5m"


def recordings() -> list[Recording]:
    """Everything that is recorded."""
    ratios = [
        Recording(
            error_ratio(window),
            f"(sum by ({BY}) (rate({PREFIX}request_errors_total[{window}])) or 0 * sum by ({BY}) "
            f"(rate({PREFIX}requests_total[{window}]))) / sum by ({BY}) (rate({PREFIX}requests_total[{window}]))",
        )
        for window in WINDOWS
    ]
    quantiles = [
        Recording(
            latency(name),
            f"histogram_quantile({share}, sum by (le, {BY}) (rate({PREFIX}request_latency_seconds_bucket[5m])))",
        )
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    ]
    rate = Recording("pyrometer:requests:rate_5m", f"sum by ({BY}) (rate({PREFIX}requests_total[5m]))")
    return [*ratios, *quantiles, rate]


def alerts(objectives: Objectives) -> list[Alert]:
    """Every alert, with the objectives in it."""
    budget = round(1 - objectives.availability, 9)
    found = [
        _burn("PyrometerErrorBudgetBurnsFast", "5m", "1h", 14.4, budget, "page"),
        _burn("PyrometerErrorBudgetBurns", "30m", "6h", 6, budget, "ticket"),
    ]
    if objectives.latency_s is not None:
        expr = f"{latency('p99')} > {objectives.latency_s:g}"
        summary = f"1 % of the calls of {_label('call')} take more than {objectives.latency_s:g} s"
        advice = "pyrometer show the run that the monitor recorded; compare versions and shapes"
        found.append(Alert("PyrometerLatencyHigh", expr, "page", summary, advice, "5m"))
    return [*found, *_soundness(objectives.hold), *_resources(), *_own()]


def _burn(  # noqa: PLR0917 - a row of a table
    name: str, short: str, long: str, factor: float, budget: float, severity: Literal["page", "ticket"]
) -> Alert:
    limit = f"{min(round(factor * budget, 9), 0.9):g}"
    return Alert(
        name,
        f"{error_ratio(short)} > {limit} and {error_ratio(long)} > {limit}",
        severity,
        f"Calls of {_label('call')} fail more than {factor:g} times as often as the objective allows",
        "look at pyrometer_request_errors_total by type, and roll back what was changed",
    )


def _soundness(hold: str) -> list[Alert]:
    bad = f"increase({PREFIX}outputs_with_nan_total[5m]) + increase({PREFIX}outputs_with_infinity_total[5m]) > 0"
    stalled = f"{PREFIX}requests_in_flight > 0 and on ({BY}) {'pyrometer:requests:rate_5m'} == 0"
    return [
        Alert(
            "PyrometerOutputNotFinite",
            bad,
            "page",
            f"Outputs of {_label('call')} hold NaN or infinities",
            "switch to the version before, or to full precision",
        ),
        Alert(
            "PyrometerAlarm",
            f"{PREFIX}monitor_alarms > 0",
            "ticket",
            f"The monitor of {_label('model')} found something out of the ordinary",
            "see pyrometer monitor live, and the run that it recorded",
            hold,
        ),
        Alert(
            "PyrometerStalled",
            stalled,
            "page",
            f"A call of {_label('call')} is under way, and none ends",
            "pyrometer trace --attach shows where it waits",
            "10m",
        ),
    ]


def _resources() -> list[Alert]:
    return [
        Alert(
            "PyrometerOutOfMemory",
            f"increase({PREFIX}device_out_of_memory_total[15m]) > 0",
            "page",
            f"The device of {_label('model')} ran out of memory",
            "lower the batch size; pyrometer memory shows what fits",
        ),
        Alert(
            "PyrometerMemoryRunsOut",
            f"predict_linear({PREFIX}process_memory_bytes[1h], 14400) > {PREFIX}host_memory_total_bytes",
            "ticket",
            f"The memory of {_label('model')} grows so that it ends within four hours",
            "pyrometer memory finds what stays",
            "30m",
        ),
        Alert(
            "PyrometerRecompiles",
            f"increase({PREFIX}recompilations_total[15m]) > 10",
            "ticket",
            f"torch.compile compiles code of {_label('model')} again and again",
            "pyrometer compile shows which guard fails; ShapeBuckets keeps shapes few",
        ),
    ]


def _own() -> list[Alert]:
    return [
        Alert(
            "PyrometerMonitorGone",
            f"absent({PREFIX}up)",
            "page",
            "No process tells of itself",
            "see whether the service runs, and whether Prometheus reaches /metrics",
            "5m",
        ),
        Alert(
            "PyrometerSamplesDropped",
            f"rate({PREFIX}samples_dropped_total[15m]) > 0",
            "ticket",
            f"Latencies of {_label('call')} find no room: more calls come than are taken",
            "raise capacity in [tool.pyrometer.monitor]",
            "15m",
        ),
    ]


def _label(name: str) -> str:
    return f"{{{{ $labels.{name} }}}}"


def rule_file(objectives: Objectives) -> dict[str, Any]:
    """The file of rules, as data."""
    recorded = [{"record": one.record, "expr": one.expr} for one in recordings()]
    alarming = [
        {
            "alert": one.alert,
            "expr": one.expr,
            "for": one.hold,
            "labels": {"severity": one.severity},
            "annotations": {"summary": one.summary, "advice": one.advice},
        }
        for one in alerts(objectives)
    ]
    return {
        "groups": [
            {"name": "pyrometer.recordings", "rules": recorded},
            {"name": "pyrometer.alerts", "rules": alarming},
        ]
    }
