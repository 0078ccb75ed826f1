"""Trains a variational autoencoder on spectra; the state can be picked up again after a crash."""

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    bins: int = 400
    hidden: int = 512
    latent: int = 16
    batch: int = 32
    steps: int = 80
    save_every: int = 1


class SpectrumVAE(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(config.bins, config.hidden), nn.ReLU())
        self.moments = nn.Linear(config.hidden, 2 * config.latent)
        self.decoder = nn.Sequential(
            nn.Linear(config.latent, config.hidden), nn.ReLU(), nn.Linear(config.hidden, config.bins)
        )

    def forward(self, spectra):
        mean, log_variance = self.moments(self.encoder(spectra)).chunk(2, dim=1)
        sample = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
        return self.decoder(sample), divergence.mean()


class Run:
    def __init__(self, config, folder):
        self.config = config
        self.folder = folder
        self.model = SpectrumVAE(config)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)

    def save(self, step):
        state = {
            "step": step,
            "config": asdict(self.config),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        torch.save(state, self.folder / "last.pt")

    def fit(self, spectra):
        for step in range(self.config.steps):
            batch = spectra[step * self.config.batch % len(spectra) :][: self.config.batch]
            reconstructed, divergence = self.model(batch)
            loss = F.mse_loss(reconstructed, batch) + 1e-3 * divergence
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if (step + 1) % self.config.save_every == 0:
                self.save(step)
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = torch.rand(1024, Config.bins)
    with tempfile.TemporaryDirectory() as name:
        run = Run(Config(), Path(name))
        started = time.perf_counter()
        loss = run.fit(data)
        print(f"finished in {time.perf_counter() - started:.2f} s with loss {loss:.5f}")
