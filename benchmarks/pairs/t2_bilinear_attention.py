"""Visual question answering: words attend to image regions through a low-rank bilinear form."""

import torch
from torch import Tensor, nn

import pyrometer as pm

REGIONS, WORDS, IMAGE, TEXT, RANK, HEADS = 25, 8, 64, 48, 16, 4


class BilinearAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.randn(HEADS, IMAGE, RANK) / IMAGE**0.5)
        self.right = nn.Parameter(torch.randn(HEADS, TEXT, RANK) / TEXT**0.5)

    def logits(self, regions: Tensor, words: Tensor) -> Tensor:
        form = torch.einsum("hir,htr->hit", self.left, self.right)
        pairs = torch.einsum("bni,bmt->bnmit", regions, words)
        return torch.einsum("bnmit,hit->bhnm", pairs, form)

    def forward(self, regions: Tensor, words: Tensor) -> Tensor:
        weights = self.logits(regions, words).flatten(2).softmax(-1).view(len(regions), HEADS, REGIONS, WORDS)
        return torch.einsum("bhnm,bni->bhi", weights, regions).flatten(1)


class LowRankAttention(BilinearAttention):
    def logits(self, regions: Tensor, words: Tensor) -> Tensor:
        a = torch.einsum("bni,hir->bhnr", regions, self.left)
        b = torch.einsum("bmt,htr->bhmr", words, self.right)
        return a @ b.transpose(-1, -2)


class AnswerNet(nn.Module):
    def __init__(self, attention: type[BilinearAttention], answers: int = 400) -> None:
        super().__init__()
        self.words = nn.Embedding(2000, TEXT)
        self.regions = nn.Sequential(nn.Linear(512, IMAGE), nn.ReLU())
        self.attention = attention()
        self.answer = nn.Sequential(nn.Linear(HEADS * IMAGE, 512), nn.ReLU(), nn.Linear(512, answers))

    def forward(self, picture: Tensor, question: Tensor) -> Tensor:
        return self.answer(self.attention(self.regions(picture), self.words(question)))


def questions() -> tuple[Tensor, Tensor]:
    return torch.rand(4, REGIONS, 512), torch.randint(2000, (4, WORDS))


def slow() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(AnswerNet(BilinearAttention), questions, unit="questions")


def fast() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(AnswerNet(LowRankAttention), questions, unit="questions")
