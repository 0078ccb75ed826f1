"""Counts from Prometheus' text: for services that tell of their versions by a label and have no agent of ours.

Series are counters, so that what came since the last scrape is their growth; one that starts over counts from zero. What was counted
between two scrapes with a change of share between them is left out, since nobody knows under which share it was. Buckets as coarse as
those of Prometheus serve both versions alike, so that they cost power and no validity.
"""

from __future__ import annotations

import math
import re
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

from pyrometer.errors import InputError
from pyrometer.histogram import index_of
from pyrometer.quantity import Seconds
from pyrometer.rollout.counts import ERRORS, LATENCY, Counts, add_counts
from pyrometer.rollout.ledger import Ledger
from pyrometer.rollout.observed import NEW, OLD, Reported
from pyrometer.rollout.state import State

TIMEOUT_S: Seconds = 10.0
_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)(?: -?\d+)?$")  # name, labels, value, time
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Series(NamedTuple):
    """What to read."""

    requests: str = "pyrometer_requests_total"
    errors: str = "pyrometer_request_errors_total"
    latency: str = "pyrometer_request_latency_seconds"
    label: str = "version"


class PrometheusSource:
    """Reads one or many addresses, and reports what came since.

    Args:
        urls: of `/metrics`; every instance by itself, since a balancer in between would mix their counters.
        series: their names, and the label that holds the version.
        fetch: reads an address.
    """

    def __init__(
        self, urls: list[str], series: Series | None = None, fetch: Callable[[str], str] | None = None
    ) -> None:
        self._urls, self._series, self._fetch = urls, series or Series(), fetch or _fetch
        self._before: dict[tuple[str, str], dict[str, float]] = {}
        self._epoch: tuple[int, int] | None = None
        self._sums: dict[tuple[int, str, str], Counts] = {}

    def report(self, ledger: Ledger, state: State) -> None:
        """Scrape, and report growth under the share that held all the time.

        Raises:
            InputError: an address does not answer, or not with Prometheus' text.
        """
        epoch = (state.attempt, state.epoch)
        if self._epoch is not None and self._epoch[0] != epoch[0]:
            self._sums = {}
        arms = {state.plan.old: OLD, state.plan.new: NEW}
        reports = []
        for url in self._urls:
            found = read_text(self._fetch(url), self._series)
            for version in found.keys() & arms.keys():
                now, before = found[version], self._before.get((url, version))
                self._before[url, version] = now
                if before is None or self._epoch != epoch:
                    continue
                key = (state.epoch, arms[version], url)
                self._sums[key] = add_counts([self._sums.get(key, Counts()), grown(before, now)])
                reports.append(
                    Reported(
                        epoch=state.epoch, arm=arms[version], reporter=url[-120:], counts=self._sums[key]
                    )
                )
        self._epoch = epoch
        ledger.report(state.plan.name, state.attempt, reports)


def read_text(text: str, series: Series) -> dict[str, dict[str, float]]:
    """Per version: requests, errors, and requests up to each bound, added over all other labels."""
    found: dict[str, dict[str, float]] = {}
    wanted = {series.requests: "requests", series.errors: "errors", f"{series.latency}_bucket": ""}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or match[1] not in wanted:
            continue
        labels = dict(_LABEL.findall(match[2] or ""))
        version, key = labels.get(series.label), wanted[match[1]] or labels.get("le", "")
        value = float(match[3])
        if version is not None and math.isfinite(value):
            sums = found.setdefault(version, {})
            sums[key] = sums.get(key, 0.0) + value
    return found


def grown(before: dict[str, float], now: dict[str, float]) -> Counts:
    """What came between two scrapes."""
    restarted = any(now.get(key, 0.0) < value for key, value in before.items())
    start = {} if restarted else before
    growth = {key: round(value - start.get(key, 0.0)) for key, value in now.items()}
    bounds = sorted((key for key in growth if key not in {"requests", "errors"}), key=float)
    buckets, passed = {}, 0
    for bound in bounds:
        count = growth[bound] - passed
        passed = growth[bound]
        if count > 0 and math.isfinite(float(bound)):
            buckets[index_of(float(bound))] = count
        elif count > 0:  # beyond the last bound
            buckets[index_of(2 * float(bounds[-2]))] = count
    errors = growth.get("errors", 0)
    num = growth.get("requests", passed + errors)
    return Counts(
        num=num, events={ERRORS: errors} if errors else {}, values={LATENCY: buckets} if buckets else {}
    )


def _fetch(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise InputError(f"--prometheus {url}: legal are http:// and https://")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - looked at above
            text: str = answer.read().decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{url}: {error}; is the service running?") from error
    return text
