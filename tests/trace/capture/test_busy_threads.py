"""A capture of all threads leaves a program alive whose threads never pause."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CAPTURES = """
import os, threading
import torch
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler, quiet

ran = threading.Event()

def serve():
    value = torch.ones(4)
    while True:
        for _ in range(100):
            value.add_(1)
        ran.set()

for _ in range(6):
    threading.Thread(target=serve, daemon=True).start()
recorded = False
for _ in range(60):
    profiler, _ = new_profiler(torch, {"record_shapes": True}, all_threads=True)
    with quiet():
        profiler.start()
        ran.clear()
        ran.wait()
        profiler.stop()
    recorded = recorded or len(profiler.events()) > 0
print("alive", recorded, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_threads_that_never_pause_survive_captures():
    run = subprocess.run(
        [sys.executable, "-c", CAPTURES],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "alive True\n"), run.stderr[-2000:]
    assert run.stderr == ""
