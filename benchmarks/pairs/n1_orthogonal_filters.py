"""Equalises a radio channel with a stack of norm-preserving layers; the weights were trained under a constraint."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import orthogonal

import pyrometer as pm

TAPS = 128


class ModReLU(nn.Module):
    """Shrinks magnitudes by a learned threshold."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.threshold = nn.Parameter(torch.full((width,), 0.05))

    def forward(self, x: Tensor) -> Tensor:
        return x.sign() * (x.abs() - self.threshold).clamp(min=0)


class Equaliser(nn.Module):
    def __init__(self, depth: int = 4, symbols: int = 16) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers += [orthogonal(nn.Linear(TAPS, TAPS), orthogonal_map="cayley"), ModReLU(TAPS)]
        self.rotate = nn.Sequential(*layers)
        self.decide = nn.Linear(TAPS, symbols)

    def forward(self, received: Tensor) -> Tensor:
        scale = received.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        return self.decide(self.rotate(received / scale)).log_softmax(-1)


def trained() -> Equaliser:
    """Stands for weights from a checkpoint."""
    torch.manual_seed(0)
    return Equaliser().eval()


def deployed(model: Equaliser) -> Equaliser:
    """The same model with plain weights."""
    for module in model.rotate:
        if parametrize.is_parametrized(module):
            parametrize.remove_parametrizations(module, "weight")
    return model


def received() -> Tensor:
    return torch.randn(256, TAPS)


def slow() -> pm.Inference:
    return pm.Inference(trained(), received, unit="symbols")


def fast() -> pm.Inference:
    return pm.Inference(deployed(trained()), received, unit="symbols")
