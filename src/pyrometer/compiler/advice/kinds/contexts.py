"""Context managers that torch cannot enter while tracing."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

WATCHING = frozenset(
    {
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.detect_anomaly",
        "torch.autograd.profiler.emit_nvtx",
        "torch.profiler.profile",
        "torch.autograd.profiler.profile",
    }
)
"""Contexts that watch and change no result."""

WORDS = titled(
    "enter it outside",
    why="torch cannot enter this context manager while tracing. Hold it around the call of the compiled function: locks, files "
    "and timers belong to the caller. Contexts of torch for gradients, autocast and devices may stay.",
    fix_class="exact",
)

ABOUT = titled(
    "do not watch from inside",
    why="This context only watches. Hold it around the call of the compiled function while you look for something.",
    fix_class="exact",
)


@advises("gb0142", "gb0066", "gb0262", "gb0008", "gb0221", "gb0263", "gb0274", "gb0370", "gb0212")
def context_manager(site: Site) -> list[Advice]:
    """The block without a context that only watches; words for others."""
    statement = site.statement
    if not isinstance(statement, ast.With):
        around = any(isinstance(node, ast.With) for node in site.parents)
        return [WORDS] if site.found.id in {"gb0142", "gb0066"} and around else []
    calls = [item.context_expr for item in statement.items if item.optional_vars is None]
    watching = [
        call for call in calls if isinstance(call, ast.Call) and site.full_name(call.func) in WATCHING
    ]
    body = site.block(statement.body[0], statement.body[-1])
    if len(watching) == len(statement.items) and body is not None:
        return [*site.replaced(statement, body, ABOUT), WORDS]
    return [WORDS] if site.found.id != "gb0008" else []
