"""What the monitor is told of batches, and what the server keeps to say how it stands."""

from __future__ import annotations

import bisect
from collections import Counter as Tally
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.histogram import Histogram
from pyrometer.monitor.monitor import Monitor
from pyrometer.quantity import Seconds
from pyrometer.serving.batching.service_times import Pace, ServicePoint, ServiceTimes
from pyrometer.serving.running.batcher import Bucket, Ended
from pyrometer.serving.running.shadow import Compared
from pyrometer.serving.running.shaping import padding_share, told, volume
from pyrometer.tuning.shapes.axes import Sizes

MOST_RECENT = 4096
"""Requests that a prediction is made from."""

LARGEST_ERROR = 1e9
"""That is told of a shadow; outputs that cannot be compared are infinitely far apart."""
_COUNTED = ("batches", "rows", "answers", "failures", "nonfinite", "real", "padded")
LEAST_SAMPLES = 10
"""Service times of one size from which on they stand for those that were measured before the first request."""


class Arrived(NamedTuple):
    """A request that was accepted, and how long its answer took."""

    at_s: Seconds
    sizes: Sizes
    rows: int
    latency_s: Seconds


class _Ran(NamedTuple):
    """A batch that has run."""

    ended_s: Seconds
    size: tuple[str, int]
    gathering_s: Seconds
    took_s: Seconds
    at_once: bool


