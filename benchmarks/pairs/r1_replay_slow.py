"""Q-learning on a gridworld with a large memory of transitions."""

import random
import time
from collections import deque

import torch
from torch import nn

ACTIONS = 4
SIDE = 32


class ReplayMemory:
    def __init__(self, capacity):
        self.capacity = capacity
        self.transitions = deque(maxlen=capacity)

    def push(self, transition):
        self.transitions.append(transition)

    def sample(self, count):
        chosen = random.sample(self.transitions, count)
        states, actions, rewards, following = zip(*chosen, strict=True)
        return (
            torch.tensor(states, dtype=torch.float32) / SIDE,
            torch.tensor(actions),
            torch.tensor(rewards),
            torch.tensor(following, dtype=torch.float32) / SIDE,
        )


class World:
    def __init__(self):
        self.where = (0, 0)

    def step(self, action):
        x, y = self.where
        dx, dy = ((1, 0), (-1, 0), (0, 1), (0, -1))[action]
        before, self.where = self.where, ((x + dx) % SIDE, (y + dy) % SIDE)
        reward = 1.0 if self.where == (20, 11) else -0.01
        return before, action, reward, self.where


def fill(memory, world, count):
    for _ in range(count):
        memory.push(world.step(random.randrange(ACTIONS)))


def q_network():
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ACTIONS))


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    memory, world = ReplayMemory(400_000), World()
    fill(memory, world, 400_000)
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.SGD(online.parameters(), lr=0.01)

    started = time.perf_counter()
    for step in range(200):
        fill(memory, world, 4)
        states, actions, rewards, following = memory.sample(128)
        with torch.no_grad():
            expected = rewards + 0.97 * target(following).amax(1)
        values = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(values, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            target.load_state_dict(online.state_dict())
    print(f"200 updates in {time.perf_counter() - started:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
