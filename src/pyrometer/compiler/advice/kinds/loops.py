"""Loops whose length is a tensor's value, and breaks inside of loops, `try` and `with`."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.choice import name_and_value
from pyrometer.compiler.advice.expressions import truth
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

LENGTH = titled(
    "give the length as a Python integer",
    why="The loop runs as often as a tensor's value says, and the graph cannot know how often that is. Convert the value "
    "before the compiled function is called (one graph per length), or run a fixed number of rounds and keep the old value with "
    "`torch.where` once the length is reached.",
    fix_class="exact",
)
UNTIL = titled(
    "bound the loop",
    why="The loop ends when a tensor says so, and the graph ends there in every round. Use `torch.while_loop`, or run a fixed "
    "number of rounds and keep the old value with `torch.where` once the condition fails; or compile only the loop's body.",
    fix_class="tolerance",
)
ABOUT = titled(
    "loop with torch.while_loop",
    why="The loop ends when a tensor says so, and the graph ends there in every round. torch.while_loop (a prototype) keeps "
    "it in the graph; shapes and dtypes must stay the same from round to round, otherwise it refuses with an error.",
    fix_class="tolerance",
)
IN_LOOP = titled(
    "move it out of the loop",
    why="torch gives up a whole function that breaks inside a loop. Do for all rounds at once what breaks, before or after the "
    "loop; or put the loop's body into a function of its own and compile that one.",
    fix_class="exact",
)
GUARDED = titled(
    "move it out of the try or with block",
    why="torch cannot end a graph inside such a block, and gives up the whole function. Put what breaks before or behind the "
    "block, or compile a function that holds only the rest.",
    fix_class="exact",
)


@advises("gb0170", "gb0124")
def data_dependent_while(site: Site) -> list[Advice]:
    """`torch.while_loop` where the body only computes new values for names."""
    statement = site.statement
    if not isinstance(statement, ast.While):
        return []
    return [*_while_loop(site, statement), UNTIL]


@advises("gb0059", "gb0124")
def loop_over_range_of_tensor(site: Site) -> list[Advice]:
    """`for i in range(n)` where `n` is a tensor."""
    match site.statement:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return [LENGTH]
    return []


@advises(rank=2)
def break_in_loop(site: Site) -> list[Advice]:
    """What breaks in a loop makes torch give up the function."""
    gives_up = site.found.skips_frame or site.found.id == "gb7000"
    inside = [loop for loop in site.loops if loop is not site.statement]
    return [IN_LOOP] if gives_up and inside else []


@advises(rank=2)
def break_in_block(site: Site) -> list[Advice]:
    """The same for `try` and `with`."""
    inside = site.parents[site.parents.index(site.function) :] if site.function else ()
    blocks = [node for node in inside if isinstance(node, ast.Try | ast.With) and node is not site.statement]
    return [GUARDED] if site.found.skips_frame and blocks else []


def _while_loop(site: Site, statement: ast.While) -> list[Advice]:
    condition, flow = truth(site, statement.test), Flow(site)
    pairs = [name_and_value(flow, each) for each in statement.body]
    if site.torch is None or condition is None or statement.orelse or None in pairs:
        return []
    names = list(dict.fromkeys(pair[0] for pair in pairs if pair is not None))
    carried = [name for name in names if flow.is_bound(name, statement.lineno)]
    if (
        not carried
        or not all(map(flow.holds_tensor, carried))
        or not _stay_inside(flow, statement, names, carried)
    ):
        return []
    keeps_on, body = site.unused_name("keeps_on"), site.unused_name("next_round")
    values = ", ".join(carried)
    state = f"({values},)" if len(carried) == 1 else f"({values})"
    lines = [
        f"def {keeps_on}({values}):",
        f"    return {condition}",
        "",
        f"def {body}({values}):",
        *(f"    {pair[0]} = {site.source(pair[1])}" for pair in pairs if pair is not None),
        f"    return {state}",
        "",
        f"{state} = {site.torch}.while_loop({keeps_on}, {body}, {state})",
    ]
    return site.replaced(
        statement,
        "\n".join(lines),
        ABOUT,
    )


def _stay_inside(flow: Flow, statement: ast.While, names: list[str], carried: list[str]) -> bool:
    """Whether names that only the body knows are read nowhere else."""
    inside = {id(node) for node in ast.walk(statement)}
    own = [name for name in names if name not in carried]
    return all(id(load) in inside for name in own for load in flow.loads(name))
