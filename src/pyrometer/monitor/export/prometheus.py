"""The text format of Prometheus, 0.0.4. The buckets of a histogram are told at powers of √2, where buckets of ours end.

It is written here since `prometheus_client` takes seventeen times as long for as many series; its parser reads what we write in a
test. A series whose figures did not change keeps its text from the scrape before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyrometer.histogram import PER_OCTAVE, Histogram, upper_bound
from pyrometer.monitor.export.metrics import METRICS, PREFIX, Metric
from pyrometer.monitor.instruments import Kind, series_name
from pyrometer.monitor.totals import Totals

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = tuple(range(-14 * PER_OCTAVE, 5 * PER_OCTAVE + 1, PER_OCTAVE // 2))
"""Where told buckets end, as `index + 1` of ours: from 61 µs to 32 s, each √2 times the one before."""
_BOUND_TEXTS = tuple(f"{upper_bound(end - 1):.9g}" for end in BOUNDS)
_UNKNOWN = "Declared by the program"


class PrometheusText:
    """Renders totals; one per server, since it keeps the texts of series."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[str, str], _Prefixes] = {}
        self._texts: dict[str, tuple[Histogram, str]] = {}

    def render(self, totals: Totals, declared: Mapping[str, Metric]) -> bytes:
        """The page for `/metrics`."""
        common = _common_labels(totals)
        families: dict[tuple[str, Kind], list[str]] = {}
        for series, value in totals.counters.items():
            name = self._prefix(series, common)
            families.setdefault((name.metric, "counter"), []).append(f"{name.total} {_number(value)}\n")
        for series, value in totals.gauges.items():
            name = self._prefix(series, common)
            families.setdefault((name.metric, "gauge"), []).append(f"{name.plain} {_number(value)}\n")
        for series, found in totals.histograms.items():
            name = self._prefix(series, common)
            families.setdefault((name.metric, "histogram"), []).append(self._histogram(series, name, found))
        self._forget_gone(totals)
        parts = []
        for (metric, kind), lines in sorted(families.items()):
            known = METRICS.get(metric) or declared.get(metric)
            full = f"{PREFIX}{metric}_total" if kind == "counter" else f"{PREFIX}{metric}"
            text = (known.help if known else _UNKNOWN).replace("\\", "\\\\").replace("\n", "\\n")
            parts.append(f"# HELP {full} {text}\n# TYPE {full} {kind}\n")
            parts += lines
        return "".join(parts).encode()

    def _prefix(self, series: str, common: str) -> _Prefixes:
        found = self._prefixes.get((series, common))
        if found is None:
            found = self._prefixes[(series, common)] = _Prefixes(series, common)
        return found

    def _histogram(self, series: str, name: _Prefixes, found: Histogram) -> str:
        kept = self._texts.get(series)
        if kept is not None and kept[0] is found:
            return kept[1]
        counts = _cumulated(found)
        lines = [f"{head}{count}\n" for head, count in zip(name.buckets, counts, strict=True)]
        lines.append(f"{name.sum} {found.sum!r}\n{name.count} {counts[-1]}\n")
        text = "".join(lines)
        self._texts[series] = (found, text)
        return text

    def _forget_gone(self, totals: Totals) -> None:
        if len(self._texts) > len(totals.histograms):
            self._texts = {key: kept for key, kept in self._texts.items() if key in totals.histograms}
        if (
            len(self._prefixes)
            > 2 * (len(totals.counters) + len(totals.gauges) + len(totals.histograms)) + 64
        ):
            self._prefixes.clear()


def joined_pages(pages: Iterable[bytes]) -> bytes:
    r"""Pages of several processes as one, each family told once; labels keep their series apart.

    >>> page = b'# HELP a Of a\n# TYPE a gauge\na{replica="%d"} 1\n'
    >>> joined_pages([page % 1, page % 2]).decode().splitlines()[2:]
    ['a{replica="1"} 1', 'a{replica="2"} 1']
    """
    families: dict[bytes, bytes] = {}
    for page in pages:
        for family in page.split(b"# HELP ")[1:]:
            help_line, type_line, series = family.split(b"\n", 2)
            head = help_line + b"\n" + type_line + b"\n"
            families[head] = families.get(head, b"") + series
    return b"".join(b"# HELP " + head + series for head, series in families.items())


class _Prefixes:
    """What every line of a series begins with."""

    __slots__ = ("_labels", "buckets_", "metric")

    def __init__(self, series: str, common: str) -> None:
        self.metric, brace, rest = series.partition("{")
        labels = ",".join(part for part in (common, rest[:-1] if brace else "") if part)
        self._labels = labels
        self.buckets_: tuple[str, ...] | None = None

    @property
    def plain(self) -> str:
        return self._with("")

    @property
    def total(self) -> str:
        return self._with("_total")

    @property
    def sum(self) -> str:
        return self._with("_sum")

    @property
    def count(self) -> str:
        return self._with("_count")

    @property
    def buckets(self) -> tuple[str, ...]:
        if self.buckets_ is None:
            labels = f"{self._labels}," if self._labels else ""
            ends = (*_BOUND_TEXTS, "+Inf")
            self.buckets_ = tuple(f'{PREFIX}{self.metric}_bucket{{{labels}le="{end}"}} ' for end in ends)
        return self.buckets_

    def _with(self, suffix: str) -> str:
        labels = f"{{{self._labels}}}" if self._labels else ""
        return f"{PREFIX}{self.metric}{suffix}{labels}"


def _cumulated(found: Histogram) -> list[int]:
    """Values up to each bound, and all of them."""
    filled = sorted(found.counts)
    told: list[int] = []
    passed, place = found.zeros, 0
    for end in BOUNDS:
        while place < len(filled) and filled[place] < end:
            passed += found.counts[filled[place]]
            place += 1
        told.append(passed)
    told.append(passed + sum(found.counts[index] for index in filled[place:]))
    return told


def _common_labels(totals: Totals) -> str:
    source = totals.source
    pairs = {"model": source.model, "version": source.version, **source.labels}
    given = {key: value for key, value in pairs.items() if value}
    return series_name("", list(given), list(given.values()))[1:-1]


def _number(value: float) -> str:
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - the cheapest test of NaN
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[repr(value)]
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
