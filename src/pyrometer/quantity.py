"""Figures as people read them. Inside, everything is seconds, bytes and ratios; this is the only place that humanises.

>>> format_seconds(0.00123), format_bytes(1536), format_ratio(0.704, 0.685, 0.725)
('1.23 ms', '1.50 KiB', '1.42× faster (1.38–1.46)')
"""

from __future__ import annotations

import math
from typing import TypeAlias

Seconds: TypeAlias = float
Bytes: TypeAlias = int
Ratio: TypeAlias = float

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_RATE_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def significant(value: float, digits: int = 3) -> str:
    """Format with a fixed number of significant digits and no exponent.

    >>> significant(1234.5), significant(0.012345), significant(99.96)
    ('1234', '0.0123', '100')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:.{decimals}f}"


def format_seconds(value_s: Seconds | None) -> str:
    """A duration with a fitting unit, to three digits.

    >>> format_seconds(4.2e-05), format_seconds(75), format_seconds(7500), format_seconds(None)
    ('42.0 µs', '1 min 15 s', '2 h 5 min', '–')
    """
    if value_s is None or math.isnan(value_s):
        return "–"
    if abs(value_s) >= 60:
        return _clock_time(value_s)
    for scale, unit in _TIME_UNITS:
        if abs(value_s) >= scale * 0.9995:
            return f"{significant(value_s / scale)} {unit}"
    return "0 s" if value_s == 0 else f"{significant(value_s * 1e9)} ns"


def time_unit(value_s: Seconds) -> tuple[Seconds, str]:
    """The unit that suits a duration: its length in seconds, and its name.

    >>> time_unit(0.0123)
    (0.001, 'ms')
    """
    return next(
        ((scale, unit) for scale, unit in _TIME_UNITS if abs(value_s) >= scale * 0.9995), _TIME_UNITS[-1]
    )


def byte_unit(value: float) -> tuple[float, str]:
    """The unit that suits a number of bytes: its size in bytes, and its name.

    >>> byte_unit(5 * 2**20)
    (1048576.0, 'MiB')
    """
    power = int(math.log2(abs(value)) // 10) if abs(value) >= 1 else 0
    power = min(power, len(_BYTE_UNITS) - 1)
    return float(1024**power), _BYTE_UNITS[power]


def format_interval(low: float | None, high: float | None, scale: float = 1.0) -> str:
    """An interval in multiples of `scale`, with as many digits as it takes to tell its ends apart.

    >>> format_interval(0.0318, 0.0323, 1e-3), format_interval(0.03201, 0.03202, 1e-3), format_interval(0.03, None, 1e-3)
    ('31.8–32.3', '32.01–32.02', '≥ 30.0')
    """
    low, high = (None if end is None or not math.isfinite(end) else end for end in (low, high))
    if low is None or high is None:
        end, sign = (high, "≤") if low is None else (low, "≥")
        return "not bounded" if end is None else f"{sign} {significant(end / scale)}"
    shown = [(significant(low / scale, digits), significant(high / scale, digits)) for digits in (3, 4, 5)]
    return "–".join(next((ends for ends in shown if ends[0] != ends[1]), shown[0]))


def _clock_time(value_s: Seconds) -> str:
    minutes, seconds = divmod(round(value_s), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def format_bytes(value: float | None) -> str:
    """Bytes with a binary unit, to three digits.

    >>> format_bytes(0), format_bytes(5 * 2**20), format_bytes(-2**30)
    ('0 B', '5.00 MiB', '-1.00 GiB')
    """
    if value is None:
        return "–"
    scaled = float(value)
    for unit in _BYTE_UNITS:
        if abs(scaled) < 1024 or unit == _BYTE_UNITS[-1]:
            return f"{scaled:.0f} B" if unit == "B" else f"{significant(scaled)} {unit}"
        scaled /= 1024
    raise AssertionError


def format_rate(value: float | None, unit: str) -> str:
    """A rate with an SI prefix, set apart where the unit is a word.

    >>> format_rate(3.2e12, "FLOP/s"), format_rate(812.4, "frames/s"), format_rate(15_500, "images/s")
    ('3.20 TFLOP/s', '812 frames/s', '15.5 k images/s')
    """
    if value is None:
        return "–"
    for scale, prefix in _RATE_UNITS:
        if abs(value) >= scale:
            gap = " " if prefix and unit[:1].islower() else ""
            return f"{significant(value / scale)} {prefix}{gap}{unit}"
    return f"{significant(value)} {unit}"


def rate_scale(value: float) -> float:
    """What the figure in `format_rate` is counted in.

    >>> rate_scale(3.2e12)
    1000000000000.0
    """
    return next((scale for scale, _ in _RATE_UNITS if abs(value) >= scale), 1.0)


def counted(number: float, noun: str) -> str:
    """A count with its noun, in the singular where it is one.

    >>> counted(1, "step"), counted(1200, "block"), counted(5, "process"), counted(2, "batch")
    ('1 step', '1,200 blocks', '5 processes', '2 batches')
    """
    ending = "" if round(number) == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{number:,.0f} {noun}{ending}"


def format_about(number: float) -> str:
    """A number that is known roughly, to two digits.

    >>> format_about(1_750_002)
    '1,800,000'
    """
    return f"{float(f'{number:.2g}'):,.0f}"


def format_percent(share: float | None, digits: int = 3) -> str:
    """A share of one as a percentage.

    >>> format_percent(0.0123), format_percent(0.5)
    ('1.23 %', '50.0 %')
    """
    return "–" if share is None else f"{significant(share * 100, digits)} %"


def format_ratio(ratio: Ratio, low: Ratio, high: Ratio) -> str:
    """A ratio of times (new/old) with its interval, in the direction that reads naturally.

    >>> format_ratio(1.25, 1.2, 1.3), format_ratio(0.5, 0.4, 0.625), format_ratio(1.0, 0.98, 1.03)
    ('1.25× slower (1.20–1.30)', '2.00× faster (1.60–2.50)', '1.00× (0.980–1.03)')
    >>> format_ratio(0.0, 0.0, 0.5)  # nothing is left
    '∞× faster (2.00–∞)'
    """
    if ratio < 1 and high < 1:
        return f"{_inverse(ratio)}× faster ({_inverse(high)}–{_inverse(low)})"
    word = " slower" if ratio > 1 and low > 1 else ""
    return f"{significant(ratio)}×{word} ({significant(low)}–{significant(high)})"


def _inverse(value: float) -> str:
    return significant(1 / value) if value > 0 else "∞"
