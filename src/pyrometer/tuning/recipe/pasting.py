"""A recipe as the lines of Python to paste."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.registry import levers


def python_lines(choices: Iterable[LeverChoice], kind: Literal["inference", "training"]) -> list[str]:
    """What does the same as levers, in their order; a comment stands for what only the recipe can do, or another package's lever.

    >>> python_lines([], "training")
    []
    """
    lines: list[str] = []
    known = levers()
    for choice in choices:
        found = known.get(choice.lever)
        if found is None:
            lines.append(f"# {choice.label}: a lever of a package that is not installed here")
            continue
        own = found.lines(choice.parameters)
        lines += own or [f"# {found.title}: pm.load_recipe(...).apply(model) does it"]
    if kind == "inference":
        lines = ["model.eval()", *lines, "with torch.inference_mode():", "    output = model(*inputs)"]
    return lines
