"""Leak, warm-up, or neither, from the readings of a counter.

The secondary rule: a counter says that memory grew, not what grew. Where single allocations can be followed, their survival
is the better evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.stability import robust_trend
from pyrometer.errors import InputError
from pyrometer.memory.trend.floor import WARM_UP_SHARE, BlockFloor, block_floor
from pyrometer.memory.trend.verdict import Outcome, SeriesVerdict
from pyrometer.quantity import Bytes, counted, format_bytes
from pyrometer.series import Slope, theil_sen

FALSE_ALARM_RATE = 0.01
CONFIDENCE = 0.98
HALF_CONFIDENCE = 0.8
FEWEST_BLOCKS = 8
STEADY = 0.6
SLOWING = 0.9
SETTLED_TAUS = 5
NEGLIGIBLE_SHARE = 0.002
NEGLIGIBLE_BYTES = 2**16
STABLE_SHARE = 0.02
STABLE_BYTES = 2**20
MOST_MORE = 20


_UNKNOWN = Slope(0.0, -math.inf, math.inf)


@dataclass(frozen=True)
class _Shape:
    """The slopes of a floor, over all of it and over its halves, and what counts as nothing."""

    whole: Slope
    first: Slope
    second: Slope
    settled: bool
    rise: float
    length_steps: float
    negligible: float
    tolerated: float


@dataclass(frozen=True)
class _Judgement:
    verdict: Outcome
    reason: str
    times_longer: float | None = None


def judge_series(
    steps: Sequence[int],
    readings: Sequence[Bytes],
    *,
    limit_bytes: Bytes | None = None,
    negligible_bytes: Bytes | None = None,
) -> SeriesVerdict:
    """Judge readings of memory that were taken after certain steps, always at the same point of a step.

    The first fifth is left out, and the rest is cut into blocks longer than its period, of which the lowest readings are
    judged. `leak` needs all of: a rising trend (Mann-Kendall, its variance corrected for autocorrelation after Hamed and
    Rao, one-sided 1 %); growth in either half (Theil-Sen with Sen's interval, 80 %); no slowing down, that is a second half
    with at least 60 % of the slope of the first and not surely below it; and more than
    what is negligible. Growth that slows down is a `warm-up` once the second half no longer surely grows, and until then undecided,
    because a plateau that is approached slowly looks like a leak; one that is approached more slowly than the readings are
    long cannot be told from it, and the reason says from which time constant on. `stable` means that the growth that cannot be excluded is
    below 2 % or 1 MiB over the readings.

    Args:
        steps: rising; need not be evenly spaced.
        readings: bytes after each of them.
        limit_bytes: what may be used at most, for the time until then.
        negligible_bytes: growth over the readings that does not matter; 0 for exact counters such as
            `torch.cuda.memory_allocated`. The default, 0.2 % of the highest reading or 64 KiB, suits the memory of a process.

    Raises:
        InputError: unequal lengths, steps that do not rise, readings that are not finite, or a limit that is not positive.

    >>> at = range(0, 400, 2)
    >>> judge_series(at, [10**9 + 50_000 * step for step in at]).verdict
    'leak'
    >>> judge_series(at, [10**9] * 200).verdict
    'stable'
    """
    x, y = _checked(steps, readings)
    _check_limits(limit_bytes, negligible_bytes)
    floor = block_floor(x, y)
    stride = float(np.median(np.diff(x))) if len(x) > 1 else 1.0
    shape = (
        _shape(floor, _what_matters(y, negligible_bytes)) if len(floor.readings) >= FEWEST_BLOCKS else None
    )
    judgement = _too_few(floor, len(x)) if shape is None else _judge(shape)
    slope = _UNKNOWN if shape is None else shape.whole
    room = None if limit_bytes is None or not len(y) else max(0.0, limit_bytes - float(y[-1]))
    grows = judgement.verdict in {"leak", "inconclusive"}
    return SeriesVerdict(
        verdict=judgement.verdict,
        reason=judgement.reason,
        bytes_per_step=slope.at,
        bytes_per_step_low=_finite(slope.low),
        bytes_per_step_high=_finite(slope.high),
        eta_steps=_eta(room, slope.at) if grows else None,
        eta_steps_low=_eta(room, slope.high) if grows else None,
        eta_steps_high=_eta(room, slope.low) if grows else None,
        false_alarm_rate=FALSE_ALARM_RATE,
        num_readings=len(x),
        num_blocks=len(floor.readings),
        block_steps=floor.block_readings * stride,
        period_steps=None if floor.period_readings is None else floor.period_readings * stride,
        more_steps=_more_steps(judgement.times_longer, len(x), stride),
        limit_bytes=limit_bytes,
    )


def _judge(shape: _Shape) -> _Judgement:
    """Does growth slow down? If not, does the floor rise by more than is negligible?"""
    if _slows(shape):
        longer = max(SETTLED_TAUS * _tau_share(shape), 1.25)
        return _Judgement("inconclusive", f"growth slows down but has not ended: {_rates(shape)}", longer)
    whole = shape.whole
    return _level(shape) if whole.low <= 0 or whole.at <= shape.negligible else _risen(shape)


def _slows(shape: _Shape) -> bool:
    """Whether either half grows, the second by more than is negligible, but less than the first."""
    first, second = shape.first, shape.second
    if first.low <= 0 or second.low <= 0 or second.at <= shape.negligible:
        return False
    surely = second.high < first.low
    return second.at < (SLOWING if surely else STEADY) * first.at


def _level(shape: _Shape) -> _Judgement:
    whole, length = shape.whole, shape.length_steps
    creeps = min(whole.low, shape.first.low, shape.second.low) > 0
    if creeps and whole.at * MOST_MORE > shape.negligible:
        reason = f"it grows steadily, but only by {format_bytes(whole.at * length)} so far"
        return _Judgement("inconclusive", reason, 1.5 * shape.negligible / whole.at)
    if whole.high < shape.tolerated:
        return _Judgement("stable", _stable_reason(shape))
    if shape.settled:
        return _Judgement(
            "warm-up",
            f"it rose by {format_bytes(shape.rise)} and was level in the second half of the readings",
        )
    return _Judgement("inconclusive", _vague_reason(shape), _times_for(shape))


def _risen(shape: _Shape) -> _Judgement:
    whole, first, second = shape.whole, shape.first, shape.second
    if second.low <= 0 and (shape.settled or second.high < whole.low):
        return _Judgement("warm-up", f"growth has ended: {_rates(shape)}")
    if first.low <= 0 or second.low <= 0 or second.at <= shape.negligible:
        return _Judgement("inconclusive", f"it does not grow steadily: {_rates(shape)}", 2.0)
    return _Judgement(
        "leak",
        f"the floor rises steadily by {format_bytes(whole.at)} per step; "
        f"only a plateau with a time constant beyond {counted(_slowest_plateau(shape), 'step')} would look alike",
    )


def _rates(shape: _Shape) -> str:
    first, second = shape.first, shape.second
    return f"{format_bytes(first.at)} per step in the first half of the readings, {format_bytes(second.at)} in the second"


def _slowest_plateau(shape: _Shape) -> float:
    """The time constant of an exponential approach whose slope falls as much as the halves allow for, in steps."""
    ratio = max(shape.second.low / shape.first.high, 1e-3)
    return 0.5 * shape.length_steps / -math.log(min(ratio, 0.97))


def _too_few(floor: BlockFloor, num_readings: int) -> _Judgement:
    num_blocks = len(floor.readings)
    period = (
        ""
        if floor.period_readings is None
        else f", because they repeat every {floor.period_readings} readings"
    )
    needed = math.ceil((FEWEST_BLOCKS + 1) * floor.block_readings / (1 - WARM_UP_SHARE))
    return _Judgement(
        "inconclusive",
        f"{num_readings} readings make {num_blocks} blocks{period}; it takes {FEWEST_BLOCKS}",
        max(needed, 2) / max(num_readings, 1),
    )


def _shape(floor: BlockFloor, limits: tuple[float, float]) -> _Shape:
    x, y = floor.steps, floor.readings
    middle = len(x) // 2
    length = float(x[-1] - x[0])
    rise = float(np.median(y[-middle:]) - np.median(y[: middle // 2]))
    negligible, tolerated = limits
    return _Shape(
        whole=_whole_slope(x, y),
        first=theil_sen(x[:-middle], y[:-middle], HALF_CONFIDENCE),
        second=theil_sen(x[-middle:], y[-middle:], HALF_CONFIDENCE),
        settled=float(np.ptp(y[-middle:])) < min(tolerated, STEADY * rise),
        rise=rise,
        length_steps=length,
        negligible=negligible / length,
        tolerated=tolerated / length,
    )


def _what_matters(readings: Floats, negligible_bytes: Bytes | None) -> tuple[float, float]:
    """Growth over the readings that is as good as none, and that may be left open where none is found."""
    level = float(np.abs(readings).max())
    default = max(NEGLIGIBLE_SHARE * level, NEGLIGIBLE_BYTES)
    return default if negligible_bytes is None else negligible_bytes, max(STABLE_SHARE * level, STABLE_BYTES)


def _whole_slope(x: Floats, y: Floats) -> Slope:
    if np.ptp(y) == 0:
        return Slope(0.0, 0.0, 0.0)
    return robust_trend(x, y - y[0], CONFIDENCE)


def _tau_share(shape: _Shape) -> float:
    """Time constant of an exponential approach to a plateau with these two slopes, in lengths of the series."""
    ratio = shape.second.at / shape.first.at
    return 0.5 / -math.log(min(max(ratio, 1e-3), 0.97))


def _times_for(shape: _Shape) -> float:
    """How much longer a series would have to be to decide.

    The interval of a slope shrinks with the length to the 3/2, what matters per step with the length: so their ratio goes
    with the square root. A step must come to lie in the first half.
    """
    if shape.rise > shape.tolerated * shape.length_steps:
        return 2.0
    width = shape.whole.high - shape.whole.low
    target = max(shape.tolerated - shape.whole.at, shape.whole.at, shape.negligible) * 2
    return min(max((width / target) ** 2, 1.5), MOST_MORE) if math.isfinite(width) else 2.0


def _stable_reason(shape: _Shape) -> str:
    rest = max(shape.whole.high, 0.0) * shape.length_steps
    return f"growth over the readings is at most {format_bytes(rest)}" if rest else "the floor is level"


def _vague_reason(shape: _Shape) -> str:
    if not math.isfinite(shape.whole.high):
        return "the readings are too alike to their neighbours to bound their trend"
    return f"growth cannot be told from none, nor from {format_bytes(shape.whole.high)} per step"


def _more_steps(times_longer: float | None, num_readings: int, stride: float) -> int | None:
    if times_longer is None:
        return None
    return max(1, math.ceil((min(times_longer, MOST_MORE) - 1) * max(num_readings, 1) * stride))


def _eta(room: float | None, slope: float) -> float | None:
    return None if room is None or slope <= 0 or not math.isfinite(slope) else room / slope


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _checked(steps: Sequence[int], readings: Sequence[Bytes]) -> tuple[Floats, Floats]:
    if len(steps) != len(readings):
        raise InputError(
            f"steps: got {len(steps)} for {len(readings)} readings; give one step for each reading"
        )
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(readings, dtype=np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("readings: some are not finite; leave out what could not be read, with its step")
    if len(x) > 1 and not (np.diff(x) > 0).all():
        raise InputError("steps: they do not rise; give the number of steps before each reading, in order")
    return x, y


def _check_limits(limit_bytes: Bytes | None, negligible_bytes: Bytes | None) -> None:
    if limit_bytes is not None and limit_bytes <= 0:
        raise InputError(f"limit_bytes: got {limit_bytes}; legal are positive numbers of bytes, or None")
    if negligible_bytes is not None and negligible_bytes < 0:
        raise InputError(
            f"negligible_bytes: got {negligible_bytes}; legal are 0 and more, or None for the default"
        )
