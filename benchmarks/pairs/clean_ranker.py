"""Ranks candidate songs for a listener: lookups, one interaction layer, a top list."""

import torch
from torch import Tensor, nn

import pyrometer as pm

SONGS, CANDIDATES, WIDTH = 20_000, 500, 64


class Ranker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.song = nn.Embedding(SONGS, WIDTH)
        self.listener = nn.EmbeddingBag(SONGS, WIDTH, mode="mean")
        self.score = nn.Sequential(
            nn.Linear(2 * WIDTH, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, heard: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        listener = self.listener(heard).unsqueeze(1).expand(-1, candidates.shape[1], -1)
        songs = self.song(candidates)
        scores = self.score(torch.cat([listener, songs], dim=-1)).squeeze(-1)
        best = scores.topk(20, dim=1)
        return best.values, candidates.gather(1, best.indices)


def requests() -> tuple[Tensor, Tensor]:
    return torch.randint(SONGS, (8, 50)), torch.randint(SONGS, (8, CANDIDATES))


def workload() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Ranker(), requests, unit="listeners", deadline_s=0.1)
