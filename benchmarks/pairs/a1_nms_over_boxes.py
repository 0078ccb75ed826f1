"""A single-stage detector for shelf images: backbone, dense head, and suppression of overlapping boxes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm

STRIDE = 8
CANDIDATES = 48
IOU_LIMIT = 0.45


def conv_block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
        nn.GroupNorm(4, outputs),
        nn.SiLU(),
    )


class DenseHead(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scores = nn.Conv2d(channels, 1, 1)
        self.sides = nn.Conv2d(channels, 4, 1)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        height, width = features.shape[-2:]
        ys = (torch.arange(height) + 0.5) * STRIDE
        xs = (torch.arange(width) + 0.5) * STRIDE
        centre = torch.stack([xs.repeat(height), ys.repeat_interleave(width)], dim=1)
        sides = F.softplus(self.sides(features)).flatten(2)[0].T * 24
        boxes = torch.cat([centre - sides[:, :2], centre + sides[:, 2:]], dim=1)
        return self.scores(features).flatten(), boxes


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of boxes whose last dimension is x0, y0, x1, y1."""
    corner = torch.maximum(a[..., :2], b[..., :2])
    opposite = torch.minimum(a[..., 2:], b[..., 2:])
    shared = (opposite - corner).clamp(min=0).prod(-1)
    area_a = (a[..., 2:] - a[..., :2]).prod(-1)
    area_b = (b[..., 2:] - b[..., :2]).prod(-1)
    return shared / (area_a + area_b - shared)


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(conv_block(3, 16), conv_block(16, 32), conv_block(32, 64))
        self.head = DenseHead(64)

    def forward(self, image: Tensor) -> Tensor:
        scores, boxes = self.head(self.backbone(image))
        order = scores.topk(CANDIDATES).indices
        boxes = boxes[order]
        return boxes[self.suppress(boxes)]

    def suppress(self, boxes: Tensor) -> list[int]:
        kept: list[int] = []
        for candidate in range(len(boxes)):
            rivals = (overlap(boxes[candidate], boxes[other]) for other in kept)
            if all(iou.item() <= IOU_LIMIT for iou in rivals):
                kept.append(candidate)
        return kept


class MatrixDetector(Detector):
    def suppress(self, boxes: Tensor) -> list[int]:
        collides = (overlap(boxes[:, None], boxes[None]) > IOU_LIMIT).tolist()
        kept: list[int] = []
        for candidate, row in enumerate(collides):
            if not any(row[other] for other in kept):
                kept.append(candidate)
        return kept


def serve(detector: type[Detector]) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(detector(), torch.rand(1, 3, 128, 160), unit="images")


def slow() -> pm.Inference:
    return serve(Detector)


def fast() -> pm.Inference:
    return serve(MatrixDetector)
