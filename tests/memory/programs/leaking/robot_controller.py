"""The control loop of a warehouse robot, which has to run for 24 hours."""

import torch
from torch import nn


class PerceptionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
        )

    def forward(self, image):
        return self.layers(image)


class PlanningNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(128 + 7, 64), nn.Tanh(), nn.Linear(64, 7))

    def forward(self, features, joints):
        return self.layers(torch.cat([features, joints], dim=1))


class RobotController:
    def __init__(self):
        self.perception = PerceptionNet()
        self.planning = PlanningNet()
        self.history_buffer = []

    def control_step(self, sensor_data):
        perception = self.perception(sensor_data["image"])
        plan = self.planning(perception, sensor_data["joints"])
        self.history_buffer.append({"perception": perception, "planning": plan, "sensors": sensor_data})
        return plan.detach().clamp(-1, 1)


def make():
    controller = RobotController()

    def step():
        sensor_data = {"image": torch.rand(1, 3, 64, 64), "joints": torch.rand(1, 7)}
        return controller.control_step(sensor_data)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("history_buffer",),
    "line_contains": (
        "self.history_buffer.append(",
        "perception = self.perception(",
        "plan = self.planning(",
        "sensor_data = {",
    ),
    "graph": True,
    "bytes_per_step": None,
    "note": "each control step keeps its image, its features and the whole graph of both networks",
}
