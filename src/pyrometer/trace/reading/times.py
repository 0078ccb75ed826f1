"""Microseconds as a trace writes them to integer nanoseconds, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

NO_TIME = -(2**63)
"""Stands for a time that is missing, or beyond what 64 bits of nanoseconds hold (292 years)."""

LIMIT_US = 2**63 // 1000 - 1

FLOAT_LIMIT_US = 2.0**43
"""From here on (102 days) the floats of µs lie more than a nanosecond apart; the digits have to be read."""

IntArray = npt.NDArray[np.int64]


def nanoseconds(values: Sequence[Any]) -> IntArray:
    """Microseconds as JSON numbers to nanoseconds; `NO_TIME` where there is none.

    Exact for whole numbers, and for floats with three decimals up to 2^43 µs (102 days; Kineto counts from the start of
    a span of 91): there a float lies within half a nanosecond of what was written. Its whole part and its
    fraction are taken apart, because the product of the two with 1000 would be rounded once more, to a wrong
    nanosecond at times. Times that are kept as text are exact at any size.

    >>> nanoseconds([1669783687464181, 0]).tolist(), nanoseconds([1428625731896.179]).tolist()
    ([1669783687464181000, 0], [1428625731896179])
    >>> nanoseconds([msgspec.Raw(b"1712170290183634.593"), msgspec.Raw(b"12")]).tolist()
    [1712170290183634593, 12000]
    >>> nanoseconds([None, 1.5]).tolist() == [NO_TIME, 1500]
    True
    """
    kinds = set(map(type, values)) - {type(None)}
    if msgspec.Raw in kinds:
        return _from_text([_digits(value) for value in values])
    if kinds <= {int}:
        whole = pl.Series(values, dtype=pl.Int64, strict=False)
        known = whole.is_between(-LIMIT_US, LIMIT_US)
        return (whole * 1000).set(~known, None).fill_null(NO_TIME).to_numpy()
    return _from_floats(np.array(values, dtype=np.float64))


def too_coarse(values: Sequence[Any]) -> bool:
    """Whether floats among the values are so large that they no longer tell the nanosecond."""
    if float not in set(map(type, values)):
        return False
    return max(value for value in values if type(value) is float) >= FLOAT_LIMIT_US


def _from_floats(micros: npt.NDArray[np.float64]) -> IntArray:
    known = np.abs(micros) <= LIMIT_US  # false for NaN, which stands for none
    micros = np.where(known, micros, 0)
    whole = np.floor(micros)
    nanos = whole.astype(np.int64) * 1000 + np.rint((micros - whole) * 1000).astype(np.int64)
    return np.where(known, nanos, NO_TIME)


def _digits(value: Any) -> str | None:
    """The text of a number; None for nothing and for null."""
    text = bytes(value).strip(b'"').decode(errors="replace")
    return None if text in {"", "null"} else text


def _from_text(texts: list[str | None]) -> IntArray:
    parts = (
        pl.Series("t", texts, dtype=pl.String)
        .to_frame()
        .select(
            plain=pl.col("t").str.contains(r"^-?[1-8]?\d{1,15}(\.\d{1,3})?$"),
            minus=pl.col("t").str.starts_with("-"),
            whole=pl.col("t").str.extract(r"^-?(\d+)"),
            fraction=pl.col("t").str.extract(r"\.(\d+)$").fill_null("").str.pad_end(3, "0"),
        )
    )
    simple = parts.with_columns(
        pl.when("plain").then("whole").alias("whole"), pl.when("plain").then("fraction").alias("fraction")
    )
    nanos = simple["whole"].cast(pl.Int64) * 1000 + simple["fraction"].cast(pl.Int64)
    nanos = pl.select(pl.when(simple["minus"]).then(-nanos).otherwise(nanos)).to_series()
    found: IntArray = nanos.fill_null(NO_TIME).to_numpy().copy()
    for i in (~parts["plain"].fill_null(value=True)).arg_true().to_list():
        found[i] = _exact(texts[i])
    return found


def _exact(text: str | None) -> int:
    try:
        micros = Decimal(text or "nan")
    except ArithmeticError:
        return NO_TIME
    return round(micros * 1000) if micros.is_finite() and abs(micros) <= LIMIT_US else NO_TIME
