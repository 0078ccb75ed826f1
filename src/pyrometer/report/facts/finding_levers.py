"""The command that tries the lever of a finding: alone, with proof."""

from __future__ import annotations

import re
import shlex

from pyrometer.rules.finding import Finding

FACTORY = re.compile(r"[^:\s]+:[A-Za-z_]\w*")
"""A target that names a factory: what is tuned is built anew in other processes, which a script or a trace is not."""

SCRIPT = re.compile(r"[^:\s]+\.py")
"""A target that is run on ranks as it is, of which there are two at least."""


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
    name = finding.advice.lever
    if name is None or not (FACTORY.fullmatch(target) or SCRIPT.fullmatch(target)):
        return ""
    from pyrometer.tuning.levers.registry import (
        levers,
    )  # all families, which a page without findings needs not

    lever = levers().get(name)
    if lever is None or ("ranks" in lever.kinds) != bool(SCRIPT.fullmatch(target)):
        return ""
    ranks = ["--nproc", "2"] if "ranks" in lever.kinds else []
    return shlex.join(["pyrometer", "tune", target, *ranks, "--only", name])
