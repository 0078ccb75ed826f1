"""OpenTelemetry by OTLP over HTTP: totals with every tick, histograms at scale 5 as they are; the SDK encodes and sends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrometer.errors import InputError
from pyrometer.histogram import SCALE, Histogram
from pyrometer.monitor.export.metrics import METRICS, PREFIX, Metric
from pyrometer.monitor.instruments import split_series
from pyrometer.monitor.tick import Tick
from pyrometer.monitor.totals import Totals
from pyrometer.version import __version__

TIMEOUT_S = 5.0


class OtlpMetrics:
    """The sink that sends totals; a tick lost on the way is in the next."""

    def __init__(
        self, endpoint: str, totals: Callable[[], Totals], declared: Callable[[], Mapping[str, Metric]]
    ) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        except ModuleNotFoundError as error:
            raise InputError(
                "otlp: OpenTelemetry's exporter is not installed; install it by pip install 'pyrometer[otlp]'"
            ) from error
        self._exporter = OTLPMetricExporter(endpoint=endpoint, timeout=TIMEOUT_S)
        self._totals = totals
        self._declared = declared
        self._began_ns = 0

    def write(self, ticks: Sequence[Tick], /) -> None:
        """Send the totals up to now."""
        from opentelemetry.sdk.metrics.export import MetricExportResult

        first = ticks[0]
        self._began_ns = self._began_ns or round((first.at_s - first.span_s) * 1e9)
        sent = metrics_data(self._totals(), self._declared(), began_ns=self._began_ns)
        if self._exporter.export(sent, timeout_millis=TIMEOUT_S * 1e3) is not MetricExportResult.SUCCESS:
            raise ConnectionError("otlp: the collector did not take the metrics")

    def close(self) -> None:
        """Disconnect."""
        self._exporter.shutdown()


def metrics_data(totals: Totals, declared: Mapping[str, Metric], *, began_ns: int) -> Any:
    """Totals as the SDK's own records."""
    from opentelemetry.sdk.metrics import export
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    span = {"start_time_unix_nano": began_ns, "time_unix_nano": max(round(totals.at_s * 1e9), began_ns)}
    cumulative = export.AggregationTemporality.CUMULATIVE
    tables: Any = (
        (totals.counters, _number_point, lambda points: export.Sum(points, cumulative, is_monotonic=True)),
        (totals.gauges, _number_point, export.Gauge),
        (totals.histograms, _histogram_point, lambda points: export.ExponentialHistogram(points, cumulative)),
    )
    metrics = []
    for table, point, data in tables:
        families: dict[str, list[Any]] = {}
        for series, value in table.items():
            name, labels = split_series(series)
            families.setdefault(name, []).append(point(export, value, labels, span))
        for name, points in families.items():
            known = METRICS.get(name) or declared.get(name)
            unit = "s" if name.endswith("_seconds") else "By" if name.endswith("_bytes") else ""
            metrics.append(export.Metric(PREFIX + name, known.help if known else "", unit, data(points)))
    source = totals.source
    resource = Resource(
        {
            "service.name": source.model or "pyrometer",
            "service.version": source.version,
            "host.name": source.host,
            "process.pid": source.pid,
            **source.labels,
        }
    )
    scope = export.ScopeMetrics(InstrumentationScope("pyrometer", __version__), metrics, "")
    return export.MetricsData([export.ResourceMetrics(resource, [scope], "")])


def _number_point(export: Any, value: float, labels: dict[str, str], span: dict[str, int]) -> Any:
    return export.NumberDataPoint(attributes=labels, value=value, **span)


def _histogram_point(export: Any, found: Histogram, labels: dict[str, str], span: dict[str, int]) -> Any:
    first = min(found.counts, default=0)
    dense = [found.counts.get(index, 0) for index in range(first, max(found.counts, default=-1) + 1)]
    return export.ExponentialHistogramDataPoint(
        attributes=labels,
        count=found.count,
        sum=found.sum,
        scale=SCALE,
        zero_count=found.zeros,
        positive=export.Buckets(first, dense),
        negative=export.Buckets(0, []),
        flags=0,
        min=found.low or 0.0,
        max=found.high or 0.0,
        **span,
    )
