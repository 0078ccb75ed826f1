"""The reference of levers, from the registry; part of `make docs`."""  # noqa: INP001 - a script

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrometer.tuning.levers.lever import LeverOf
from pyrometer.tuning.levers.registry import levers
from pyrometer.tuning.levers.stages import STAGES

HEAD = """# Levers

<!-- Generated from the code by `make docs`. -->

A lever is one change that [`pyrometer tune`](tune.md) may try. Its class says what it may change in the results: nothing but the order of a
sum (`exact`), digits within a tolerance (`tolerance`), or what is computed (`semantic`, tried only with `--metric` or `--allow semantic`).
`pyrometer tune --list` prints them, with what has to be installed on this machine.

Levers of your own: derive from `pm.Lever`, decorate with `@pm.lever`, and name the module as an entry point of the group `pyrometer.levers`. They are
searched, checked and proved like these.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_stages()])


def _stages() -> Iterator[str]:
    for stage in STAGES:
        own = [lever for lever in levers().values() if lever.stage == stage]
        if own:
            yield f"## Stage: {stage}\n"
        for lever in own:
            yield from _section(lever)


def _section(lever: LeverOf[Any]) -> Iterator[str]:
    yield f"### `{lever.name}`\n"
    kinds = " and ".join(sorted(lever.kinds))
    needs = f" · needs `pyrometer[{lever.extra}]`" if lever.extra else ""
    yield f"{lever.title[:1].upper()}{lever.title[1:]}. `{lever.fix_class}` · {kinds}{needs}\n"
    yield f"{lever.why}\n"
