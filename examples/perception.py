"""Camera + LiDAR perception at 10 Hz: two sensors are fused in bird's-eye view (BEV) and read out as boxes.

    python examples/perception.py
    pyrometer check examples/perception.py:workload

The image goes through a residual backbone and is sampled at the points where the camera sees each BEV cell; the
point cloud, never twice of the same size, is gathered into pillars that stand on the same cells. The weights are
random: what it detects means nothing, what it costs is real.

Shapes in names: N points, P image features, C channels, X and Y BEV cells (forward and left), H and W image rows
and columns.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import pyrometer as pm

DEADLINE_S = 0.1  # the sensors deliver ten frames a second
IMAGE_H, IMAGE_W = 256, 448
FOCAL_PX = 280.0
CAMERA_HEIGHT_M = 1.5
CELL_M = 0.8
CELLS_X, CELLS_Y = 64, 64
ORIGIN_M = (0.0, -CELLS_Y * CELL_M / 2)  # nearest right corner of the grid; x is forward, y is left
CLASSES = ("car", "pedestrian", "cyclist")


class Heads(NamedTuple):
    """What the network says of every BEV cell."""

    class_logits: Tensor  # (1, classes, X, Y)
    boxes: (
        Tensor  # (1, 8, X, Y): offset x and y, z, log of length, width and height, sine and cosine of the yaw
    )


class Detections(NamedTuple):
    """Boxes of one frame, the most certain first; metres and radians in the vehicle's frame."""

    scores: Tensor  # (K,)
    labels: Tensor  # (K,) into CLASSES
    boxes: Tensor  # (K, 7): x, y, z, length, width, height, yaw


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, channels_in: int, channels_out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


class CameraEncoder(nn.Module):
    """An image (1, 3, H, W) to BEV features (1, C, X, Y)."""

    pixels: Tensor
    heights_m = (0.2, 1.0, 2.0)

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 32, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
            ResidualBlock(32, 32),
            ResidualBlock(32, 64, stride=2),
            ResidualBlock(64, 64),
            ResidualBlock(64, 128, stride=2),
            ResidualBlock(128, 128),
            nn.Conv2d(128, channels, 1),
        )
        self.register_buffer("pixels", torch.stack([pixels_of_cells(z) for z in self.heights_m]))

    def forward(self, image: Tensor) -> Tensor:
        features_1CHW = self.backbone(image)
        pixels = self.pixels.flatten(0, 1)[None]  # (1, heights * X, Y, 2)
        seen = F.grid_sample(features_1CHW, pixels, align_corners=False)
        return seen.unflatten(2, (len(self.heights_m), CELLS_X)).mean(dim=2)


def pixels_of_cells(z_m: float) -> Tensor:
    """Where a pinhole camera sees the BEV cells' centres at height `z_m`: (X, Y, 2) in -1…1 of the image."""
    x = ORIGIN_M[0] + (torch.arange(CELLS_X) + 0.5) * CELL_M
    y = ORIGIN_M[1] + (torch.arange(CELLS_Y) + 0.5) * CELL_M
    x, y = torch.meshgrid(x, y, indexing="ij")
    right_px = FOCAL_PX * -y / x
    down_px = FOCAL_PX * (CAMERA_HEIGHT_M - z_m) / x
    return torch.stack([right_px / (IMAGE_W / 2), down_px / (IMAGE_H / 2)], dim=-1)


class PillarEncoder(nn.Module):
    """A point cloud (N, 4) of x, y, z and intensity to BEV features (1, C, X, Y), for any N."""

    origin_m: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(9, channels, bias=False)
        self.norm = nn.BatchNorm1d(channels)
        self.register_buffer("origin_m", torch.tensor(ORIGIN_M))

    def forward(self, points_N4: Tensor) -> Tensor:
        cells_N2 = ((points_N4[:, :2] - self.origin_m) / CELL_M).floor().long()
        limit = torch.tensor([CELLS_X, CELLS_Y], device=cells_N2.device)
        inside_N = ((cells_N2 >= 0) & (cells_N2 < limit)).all(dim=1)
        points_N4, cells_N2 = points_N4[inside_N], cells_N2[inside_N]
        pillar_N = cells_N2[:, 0] * CELLS_Y + cells_N2[:, 1]

        xyz_N3 = points_N4[:, :3]
        centre_N2 = self.origin_m + (cells_N2 + 0.5) * CELL_M
        from_centre_N2 = xyz_N3[:, :2] - centre_N2
        from_mean_N3 = xyz_N3 - mean_of_pillars(xyz_N3, pillar_N)[pillar_N]
        features_N9 = torch.cat([points_N4, from_mean_N3, from_centre_N2.to(points_N4.dtype)], dim=1)

        encoded_NC = F.relu(self.norm(self.linear(features_N9)))
        return max_of_pillars(encoded_NC, pillar_N).T.reshape(1, -1, CELLS_X, CELLS_Y)


def mean_of_pillars(values_NC: Tensor, pillar_N: Tensor) -> Tensor:
    """Mean of the points in each pillar, zero in empty ones."""
    sums = values_NC.new_zeros(CELLS_X * CELLS_Y, values_NC.shape[1]).index_add_(0, pillar_N, values_NC)
    counts = torch.bincount(pillar_N, minlength=CELLS_X * CELLS_Y).clamp(min=1)
    return sums / counts[:, None].to(sums.dtype)


def max_of_pillars(values_NC: Tensor, pillar_N: Tensor) -> Tensor:
    """Largest of the points' non-negative values in each pillar, zero in empty ones."""
    canvas = values_NC.new_zeros(CELLS_X * CELLS_Y, values_NC.shape[1])
    return canvas.scatter_reduce(0, pillar_N[:, None].expand_as(values_NC), values_NC, "amax")


