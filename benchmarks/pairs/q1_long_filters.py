"""A long-convolution layer over genome windows: each channel has a filter as long as the sequence."""

import torch
from torch import Tensor, nn

import pyrometer as pm

BASES, CHANNELS, LENGTH = 4, 32, 3000


def fft_length(minimum: int) -> int:
    """The next product of small primes."""
    size = minimum
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 1


class LongConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Parameter(torch.randn(CHANNELS, LENGTH) * torch.exp(-torch.arange(LENGTH) / 200))
        self.skip = nn.Parameter(torch.randn(CHANNELS, 1))

    def size(self) -> int:
        return 2 * LENGTH - 13

    def forward(self, signal: Tensor) -> Tensor:
        size = self.size()
        spectrum = torch.fft.rfft(signal, n=size) * torch.fft.rfft(self.filters[:, : LENGTH - 12], n=size)
        return torch.fft.irfft(spectrum, n=size)[..., :LENGTH] + self.skip * signal


class SmoothLongConvolution(LongConvolution):
    def size(self) -> int:
        return fft_length(2 * LENGTH - 13)


class Promoters(nn.Module):
    """Scores windows of DNA for promoters."""

    def __init__(self, convolution: type[LongConvolution]) -> None:
        super().__init__()
        self.read = nn.Conv1d(BASES, CHANNELS, 1)
        self.layers = nn.Sequential(convolution(), nn.GELU(), nn.Conv1d(CHANNELS, CHANNELS, 1), convolution())
        self.score = nn.Linear(CHANNELS, 1)

    def forward(self, bases: Tensor) -> Tensor:
        return self.score(self.layers(self.read(bases)).amax(-1)).squeeze(-1)


def windows() -> Tensor:
    letters = torch.randint(BASES, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    return nn.functional.one_hot(letters, BASES).transpose(1, 2).float()


def slow() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Promoters(LongConvolution), windows(), unit="windows")


def fast() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Promoters(SmoothLongConvolution), windows(), unit="windows")
