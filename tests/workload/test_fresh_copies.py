"""Copies of inputs that differ from them in nothing but identity."""

from __future__ import annotations

import torch

from pyrometer.workload.inputs import fresh_copies


def test_pinned_memory_stays_itself_since_devices_read_a_copy_more_slowly(monkeypatch):
    pinned = torch.zeros(2)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: tensor is pinned)
    first, second = fresh_copies((pinned, torch.ones(2)))
    assert first is pinned
    assert torch.equal(second, torch.ones(2))
    assert fresh_copies((pinned,)) is None
