"""Perception as it must not be shipped: the net of `perception.py` with four faults around it, as an exercise.

    pyrometer check examples/broken_perception.py:workload    # 1 to 3 with their lines and what to write instead
    pyrometer lint examples/broken_perception.py              # 4, which costs only where a device waits

1. Dropout stays on in inference: the functional form does not know of evaluation mode.
2. The readout is compiled, but prints: the graph breaks there, in every frame.
3. The score of every candidate is fetched with `.item()`.
4. A boolean mask per class cuts the candidates into tensors whose size depends on their values.

`perception.py` has none of them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import pyrometer as pm
from perception import CLASSES, Drive, Heads, PerceptionNet, build_model, decode

NUM_POINTS, NUM_CANDIDATES = 8_000, 6_000


def confidences(heads: Heads) -> Tensor:
    """The certainty of each class over the whole grid."""
    scores = heads.class_logits.sigmoid().amax(dim=(0, 2, 3))
    print(end="")  # a forgotten line of debugging
    return scores / scores.sum()


class BrokenPerception(nn.Module):
    """An image and a point cloud to a score per class."""

    def __init__(self, net: PerceptionNet) -> None:
        super().__init__()
        self.net = net
        self.confidences = torch.compile(confidences, backend="aot_eager")

    def forward(self, image: Tensor, points: Tensor) -> Tensor:
        image = F.dropout(image, 0.1)
        heads = self.net(image, points)
        found = decode(heads, NUM_CANDIDATES)
        return self.confidences(heads) + best_of_classes(found.scores, found.labels) + certain(found.scores)


def certain(scores: Tensor) -> Tensor:
    """Which share of the candidates is certain."""
    count = 0
    for score in scores:
        if score.item() > 0.5:
            count += 1
    return torch.tensor(count / len(scores))


def best_of_classes(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean certainty of the candidates of each class."""
    means = []
    for label in range(len(CLASSES)):
        own = scores[labels == label]
        means.append(own.sum() / max(len(own), 1))
    return torch.stack(means)


def workload() -> pm.Inference:
    """One frame after the other."""
    return pm.Inference(
        BrokenPerception(build_model()).eval(), inputs=Drive(num_points=NUM_POINTS), unit="frames", per_step=1
    )
