"""A robot's control loop at 500 Hz: balance a pole on a cart from noisy readings, with a deadline for each command.

    python examples/control_loop.py --ticks 2000
    pyrometer bench examples/control_loop.py:workload

At every tick the controller corrects its belief about the state with the new reading, asks a learned policy for
a force, rolls 32 alternatives out into the near future, and commands the best. A command that comes late is of
no use: the motor keeps the force that it has.

A state is (position, velocity, angle, angular velocity) in metres and radians, upright is zero; a reading is
(position, angle).
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import pyrometer as pm

TICK_S = 0.002
DEADLINE_S = TICK_S
CART_KG, POLE_KG, HALF_POLE_M, GRAVITY = 1.0, 0.1, 0.5, 9.81
MAX_FORCE_N = 20.0
FALLEN_RAD = 0.8
READING_NOISE = torch.tensor([0.001, 0.002])


def advance(state: Tensor, force: Tensor, seconds: float) -> Tensor:
    """States (..., 4) after a force (...) has acted: a frictionless cart-pole, semi-implicit Euler."""
    position, velocity, angle, turning = state.unbind(-1)
    total_kg = CART_KG + POLE_KG
    sine, cosine = angle.sin(), angle.cos()
    pushed = (force + POLE_KG * HALF_POLE_M * turning**2 * sine) / total_kg
    inertia = HALF_POLE_M * (4 / 3 - POLE_KG * cosine**2 / total_kg)
    angular = (GRAVITY * sine - cosine * pushed) / inertia
    linear = pushed - POLE_KG * HALF_POLE_M * angular * cosine / total_kg
    velocity = velocity + linear * seconds
    turning = turning + angular * seconds
    return torch.stack([position + velocity * seconds, velocity, angle + turning * seconds, turning], dim=-1)


class Policy(nn.Module):
    """States (..., 4) to forces (...) within the motor's range."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
        )

    def forward(self, state: Tensor) -> Tensor:
        return MAX_FORCE_N * self.layers(state).squeeze(-1).tanh()


def trained_policy() -> Policy:
    """A policy that imitates a linear-quadratic regulator (state cost 1, 0.1, 10, 0.1; force 0.05).

    The hidden layers stay random; least squares over 2 000 states finds the last one.
    """
    torch.manual_seed(0)
    policy = Policy()
    states = torch.tensor([1.0, 1.0, 0.3, 1.0]) * torch.randn(2_000, 4)
    wanted = states @ torch.tensor([4.47, 6.09, 49.3, 12.2]) / MAX_FORCE_N
    *hidden, last = policy.layers
    with torch.no_grad():
        features = nn.functional.pad(nn.Sequential(*hidden)(states), (0, 1), value=1.0)
        *weights, bias = torch.linalg.lstsq(features, wanted).solution
        last.weight.copy_(torch.stack(weights))
        last.bias.copy_(bias)
    return policy


class Controller(nn.Module):
    """A reading (2,) to a force (); remembers its belief and its last force from tick to tick."""

    belief: Tensor
    force: Tensor
    correction: Tensor
    alternatives: Tensor
    cost: Tensor

    def __init__(self, policy: Policy, horizon: int = 5, step_s: float = 0.02) -> None:
        super().__init__()
        self.policy = policy
        self.horizon = horizon
        self.step_s = step_s
        self.register_buffer("belief", torch.zeros(4))
        self.register_buffer("force", torch.zeros(()))
        # The steady gain of a Kalman filter for READING_NOISE.
        self.register_buffer(
            "correction", torch.tensor([[0.107, 0.0], [2.99, 0.0], [0.0, 0.077], [0.0, 1.55]])
        )
        self.register_buffer("alternatives", torch.linspace(-2.0, 2.0, 32))
        self.register_buffer("cost", torch.tensor([1.0, 0.1, 10.0, 0.1]))

    def forward(self, reading: Tensor) -> Tensor:
        self.belief.copy_(self.estimate(reading))
        self.force.copy_(self.plan(self.belief))
        return self.force.clone()

    def estimate(self, reading: Tensor) -> Tensor:
        """The new belief: what the last force must have done, corrected by what is read."""
        expected = advance(self.belief, self.force, TICK_S)
        return expected + self.correction @ (reading - expected[::2])

    def plan(self, state: Tensor) -> Tensor:
        """The first force of the cheapest rollout that starts near the policy's own choice."""
        first = (self.policy(state) + self.alternatives).clamp(-MAX_FORCE_N, MAX_FORCE_N)
        states, force = state.expand(len(first), 4), first
        total = 0.05 * first**2
        for _ in range(self.horizon):
            states = advance(states, force, self.step_s)
            total = total + states**2 @ self.cost
            force = self.policy(states)
        return first.gather(0, total.argmin(dim=0, keepdim=True)).squeeze(0)


