"""Only workloads whose steps do the same job are compared."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError


@pytest.mark.parametrize("turned", [False, True])
def test_a_forward_pass_is_no_faster_training_step(turned):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training = pm.Training(model, nn.functional.mse_loss, optimizer, [(torch.randn(4, 4), torch.randn(4, 2))])
    sides = [pm.Inference(model, torch.randn(4, 4)), training]
    with pytest.raises(InputError, match="do different jobs; compare two Inference or two Training"):
        pm.compare(*sides[:: -1 if turned else 1])
