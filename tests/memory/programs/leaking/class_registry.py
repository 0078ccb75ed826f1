"""Tracks of a multi-object tracker."""

import torch


class Track:
    instances = []

    def __init__(self, box, feature):
        self.box = box
        self.feature = feature
        self.age = 0
        Track.instances.append(self)

    def update(self, feature):
        self.feature = 0.9 * self.feature + 0.1 * feature
        self.age += 1


class Tracker:
    def __init__(self):
        self.active = []

    def observe(self, boxes, features):
        for track, feature in zip(self.active, features):
            track.update(feature)
        self.active = [track for track in self.active if track.age < 3]
        self.active.append(Track(boxes[0], features[0].clone()))
        return len(self.active)


def make():
    tracker = Tracker()

    def step():
        return tracker.observe(torch.rand(4, 4), torch.rand(4, 256))

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("instances",),
    "line_contains": (
        "Track.instances.append(self)",
        "self.feature = 0.9 * self.feature + 0.1 * feature",
        "return tracker.observe(torch.rand(4, 4), torch.rand(4, 256))",
    ),
    "graph": False,
    "bytes_per_step": 1088,
    "note": "a class attribute holds every track there ever was: 1024 bytes of feature and 64 of boxes",
}
