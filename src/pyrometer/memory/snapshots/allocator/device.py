"""What the allocator's levers look at, and how a change is tried out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyrometer.memory.snapshots.allocator.replay import Outcome, Script, play, script
from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings
from pyrometer.memory.snapshots.lifetimes import Lifetimes
from pyrometer.memory.snapshots.pressure import Release
from pyrometer.memory.snapshots.report import DeviceReport, Fragmentation, Simulation
from pyrometer.memory.snapshots.sites import Site
from pyrometer.memory.snapshots.snapshot import DeviceSnapshot, Ints
from pyrometer.quantity import counted, format_percent

TRUSTED_ERROR = 0.1
"""Where the simulated allocator misses the recorded peak by more, it says nothing of other settings."""


@dataclass(frozen=True)
class RecordedDevice:
    """One device, with its allocations ready to be played again."""

    report: DeviceReport
    settings: AllocatorSettings
    device: DeviceSnapshot
    lifetimes: Lifetimes
    releases: list[Release]
    reserved: Ints
    sites: list[Site]
    script: Script
    base: Outcome
    """Under the settings as recorded."""
    simulation: Simulation
    device_total_bytes: int | None

    @property
    def instants(self) -> list[Fragmentation]:
        """The instants that matter: failed requests, and the peaks."""
        fragmentation = self.report.fragmentation
        peaks = [one for one in (fragmentation.at_reserved_peak, fragmentation.at_peak) if one is not None]
        return [*fragmentation.at_oom, *peaks]

    @property
    def never_needed_bytes(self) -> int:
        """Reserved at the most, and beyond what was ever in use at one time."""
        return self.report.peak_reserved_bytes - self.report.peak_bytes

    def try_settings(self, settings: AllocatorSettings) -> Outcome:
        """The same program under other settings."""
        return play(self.script, settings, self.report.capacity_bytes)

    def try_script(self, changed: Script, capacity_bytes: int | None = None) -> Outcome:
        """A changed program under the same settings."""
        return play(changed, self.settings, capacity_bytes or self.report.capacity_bytes)


def simulate(
    device: DeviceSnapshot,
    lifetimes: Lifetimes,
    *,
    settings: AllocatorSettings,
    releases: list[Release],
    reserved: Ints,
    focus: int,
    capacity_bytes: int | None,
) -> tuple[Script, Outcome, Simulation]:
    """Play what was recorded as it was recorded, and compare."""
    played = script(device, lifetimes, releases, focus)
    base = play(played, settings, capacity_bytes)
    recorded = int(np.max(reserved[max(played.first, 0) : played.last + 1]))
    error = base.peak_reserved_bytes / recorded - 1 if recorded else 0.0
    return (
        played,
        base,
        Simulation(
            events=played.num_events,
            recorded_peak_reserved_bytes=recorded,
            simulated_peak_reserved_bytes=base.peak_reserved_bytes,
            error=error,
            trusted=abs(error) <= TRUSTED_ERROR and recorded > 0,
        ),
    )


def proof(device: RecordedDevice) -> str:
    """How the figures for other settings were obtained."""
    simulation = device.simulation
    return (
        f"predicted: {counted(simulation.events, 'recorded call')} played in a simulated allocator, which repeats the "
        f"recorded peak of reserved bytes within {format_percent(abs(simulation.error), 2)}"
    )
