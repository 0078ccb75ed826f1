"""Train the small GPT of `gpt/` in data parallel, one process per GPU or, over gloo, on CPUs.

    torchrun --nproc-per-node 2 examples/ddp_gpt.py --steps 20
    pyrometer check examples/ddp_gpt.py --nproc 2 -- --steps 20                     # every rank observed
    torchrun --nproc-per-node 2 examples/ddp_gpt.py --steps 12 --trace ranks        # a trace per rank, by hand
    torchrun --nproc-per-node 2 examples/ddp_gpt.py --steps 12 --trace late --slow-rank 1

The text is divided among the ranks; gradients are averaged in buckets beside the backward pass, with `--accumulate N` only in
every N-th. `--slow-rank` gives one rank a loader that takes 160 ms longer for a batch, so that the others wait for it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import profile, schedule
from torch.utils.data import DataLoader, DistributedSampler

sys.path.insert(0, str(Path(__file__).resolve().parent / "gpt"))
from data import VOCABULARY, Windows, read_split
from model import GPT, GPTConfig, adamw, next_token_loss

SKIPPED, WARMUP, TRACED = 3, 1, 5


class SlowWindows(Windows):
    """Windows from a slow disk."""

    delay_s = 0.02

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        time.sleep(self.delay_s)
        return super().__getitem__(index)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=50, help="of the optimizer")
    parser.add_argument("--batch-size", type=int, default=8, help="windows of a micro-batch, per rank")
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches per step")
    parser.add_argument("--trace", type=Path, metavar="FOLDER", help="write rank0.json.gz, rank1.json.gz, …")
    parser.add_argument("--slow-rank", type=int, default=-1, help="the rank whose loader is slow")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


@contextlib.contextmanager
def process_group() -> Iterator[tuple[int, torch.device]]:
    """This rank and its device, with the group of all ranks; a process without a launcher is a job of one."""
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }.items():
        os.environ.setdefault(name, value)
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else torch.device("cpu")
    try:
        yield dist.get_rank(), device
    finally:
        dist.destroy_process_group()


def batches(
    loader: DataLoader[tuple[Tensor, Tensor]], sampler: DistributedSampler[tuple[Tensor, Tensor]]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches without end, shuffled anew in each epoch."""
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


@contextlib.contextmanager
def recorded(folder: Path | None, rank: int) -> Iterator[profile | None]:
    """Record the same few steps on every rank, each into a file of its own."""
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    with profile(
        schedule=schedule(wait=SKIPPED, warmup=WARMUP, active=TRACED, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(folder / f"rank{rank}.json.gz")),
        record_shapes=True,
    ) as profiler:
        yield profiler


def main() -> None:
    args = parse_arguments()
    if args.trace and args.steps < SKIPPED + WARMUP + TRACED:
        raise SystemExit(f"--steps {args.steps}: --trace needs at least {SKIPPED + WARMUP + TRACED}")
    torch.manual_seed(args.seed)
    config = GPTConfig(vocabulary=VOCABULARY)
    text, _ = read_split()
    with process_group() as (rank, device), recorded(args.trace, rank) as profiler:
        windows = (SlowWindows if rank == args.slow_rank else Windows)(text, config.context)
        sampler = DistributedSampler(windows, shuffle=True, seed=args.seed, drop_last=True)
        loader = DataLoader(windows, batch_size=args.batch_size, sampler=sampler, drop_last=True)
        gpt = GPT(config).to(device)
        model = DistributedDataParallel(gpt, gradient_as_bucket_view=True, static_graph=args.accumulate == 1)
        optimizer = adamw(gpt, 1e-3)
        served = batches(loader, sampler)
        since = time.perf_counter()
        for step in range(1, args.steps + 1):
            for micro in range(1, args.accumulate + 1):
                tokens, targets = (part.to(device) for part in next(served))
                with contextlib.nullcontext() if micro == args.accumulate else model.no_sync():
                    loss = next_token_loss(model(tokens), targets) / args.accumulate
                    loss.backward()
            nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if profiler is not None:
                profiler.step()
            if rank == 0 and (step % 10 == 0 or step == args.steps):
                each = (time.perf_counter() - since) / step
                print(
                    f"step {step:4d}  loss {loss.item() * args.accumulate:.3f}  {each * 1e3:.0f} ms per step"
                )


if __name__ == "__main__":
    main()
