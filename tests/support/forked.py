"""Programs in processes of their own that are forked from a server, alone or on several ranks: torch is imported once for all of them."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import runpy
import subprocess
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


def _run_alone(program: Path, arguments: Sequence[str], outputs: Sequence[Path]) -> None:
    for stream, output in enumerate(outputs, 1):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = [str(program), *arguments]
    sys.path.insert(0, str(program.parent))
    runpy.run_path(str(program), run_name="__main__")


def completed(program: Path, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A program that has run as Python would run it, but for a traceback at its end, which goes through here."""
    outputs = [folder / "stdout.txt", folder / "stderr.txt"]
    process = _SERVER.Process(target=_run_alone, args=(program, arguments, outputs))
    process.start()
    process.join()
    assert process.exitcode is not None
    return subprocess.CompletedProcess(
        [program, *arguments], process.exitcode, *(output.read_text() for output in outputs)
    )


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
