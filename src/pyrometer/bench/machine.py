"""Which caveats the machine earns: what else it was doing while something was measured."""

from __future__ import annotations

from collections.abc import Callable

from pyrometer.bench.quality import Caveat, CaveatCode, caveat
from pyrometer.hardware.record import Conditions
from pyrometer.quantity import format_percent, significant

COMPETING_CPUS = 0.25
STEAL = 0.02
SLOW_CLOCK = 0.9


def machine_caveats(conditions: Conditions | None) -> list[Caveat]:
    """Every caveat that the conditions earn; none where they are unknown."""
    if conditions is None:
        return []
    return [one for check in CHECKS if (one := check(conditions)) is not None]


def _throttled(conditions: Conditions) -> Caveat | None:
    if not conditions.throttled:
        return None
    return caveat(
        CaveatCode.THROTTLED,
        "a thermal or power limit was active",
        "let the machine cool and measure again; in production this is the speed to expect",
    )


def _competing(conditions: Conditions) -> Caveat | None:
    load = conditions.competing_load
    if load is None or load < COMPETING_CPUS:
        return None
    return caveat(
        CaveatCode.COMPETING_LOAD,
        f"other processes kept {significant(load, 2)} of {conditions.logical_cpus} CPUs busy",
        "stop them, or trust only paired comparisons (--vs)",
    )


def _steal(conditions: Conditions) -> Caveat | None:
    share = conditions.steal_share
    if share is None or share < STEAL:
        return None
    return caveat(
        CaveatCode.STEAL,
        f"the hypervisor took {format_percent(share, 2)} of the CPU time",
        "use a dedicated machine for absolute figures; paired comparisons (--vs) stay valid",
    )


def _frequency(conditions: Conditions) -> Caveat | None:
    ratio = conditions.frequency_ratio
    if ratio is None or ratio >= SLOW_CLOCK:
        return None
    return caveat(
        CaveatCode.FREQUENCY_CHANGED,
        f"the CPU clock fell to {format_percent(ratio, 2)} of where it began",
        "fix the governor (cpupower frequency-set -g performance) or measure longer",
    )


CHECKS: tuple[Callable[[Conditions], Caveat | None], ...] = (_throttled, _competing, _steal, _frequency)
