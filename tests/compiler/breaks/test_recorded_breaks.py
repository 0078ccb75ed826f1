"""A log that torch wrote to a file tells the same as the one that was recorded in the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from pyrometer.compiler.breaks.read import count_frames, read_breaks, read_skips
from pyrometer.compiler.collecting.files import read_logs

PROGRAM = """
import importlib.util, sys, warnings
import torch
from pyrometer.compiler.breaks.read import count_frames, read_breaks, read_skips
from pyrometer.compiler.collecting.collector import collect
from pyrometer.record import to_json

warnings.simplefilter("ignore")
spec = importlib.util.spec_from_file_location("programs", sys.argv[1])
sys.modules["programs"] = programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(programs)
with collect() as collector:
    for case in programs.CASES:
        torch._dynamo.reset()
        torch.compile(case.program, backend="eager")(torch.ones(case.shape))
    torch._dynamo.reset()
    try:
        torch.compile(programs.nested, backend="eager", fullgraph=True)(torch.ones(3))
    except torch._dynamo.exc.Unsupported:
        pass
log = collector.log()
print(*map(int, count_frames(log)))
for record in [*read_breaks(log), *read_skips(log)]:
    print(to_json(record).decode())
"""


@pytest.mark.exhaustive
def test_a_trace_file_gives_the_same_breaks_skips_and_counts(tmp_path: Path) -> None:
    from pyrometer.record import to_json

    file = tmp_path / "program.py"
    file.write_text(dedent(PROGRAM), encoding="utf-8")
    programs = Path(__file__).with_name("programs.py")
    done = subprocess.run(
        [sys.executable, str(file), str(programs)],
        env={**os.environ, "TORCH_TRACE": str(tmp_path / "logs")},
        check=True,
        capture_output=True,
        text=True,
    )
    (log,) = read_logs(tmp_path / "logs")
    counts, *records = done.stdout.splitlines()
    assert counts == " ".join(map(str, count_frames(log)))
    assert records == [to_json(record).decode() for record in [*read_breaks(log), *read_skips(log)]]
    assert len(records) > 20
