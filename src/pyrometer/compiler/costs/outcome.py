"""How a compilation ended: with code, with none because there was nothing to compile, skipped, failed, or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyrometer.compiler.costs.metrics import BACKWARD, number
from pyrometer.compiler.log import LogEntry
from pyrometer.compiler.recompile_limit import RAISED_LIMIT, read_limit

_FALLS_BACK = re.compile(r"fall(?:ing)? back to eager")
"""What a break says that ends in running the whole function eagerly."""


def outcome_of(metrics: Mapping[str, Any], entries: Sequence[LogEntry]) -> tuple[str, str]:
    """How it ended, and why if badly.

    Torch reports one and the same failure whether the function then runs eagerly or the program gets an exception, as with
    `fullgraph=True`. It is known to fall back where a break says so, at the recompile limit, and when errors are suppressed;
    any other failure counts as failed.

    Args:
        metrics: of the compilation; empty while there are none.
        entries: all that bear its id.
    """
    kinds = {entry.kind for entry in entries}
    failure, reason = str(metrics.get("fail_type") or ""), str(metrics.get("fail_reason") or "").strip()
    if failure or reason:
        first_line = ": ".join(filter(None, (failure, reason.partition("\n")[0])))
        return ("skipped" if _falls_back(failure, reason, metrics, entries) else "failed"), first_line
    if metrics.get("has_guarded_code") is False:
        return "skipped", ""
    if BACKWARD in kinds or "compiled_autograd_graph" in kinds:
        return "compiled", ""
    if not metrics:
        return "unfinished", ""
    return (
        "compiled" if "dynamo_output_graph" in kinds or number(metrics, "graph_op_count") else "empty"
    ), ""


def _falls_back(failure: str, reason: str, metrics: Mapping[str, Any], entries: Sequence[LogEntry]) -> bool:
    if failure == "SkipFrame" or metrics.get("config_suppress_errors") is True:
        return True
    if failure != RAISED_LIMIT and read_limit(failure, reason) is not None:
        return True
    return any(
        entry.kind == "dynamo_graph_break_reason" and _FALLS_BACK.search(entry.payload) for entry in entries
    )
