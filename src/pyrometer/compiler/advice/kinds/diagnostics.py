"""`print`, logging and warnings: they change no result, and end the graph all the same."""

from __future__ import annotations

import ast
import re

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.expressions import REDUCTIONS, has_effects
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

SILENT = frozenset(
    [
        "print",
        "warnings.warn",
        "sys.stdout.write",
        "sys.stdout.flush",
        "sys.stderr.write",
        "sys.stderr.flush",
        "pprint.pprint",
        "gc.collect",
        "torch.cuda.empty_cache",
        "torch.cuda.reset_peak_memory_stats",
        "torch.cuda.synchronize",
        "breakpoint",
        "pdb.set_trace",
    ]
)
"""Functions after which every result is as without them."""

LEVELS = frozenset(["debug", "info", "warning", "warn", "error", "exception", "critical", "log"])
LOGGERS = frozenset(["log", "logger", "logging", "_log", "_logger"])
PURE = REDUCTIONS | frozenset(
    [
        "len",
        "str",
        "repr",
        "float",
        "int",
        "bool",
        "round",
        "type",
        "abs",
        "format",
        "item",
        "tolist",
        "detach",
        "cpu",
        "numpy",
        "size",
        "dim",
        "numel",
        "shape",
        "isnan",
        "isinf",
        "norm",
        "join",
        "getLogger",
        "get_rank",
    ]
)
"""Functions that may stand in what is printed: to leave them out changes nothing."""

REORDERABLE = frozenset({"print", "warnings.warn"})
TYPES = re.compile(r"argument types \[(.*?)\]")
HELD = frozenset({"'str'", "'Tensor'", "'int'", "'float'", "'bool'", ""})
"""Types of arguments with which torch can put a call off."""

GUARDED = titled(
    "not in compiled code",
    why="The call changes no result but ends the graph. Behind this test it happens in eager runs, and is left out of compiled code.",
    fix_class="exact",
)


@advises()
def output_to_people(site: Site) -> list[Advice]:
    """Say it only where nothing is compiled; or have torch put it off, or drop it, by a setting."""
    match site.statement:
        case ast.Expr(value=ast.Call() as call):
            name = site.full_name(call.func)
        case _:
            return []
    level = _level(name)
    if name not in SILENT and not level:
        return []
    settings = [] if any(map(_takes_number, ast.walk(call))) else _settings(site, name, level)
    return [*_guarded(site, call), *settings]


def _guarded(site: Site, call: ast.Call) -> list[Advice]:
    statement = site.statement
    block = site.block(statement) if statement is not None else None
    if statement is None or block is None or site.torch is None or not _is_pure(call):
        return []
    body = "\n".join("    " + line if line else "" for line in block.split("\n"))
    return site.replaced(
        statement,
        f"if not {site.torch}.compiler.is_compiling():\n{body}",
        GUARDED,
    )


def _settings(site: Site, name: str, level: str) -> list[Advice]:
    if name in REORDERABLE and _can_wait(site.found.explanation, site.found.id):
        return [
            titled(
                "put it off until the graph has run",
                why="With this setting the call is taken out of the graph and made after it, with the same values.",
                rewrite=f"torch._dynamo.config.reorderable_logging_functions.add({name})",
                fix_class="exact",
            )
        ]
    if not level:
        return []
    function = name if name.startswith("logging.") else f"logging.Logger.{level}"
    return [
        titled(
            "drop it from compiled code",
            why="With this setting compiled code leaves the call out.",
            rewrite=f"torch._dynamo.config.ignore_logging_functions.add({function})",
            fix_class="exact",
        )
    ]


def _takes_number(node: ast.AST) -> bool:
    """Whether this may take a number out of a tensor: a break of its own, that stays when torch leaves out the call around it."""
    match node:
        case (
            ast.Call(func=ast.Attribute(attr="item" | "tolist" | "numpy"))
            | ast.Call(func=ast.Name(id="int" | "float" | "bool"))
        ):
            return True
    return False


def _level(name: str) -> str:
    """The level of a call to a logger; empty if it is none."""
    owner, _, level = name.rpartition(".")
    return level if level in LEVELS and owner.rpartition(".")[2].lower() in LOGGERS else ""


def _is_pure(call: ast.Call) -> bool:
    """Whether nothing but the call itself is lost with its arguments."""
    if any(keyword.arg == "file" for keyword in call.keywords):
        return False  # what is written there may be read again
    inside = [part for argument in [*call.args, *call.keywords] for part in ast.walk(argument)]
    calls = [part for part in inside if isinstance(part, ast.Call)]
    names = {
        part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
        for part in calls
    }
    return names <= PURE and not any(map(has_effects, inside))


def _can_wait(explanation: str, gb_id: str | None) -> bool:
    match = TYPES.search(explanation)
    types = {part.strip() for part in match[1].split(",")} if match else set()
    return gb_id != "gb0296" and types <= HELD
