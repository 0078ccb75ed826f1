"""What a listing says about a run, taken from the JSON document of its verb."""

from __future__ import annotations

from typing import Any

from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, format_percent, format_seconds
from pyrometer.record import from_dict


def headline(document: dict[str, Any]) -> str:
    """One line: the verdict, the median step with its interval, or what a machine can tell apart; else nothing.

    >>> headline({"measurement": {"median_s": 0.002, "ci_low_s": 0.0019, "ci_high_s": 0.0022}})
    '2.00 ms (1.90 ms–2.20 ms)'
    """
    if document.get("verdict"):
        return _verdict(document["verdict"])
    if document.get("calibration"):
        return _calibration(document["calibration"])
    median = median_s(document)
    if median is None:
        return ""
    low, high = (format_seconds(document["measurement"].get(end)) for end in ("ci_low_s", "ci_high_s"))
    return f"{format_seconds(median)} ({low}–{high})"


def _verdict(plain: dict[str, Any]) -> str:
    try:
        return sentence(from_dict(Verdict, plain))
    except InputError:
        return str(plain.get("outcome", ""))  # a verdict of another version


def _calibration(plain: dict[str, Any]) -> str:
    shares = [resolution.get("resolves_10s") for resolution in plain.get("resolutions", [])]
    known = [share for share in shares if isinstance(share, float)]
    return f"10 s tell {format_percent(max(known), 2)} apart" if known else ""


def median_s(document: dict[str, Any]) -> Seconds | None:
    """The median step, where the document holds a measurement."""
    value = (document.get("measurement") or {}).get("median_s")
    return float(value) if isinstance(value, (int, float)) else None
