"""Observes real programs anew and writes their records: `make recordings`, or only those that are named."""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import torch
from mends import MENDS, write_mended

from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.observe import observe
from pyrometer.evidence.options import ObserveOptions
from pyrometer.record import to_dict
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.reporting.job_report import report_files
from pyrometer.workload.loading import load_workload
from pyrometer.workload.program.record import Program, Wrapper
from pyrometer.workload.target import parse_target
from recorded import BOTTLENECKS, FILES, JOBS, PROGRAM, RECORDED, ROOT, Recording, hash_of

BUDGET_S = 3.0
"""Of a record; a look whether a fault is still found does with less."""
QUICK_S = 1.0
DIGITS = 7
"""Significant ones that a record keeps of a number."""
WITH_FIXED = (*BOTTLENECKS, "video_encoder", "robot_controller")
PARAMETERS = 64 * 64 + 64 + 64 * 8 + 8
WRAPPER = Wrapper(path="", type_name="DistributedDataParallel", settings={"find_unused_parameters": False})
"""What the traces of a job do not tell of it."""
ELSEWHERE = {
    sysconfig.get_path("purelib"): "/venv/lib/python3.11/site-packages",
    str(Path(torch.__file__).parents[1]): "/venv/lib/python3.11/site-packages",
    sysconfig.get_path("stdlib"): "/python/lib/python3.11",
    sys.prefix: "/venv",
    sys.base_prefix: "/python",
    str(ROOT): "/repository",
    str(Path.home()): "/home/user",
}
"""Folders of this machine, and what a record calls them."""


def observed(
    file: Path, variant: str = "workload", peaks: Path | None = None, budget_s: float = BUDGET_S
) -> Evidence:
    """A program as a user would check it, on one thread so that its steps are alike on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        work = load_workload(parse_target(f"{file}:{variant}"))
        return observe(
            work, f"{file}:{variant}", ObserveOptions(budget_s=budget_s, peaks_folder=peaks)
        ).evidence
    finally:
        torch.set_num_threads(threads)


def observed_job(kind: str, folder: Path) -> Evidence:
    """Two processes that train together, in one of the ways of `JOBS`."""
    paths = [folder / f"rank{rank}.json" for rank in range(2)]
    workers = [
        subprocess.Popen(
            [sys.executable, str(FILES["job"]), str(rank), str(folder / "store"), str(path), kind],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank, path in enumerate(paths)
    ]
    try:
        told = [worker.communicate(timeout=120)[0].decode() for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], told
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    report = report_files(paths, executor=SerialExecutor())
    program = Program(
        kind="training",
        device="cpu",
        compiled=False,
        grad_mode="grad",
        parameter_dtypes={"float32": PARAMETERS},
        trainable_parameters=PARAMETERS,
        wrappers=[WRAPPER],
    )
    job = {"ranks": report.ranks, "job": report.job, "program": program}
    return Evidence(target=f"{FILES['job']}:{kind}", trace=report.ranks[0], **job)


def rounded(value: Any) -> Any:
    """The same with fewer digits of every number."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def packed(file: Path, evidence: Evidence) -> bytes:
    """The record of what was observed of a file."""
    if evidence.environment is not None:
        nowhere = msgspec.structs.replace(evidence.environment, os="Linux", fingerprint="")
        evidence = msgspec.structs.replace(evidence, environment=nowhere)
    text = json.dumps(rounded(to_dict(Recording(source=hash_of(file), evidence=evidence))))
    for folder, name in {str(file.parent): PROGRAM, **ELSEWHERE}.items():
        text = text.replace(folder, name)
    text = re.sub(r"/[\w/.-]*/(?:pyrometer-|tmp)\w{8}/", "/tmp/", text)  # where a trace lay for a moment
    text = text.replace(f'"host": "{platform.node()}"', '"host": "host"')
    return gzip.compress(text.encode(), 9, mtime=0)


def write(name: str, file: Path, evidence: Evidence) -> None:
    """Write the record of what was observed of a file."""
    path = RECORDED / f"{name}.json.gz"
    path.write_bytes(packed(file, evidence))
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes", flush=True)


def record(name: str, folder: Path) -> None:
    """Write the records of one program; the folder is for what is left over."""
    if name in MENDS:
        file = write_mended(folder, name)
        write(f"mended-{name.replace(' ', '_')}", file, observed(file, peaks=folder))
        return
    for variant in variants_of(name):
        evidence = observed_job(variant, folder) if name == "job" else observed(FILES[name], variant, folder)
        write(f"{name}-{variant}", FILES[name], evidence)


def variants_of(name: str) -> tuple[str, ...]:
    """Those of which there are records."""
    return JOBS if name == "job" else ("workload", "fixed")[: 1 + (name in WITH_FIXED)]


if __name__ == "__main__":
    if names := sys.argv[1:]:
        for name in names:
            with tempfile.TemporaryDirectory() as scratch:
                record(name, Path(scratch))
    else:  # each in a process of its own, as a user would
        for program in (*FILES, *MENDS):
            subprocess.run([sys.executable, __file__, program], check=True)
