"""Adversarial training of a small generator of handwriting strokes, with a log for hard cases."""

import logging
import time

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
log = logging.getLogger("strokes")


def mlp(*sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Adversaries:
    def __init__(self):
        self.generator, self.critic = mlp(16, 128, 128, 60), mlp(60, 128, 128, 1)
        self.g_optimizer = torch.optim.SGD(self.generator.parameters(), lr=1e-3)
        self.c_optimizer = torch.optim.SGD(self.critic.parameters(), lr=1e-3)

    def train_critic(self, strokes):
        made = self.generator(torch.randn(len(strokes), 16)).detach()
        real_score, made_score = self.critic(strokes), self.critic(made)
        log.debug("critic says %s of real and %s of made strokes %s", real_score, made_score, made)
        loss = torch.relu(1 - real_score).mean() + torch.relu(1 + made_score).mean()
        self.c_optimizer.zero_grad()
        loss.backward()
        self.c_optimizer.step()
        return loss.detach()

    def train_generator(self, count):
        loss = -self.critic(self.generator(torch.randn(count, 16))).mean()
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()
        return loss.detach()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    strokes = torch.randn(640, 60).cumsum(1) / 8
    adversaries = Adversaries()
    started = time.perf_counter()
    for step in range(150):
        rows = strokes[step * 32 % 640 :][:32]
        critic_loss = adversaries.train_critic(rows)
        generator_loss = adversaries.train_generator(len(rows))
    print(f"150 rounds in {time.perf_counter() - started:.2f} s: {critic_loss:.5f} {generator_loss:.5f}")


if __name__ == "__main__":
    main()