class PerceptionNet(nn.Module):
    """Camera and LiDAR encoders, fusion in BEV, and two heads."""

    def __init__(self, channels: int = 48) -> None:
        super().__init__()
        self.camera = CameraEncoder(channels)
        self.lidar = PillarEncoder(channels)
        self.fusion = nn.Sequential(
            ResidualBlock(2 * channels, 64), ResidualBlock(64, 64), ResidualBlock(64, 64)
        )
        self.class_head = nn.Conv2d(64, len(CLASSES), 1)
        self.box_head = nn.Conv2d(64, 8, 1)

    def forward(self, image: Tensor, points: Tensor) -> Heads:
        bev = self.fusion(torch.cat([self.camera(image), self.lidar(points)], dim=1))
        return Heads(self.class_head(bev), self.box_head(bev))


def decode(heads: Heads, num_detections: int = 20) -> Detections:
    """The most certain local peaks of the class maps, with their boxes."""
    scores = heads.class_logits[0].sigmoid()
    peaks = torch.where(scores == F.max_pool2d(scores, 3, stride=1, padding=1), scores, 0)
    best_K, where_K = peaks.flatten().topk(num_detections)
    labels_K, cells_K = where_K // (CELLS_X * CELLS_Y), where_K % (CELLS_X * CELLS_Y)
    box_K8 = heads.boxes[0].flatten(1)[:, cells_K].T
    x = ORIGIN_M[0] + (cells_K // CELLS_Y + 0.5 + box_K8[:, 0]) * CELL_M
    y = ORIGIN_M[1] + (cells_K % CELLS_Y + 0.5 + box_K8[:, 1]) * CELL_M
    size_K3 = box_K8[:, 3:6].clamp(-3, 3).exp()
    yaw = torch.atan2(box_K8[:, 6], box_K8[:, 7])
    return Detections(
        best_K, labels_K, torch.cat([torch.stack([x, y, box_K8[:, 2]], 1), size_K3, yaw[:, None]], 1)
    )


class Drive:
    """A drive between walls: each call returns the next frame's image (1, 3, H, W) and points (N, 4).

    Without `num_points` the cloud's size changes from frame to frame, as it does between an open road and a
    street of houses.
    """

    def __init__(self, num_points: int | None = None, seed: int = 0) -> None:
        self.num_points = num_points
        self.generator = torch.Generator().manual_seed(seed)
        self.frame = 0

    def __call__(self) -> tuple[Tensor, Tensor]:
        self.frame += 1
        return self.photograph(), self.scan(self.num_points or self.varying_num_points())

    def varying_num_points(self) -> int:
        swing = math.sin(self.frame / 5)
        jitter = torch.randint(-1_000, 1_000, (), generator=self.generator)
        return 15_000 + int(6_000 * swing) + int(jitter)

    def photograph(self) -> Tensor:
        """Sky over road, with a sensor's noise."""
        brightness_H = torch.linspace(1.0, -1.0, IMAGE_H)
        noise = torch.randn(1, 3, IMAGE_H, IMAGE_W, generator=self.generator)
        return brightness_H[:, None] + 0.2 * noise

    def scan(self, num_points: int) -> Tensor:
        """Ground returns that thin out with distance, and a fifth of the points on walls across the road."""
        draw = torch.rand(num_points, 4, generator=self.generator)
        distance, bearing = 2 + 50 * draw[:, 0] ** 2, (draw[:, 1] - 0.5) * math.pi
        x, y, z = distance * bearing.cos(), distance * bearing.sin(), 0.05 * draw[:, 2]
        on_obstacle = draw[:, 3] < 0.2
        z = torch.where(on_obstacle, 2.0 * draw[:, 2], z)
        x = torch.where(on_obstacle, (x / 8).round() * 8 + 2 * draw[:, 2] - 1, x)
        return torch.stack([x, y, z, draw[:, 3]], dim=1)


def build_model() -> PerceptionNet:
    torch.manual_seed(0)
    return PerceptionNet().eval()


def workload() -> pm.Inference:
    """Fresh frames with clouds of 8 000 to 22 000 points, within 100 ms each."""
    return inference(Drive())


def fixed() -> pm.Inference:
    """The same with 15 000 points in every frame."""
    return inference(Drive(num_points=15_000))


def deployed() -> pm.Inference:
    """What one might ship instead of `workload`: images and weights with the channels last."""
    return workload().variant(memory_format="channels_last")


def inference(drive: Drive) -> pm.Inference:
    return pm.Inference(
        build_model(),
        inputs=drive,
        unit="frames",
        per_step=1,
        deadline_s=DEADLINE_S,
        name="camera + LiDAR perception",
    )


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description="Run the perception net on frames of a simulated drive.")
    parser.add_argument("--frames", type=int, default=10)
    parser.add_argument("--deadline-ms", type=float, default=1_000 * DEADLINE_S)
    args = parser.parse_args()

    model, drive = build_model(), Drive()
    num_late = 0
    for frame in range(args.frames):
        image, points = drive()
        start = time.perf_counter()
        found = decode(model(image, points))
        took_ms = 1_000 * (time.perf_counter() - start)
        num_late += took_ms > args.deadline_ms
        x, y = found.boxes[0, :2].tolist()
        best = f"{CLASSES[found.labels[0]]} {found.scores[0]:.2f} at ({x:.1f}, {y:.1f}) m"
        print(
            f"frame {frame:3d}: {len(points):6,d} points  {took_ms:6.1f} ms  {len(found.scores)} detections, best {best}"
        )
    print(f"{num_late} of {args.frames} frames missed the deadline of {args.deadline_ms:g} ms")


if __name__ == "__main__":
    main()
