"""A worse version of a served model is let in by evidence, and taken back before it answers a quarter of the requests.

    make demo-canary          # python examples/canary.py

Starts `pyrometer serve` with a model and a version of it that computes more than it should, sends requests, and watches the rollout:
5 % of the batches, then 20 %, as far as the tests let it. It is compared with a second copy of the old version that is asked as
rarely, since a model that is asked rarely is slow to answer, whatever it computes. The store, and so the rollout, is in a folder of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pyrometer as pm

SENDERS = 8
LONGEST_S = 90
STAGES = "5%,20%,50%,100%"
THRESHOLDS = ("p50=2ms", "p95=4ms")


class Perception(nn.Module):
    """A small network; `extra` layers are what the new version computes for nothing."""

    def __init__(self, extra: int = 0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
        self.extra = nn.Sequential(*[nn.Linear(256, 256) for _ in range(extra)])

    def forward(self, x_BF: torch.Tensor) -> torch.Tensor:
        self.extra(x_BF)  # noqa: S610 - no database
        return self.layers(x_BF)


def old() -> pm.Inference:
    return pm.Inference(Perception().eval(), torch.randn(1, 256))


def new() -> pm.Inference:
    return pm.Inference(Perception(extra=8).eval(), torch.randn(1, 256))


def pyrometer(folder: Path, *words: str, **given: Any) -> subprocess.Popen[str]:
    """Run the command line in the folder of the demonstration."""
    environ = {
        **os.environ,
        "PYROMETER_STORE": str(folder / "store"),
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(  # noqa: S603 - our own command line
        [sys.executable, "-m", "pyrometer", *words], cwd=folder, env=environ, text=True, **given
    )


def send(url: str, stop: threading.Event, sent: list[int]) -> None:
    """Ask again and again, as a client would."""
    row = {"name": "x_BF", "shape": [1, 256], "datatype": "FP32", "data": [0.5] * 256}
    body = json.dumps({"inputs": [row]}).encode()
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})  # noqa: S310 - http
    while not stop.is_set():
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - likewise
                answer.read()
        except urllib.error.URLError:
            if stop.is_set():  # the server ends, too
                return
            raise
        sent.append(1)


def main() -> int:
    here, folder = Path(__file__).resolve(), Path(tempfile.mkdtemp(prefix="canary-"))
    thresholds = [word for one in THRESHOLDS for word in ("--threshold", one)]
    start = (
        "rollout",
        "start",
        "perception",
        "--old",
        "1",
        "--new",
        "2",
        "--control",
        "1b",
        "--stages",
        STAGES,
        "--min-time",
        "3s",
        *thresholds,
    )
    if pyrometer(folder, *start, stdout=subprocess.DEVNULL).wait() != 0:
        return 2
    server = pyrometer(
        folder, "serve", f"{here}:old", "--canary", f"{here}:new", "--rollout", "perception", "--port", "0", "--batch", "4",
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    stop = threading.Event()
    sent: list[int] = []
    try:
        url = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        print(f"served at {url}: version 1, and 2 as far as the evidence lets it")
        threading.Thread(target=server.stdout.read, daemon=True).start()
        path = f"{url.rstrip('/')}/v2/models/old/infer"
        for _ in range(SENDERS):
            threading.Thread(target=send, args=(path, stop, sent), daemon=True).start()
        began = time.monotonic()
        watch = pyrometer(folder, "rollout", "watch", "perception", "--every", "1s")
        try:
            code = watch.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            watch.terminate()
            code = watch.wait()
        print(f"{len(sent):,} requests in {time.monotonic() - began:.0f} s\n")
        pyrometer(folder, "rollout", "status", "perception", "-o", str(folder / "canary.html")).wait()
        return 0 if code == 1 else 1
    finally:
        stop.set()
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
