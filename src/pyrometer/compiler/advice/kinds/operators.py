"""Operators of one's own that say nothing of shapes: no fake kernel, no decomposition."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.expressions import elementwise
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import FUNCTIONS, Site

WORDS = titled(
    "register a fake kernel",
    why="The operator does not say what its result looks like, so it cannot stand in a graph. Register a function that returns an empty "
    'tensor of the right shape, dtype and device: `@torch.library.register_fake("space::name")` above '
    "`def _(x): return torch.empty_like(x)`; better still, define the operator with torch.library.custom_op.",
    fix_class="exact",
)

ABOUT = titled(
    "register the implementation as the fake kernel",
    why="The operator does not say what its result looks like. Its implementation is made of torch's functions alone, and tells that "
    "by running on fake tensors.",
    fix_class="exact",
)
TORCH_SPACES = frozenset({"aten", "prim", "prims", "quantized"})


@advises("gb0090", "gb0087", "gb0037", "gb0043", "gb4315", "gb0112")
def operator_without_fake(site: Site) -> list[Advice]:
    """The implementation as its own fake kernel, where it is made of torch's functions alone."""
    advice = [each for name in _operators(site) for each in _registered(site, *name)]
    words = site.found.id in {"gb0090", "gb0087"} or bool(_operators(site))
    return [*advice, *([WORDS] if words else [])]


def _operators(site: Site) -> list[tuple[str, str]]:
    """Space and name of every `torch.ops.space.name(…)` in the statement."""
    parts = [site.full_name(call.func).split(".") for call in site.calls]
    return [
        (part[2], part[3])
        for part in parts
        if part[:2] == ["torch", "ops"] and len(part) >= 4 and part[2] not in TORCH_SPACES
    ]


def _registered(site: Site, space: str, name: str) -> list[Advice]:
    """The line that registers the implementation, followed by one that registers it as the fake kernel too."""
    for node in site.everywhere():
        match node:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="impl"), args=[ast.Constant(value=str() as said), function, *_]
                )
            ) if said.rpartition("::")[2] == name and _is_traceable(site, function):
                line = site.block(node)
                added = f'{site.torch}.library.register_fake("{space}::{name}", {site.source(function)})'
                return site.replaced(node, f"{line}\n{added}", ABOUT) if site.torch and line else []
    return []


def _is_traceable(site: Site, function: ast.expr) -> bool:
    """Whether a function of the file only computes elementwise with torch."""
    match function:
        case ast.Lambda(body=body):
            return elementwise(site, body) is not None
        case ast.Name(id=name):
            defined = [
                node for node in site.everywhere() if isinstance(node, FUNCTIONS) and node.name == name
            ]
            bodies = [node.body[-1] for node in defined if len(node.body) == 1]
            return (
                len(defined) == len(bodies) == 1
                and isinstance(bodies[0], ast.Return)
                and bodies[0].value is not None
                and elementwise(site, bodies[0].value) is not None
            )
    return False
