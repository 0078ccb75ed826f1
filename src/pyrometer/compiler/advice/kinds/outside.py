"""What belongs outside of compiled code: clocks, files, the operating system, functions written in C."""

from __future__ import annotations

import ast

import msgspec

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.kinds.diagnostics import SILENT
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

CLOCKS = frozenset(
    f"time.{name}{suffix}"
    for name in ("time", "perf_counter", "monotonic", "process_time")
    for suffix in ("", "_ns")
)
CLOCK = titled(
    "measure outside",
    why="A clock read inside is read while tracing stops, and ends the graph. Time the call of the compiled function instead; on "
    "a device, the work is not done yet when the clock is read here.",
    fix_class="exact",
)
UNREAD = titled(
    "read the clock only where nothing is compiled",
    why="The reading is only told to people, and ends the graph. Time the call of the compiled function instead.",
    fix_class="exact",
)
OUTSIDE = titled(
    "move it out of the compiled function",
    why="torch cannot trace {what}. Call it before or after the compiled function and hand its result in as an argument; what "
    "does not change from call to call can be computed once, when the module is made.",
    fix_class="exact",
)
OPAQUE = titled(
    "make it an operator, or leave it out on purpose",
    why="torch cannot look into {what}. If it computes on tensors, wrap it with torch.library.custom_op and register_fake, or, if all "
    "it does is call torch, mark it with torch.compiler.allow_in_graph. Otherwise put it under torch.compiler.disable at a place "
    "where a break costs little: at the start or end of the function.",
    fix_class="exact",
)
SYSTEM = (
    "os.",
    "sys.",
    "io.",
    "pathlib.",
    "shutil.",
    "subprocess.",
    "socket.",
    "threading.",
    "tempfile.",
    "datetime.",
    "uuid.",
)
BUILTINS = frozenset(
    [
        "open",
        "input",
        "id",
        "hash",
        "eval",
        "exec",
        "compile",
        "globals",
        "vars",
        "memoryview",
        "breakpoint",
        "__import__",
    ]
)


@advises("gb0007", "gb0156", "gb0147", "gb0059")
def clock(site: Site) -> list[Advice]:
    """Readings of clocks, left out where they only end in output to people."""
    statement = site.statement
    reads = [call for call in site.calls if site.full_name(call.func) in CLOCKS and not call.args]
    if not reads:
        return []
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) if site.torch and _only_told(site, name, frozenset()):
            advice = site.edited(
                statement,
                [
                    (call, f"(0 if {site.torch}.compiler.is_compiling() else {site.source(call)})")
                    for call in reads
                ],
                UNREAD,
            )
            return [*advice, CLOCK]
    return [CLOCK]


@advises(
    "gb0007", "gb0008", "gb0009", "gb0059", "gb0088", "gb0142", "gb0147", "gb0148", "gb0156", "gb0177", rank=2
)
def call_that_is_not_traced(site: Site) -> list[Advice]:
    """Files, the operating system, other code that is not Python."""
    names = [site.full_name(call.func) for call in site.calls]
    if any(name in CLOCKS for name in names):
        return []
    names = [name for name in names if name and name not in SILENT]
    for name in names:
        if name in BUILTINS or name.startswith(SYSTEM):
            return [_about(OUTSIDE, name)]
    said = site.found.id in {"gb0007", "gb0008", "gb0009", "gb0177"}
    if said and not _has_own_kind(site, names):
        return [_about(OPAQUE, names[0] if names else "this function")]
    return []


def _about(words: Advice, what: str) -> Advice:
    return msgspec.structs.replace(words, why=words.why.format(what=what))


def _has_own_kind(site: Site, names: list[str]) -> bool:
    """Whether another kind speaks of this call: random numbers, seeds, output to people."""
    told = isinstance(site.statement, ast.Expr) and isinstance(site.statement.value, ast.Call)
    told = told and site.full_name(site.statement.value.func) in SILENT  # type: ignore[union-attr]
    return told or any(
        name.startswith(("random.", "numpy.random.", "logging.")) or "manual_seed" in name for name in names
    )


def _only_told(site: Site, name: str, seen: frozenset[str]) -> bool:
    """Whether all that becomes of a name is arithmetic, and output to people at the end."""
    flow = Flow(site)
    if name in seen:
        return True
    return not flow.is_shared(name) and all(
        _is_told(site, flow, load, seen | {name}) for load in flow.loads(name)
    )


def _is_told(site: Site, flow: Flow, node: ast.AST, seen: frozenset[str]) -> bool:
    above = flow.parent.get(node)
    match above:
        case ast.BinOp() | ast.FormattedValue() | ast.JoinedStr():
            return _is_told(site, flow, above, seen)
        case ast.Assign(targets=[ast.Name(id=name)]):
            return _only_told(site, name, seen)
        case ast.Call(func=function) if site.full_name(function) in SILENT:
            return isinstance(flow.parent.get(above), ast.Expr)
    return False
