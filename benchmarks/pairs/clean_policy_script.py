"""Imitates a driver: trains a policy on recorded observations and says how it does now and then."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Policy(nn.Module):
    def __init__(self, observations=96, actions=3, width=384):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(observations, width),
            nn.LayerNorm(width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, actions),
        )

    def forward(self, observation):
        return torch.tanh(self.layers(observation))


def recordings(count, seed):
    generator = torch.Generator().manual_seed(seed)
    observations = torch.randn(count, 96, generator=generator)
    return TensorDataset(observations, torch.tanh(observations[:, :3] - observations[:, 3:6]))


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    errors = [nn.functional.l1_loss(model(observation), action) for observation, action in loader]
    model.train()
    return torch.stack(errors).mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    training = DataLoader(recordings(512 * 40, seed=1), batch_size=None, sampler=Blocks(512 * 40, 512))
    validation = DataLoader(recordings(2048, seed=2), batch_size=None, sampler=Blocks(2048, 512))
    model = Policy()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    started = time.perf_counter()
    for epoch in range(4):
        total = torch.zeros(())
        for observation, action in training:
            loss = nn.functional.smooth_l1_loss(model(observation), action)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / 40:.4f}, validation {evaluate(model, validation):.4f}")
    print(f"trained in {time.perf_counter() - started:.2f} s")


class Blocks:
    """Slices of a data set in a fresh order, so that a batch is one slice."""

    def __init__(self, count, size):
        self.count = count
        self.size = size

    def __len__(self):
        return self.count // self.size

    def __iter__(self):
        for block in torch.randperm(len(self)).tolist():
            yield slice(block * self.size, (block + 1) * self.size)


if __name__ == "__main__":
    main()
