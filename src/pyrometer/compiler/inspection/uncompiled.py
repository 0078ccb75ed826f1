"""Why nothing was compiled, as far as it can be told."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.compiler.inspection.bare import IN_PLACE
from pyrometer.compiler.inspection.candidates import model_of
from pyrometer.compiler.inspection.record import SilentEager
from pyrometer.compiler.inspection.silence import silent_texts
from pyrometer.compiler.private.stance import stance, switched_off_by
from pyrometer.compiler.wording import listed
from pyrometer.workload.workload import Workload


def why_nothing(work: Workload, silent: Sequence[SilentEager]) -> str:
    """A sentence on work of which nothing was compiled, neither now nor, to be run again, before.

    Args:
        work: as it ran.
        silent: calls for which there was compiled code that did not fit.
    """
    switch = switched_off_by()
    if switch is not None:
        return f"nothing was compiled: torch.compile is switched off by {switch}"
    if silent:
        return f"nothing was compiled, and compiled code was passed over: {listed(silent_texts(silent))}; {_refusal()}"
    name = _compiled_in_place(work)
    if name is not None:
        return (
            f"nothing was compiled: {name} is a module of torch.nn that was compiled in place, and torch takes no code of its "
            "own that way; write model = torch.compile(model)"
        )
    return "nothing was compiled: no code that torch.compile takes was reached"


def _refusal() -> str:
    held = stance()
    if held != "default":
        return f"torch compiles nothing more of them under the stance {held}"
    return "they fit no compilation, and torch compiles nothing more of a function behind the recompile limit"


def _compiled_in_place(work: Workload) -> str | None:
    """The class of a module of torch.nn that was compiled in place."""
    model = model_of(work)
    found = (
        type(part)
        for part in (model.modules() if model is not None else ())
        if getattr(part, IN_PLACE, None) is not None
    )
    return next((kind.__name__ for kind in found if kind.__module__.startswith("torch.nn.")), None)
