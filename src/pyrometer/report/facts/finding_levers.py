"""The command that tries the lever of a finding: alone, with proof."""

from __future__ import annotations

import re
import shlex

from pyrometer.rules.finding import Finding

FACTORY = re.compile(r"[^:\s]+:[A-Za-z_]\w*")
"""A target that names a factory: what is tuned is built anew in other processes, which a script or a trace is not."""


def tune_command(target: str, finding: Finding) -> str:
    """How the lever that a finding advises is tried on its target; empty where there is none, or where it cannot be.

    >>> from pyrometer.advice import Advice
    >>> from pyrometer.place import Place
    >>> found = Finding(
    ...     code="PYR509", name="dropout-in-inference", severity="warning", message="", where=Place(),
    ...     confidence="high", advice=Advice(slug="a", title="", fix_class="exact", lever="drop_dropout"),
    ... )
    >>> tune_command("model.py:workload", found), tune_command("train.py", found)
    ('pyrometer tune model.py:workload --only drop_dropout', '')
    """
    lever = finding.advice.lever
    if lever is None or FACTORY.fullmatch(target) is None or not _is_registered(lever):
        return ""
    return shlex.join(["pyrometer", "tune", target, "--only", lever])


def _is_registered(lever: str) -> bool:
    from pyrometer.tuning.levers.registry import (
        levers,
    )  # loads all families, which a page without findings needs not

    return lever in levers()
