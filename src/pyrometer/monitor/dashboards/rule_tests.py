"""Tests of the rules for `promtool test rules`: what each alert must fire at, and series at which all stay silent."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyrometer.monitor.dashboards.objectives import Objectives
from pyrometer.monitor.dashboards.rules import alerts
from pyrometer.monitor.export.metrics import PREFIX

CALL = {"model": "m", "version": "1", "call": "infer"}
MODEL = {"model": "m", "version": "1"}
_UP = ("up", MODEL, "1x500")


class Case(NamedTuple):
    """Series, in steps of a minute, and the one alert that must fire at a time."""

    alert: str
    at: str
    series: tuple[tuple[str, dict[str, str], str], ...]
    labels: dict[str, str]


def _cases(objectives: Objectives) -> list[Case]:
    requests = ("requests_total", CALL, "0+600x500")
    found = [
        Case("PyrometerErrorBudgetBurnsFast", "70m", (requests, _errors("0+600x500")), CALL),
        Case("PyrometerErrorBudgetBurns", "400m", (requests, _errors("0+600x500")), CALL),
        Case("PyrometerOutputNotFinite", "20m", (requests, *_outputs("0x15 1x500")), CALL),
        Case("PyrometerAlarm", "20m", (("monitor_alarms", MODEL, "0x10 1x500"),), MODEL),
        Case(
            "PyrometerStalled",
            "60m",
            (("requests_in_flight", CALL, "1x500"), ("requests_total", CALL, "0+60x30 1800x500")),
            CALL,
        ),
        Case("PyrometerOutOfMemory", "20m", (("device_out_of_memory_total", MODEL, "0x10 1x500"),), MODEL),
        Case(
            "PyrometerMemoryRunsOut",
            "120m",
            (
                ("process_memory_bytes", MODEL, "1000000000+100000000x500"),
                ("host_memory_total_bytes", MODEL, "16000000000x500"),
            ),
            MODEL,
        ),
        Case("PyrometerRecompiles", "20m", (("recompilations_total", MODEL, "0+2x500"),), MODEL),
        Case("PyrometerSamplesDropped", "60m", (("samples_dropped_total", CALL, "0+5x500"),), CALL),
    ]
    if objectives.latency_s is not None:
        slow = [("request_latency_seconds_bucket", CALL | {"le": str(objectives.latency_s)}, "0x500")]
        slow += [
            ("request_latency_seconds_bucket", CALL | {"le": end}, "0+60x500")
            for end in (str(objectives.latency_s * 4), "+Inf")
        ]
        found.append(Case("PyrometerLatencyHigh", "30m", tuple(slow), CALL))
    return found


def _errors(values: str) -> tuple[str, dict[str, str], str]:
    return ("request_errors_total", CALL | {"type": "ValueError"}, values)


def _outputs(values: str) -> tuple[tuple[str, dict[str, str], str], ...]:
    return (
        ("outputs_with_nan_total", CALL, values),
        ("outputs_with_infinity_total", CALL, "0x500"),
    )


def rule_tests(objectives: Objectives, rules: str) -> dict[str, Any]:
    """The file of tests, as data; each alert must also be silent at the series of health."""
    known = {one.alert: one for one in alerts(objectives)}
    cases = _cases(objectives)
    healthy = [("requests_total", CALL, "0+600x500"), ("monitor_alarms", MODEL, "0x500"), _UP]
    healthy += [_errors("0x500"), *_outputs("0x500"), ("requests_in_flight", CALL, "1x500")]
    silent = [{"eval_time": "400m", "alertname": name, "exp_alerts": []} for name in known]
    tests: list[dict[str, Any]] = [_test(tuple(healthy), silent)]
    tests.append(_test((), [_expected(known["PyrometerMonitorGone"], "10m", {})]))
    tests += [_test((*one.series, _UP), [_expected(known[one.alert], one.at, one.labels)]) for one in cases]
    return {"rule_files": [rules], "evaluation_interval": "1m", "tests": tests}


def _test(series: Any, expected: list[dict[str, Any]]) -> dict[str, Any]:
    given = [
        {"series": PREFIX + _with_labels(name, labels), "values": values} for name, labels, values in series
    ]
    return {"interval": "1m", "input_series": given, "alert_rule_test": expected}


def _with_labels(name: str, labels: dict[str, str]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{name}{{{inner}}}"


def _expected(alert: Any, at: str, labels: dict[str, str]) -> dict[str, Any]:
    def filled(text: str) -> str:
        for key, value in labels.items():
            text = text.replace(f"{{{{ $labels.{key} }}}}", value)
        return text

    told = {"summary": filled(alert.summary), "advice": filled(alert.advice)}
    return {
        "eval_time": at,
        "alertname": alert.alert,
        "exp_alerts": [{"exp_labels": labels | {"severity": alert.severity}, "exp_annotations": told}],
    }
