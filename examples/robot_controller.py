"""A robot's controller that runs for days, and remembers too much.

    pyrometer memory examples/robot_controller.py:workload    # what stays, who holds it, what to write instead
    pyrometer memory examples/robot_controller.py:fixed

At every tick the controller encodes what the sensors see, plans, and adapts the planner online. For a replay it
remembers what it perceived and planned. What it remembers still hangs on the autograd graph, and nothing is ever
forgotten: both on purpose, as an exercise. `fixed` remembers the last thirty ticks, as plain tensors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import MutableSequence

import torch
from torch import Tensor, nn

import pyrometer as pm

SENSORS, FEATURES, ACTIONS = 64, 128, 6
REMEMBERED = 30


class Encoder(nn.Module):
    """Sensor readings (B, SENSORS) to features (B, FEATURES)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(SENSORS, 256), nn.ReLU(), nn.Linear(256, FEATURES))

    def forward(self, readings: Tensor) -> Tensor:
        features: Tensor = self.layers(readings)
        return features


class RobotController:
    """Perceives, plans, and learns from how well the plan went."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.encoder = Encoder()
        self.planner = nn.Linear(FEATURES, ACTIONS)
        parameters = [*self.encoder.parameters(), *self.planner.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=1e-3)
        self.history_buffer: MutableSequence[dict[str, Tensor]] = []

    def remember(self, perception: Tensor, plan: Tensor) -> None:
        """Keep a tick for the replay."""
        self.history_buffer.append({"perception": perception, "plan": plan})

    def tick(self) -> Tensor:
        """One tick: 16 readings to a plan, and a small step of learning."""
        perception = self.encoder(torch.randn(16, SENSORS))
        plan: Tensor = self.planner(perception)
        smoothness = plan.diff(dim=0).pow(2).mean()
        self.optimizer.zero_grad()
        smoothness.backward()
        self.optimizer.step()
        self.remember(perception, plan)
        return plan.detach()


class ForgetfulController(RobotController):
    """The same, with a memory that has an end and holds no graph."""

    def __init__(self) -> None:
        super().__init__()
        self.history_buffer = deque(maxlen=REMEMBERED)

    def remember(self, perception: Tensor, plan: Tensor) -> None:
        """Keep a tick for the replay, as values."""
        self.history_buffer.append({"perception": perception.detach(), "plan": plan.detach()})


def workload() -> pm.Call:
    """One tick of the controller that never forgets."""
    return pm.Call(RobotController().tick, unit="ticks", name="robot controller")


def fixed() -> pm.Call:
    """One tick of the controller that forgets."""
    return pm.Call(ForgetfulController().tick, unit="ticks", name="forgetful robot controller")


def main() -> None:
    """Run some ticks and say what is remembered."""
    for controller in (RobotController(), ForgetfulController()):
        for _ in range(10 * REMEMBERED):
            controller.tick()
        print(f"{type(controller).__name__}: {len(controller.history_buffer)} ticks remembered")


if __name__ == "__main__":
    main()
