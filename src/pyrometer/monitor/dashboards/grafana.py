"""Grafana's classic dashboard JSON from typed records: service, machine and device, and the monitor itself."""

from __future__ import annotations

from typing import Any

from pyrometer.monitor.dashboards.rules import error_ratio, latency
from pyrometer.monitor.export.metrics import PREFIX
from pyrometer.record import Record

SCHEMA_VERSION = 39
WIDTH, HEIGHT = 8, 8
PER_ROW = 24 // WIDTH
_PROCESSES = '{model=~"$model",version=~"$version"}'
_CALLS = '{model=~"$model",version=~"$version",call=~"$call"}'


class Curve(Record, frozen=True, kw_only=True):
    """One query of a panel, and how its series are called."""

    expr: str
    legend: str


class Panel(Record, frozen=True, kw_only=True):
    """One chart."""

    title: str
    unit: str
    curves: list[Curve]
    description: str = ""


def _of_calls() -> list[Panel]:
    quantiles = [
        Curve(expr=latency(name) + _CALLS, legend=f"{{{{call}}}} {name}") for name in ("p50", "p95", "p99")
    ]
    return [
        _panel("Requests", "reqps", f"pyrometer:requests:rate_5m{_CALLS}", "{{call}} {{version}}"),
        Panel(title="Latency", unit="s", curves=quantiles, description="On the clock of the host."),
        _panel("Share of errors", "percentunit", error_ratio("5m") + _CALLS, "{{call}} {{version}}"),
        _panel("Errors by type", "reqps", _rate("request_errors", "call, type", _CALLS), "{{call}} {{type}}"),
        _panel("Units", "ops", _rate("units", "call", _CALLS), "{{call}}"),
        _panel("In flight", "short", f"sum by (call) ({PREFIX}requests_in_flight{_CALLS})", "{{call}}"),
        _panel(
            "Device time, p99",
            "s",
            f"histogram_quantile(0.99, sum by (le, call) (rate({PREFIX}request_device_seconds_bucket{_CALLS}[5m])))",
            "{{call}}",
        ),
        _panel(
            "Outputs not finite",
            "reqps",
            f"{_rate('outputs_with_nan', 'call', _CALLS)} + {_rate('outputs_with_infinity', 'call', _CALLS)}",
            "{{call}}",
        ),
        _panel("Range of outputs", "short", PREFIX + "output_largest" + _CALLS, "{{call}} largest"),
    ]


def _of_machines() -> list[Panel]:
    return [
        _gauge("Processor", "short", "process_cpu_cores"),
        _gauge("Memory of the process", "bytes", "process_memory_bytes"),
        _gauge("Memory left on the machine", "bytes", "host_memory_available_bytes"),
        _gauge("Device busy", "percentunit", "device_busy_share"),
        _gauge("Device memory held by tensors", "bytes", "device_memory_allocated_bytes"),
        _gauge("Device power", "watt", "device_power_watts"),
        _panel("Network", "Bps", _rate("host_network_bytes", "direction", _PROCESSES), "{{direction}}"),
        _panel("Disks", "Bps", _rate("host_disk_bytes", "direction", _PROCESSES), "{{direction}}"),
        _panel(
            "Latency of disks",
            "s",
            f"{_rate('host_disk_wait_seconds', 'direction', _PROCESSES)} / "
            f"{_rate('host_disk_operations', 'direction', _PROCESSES)}",
            "{{direction}}",
        ),
    ]


def _of_torch_and_monitor() -> list[Panel]:
    return [
        _panel("Compilations", "ops", _rate("compilations", "model", _PROCESSES), "{{model}}"),
        _panel("Recompilations", "ops", _rate("recompilations", "model", _PROCESSES), "{{model}}"),
        _panel("Graph breaks", "ops", _rate("graph_breaks", "model", _PROCESSES), "{{model}}"),
        _gauge("Alarms", "short", "monitor_alarms"),
        _panel(
            "Rung of degradation", "short", PREFIX + "degradation_rung" + _PROCESSES, "{{policy}} {{rung}}"
        ),
        _panel("Samples dropped", "ops", _rate("samples_dropped", "call", _CALLS), "{{call}}"),
        _panel("Faults of the monitor", "ops", _rate("monitor_faults", "model", _PROCESSES), "{{model}}"),
    ]


DASHBOARDS = {
    "service": ("Pyrometer: service", _of_calls),
    "machine": ("Pyrometer: machine and device", _of_machines),
    "monitor": ("Pyrometer: compiler and monitor", _of_torch_and_monitor),
}


def _panel(title: str, unit: str, expr: str, legend: str) -> Panel:
    return Panel(title=title, unit=unit, curves=[Curve(expr=expr, legend=legend)])


def _gauge(title: str, unit: str, metric: str) -> Panel:
    return _panel(title, unit, PREFIX + metric + _PROCESSES, "{{model}} {{instance}} {{process}}")


def _rate(metric: str, by: str, chosen: str) -> str:
    return f"sum by ({by}) (rate({PREFIX}{metric}_total{chosen}[5m]))"


def dashboard(name: str) -> dict[str, Any]:
    """One dashboard, as Grafana imports it."""
    title, panels = DASHBOARDS[name]
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "uid": f"pyrometer-{name}",
        "title": title,
        "tags": ["pyrometer"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [_datasource(), *(_variable(label, source) for label in ("model", "version", "call"))]
        },
        "annotations": {"list": []},
        "panels": [_as_json(panel, number, source) for number, panel in enumerate(panels())],
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(label: str, source: dict[str, str]) -> dict[str, Any]:
    return {
        "name": label,
        "type": "query",
        "datasource": source,
        "query": {"query": f"label_values({PREFIX}requests_total, {label})", "refId": label},
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }


def _as_json(panel: Panel, number: int, source: dict[str, str]) -> dict[str, Any]:
    row, column = divmod(number, PER_ROW)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": source,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": panel.unit} | ({} if panel.unit == "short" else {"min": 0}),
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": source,
                "expr": curve.expr,
                "legendFormat": curve.legend,
            }
            for place, curve in enumerate(panel.curves)
        ],
    }
