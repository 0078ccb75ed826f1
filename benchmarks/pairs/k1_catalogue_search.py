"""Search by meaning in a catalogue: a query tower, scores of all products, the best dozen with their shelf."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm


@dataclass(frozen=True)
class Catalogue:
    vectors: Tensor
    shelves: Tensor

    @classmethod
    def example(cls, products: int = 40_000, width: int = 48) -> "Catalogue":
        generator = torch.Generator().manual_seed(10)
        vectors = F.normalize(torch.randn(products, width, generator=generator), dim=1)
        return cls(vectors, torch.randint(300, (products,), generator=generator))


def rank_everything(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    ranking = torch.argsort(scores, dim=-1, descending=True)
    best = ranking[:, :count]
    return scores.gather(1, best), best


def rank_best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    best = scores.topk(count, dim=-1)
    return best.values, best.indices


class Search(nn.Module):
    def __init__(self, catalogue: Catalogue, rank, count: int = 12) -> None:
        super().__init__()
        self.rank, self.count = rank, count
        self.words = nn.EmbeddingBag(8000, 64)
        self.tower = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, catalogue.vectors.shape[1]))
        self.register_buffer("vectors", catalogue.vectors)
        self.register_buffer("shelves", catalogue.shelves)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        query = F.normalize(self.tower(self.words(words)), dim=1)
        scores, products = self.rank(query @ self.vectors.T, self.count)
        return scores, self.shelves[products]


def queries() -> Tensor:
    return torch.randint(8000, (8, 6))


def slow() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Search(Catalogue.example(), rank_everything), queries, unit="queries")


def fast() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Search(Catalogue.example(), rank_best), queries, unit="queries")
