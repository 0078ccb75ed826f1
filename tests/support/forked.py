"""Programs on several ranks, each in a process of its own that is forked from a server: torch is imported once for all of them."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["torch._dynamo", "torch.distributed.fsdp", "pyrometer.tuning.loop.loop"])


def _run(program: Path, arguments: Sequence[str], output: Path) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.argv = [str(program), *arguments]
    with output.open("w") as file, contextlib.redirect_stdout(file):
        runpy.run_path(str(program), run_name="__main__")


def on_ranks(program: Path, num_ranks: int, folder: Path, *arguments: object) -> list[Any]:
    """What each rank of a program, which is told its rank and their number, prints in its last line as JSON."""
    outputs = [folder / f"rank{rank}.txt" for rank in range(num_ranks)]
    ranks = [
        _SERVER.Process(
            target=_run, args=(program, [*map(str, (rank, num_ranks, *arguments))], output), daemon=True
        )
        for rank, output in enumerate(outputs)
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0] * num_ranks
    return [json.loads(output.read_text().splitlines()[-1]) for output in outputs]
