"""Three robots, each with a perception model under watch; faults come one after the other, and are seen, explained and answered.

    make demo-monitor          # python examples/robot_fleet.py

Each robot is a process that answers frames as fast as a load asks. One becomes slow, one gives NaN, one fails now and then. What happens is
read where a dashboard would read it: from the files that the monitors write. The slow robot goes down a rung, to its small model, and
comes back when all is quiet.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pyrometer as pm
from pyrometer.monitor.degrading.ladder import Degradation, Policy, Rung
from pyrometer.monitor.detecting.alarm import Alarm
from pyrometer.monitor.detecting.cusum import Cusum
from pyrometer.monitor.detecting.listener import Detection
from pyrometer.monitor.detecting.watch import Guard
from pyrometer.monitor.diagnosing.diagnoser import Diagnoser
from pyrometer.monitor.diagnosing.limits import Limits
from pyrometer.monitor.live.sources import FolderTicks
from pyrometer.store.store import Store

PERIOD_S = 0.004
QUIET_S, FAULT_S, REST_S = 24.0, 6.0, 3.0
"""A baseline is learned before the first fault; then they follow each other."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, on which robot, and which alarm is to tell it."""

    robot: int
    what: str
    alarm: str


FAULTS = (
    Fault(0, "a second user of the processor: frames take 2 ms more", "infer.latency"),
    Fault(1, "a sensor that gives NaN", "infer.numerics"),
    Fault(2, "one frame in five raises", "infer.errors"),
)


def begins_s(fault: Fault) -> float:
    """When a fault begins, in seconds after the start."""
    return QUIET_S + FAULTS.index(fault) * (FAULT_S + REST_S)


LENGTH_S = begins_s(FAULTS[-1]) + FAULT_S + 14.0


class Robot:
    """One process of the fleet: its models, its monitor, and the fault that will befall it."""

    def __init__(self, number: int, folder: Path, start_s: float) -> None:
        torch.manual_seed(0)
        self.wide, self.small = (
            nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, 4, 3)) for width in (16, 4)
        )
        self.fault = next(fault for fault in FAULTS if fault.robot == number)
        self.start_s, self.num_asked, self.is_degraded = start_s, 0, False
        self.diagnoser = Diagnoser(folder / "store", Limits(apart_s=600.0), target=f"robot-{number}")
        self.diagnoser.start()
        self.monitor = pm.Monitor(
            model="perception", version="v2.1", device=f"robot-{number}", folder=str(folder), sample_every=4
        )
        detection = Detection(told=[self.diagnoser])
        # A baseline of 400 frames, where the default waits for 4,000.
        detection.watch("infer.latency", lambda: [Guard("cusum", Cusum(block=10, warm_up=40), Alarm())])
        policy = Policy(rungs=[Rung(name="wide"), Rung(name="small", action="small")], down_s=1.0, up_s=8.0)
        for listener in (
            detection,
            self.diagnoser,
            Degradation(policy, {"small": self.degrade}, detection.alarms),
        ):
            self.monitor.add(listener)

    def degrade(self, is_degraded: bool) -> None:
        """Use the small model, or no longer."""
        self.is_degraded = is_degraded

    def suffers(self, alarm: str) -> bool:
        """Whether the fault that this alarm tells is there now."""
        since_s = time.time() - self.start_s - begins_s(self.fault)
        return self.fault.alarm == alarm and 0 <= since_s < FAULT_S

    def infer(self, frames: torch.Tensor) -> torch.Tensor:
        """Answer a frame."""
        out = (self.small if self.is_degraded else self.wide)(frames)
        if self.suffers("infer.latency") and not self.is_degraded:
            time.sleep(0.002)
        if self.suffers("infer.errors") and self.num_asked % 5 == 0:
            raise RuntimeError("camera: no frame")
        return out

    def run(self) -> None:
        """Answer frames until the end; what raises is counted by the monitor, and the load goes on."""
        infer = self.monitor.watch(self.infer, name="infer", units=len)
        with self.monitor, torch.no_grad():
            while time.time() - self.start_s < LENGTH_S:
                self.num_asked += 1
                frames = torch.rand(1, 3, 24, 24)
                if self.suffers("infer.numerics"):
                    frames[0, 0, 5, 5] = float("nan")
                with contextlib.suppress(RuntimeError):
                    infer(frames)
                time.sleep(PERIOD_S)
        for sentence in self.diagnoser.faults:
            print(f"robot-{self.fault.robot}: {sentence}", file=sys.stderr)


def main() -> int:
    """Run the fleet, and tell what was seen of each fault; 1 if one was not."""
    folder = Path(tempfile.mkdtemp(prefix="robot-fleet-"))
    start_s = time.time() + 8.0  # imports
    command = [sys.executable, str(Path(__file__).resolve()), str(folder), str(start_s)]
    print(f"Three robots for {LENGTH_S + 8:.0f} s. Watch them: pyrometer monitor live {folder}")
    robots = [subprocess.Popen([*command, str(number)]) for number in range(len(FAULTS))]  # noqa: S603 - itself
    for process in robots:
        process.wait()
    changes: list[tuple[str, Any]] = []
    for tick in FolderTicks(folder).fresh():
        changes += [(tick.source.device, event) for event in tick.events]
    seen = [tell(fault, changes, start_s) for fault in FAULTS]
    store = Store.open(str(folder / "store"), create=False)
    print("\nWhat was collected, a trace and the stacks at each alarm")
    for summary in store.runs():
        print(f"  pyrometer show {summary.id} --store {folder / 'store'}  {summary.target}")
    print(f"\nWhere to look\n  pyrometer ui --monitor {folder}")
    return 0 if all(seen) else 1


def tell(fault: Fault, changes: list[tuple[str, Any]], start_s: float) -> bool:
    """Print what was seen of a fault; whether it was."""
    begun_s = start_s + begins_s(fault)
    own = [
        event
        for robot_name, event in changes
        if robot_name == f"robot-{fault.robot}" and event.at_s >= begun_s
    ]
    print(f"\n{begins_s(fault):.0f} s  robot-{fault.robot}: {fault.what}")
    shown = [event for event in own if event.event not in {"sample", "error", "slow"}]
    for event in shown[:6]:
        detail = ", ".join(f"{name} {value}" for name, value in event.fields.items())
        print(f"  after {event.at_s - begun_s:4.1f} s  {event.event}  {detail[:110]}")
    return any(fault.alarm in str(event.fields) for event in shown)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        torch.set_num_threads(1)
        Robot(int(sys.argv[3]), Path(sys.argv[1]), float(sys.argv[2])).run()
    else:
        raise SystemExit(main())
