"""A test and a switch for each lever of a recipe: what is at fault is taken out, and the rest of the release stays.

Each lever is a rollout of its own, from "off" to "on", under its own key: chance switches each one on or off per batch or unit, whatever
the others do, so that the others are on equally often on both sides of each comparison.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from pyrometer.rollout.agent import Agent
from pyrometer.rollout.ledger import Ledger
from pyrometer.rollout.plan import Plan
from pyrometer.rollout.router import Route, UnitId

ON = "on"
OFF = "off"


def lever_name(name: str, lever: str) -> str:
    """The rollout of one lever.

    >>> lever_name("perception", "compile")
    'perception/compile'
    """
    return f"{name}/{lever}"


def lever_plans(plan: Plan, levers: Sequence[str]) -> list[Plan]:
    """One plan per lever; all of them together roll back a harmless one with the alpha of the plan."""
    return [
        msgspec.structs.replace(
            plan,
            name=lever_name(plan.name, lever),
            old=f"{lever} {OFF}",
            new=f"{lever} {ON}",
            alpha=plan.alpha / len(levers),
            key="",
        )
        for lever in levers
    ]


class LeverSwitches:
    """Which levers are on for the next batch or unit, in one process.

    Args:
        ledger: where the rollouts are kept.
        name: of the release.
        levers: that were started with it.
        rng: of the draws per batch.
    """

    def __init__(
        self, ledger: Ledger, name: str, levers: Sequence[str], rng: random.Random | None = None
    ) -> None:
        self.agents = {lever: Agent(ledger, lever_name(name, lever), rng=rng) for lever in levers}

    def choose(self, unit_id: UnitId | None = None) -> dict[str, Route]:
        """The decision for each lever; `on(routes)` are the names of those that are on."""
        return {lever: agent.route(unit_id) for lever, agent in self.agents.items()}

    def on(self, routes: dict[str, Route]) -> list[str]:
        """Those levers that were switched on."""
        return [lever for lever, route in routes.items() if route.arm == self.agents[lever].state.plan.new]

    def observe(self, routes: dict[str, Route], latency_s: float | None = None, **seen: Any) -> None:
        """Count one observation for every lever; the words are those of `Agent.observe`."""
        for lever, route in routes.items():
            self.agents[lever].observe(route, latency_s, **seen)

    def tick(self) -> bool:
        """Send totals and read the shares."""
        heard = [agent.tick() for agent in self.agents.values()]  # each of them, whatever the others heard
        return all(heard)
