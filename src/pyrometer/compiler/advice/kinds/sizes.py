"""Results whose size depends on values: boolean masks, `nonzero`, `unique`, slices by tensors."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.expressions import elementwise, operation
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

SETTING = titled(
    "let open sizes into the graph",
    why="With this setting the size becomes a symbol, and the graph goes on.",
    rewrite="torch._dynamo.config.capture_dynamic_output_shape_ops = True",
    fix_class="exact",
)
WORDS = titled(
    "keep the full size",
    why="The size of the result depends on values. Keep the full size and a mask: `torch.where(mask, x, neutral)` before a "
    "reduction, or `torch.nonzero_static(mask, size=n)` with a size that is always enough.",
    fix_class="tolerance",
)
ABOUT = titled(
    "reduce the full tensor behind a mask",
    why="The masked tensor is only reduced: elements outside the mask count as zero instead, and the size stays. The sum may round "
    "differently.",
    fix_class="tolerance",
)
SINGLE = {"sum": "{where}.sum()", "mean": "{where}.sum() / {count}"}


@advises("gb0036", "gb0037", "gb0038", "gb0246")
def size_from_values(site: Site) -> list[Advice]:
    """Reductions of masked tensors as reductions of the full tensor; otherwise an open size."""
    advice = _reduced(site)
    settings = [] if site.found.id == "gb0246" or _decides(site) else [SETTING]
    return [*advice, *settings, WORDS]


def _decides(site: Site) -> bool:
    """Whether a test needs the size, or values of that size: an open size only moves the break there."""
    statement = site.statement
    if isinstance(statement, ast.If | ast.While | ast.Assert):
        return True
    flow = Flow(site)
    names = {node.id for node in site.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    tests = [
        test for node in ast.walk(flow.scope) if isinstance(test := getattr(node, "test", None), ast.expr)
    ]
    return any(isinstance(part, ast.Name) and part.id in names for test in tests for part in ast.walk(test))


def _reduced(site: Site) -> list[Advice]:
    """Every `x[mask].sum()` and its like in the statement."""
    statement = site.statement
    if statement is None or site.torch is None or isinstance(statement, ast.If | ast.While | ast.For):
        return []
    edits = [
        (node, text) for node in site.nodes if isinstance(node, ast.expr) and (text := _text(site, node))
    ]
    return site.edited(
        statement,
        edits,
        ABOUT,
    )


def _text(site: Site, node: ast.AST) -> str:
    """What to write instead of one reduction; empty if it is none of a masked tensor."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[inner], keywords=[]) if _counts(site, node):
            masked = _masked(site, inner)
            return f"({masked[1]}).sum()" if masked else ""
    found = operation(site, node)
    if found is None or len(found[1]) != 1 or found[0] not in SINGLE:
        return ""
    masked = _masked(site, found[1][0])
    if not masked:
        return ""
    values, mask = masked
    text = SINGLE[found[0]].format(where=f"{site.torch}.where({mask}, {values}, 0)", count=f"({mask}).sum()")
    return f"({text})" if found[0] == "mean" else text


def _counts(site: Site, node: ast.Call) -> bool:
    """Whether a count may be a tensor: it only enters arithmetic with tensors."""
    return Flow(site).absorbed(node)


def _masked(site: Site, node: ast.AST) -> tuple[str, str] | None:
    """Tensor and mask of `x[mask]` or `torch.masked_select(x, mask)`, when both surely have one shape."""
    match node:
        case ast.Subscript(value=values, slice=mask):
            pass
        case ast.Call():
            found = operation(site, node)
            if found is None or found[0] != "masked_select" or len(found[1]) != 2:
                return None
            values, mask = found[1]
        case _:
            return None
    if not isinstance(values, ast.Name) or not _is_mask_of(site, values, mask):
        return None
    return site.source(values), site.source(mask)


def _is_mask_of(site: Site, values: ast.Name, mask: ast.AST) -> bool:
    """Whether a mask is computed from the values themselves, element by element."""
    match mask:
        case ast.Compare(
            left=left,
            ops=[ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE() | ast.Eq() | ast.NotEq()],
            comparators=[right],
        ):
            forms = elementwise(site, left), elementwise(site, right)
            names = frozenset().union(*(form.names for form in forms if form))
            return None not in forms and names == {values.id}
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _is_mask_of(site, values, operand)
        case ast.Call():
            found = operation(site, mask)
            return (
                found is not None
                and found[0] in {"isnan", "isfinite", "isinf"}
                and len(found[1]) == 1
                and ast.unparse(found[1][0]) == values.id
            )
    return False
