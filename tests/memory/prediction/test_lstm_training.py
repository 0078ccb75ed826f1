"""The peak of training an LSTM in float32, told without running it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.prediction.predict import predict_memory


class Tagger(nn.Module):
    """Its gradients reach the LSTM by another order of batch and time, so that they are copied."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(width, hidden, batch_first=True)
        self.output = nn.Linear(hidden, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tagged: torch.Tensor = self.output(self.recurrent(x)[0])
        return tagged


@pytest.mark.parametrize(("width", "hidden"), [(128, 256), (256, 256), (100, 72)])
def test_rows_that_are_padded_both_ways_and_copied_gradients_are_counted(width: int, hidden: int) -> None:
    model = Tagger(width, hidden)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batch = (torch.randn(16, 12, width), torch.randn(16, 12, 8))
    work = pm.Training(model, nn.functional.mse_loss, optimizer, [batch])
    measured = pm.profile_memory(work, predict=False).peak_bytes
    assert predict_memory(work).peak_bytes == pytest.approx(measured, rel=0.02)
