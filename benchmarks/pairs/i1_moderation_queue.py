"""A moderation service: messages wait in a queue and leave it with a score."""

from collections import deque
from collections.abc import Iterable

import torch
from torch import Tensor, nn

import pyrometer as pm

LENGTH = 24
HASHES = 5000


class MessageNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(HASHES, 48)
        self.convolve = nn.Conv1d(48, 64, 3, padding=1)
        self.judge = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, tokens: Tensor) -> Tensor:
        features = self.convolve(self.embed(tokens).transpose(1, 2)).relu().amax(-1)
        return self.judge(features).softmax(-1)


class Moderator:
    def __init__(self, model: nn.Module) -> None:
        self.model = model.eval()
        self.queue: deque[Tensor] = deque()

    def handle(self, messages: Iterable[Tensor]) -> list[float]:
        self.queue.extend(messages)
        with torch.inference_mode():
            return self.drain()

    def drain(self) -> list[float]:
        verdicts = []
        while self.queue:
            message = self.queue.popleft()
            scores = self.model(message.unsqueeze(0))
            verdicts.append(scores[0, 2].item())
        return verdicts


class BatchingModerator(Moderator):
    def __init__(self, model: nn.Module, largest: int = 64) -> None:
        super().__init__(model)
        self.largest = largest

    def drain(self) -> list[float]:
        verdicts: list[float] = []
        while self.queue:
            waiting = [self.queue.popleft() for _ in range(min(self.largest, len(self.queue)))]
            verdicts += self.model(torch.stack(waiting))[:, 2].tolist()
        return verdicts


def messages(count: int = 96) -> list[Tensor]:
    generator = torch.Generator().manual_seed(6)
    return list(torch.randint(HASHES, (count, LENGTH), generator=generator))


def slow() -> pm.Call:
    torch.manual_seed(0)
    return pm.Call(Moderator(MessageNet()).handle, messages(), unit="messages", per_step=96)


def fast() -> pm.Call:
    torch.manual_seed(0)
    return pm.Call(BatchingModerator(MessageNet()).handle, messages(), unit="messages", per_step=96)
