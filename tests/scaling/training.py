"""Small trainings for `scale`."""

import torch
from torch import nn

import pyrometer as pm

WIDTH, LAYERS = 256, 4


def work():
    """A perceptron of equal layers."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    batches = [(torch.randn(64, WIDTH), torch.randn(64, WIDTH))]
    return pm.Training(model, nn.functional.mse_loss, torch.optim.AdamW(model.parameters()), batches)


def inference():
    """No training."""
    return pm.Inference(nn.Linear(8, 8), (torch.randn(2, 8),))


def unlucky():
    """A loss that raises."""

    def loss(output, target):
        raise ValueError("planted")

    model = nn.Linear(8, 8)
    return pm.Training(
        model, loss, torch.optim.SGD(model.parameters(), lr=0.1), [(torch.ones(2, 8), torch.ones(2, 8))]
    )
