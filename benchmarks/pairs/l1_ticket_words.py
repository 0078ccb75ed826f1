"""Routes support tickets to teams: text is cleaned and split into words, words are hashed, a bag of them is classified."""

import random
import re
import zlib

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm

TEAMS = 9
BUCKETS = 1 << 13
LINK = re.compile(r"https?://\S+")
TICKET = re.compile(r"#\d+")
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+(?:\.\d+)?|[^\w\s]")


def write_tickets(count: int) -> list[tuple[str, int]]:
    chance = random.Random(1)
    syllables = ["re", "set", "lo", "gin", "pay", "ment", "er", "ror", "in", "voice", "ship", "ping"]
    tickets = []
    for _ in range(count):
        words = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(180)]
        words[5] = f"https://shop.example/{chance.randrange(10**6)}"
        words[40] = f"#{chance.randrange(10**5)}"
        tickets.append((" ".join(words).capitalize() + ".", chance.randrange(TEAMS)))
    return tickets


def encode(text: str) -> Tensor:
    text = LINK.sub("link", text.lower())
    text = TICKET.sub("ticket", text)
    words = WORD.findall(text)
    hashed = [zlib.crc32(word.encode()) % BUCKETS for word in words]
    return torch.tensor(hashed[:160])


class Tickets(Dataset):
    def __init__(self, count: int = 320) -> None:
        self.tickets = write_tickets(count)

    def __len__(self) -> int:
        return len(self.tickets)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        text, team = self.tickets[index]
        return encode(text), team


class EncodedTickets(Tickets):
    def __init__(self, count: int = 320) -> None:
        super().__init__(count)
        self.encoded = [encode(text) for text, _ in self.tickets]

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.encoded[index], self.tickets[index][1]


def router() -> nn.Module:
    return nn.Sequential(
        nn.EmbeddingBag(BUCKETS, 32, sparse=True), nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, TEAMS)
    )


def training(dataset: type[Tickets]) -> pm.Training:
    torch.manual_seed(0)
    model = router()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return pm.Training(
        model, nn.CrossEntropyLoss(), optimizer, DataLoader(dataset(), batch_size=32), unit="tickets"
    )


def slow() -> pm.Training:
    return training(Tickets)


def fast() -> pm.Training:
    return training(EncodedTickets)
