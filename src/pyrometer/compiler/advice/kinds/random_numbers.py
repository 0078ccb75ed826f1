"""Random numbers from Python and NumPy: their state is not the graph's."""

from __future__ import annotations

import ast

import msgspec

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.expressions import bracketed, is_number
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.kinds.branches import decided
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

UNIFORM = frozenset(
    {"random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.random_sample"}
)
NORMAL = frozenset({"random.gauss", "random.normalvariate", "numpy.random.normal"})
BETWEEN = frozenset({"random.uniform", "numpy.random.uniform"})
WORDS = titled(
    "draw with torch",
    why="Draws from Python or NumPy are made outside the graph. Draw with torch (torch.rand, torch.randn, torch.randint, "
    "torch.randperm), whose state compiled code keeps, or draw before the compiled function is called and hand the value in. "
    "The stream of numbers is another one.",
    fix_class="semantic",
)
SEED = titled(
    "seed outside",
    why="Seeding changes the state of a generator, which no graph does. Seed before the compiled function is called.",
    fix_class="exact",
)
ABOUT = titled(
    "draw with torch",
    why="The number is drawn outside the graph. Drawn with torch it stays in: a tensor of one element, which does in the "
    "arithmetic that follows. The stream of numbers is another one, and follows torch.manual_seed.",
    fix_class="semantic",
)


@advises("gb0007", "gb0008", "gb0033", "gb0124", "gb0156", "gb0297", "gb0298", "gb0147", "gb0117")
def random_number(site: Site) -> list[Advice]:
    """`torch.rand` and its like, where arithmetic or a decision follows."""
    statement = site.statement
    draws = [node for node in site.calls if _is_draw(site, node)]
    if statement is None or not draws or site.found.id == "gb0297":
        return []
    if isinstance(statement, ast.If):
        if any(draw in ast.walk(statement.test) for draw in draws):
            return [*_chance(site, statement), WORDS]
        return []
    flow = Flow(site)
    texts = [(draw, _draw(site, draw)) for draw in draws]
    if all(text for _, text in texts) and all(flow.absorbed(draw) for draw in draws):
        return [*site.edited(statement, texts, ABOUT), WORDS]
    return [WORDS]


@advises("gb0007", "gb0008", "gb7650", "gb0363")
def seeding(site: Site) -> list[Advice]:
    """Seeds and generators belong outside."""
    names = {site.full_name(call.func) for call in site.calls} | {
        call.func.attr for call in site.calls if isinstance(call.func, ast.Attribute)
    }
    if names & {"torch.manual_seed", "manual_seed", "torch.Generator", "random.seed", "numpy.random.seed"}:
        return [SEED]
    return []


def _is_draw(site: Site, call: ast.Call) -> bool:
    return site.full_name(call.func).startswith(("random.", "numpy.random."))


def _draw(site: Site, call: ast.Call) -> str:
    """The same draw with torch; empty for draws that are not of one number."""
    name = site.full_name(call.func)
    arguments = [bracketed(site.source(arg)) for arg in call.args]
    if site.torch is None or call.keywords:
        return ""
    if name in UNIFORM and not arguments:
        return f"{site.torch}.rand(())"
    if name in NORMAL and len(arguments) == 2:
        return f"({arguments[0]} + {arguments[1]} * {site.torch}.randn(()))"
    if name in BETWEEN and len(arguments) == 2:
        low, high = arguments
        return f"({low} + ({high} - {low}) * {site.torch}.rand(()))"
    return ""


def _chance(site: Site, statement: ast.If) -> list[Advice]:
    """`if random.random() < p:` as a choice in the graph."""
    match statement.test:
        case ast.Compare(
            left=ast.Call() as draw, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[bound]
        ) if is_number(bound) or isinstance(bound, ast.Attribute | ast.Name):
            text = _draw(site, draw)
        case _:
            return []
    if not text:
        return []
    test = ast.unparse(statement.test).replace(ast.unparse(draw), text, 1)
    condition = test if is_number(bound) else f"({test}).reshape(())"
    advice = decided(site, statement, condition)
    return [msgspec.structs.replace(ABOUT, replaces=each.replaces, rewrite=each.rewrite) for each in advice]