class Counting:
    """Counts batches and requests; every series has a bounded number of labels."""

    def __init__(self, monitor: Monitor) -> None:
        self._batches = monitor.counter(
            "serve_batches", "Batches, by why they were closed", ["reason", "served_version"]
        )
        self._answers = monitor.counter(
            "serve_answers", "Requests that a batch has answered", ["served_version"]
        )
        self._failures = monitor.counter(
            "serve_failures", "Requests that the model failed on", ["served_version"]
        )
        self._nonfinite = monitor.counter(
            "serve_nonfinite", "Requests answered with NaN or infinities", ["served_version"]
        )
        self._refused = monitor.counter("serve_refused", "Requests that cost the model nothing", ["why"])
        self._rows = monitor.histogram("serve_batch_rows", "Rows of a batch")
        self._took = monitor.histogram(
            "serve_batch_seconds", "Time of a batch in the model", ["bucket", "served_version"]
        )
        self._waited = monitor.histogram("serve_queue_seconds", "Time of a request in the queue")
        self._waiting = monitor.gauge("serve_waiting_rows", "Rows in the queue")
        self._real = monitor.counter("serve_elements", "Elements computed, as far as sizes vary", ["kind"])
        self._shadow = monitor.histogram(
            "serve_shadow_error", "Largest difference of the shadow's outputs, relative to the largest value"
        )
        self._shadow_answers = monitor.counter(
            "serve_shadow_answers", "Requests that the shadow answered too, by whether it agrees", ["outcome"]
        )
        self._shadow_failures = monitor.counter("serve_shadow_failures", "Batches that the shadow failed on")
        self._free_s: Seconds = 0.0
        self._course: deque[_Ran] = deque(maxlen=MOST_RECENT)
        self.recent: deque[Arrived] = deque(maxlen=MOST_RECENT)
        self.tally: Tally[str] = Tally()

    def batch_ended(self, ended: Ended, num_waiting: int) -> None:
        """A batch has run."""
        batch, version = ended.batch, ended.program.version
        bucket = batch.bucket
        assert isinstance(bucket, Bucket)
        self._batches.add(1, batch.reason, version)
        self._answers.add(len(batch.requests), version)
        self._rows.record(batch.rows)
        self._took.record(ended.took_s, told(bucket.sizes), version)
        self._waiting.set(num_waiting)
        failed = sum(answer.failure is not None for answer in ended.answers)
        strange = sum(bool(answer.nonfinite) for answer in ended.answers)
        if failed:
            self._failures.add(failed, version)
        if strange:
            self._nonfinite.add(strange, version)
        rows = ended.program.padded_rows(batch.rows)
        if not failed:
            took_s = ended.ended_s - ended.started_s
            at_once = batch.requests[0].arrived_s <= self._free_s
            size = (told(bucket.sizes), rows)
            self._course.append(_Ran(ended.ended_s, size, self._gathering_s(ended), took_s, at_once))
        self._free_s = ended.ended_s
        real = (
            sum(one.rows * volume(one.payload[0].sizes) for one in batch.requests)
            if bucket.sizes
            else batch.rows
        )
        padded = rows * volume(bucket.sizes)
        self._real.add(real, "real")
        self._real.add(padded - real, "padding")
        counted = (1, batch.rows, len(batch.requests), failed, strange, real, padded)
        for name, number in zip(_COUNTED, counted, strict=True):
            self.tally[name] += number
        ended_s = ended.ended_s
        self._waited.record_all([max(ended.started_s - one.arrived_s, 0.0) for one in batch.requests])
        self.recent.extend(
            [
                Arrived(one.arrived_s, one.payload[0].sizes, one.rows, ended_s - one.arrived_s)
                for one in batch.requests
            ]
        )

    def _gathering_s(self, ended: Ended) -> Seconds:
        """How long a free model and a request waited for the loop, which reads what comes in the meantime; nothing where the policy waits."""
        if ended.batch.reason in {"waited", "deadline"}:
            return 0.0
        return max(ended.started_s - max(self._free_s, ended.batch.requests[0].arrived_s), 0.0)

    def service(
        self, measured: Sequence[ServicePoint], since_s: Seconds = 0.0
    ) -> tuple[list[ServicePoint], list[Pace]]:
        """What batches took of late in thread and loop.

        Args:
            measured: what the model alone took; sizes of which few ran take this and what others took longer.
            since_s: what ended before is left out.

        Returns:
            Service times, and their course: a busy moment of the machine falls on many.
        """
        if self.recent:
            since_s = max(since_s, self.recent[0].at_s)  # no longer than requests are kept
        course = [one for one in list(self._course) if one.ended_s >= since_s]
        alone = ServiceTimes.of(measured)
        taken: dict[tuple[str, int], list[Seconds]] = {}
        for one in course:
            taken.setdefault(one.size, []).append(one.took_s)
        longer_s = sorted(one.took_s - alone.expected(*one.size) for one in course) or [0.0]
        found = {size: sorted(samples) for size, samples in taken.items() if len(samples) >= LEAST_SAMPLES}
        paces = []
        for one in course:
            ranked, value = found.get(one.size), one.took_s
            if ranked is None:
                ranked, value = longer_s, one.took_s - alone.expected(*one.size)
            paces.append(Pace(one.gathering_s, bisect.bisect_left(ranked, value) / len(ranked), one.at_once))
        for point in measured:
            least_s = min(point.samples_s)
            found.setdefault(
                (point.bucket, point.rows), [max(point.median_s + extra_s, least_s) for extra_s in longer_s]
            )
        return [
            ServicePoint(bucket=bucket, rows=rows, samples_s=samples)
            for (bucket, rows), samples in found.items()
        ], paces

    def refused(self, kind: str) -> None:
        """A request was refused, expired or cancelled."""
        self._refused.add(1, kind)
        self.tally[f"refused_{kind}"] += 1

    def shadowed(self, compared: Compared) -> None:
        """A batch has run in the shadow, too."""
        if compared.failure is not None:
            self._shadow_failures.add(1)
        if compared.error is not None:
            self._shadow.record(min(compared.error, LARGEST_ERROR))
        if compared.num:
            self._shadow_answers.add(compared.num - compared.num_differ, "agrees")
            self._shadow_answers.add(compared.num_differ, "differs")
        self.tally.update(
            shadow_failures=compared.failure is not None,
            shadow_compared=compared.num,
            shadow_differs=compared.num_differ,
        )

    def summary(self) -> dict[str, float | None]:
        """How it stands: counts since the start, and latencies of the most recent requests in queue and model."""
        tally = self.tally
        latencies = Histogram.of([one.latency_s for one in self.recent])
        known = bool(latencies.count)
        return {
            **{name: float(count) for name, count in sorted(tally.items()) if name not in {"real", "padded"}},
            "mean_rows": tally["rows"] / tally["batches"] if tally["batches"] else None,
            "padding_share": padding_share(tally["real"], tally["padded"]) if tally["padded"] else None,
            "p50_s": latencies.quantile(0.5) if known else None,
            "p99_s": latencies.quantile(0.99) if known else None,
        }
