"""What a listing says about a run, taken from the JSON document of its verb."""

from __future__ import annotations

from typing import Any

from pyrometer.bench.verdict import Verdict, sentence
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.record import from_dict


def headline(document: dict[str, Any]) -> str:
    """One line: the verdict where there is one, else the median step with its interval, else nothing.

    >>> headline({"measurement": {"median_s": 0.002, "ci_low_s": 0.0019, "ci_high_s": 0.0022}})
    '2.00 ms (1.90 ms–2.20 ms)'
    """
    if document.get("verdict"):
        try:
            return sentence(from_dict(Verdict, document["verdict"]))
        except InputError:
            return str(document["verdict"].get("outcome", ""))  # of a version whose verdict looked different
    measurement = document.get("measurement") or {}
    if median_s(document) is None:
        return ""
    low, high = (format_seconds(measurement.get(end)) for end in ("ci_low_s", "ci_high_s"))
    return f"{format_seconds(median_s(document))} ({low}–{high})"


def median_s(document: dict[str, Any]) -> Seconds | None:
    """The median step, where the document holds a measurement."""
    value = (document.get("measurement") or {}).get("median_s")
    return float(value) if isinstance(value, (int, float)) else None
