"""What a listing says about a run, taken from the JSON document of its verb."""

from __future__ import annotations

from typing import Any

from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, counted, format_bytes, format_percent, format_seconds
from pyrometer.record import from_dict


def headline(document: dict[str, Any]) -> str:
    """The result in one line.

    A verdict, the median step with its interval, what a machine can tell apart, what bounds a trace, the peak of memory,
    or the graphs of a compilation; else nothing.

    >>> headline({"measurement": {"median_s": 0.002, "ci_low_s": 0.0019, "ci_high_s": 0.0022}})
    '2.00 ms (1.90 ms–2.20 ms)'
    >>> headline({"graphs": 2, "breaks": [{}], "peak_bytes": None}), headline({"peak_bytes": 2**30, "ledger_bytes": {}})
    ('2 graphs, 1 break', 'peak 1.00 GiB')
    """
    if document.get("verdict"):
        return _verdict(document["verdict"])
    if document.get("calibration"):
        return _calibration(document["calibration"])
    median = median_s(document)
    if median is None:
        return _observed(document)
    low, high = (format_seconds(document["measurement"].get(end)) for end in ("ci_low_s", "ci_high_s"))
    return f"{format_seconds(median)} ({low}–{high})"


def _observed(document: dict[str, Any]) -> str:
    """What an observer that measures no steps found."""
    graphs, breaks, peak = document.get("graphs"), document.get("breaks"), document.get("peak_bytes")
    if isinstance(graphs, int) and isinstance(breaks, list):
        return f"{counted(graphs, 'graph')}, {counted(len(breaks), 'break')}"
    return f"peak {format_bytes(peak)}" if isinstance(peak, int) else ""


def _verdict(plain: dict[str, Any]) -> str:
    if "sentence" in plain:  # what bounds a trace
        return str(plain["sentence"])
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
