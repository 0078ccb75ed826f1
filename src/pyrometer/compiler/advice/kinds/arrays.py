"""NumPy and SciPy: what torch cannot trace of them."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.expressions import bracketed
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

SPECIAL = {
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "expit": "expit",
    "logit": "logit",
    "gammaln": "gammaln",
    "psi": "digamma",
    "ndtr": "ndtr",
    "ndtri": "ndtri",
    "i0": "i0",
    "i0e": "i0e",
    "i1": "i1",
    "expm1": "expm1",
    "log1p": "log1p",
    "exp2": "exp2",
}
"""Functions of scipy.special and their names in torch.special."""

WORDS = titled(
    "compute it with torch",
    why="torch traces most of NumPy as torch operators, but not this. Write it with torch's own functions; or wrap it with "
    "torch.library.custom_op and register_fake, so that it becomes one node of the graph.",
    fix_class="tolerance",
)
ABOUT = titled(
    "use torch.special",
    why="torch has the function, and keeps it in the graph; on floating-point tensors it gives the same.",
    fix_class="tolerance",
)
SETTING = titled(
    "trace NumPy",
    why="Tracing NumPy as torch operators is switched off here.",
    rewrite="torch._dynamo.config.trace_numpy = True",
    fix_class="tolerance",
)


@advises("gb0105", "gb0231", "gb0293")
def numpy_switched_off(site: Site) -> list[Advice]:
    """The setting that lets NumPy in."""
    del site
    return [SETTING]


@advises("gb0156", "gb0157", "gb0158", "gb0185", "gb0250", "gb0290", "gb0294", "gb0300", "gb0232", "gb0106")
def numpy_call(site: Site) -> list[Advice]:
    """Functions of SciPy that torch has under the same name; words for others."""
    edits = [(call, text) for call in site.calls if (text := _special(site, call))]
    if site.statement is not None and edits:
        return [*site.edited(site.statement, edits, ABOUT), WORDS]
    named = any(site.full_name(call.func).startswith(("numpy.", "scipy.")) for call in site.calls)
    return [WORDS] if site.found.id != "gb0156" or named else []


def _special(site: Site, call: ast.Call) -> str:
    """`torch.from_numpy(scipy.special.f(x.numpy()))` as `torch.special.f(x)`; empty for anything else."""
    match call:
        case ast.Call(
            func=outer,
            args=[
                ast.Call(
                    func=function,
                    args=[ast.Call(func=ast.Attribute(value=value, attr="numpy"), args=[], keywords=[])],
                    keywords=[],
                )
            ],
            keywords=[],
        ) if site.full_name(outer) in {"torch.from_numpy", "torch.as_tensor", "torch.tensor"}:
            module, _, name = site.full_name(function).rpartition(".")
            while (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and value.func.attr in {"detach", "cpu"}
            ):
                value = value.func.value
        case _:
            return ""
    if module != "scipy.special" or name not in SPECIAL or site.torch is None:
        return ""
    return f"{site.torch}.special.{SPECIAL[name]}({bracketed(site.source(value))}.detach())"
