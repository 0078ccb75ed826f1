"""Requests over time: recorded by a monitor, listed in a CSV file, or made by a rule.

::

    poisson:200            200 requests a second, independent of each other
    bursts:200,20          the same number, 20 at a time
    diurnal:200            a rate that swings between a tenth and nearly twice as much, over the whole span
    poisson:200:5m         for five minutes; one minute otherwise
    arrivals.csv           columns `at_s`, and `shape` (8x16) or `rows`
    .pyrometer/monitor     the folder of a monitor: counts per second, and shapes of sampled requests
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from pyrometer.errors import InputError
from pyrometer.monitor.export.json_lines import LogLine
from pyrometer.monitor.logs.reading import files_of
from pyrometer.monitor.tick import Tick
from pyrometer.quantity import Seconds
from pyrometer.settings import parse_duration

SPAN_S = 60.0
MOST = 20_000
"""Requests that a plan replays; the rest of a longer record is left out."""
BLOCK = 64
"""Gaps that stay together where a record is shuffled, so that bursts stay bursts."""
Shape = tuple[int, ...]
Generator = np.random.Generator
Times = np.ndarray[Any, np.dtype[np.float64]]
L = TypeVar("L", bound=msgspec.Struct)


class Arrival(NamedTuple):
    """One request.

    Attributes:
        at_s: since the first.
        shapes: of its inputs; empty where nothing is known but the rows.
        rows: of the batch.
    """

    at_s: Seconds
    shapes: tuple[Shape, ...] = ()
    rows: int = 1


class Arrivals(NamedTuple):
    """A source of requests.

    Attributes:
        text: as it was named.
        draw: makes one course of requests from a generator and its number; of a record, number 0 is the record itself.
    """

    text: str
    draw: Callable[[Generator, int], list[Arrival]]


def read_arrivals(text: str, shapes: Sequence[tuple[Shape, ...]] = ()) -> Arrivals:
    """Read what `--plan` names.

    Args:
        text: a rule, a file or a folder.
        shapes: that requests made by a rule have, in turn at random.

    Raises:
        InputError: it is none of these, or holds no request.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind in _RULES:
        rate, size, span_s = _parsed(text, rest)
        times = _RULES[kind]
        return Arrivals(
            text, lambda random, _: _with_shapes(times(rate, size, span_s, random).tolist(), shapes, random)
        )
    path = Path(text)
    if path.suffix == ".csv":
        return recorded(_from_csv(path), text)
    if path.exists():
        return _from_monitor(text, path)
    raise InputError(
        f"--plan {text}: no such file, and no rule; legal are {', '.join(f'{rule}:RATE' for rule in _RULES)}, a CSV file, or the folder of a monitor"
    )


def _parsed(text: str, rest: str) -> tuple[float, int, Seconds]:
    figures, _, span = rest.partition(":")
    rate, _, size = figures.partition(",")
    try:
        found = float(rate), int(size or 20)
    except ValueError:
        found = (0.0, 0)
    if not (0 < found[0] <= 1e6 and found[1] >= 1):
        raise InputError(
            f"--plan {text}: legal is a rate per second above 0, such as poisson:200 or bursts:200,20"
        )
    return *found, parse_duration(span) if span else SPAN_S


def _poisson(rate: float, _size: int, span_s: Seconds, random: Generator) -> Times:
    return np.sort(random.uniform(0.0, span_s, min(random.poisson(rate * span_s), MOST)))


def _bursts(rate: float, size: int, span_s: Seconds, random: Generator) -> Times:
    return np.repeat(_poisson(rate / size, size, span_s, random), size)


def _diurnal(rate: float, size: int, span_s: Seconds, random: Generator) -> Times:
    times = _poisson(1.9 * rate, size, span_s, random)
    share = (1.0 - 0.9 * np.cos(2 * np.pi * times / span_s)) / 1.9
    return times[random.uniform(size=len(times)) < share]


_RULES = {"poisson": _poisson, "bursts": _bursts, "diurnal": _diurnal}


