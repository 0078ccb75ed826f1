"""The control loop of a warehouse robot, which has to run for 24 hours."""

from collections import deque

import torch
from torch import nn


class RobotController:
    def __init__(self):
        self.perception = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
        )
        self.planning = nn.Sequential(nn.Linear(128 + 7, 64), nn.Tanh(), nn.Linear(64, 7))
        self.history_buffer = deque(maxlen=12)

    @torch.inference_mode()
    def control_step(self, sensor_data):
        perception = self.perception(sensor_data["image"])
        plan = self.planning(torch.cat([perception, sensor_data["joints"]], dim=1))
        self.history_buffer.append({"perception": perception, "planning": plan})
        return plan.clamp(-1, 1)


def make():
    controller = RobotController()

    def step():
        sensor_data = {"image": torch.rand(1, 3, 64, 64), "joints": torch.rand(1, 7)}
        return controller.control_step(sensor_data)

    return step


EXPECTED = {"verdict": "stable", "note": "a bounded history without graphs"}
