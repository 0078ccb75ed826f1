"""Communication hooks of DistributedDataParallel at two processes over a slow link: time of a step, and the loss after some steps.

    sudo python benchmarks/comm_hooks.py [--rate 100mbit] [--steps 120] [--blocks 12]

Both processes live in a network namespace whose loopback is throttled by `tc tbf`, which takes root, `unshare` and `tc`; the script says
what is missing and ends well without. Every hook trains the same model on the same batches from the same start; blocks of three steps of
all hooks alternate, so that all meet the same machine. The interval of a ratio is that of the median over blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from scipy import stats
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from pyrometer.tuning.levers.families.ranks.power_sgd import in_turn
from pyrometer.tuning.levers.families.ranks.top_k import TopK

RATES = ("100mbit", "1gbit", "none")
HOOKS = ("none", "fp16", "power_sgd 4", "power_sgd 1", "top_k 0.1", "top_k 0.01")
BLOCK = 3
LATEST_S = 900
WIDTH, DEPTH, BATCH = 512, 4, 64


def missing() -> str | None:
    """What keeps this machine from throttling a link of its own."""
    tools = [tool for tool in ("unshare", "ip", "tc") if shutil.which(tool) is None]
    if tools:
        return f"{', '.join(tools)} not found: install util-linux and iproute2"
    if os.geteuid() != 0:
        return "not root: a network namespace and tc need it"
    said = subprocess.run(
        ["unshare", "--net", "sh", "-c", link("100mbit")], capture_output=True, text=True, check=False
    )
    return said.stderr.strip().splitlines()[-1] if said.returncode else None


def link(rate: str) -> str:
    """Commands that bring a namespace's loopback up, throttled."""
    up = "ip link set lo up mtu 1500"  # packets of 64 KiB would pass the bucket in bursts
    return (
        up if rate == "none" else f"{up} && tc qdisc add dev lo root tbf rate {rate} burst 32kb latency 400ms"
    )


def measured(rate: str, steps: int, num_blocks: int) -> dict:
    """What rank 0 tells."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        ours = [
            sys.executable,
            __file__,
            "--answer",
            str(answer),
            "--steps",
            str(steps),
            "--blocks",
            str(num_blocks),
        ]
        ranks = " & ".join(f"RANK={rank} timeout {LATEST_S} {shlex.join(ours)}" for rank in range(2))
        environment = os.environ | {
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29511",
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
        }
        command = ["unshare", "--net", "sh", "-c", f"{link(rate)} && {{ {ranks} & wait; }}"]
        subprocess.run(command, env=environment, check=True, timeout=LATEST_S + 60)
        return json.loads(answer.read_text())


def wrapped(hook: str) -> DistributedDataParallel:
    """A model with a hook, from the same start."""
    torch.manual_seed(0)
    layers = [part for _ in range(DEPTH) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(WIDTH, 10)))
    name, _, argument = hook.partition(" ")
    if name == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name == "power_sgd":
        state = powerSGD_hook.PowerSGDState(None, int(argument), start_powerSGD_iter=2)
        model.register_comm_hook(state, in_turn)
    elif name == "top_k":
        model.register_comm_hook(TopK(None, float(argument)), TopK.hook)
    return model


class Side:
    """One hook, with a model of its own."""

    def __init__(self, hook: str) -> None:
        self.model = wrapped(hook)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05, momentum=0.9)
        self.draw = torch.Generator().manual_seed(2 + dist.get_rank())
        self.centres = torch.randn(10, WIDTH, generator=torch.Generator().manual_seed(1))
        self.losses: list[float] = []
        self.times: list[float] = []

    def step(self) -> None:
        """One update."""
        labels = torch.randint(0, 10, (BATCH,), generator=self.draw)
        samples = self.centres[labels] + torch.randn(BATCH, WIDTH, generator=self.draw)
        loss = nn.functional.cross_entropy(self.model(samples), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(float(loss.detach()))

    def block(self) -> None:
        """Time some steps, begun on both ranks at once."""
        dist.barrier()
        began = time.perf_counter()
        for _ in range(BLOCK):
            self.step()
        self.times.append((time.perf_counter() - began) / BLOCK)


def train(answer: Path, steps: int, num_blocks: int) -> None:
    """One rank: all hooks in turns."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    sides = {hook: Side(hook) for hook in HOOKS}
    for side in sides.values():
        for _ in range(BLOCK):
            side.step()
    for number in range(num_blocks):
        order = list(sides.values())
        for side in order[number % len(order) :] + order[: number % len(order)]:
            side.block()
    told = {}
    for hook, side in sides.items():
        while len(side.losses) < steps:
            side.step()
        slowest = torch.tensor(side.times)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        last = torch.tensor(sum(side.losses[steps - 10 : steps]) / 10)
        dist.all_reduce(last)
        told[hook] = {"times_s": slowest.tolist(), "loss": float(last) / 2, "first": side.losses[0]}
    if rank == 0:
        answer.write_text(json.dumps(told))
    dist.barrier()
    os._exit(0)  # threads of gloo and of the reducer may wait for each other when Python takes them down


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median with an interval of 95 % from its order statistics."""
    ordered = sorted(values)
    low = int(stats.binom.ppf(0.025, len(ordered), 0.5))
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return middle, ordered[max(low - 1, 0)], ordered[min(len(ordered) - low, len(ordered) - 1)]


def main() -> None:
    """Measure each rate and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rate", action="append", help="of the link, as tc takes it, or none; may be repeated"
    )
    parser.add_argument("--steps", type=int, default=120, help="after which the loss is told")
    parser.add_argument("--blocks", type=int, default=12, help="of three steps, of each hook")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.answer is not None:
        train(asked.answer, asked.steps, asked.blocks)
        return
    if reason := missing():
        print(f"skipped: {reason}")
        return
    for rate in asked.rate or RATES:
        told = measured(rate, asked.steps, asked.blocks)
        base = told["none"]["times_s"]
        print(
            f"link {rate}, {WIDTH}×{DEPTH} MLP, 2 ranks × {BATCH} samples, {asked.blocks} blocks of {BLOCK} steps"
        )
        print(f"{'hook':12} {'step':>9}  {'against none':24} loss after {asked.steps}")
        for hook, one in told.items():
            ratios = [own / plain for own, plain in zip(one["times_s"], base, strict=True)]
            step_ms = interval(one["times_s"])[0] * 1e3
            middle, low, high = interval(ratios)
            print(
                f"{hook:12} {step_ms:6.1f} ms  {middle:5.2f} ({low:.2f}–{high:.2f})       {one['loss']:8.4f}"
            )


if __name__ == "__main__":
    main()
