"""Advice for every break: what to write instead, for this very code where that is certain."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.registry import kinds
from pyrometer.compiler.advice.site import Site
from pyrometer.compiler.breaks.record import Break

GENERAL = titled(
    "move it out of the compiled function",
    why="torch cannot trace this. Do it before or after the compiled function and hand the result in; where it has to stay, put it "
    "under torch.compiler.disable at the start or end of the function, so that the rest remains one graph.",
    fix_class="exact",
)


def with_advice(breaks: Sequence[Break]) -> list[Break]:
    """The same breaks with their `advice` filled: rewrites of the user's code first, then settings, then words.

    A break that follows from another one gets none of its own: it goes away with that one. Sources are read from
    the files that the breaks name, as far as these still read the same.

    >>> call = Break(id="gb0025", reason="", file="gone.py", line=3, source="torch._dynamo.graph_break()")
    >>> [each.title for each in with_advice([call])[0].advice]
    ['remove the call']
    """
    return [
        graph_break
        if graph_break.chained
        else msgspec.structs.replace(graph_break, advice=_advice(graph_break))
        for graph_break in breaks
    ]


def _advice(graph_break: Break) -> list[Advice]:
    site = Site(graph_break)
    own = [kind for kind in kinds() if not kind.ids or graph_break.id in kind.ids]
    advice = [rewrite for kind in own for rewrite in kind.advise(site)]
    if not advice and graph_break.id is not None:
        advice = [GENERAL]
    unique = {(each.title, each.replaces, each.rewrite): each for each in advice}
    return sorted(unique.values(), key=_order)


def _order(advice: Advice) -> int:
    """What changes this code comes first; words come last."""
    return 0 if advice.replaces else 1 if advice.rewrite else 2
