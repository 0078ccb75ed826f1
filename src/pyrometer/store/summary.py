"""What a listing says about a run, taken from the JSON document of its verb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, counted, format_bytes, format_percent, format_seconds
from pyrometer.record import from_dict
from pyrometer.workload import failure


def headline(document: dict[str, Any]) -> str:
    """The result in one line.

    Where the program failed, else a verdict, the median step with its interval, what a machine can tell apart, what bounds a trace, the peak of memory,
    the graphs of a compilation, the best configuration, the score of an audit, or what a guard decided; else nothing.

    >>> headline({"evidence": {"measurement": {"median_s": 0.002, "ci_low_s": 0.0019, "ci_high_s": 0.0022}}})
    '2.00 ms (1.90 ms–2.20 ms)'
    >>> headline({"evidence": {"compiled": {"graphs": 2, "breaks": [{}]}}}), headline({"evidence": {"memory": {"peak_bytes": 2**30}}})
    ('2 graphs, 1 break', 'peak 1.00 GiB')
    >>> headline({"evidence": {"measurement": {"median_s": 3.5, "num_samples": 1, "ci_low_s": None}}})
    '3.50 s (1 sample)'
    >>> headline({"diagnosis": {"audit": {"score": 68.75}}})
    'score 69 of 100'
    >>> headline({"gates": [{"outcome": "regressed"}, {"outcome": "unchanged"}]})
    '1 regressed'
    >>> headline({"evidence": {"measurement": {"median_s": 0.002, "failure": "step 3 raised ValueError: bad sample (train.py:40)"}}})
    'failed in step 3: ValueError (train.py:40)'
    """
    evidence = document.get("evidence") or {}
    failed = _failure(document, evidence)
    if failed is not None:
        return failure.headline(failed)
    parts: dict[str, Callable[[Any], str]] = {
        "verdict": _verdict, "gates": _gates, "calibration": _calibration, "matrix": _matrix,
    }  # fmt: skip
    part = next((name for name in parts if document.get(name)), None)
    if part is not None:
        return parts[part](document[part])
    audit = (document.get("diagnosis") or {}).get("audit")
    if audit is not None:
        return f"score {audit['score']:.0f} of 100" if audit.get("score") is not None else ""
    median = median_s(document)
    if median is None:
        return _observed(evidence)
    return f"{format_seconds(median)} ({_spread(evidence['measurement'])})"


def _failure(document: dict[str, Any], evidence: dict[str, Any]) -> str | None:
    """What ended the program before its time."""
    for part in (evidence.get("measurement"), document.get("soak")):
        if part and part.get("failure"):
            return str(part["failure"])
    code = (evidence.get("script") or {}).get("exit_code")
    return f"the script ended with exit status {code}" if code else None


def _spread(measured: dict[str, Any]) -> str:
    """The interval of the median, or how many samples there are where they are too few for one."""
    low, high, count = (measured.get(name) for name in ("ci_low_s", "ci_high_s", "num_samples"))
    median: dict[str, Any] = next(
        (q for q in measured.get("quantiles") or [] if q.get("quantile") == 0.5), {}
    )
    if isinstance(count, int) and None in {median.get("low_s", low), median.get("high_s", high)}:
        return counted(count, "sample")
    return f"{format_seconds(low)}–{format_seconds(high)}"


def _observed(evidence: dict[str, Any]) -> str:
    """What an observer that measures no steps found."""
    verdict, report, profile = (evidence.get(name) or {} for name in ("trace_verdict", "compiled", "memory"))
    if verdict:
        return str(verdict["sentence"])
    if report:
        return f"{counted(report['graphs'], 'graph')}, {counted(len(report['breaks']), 'break')}"
    return f"peak {format_bytes(profile['peak_bytes'])}" if profile else ""


def _matrix(plain: dict[str, Any]) -> str:
    best = plain.get("recommendation")
    return f"best: {best.get('label')}" if best else "nothing recommended"


def _verdict(plain: dict[str, Any]) -> str:
    try:
        return sentence(from_dict(Verdict, plain))
    except InputError:
        return str(plain.get("outcome", ""))  # a verdict of another version


def _gates(plain: list[dict[str, Any]]) -> str:
    outcomes = [gate.get("outcome") for gate in plain]
    told = [
        f"{outcomes.count(outcome)} {outcome}"
        for outcome in ("regressed", "improved", "undecided")
        if outcome in outcomes
    ]
    return ", ".join(told) or "nothing changed"


def _calibration(plain: dict[str, Any]) -> str:
    shares = [resolution.get("resolves_10s") for resolution in plain.get("resolutions", [])]
    known = [share for share in shares if isinstance(share, float)]
    return f"10 s tell {format_percent(max(known), 2)} apart" if known else ""


def median_s(document: dict[str, Any]) -> Seconds | None:
    """The median step, where the document holds a measurement that came to its end."""
    measured = (document.get("evidence") or {}).get("measurement") or {}
    value = None if measured.get("failure") else measured.get("median_s")
    return float(value) if isinstance(value, (int, float)) else None
