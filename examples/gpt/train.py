"""Train a small GPT on Newton's Opticks: `python examples/gpt/train.py --steps 300 --sample 200`."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from data import VOCABULARY, Windows, decode, encode, read_split
from model import GPT, GPTConfig, adamw, next_token_loss
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, help="stop after so many steps, whatever --epochs says")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=20, help="steps in which the learning rate rises")
    parser.add_argument("--clip", type=float, default=1.0, help="largest norm of the gradient")
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--eval-every", type=int, default=100)
    parser.add_argument("--eval-batches", type=int, default=10)
    parser.add_argument("--compile", action="store_true", help="run the model through torch.compile")
    parser.add_argument("--checkpoint", type=Path, help="where to save the model at every evaluation")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="BYTES", help="write so much text at the end"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def warmup_then_cosine(num_warmup: int, num_steps: int, floor: float = 0.1) -> Callable[[int], float]:
    """Factor of the learning rate at a step: a line up, then half a cosine down to `floor`."""

    def factor(step: int) -> float:
        if step < num_warmup:
            return (step + 1) / num_warmup
        done = (step - num_warmup) / max(1, num_steps - num_warmup)
        return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))

    return factor


def batches(loader: DataLoader[tuple[Tensor, Tensor]], num_steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """`num_steps` batches, starting the loader anew as often as it takes."""
    served = 0
    while True:
        for batch in loader:
            if served == num_steps:
                return
            served += 1
            yield batch


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]], num_batches: int, device: str
) -> float:
    """Mean loss over the first batches of the held-out text."""
    model.eval()
    losses = [
        next_token_loss(model(tokens.to(device)), targets.to(device))
        for tokens, targets in batches(loader, num_batches)
    ]
    model.train()
    return torch.stack(losses).mean().item()


def main() -> None:
    args = parse_arguments()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    config = GPTConfig(vocabulary=VOCABULARY)
    training_text, validation_text = read_split()
    loader = DataLoader(
        Windows(training_text, config.context),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
    )
    validation = DataLoader(Windows(validation_text, config.context), batch_size=args.batch_size)

    gpt = GPT(config).to(device)
    model = torch.compile(gpt) if args.compile else gpt
    num_steps = args.steps or args.epochs * len(loader)
    optimizer = adamw(gpt, args.learning_rate)
    schedule = LambdaLR(optimizer, warmup_then_cosine(args.warmup, num_steps))
    print(f"{sum(p.numel() for p in gpt.parameters()) / 1e6:.2f} M parameters, {num_steps} steps on {device}")

    since, tokens_since = time.perf_counter(), 0
    for step, (tokens, targets) in enumerate(batches(loader, num_steps), start=1):
        loss = next_token_loss(model(tokens.to(device)), targets.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), args.clip)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()

        tokens_since += tokens.numel()
        if step % args.log_every == 0 or step == num_steps:
            now = time.perf_counter()
            rate = tokens_since / (now - since)
            print(
                f"step {step:5d}  loss {loss.item():.3f}  lr {schedule.get_last_lr()[0]:.1e}  {rate:,.0f} tokens/s"
            )
            since, tokens_since = now, 0
        if step % args.eval_every == 0 or step == num_steps:
            print(
                f"step {step:5d}  validation loss {evaluate(model, validation, args.eval_batches, device):.3f}"
            )
            if args.checkpoint:
                torch.save(
                    {"model": gpt.state_dict(), "config": asdict(config), "step": step}, args.checkpoint
                )
            since = time.perf_counter()

    if args.sample:
        gpt.eval()
        prompt = encode("The Rays of Light ").to(device)
        print(decode(gpt.generate(prompt[None], args.sample)[0]))


if __name__ == "__main__":
    main()