@dataclass(frozen=True)
class Simulation:
    """What happened in a simulated run, tick by tick."""

    latencies_s: list[float]
    states: list[Tensor]
    readings: list[Tensor]

    @property
    def largest_angle_rad(self) -> float:
        return max(abs(float(state[2])) for state in self.states)


@torch.inference_mode()
def simulate(controller: Controller, num_ticks: int, deadline_s: float, seed: int = 0) -> Simulation:
    """Close the loop around the true dynamics, with a gust every second, until the pole has fallen."""
    generator = torch.Generator().manual_seed(seed)
    state = torch.tensor([0.0, 0.0, 0.05, 0.0])
    force = torch.zeros(())
    latencies_s, states, readings = [], [], []
    for tick in range(num_ticks):
        reading = state[::2] + READING_NOISE * torch.randn(2, generator=generator)
        start = time.perf_counter()
        command = controller(reading)
        latency_s = time.perf_counter() - start
        if latency_s <= deadline_s:
            force = command
        state = advance(state, force, TICK_S)
        if tick % 500 == 499:
            state[3] += 0.5 * torch.randn((), generator=generator)
        latencies_s.append(latency_s)
        states.append(state)
        readings.append(reading)
        if state[2].abs() > FALLEN_RAD:
            break
    return Simulation(latencies_s, states, readings)


def count_missed(latencies_s: list[float], deadline_s: float) -> int:
    """How many commands came after their deadline."""
    return sum(latency_s > deadline_s for latency_s in latencies_s)


def workload() -> pm.Inference:
    """One tick of the controller, fed with the readings of half a balanced second.

    On one thread: a second one has nothing to do on such small tensors, and waiting for it costs deadlines.
    """
    controller = Controller(trained_policy())
    readings = itertools.cycle(simulate(controller, num_ticks=250, deadline_s=float("inf")).readings)
    tick = pm.Inference(
        controller,
        inputs=lambda: next(readings),
        unit="control steps",
        per_step=1,
        deadline_s=DEADLINE_S,
        name="cart-pole controller",
    )
    return tick.variant(threads=1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Balance a simulated pole and count late commands.")
    parser.add_argument("--ticks", type=int, default=2_000)
    parser.add_argument("--deadline-ms", type=float, default=1_000 * DEADLINE_S)
    parser.add_argument("--seed", type=int, default=0, help="of the sensors' noise and the gusts")
    args = parser.parse_args()

    torch.set_num_threads(1)
    deadline_s = args.deadline_ms / 1_000
    run = simulate(Controller(trained_policy()), args.ticks, deadline_s, args.seed)
    num_ticks = len(run.latencies_s)
    num_missed = count_missed(run.latencies_s, deadline_s)
    fell = run.largest_angle_rad > FALLEN_RAD
    ordered_ms = sorted(1_000 * latency_s for latency_s in run.latencies_s)

    print(
        f"{'fell' if fell else 'balanced'} after {num_ticks} ticks ({num_ticks * TICK_S:.1f} s of the robot's time)"
    )
    print(f"largest angle   {run.largest_angle_rad:.3f} rad")
    print(f"latency         median {ordered_ms[num_ticks // 2]:.2f} ms, worst {ordered_ms[-1]:.2f} ms")
    print(
        f"late commands   {num_missed} of {num_ticks} ({num_missed / num_ticks:.1%}) at {args.deadline_ms:g} ms"
    )


if __name__ == "__main__":
    main()
