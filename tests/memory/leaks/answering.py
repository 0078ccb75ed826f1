"""Asks about programs of the corpus: in this process, or as a script that is given names and prints a line for each."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from pathlib import Path

import torch

from pyrometer.memory.leaks import findings
from pyrometer.memory.leaks.watch import watch_memory

PATH = Path(__file__).parent.parent / "programs" / "corpus.py"
spec = importlib.util.spec_from_file_location("corpus", PATH)
corpus = importlib.util.module_from_spec(spec)
spec.loader.exec_module(corpus)

PROGRAMS = {one.name: one for one in corpus.load_all()}


def answer(program):
    """Whether the verdict is right, the holder is named, and the rate is met."""
    with program.running() as step:
        report = watch_memory(step)
        del step
    if not program.leaks:
        return program.accepts(report.verdict), True, True
    said = program.expected["bytes_per_step"]
    return (
        program.accepts(report.verdict),
        any(program.names_holder(f"{site.holder} {' '.join(site.chain)}") for site in report.sites),
        said is None or abs(report.bytes_per_step - said) <= 0.2 * abs(said),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    findings.BUDGET_S = 3600.0  # what is answered is asked here, not how soon on a busy machine
    for name in sys.argv[1:]:
        with contextlib.redirect_stdout(sys.stderr):  # some of the programs print
            said = answer(PROGRAMS[name])
        print(json.dumps([name, *said]), flush=True)