def _with_shapes(
    times: Sequence[float], shapes: Sequence[tuple[Shape, ...]], random: Generator
) -> list[Arrival]:
    if not shapes:
        return [Arrival(float(at_s)) for at_s in times]
    chosen = random.integers(len(shapes), size=len(times))
    return [
        Arrival(float(at_s), shapes[place], _rows(shapes[place]))
        for at_s, place in zip(times, chosen, strict=True)
    ]


def _shuffled(arrivals: list[Arrival], random: Generator) -> list[Arrival]:
    times = [one.at_s for one in arrivals]
    gaps = np.diff(times, prepend=times[0])
    starts = random.integers(len(arrivals), size=-(-len(arrivals) // BLOCK))
    order = np.concatenate([(start + np.arange(BLOCK)) % len(arrivals) for start in starts])[: len(arrivals)]
    at = np.cumsum(gaps[order])
    return [arrivals[place]._replace(at_s=float(at_s)) for place, at_s in zip(order, at, strict=True)]


def recorded(arrivals: Sequence[Arrival], text: str = "recent requests") -> Arrivals:
    """A record: as it is at first, then with blocks of its gaps in another order.

    Raises:
        InputError: it is empty.
    """
    if not arrivals:
        raise InputError(f"--plan {text}: holds no request")
    course = [one._replace(at_s=one.at_s - arrivals[0].at_s) for one in arrivals]
    return Arrivals(text, lambda random, number: _shuffled(course, random) if number else course)


def _from_csv(path: Path) -> list[Arrival]:
    found: list[Arrival] = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                shapes = _shapes(row.get("shape") or "")
                found.append(Arrival(float(row["at_s"]), shapes, int(row.get("rows") or _rows(shapes))))
                if len(found) == MOST:
                    break
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        line = len(found) + 2
        raise InputError(
            f"{path}: line {line}: legal are columns at_s, and shape (such as 8x16) or rows; got {error}"
        ) from error
    return sorted(found, key=lambda one: one.at_s)


def _shapes(text: str) -> tuple[Shape, ...]:
    """Shapes as the monitor writes them.

    >>> _shapes("8x3,8")
    ((8, 3), (8,))
    """
    return tuple(tuple(int(size) for size in one.split("x")) for one in text.split(",") if one)


def _rows(shapes: tuple[Shape, ...]) -> int:
    return shapes[0][0] if shapes and shapes[0] else 1


def _from_monitor(text: str, path: Path) -> Arrivals:
    """Counts per tick of its `ticks` files; the shapes are those of sampled calls, each as often as it was sampled."""
    spans: list[tuple[Seconds, Seconds, int]] = []
    folder = path if path.is_dir() else path.parent
    for file in sorted(folder.glob("ticks-*.jsonl*")):
        for tick in _lines(file, Tick):
            count = sum(
                calls.num_ended + calls.num_failed for name, calls in tick.calls.items() if name == "infer"
            )
            if count:
                spans.append((tick.at_s - tick.span_s, tick.span_s, count))
    if not spans:
        raise InputError(f"--plan {text}: holds no tick of a served model; name the folder of its monitor")
    seen: Counter[tuple[Shape, ...]] = Counter()
    for file in files_of([path]):
        for line in _lines(file, LogLine):
            if line.call == "infer" and line.event == "sample":
                seen[_shapes(line.shape)] += 1
    spans.sort()
    shapes = list(seen.elements())

    def draw(random: Generator, _: int) -> list[Arrival]:
        first_s = spans[0][0]
        within = [
            at_s - first_s + np.sort(random.uniform(0.0, span_s, count)) for at_s, span_s, count in spans
        ]
        return _with_shapes(np.sort(np.concatenate(within))[:MOST].tolist(), shapes, random)

    return Arrivals(text, draw)


def _lines(path: Path, kind: type[L]) -> Iterator[L]:
    """The lines of a file that are whole; a crash may have cut the last."""
    decoder = msgspec.json.Decoder(kind)
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
