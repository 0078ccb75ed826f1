"""Observes real programs anew and writes their records: `make recordings`, or only those that are named."""

from __future__ import annotations

import gzip
import json
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
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target
from recorded import BOTTLENECKS, FILES, PROGRAM, RECORDED, ROOT, Recording, hash_of

BUDGET_S = 3.0
DIGITS = 7
"""Significant ones that a record keeps of a number."""
WITH_FIXED = (*BOTTLENECKS, "video_encoder", "robot_controller")
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


def observed(file: Path, variant: str = "workload", peaks: Path | None = None) -> Evidence:
    """A program as a user would check it, on one thread so that its steps are alike on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        work = load_workload(parse_target(f"{file}:{variant}"))
        return observe(
            work, f"{file}:{variant}", ObserveOptions(budget_s=BUDGET_S, peaks_folder=peaks)
        ).evidence
    finally:
        torch.set_num_threads(threads)


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
    text = re.sub(r"/[\w/.-]*/pyrometer-\w{8}/", "/tmp/", text)  # where a trace lay for a moment
    return gzip.compress(text.encode(), 9, mtime=0)


def write(name: str, file: Path, variant: str, peaks: Path) -> None:
    """Observe a variant of a program and write its record."""
    path = RECORDED / f"{name}.json.gz"
    path.write_bytes(packed(file, observed(file, variant, peaks)))
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes", flush=True)


def record(name: str, peaks: Path) -> None:
    """Write the records of one program."""
    if name in MENDS:
        folder = peaks / name.replace(" ", "_")
        folder.mkdir()
        write(f"mended-{folder.name}", write_mended(folder, name), "workload", peaks)
        return
    for variant in ("workload", "fixed")[: 1 + (name in WITH_FIXED)]:
        write(f"{name}-{variant}", FILES[name], variant, peaks)


if __name__ == "__main__":
    if names := sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            for name in names:
                record(name, Path(scratch))
    else:  # each in a process of its own, as a user would
        for name in (*FILES, *MENDS):
            subprocess.run([sys.executable, __file__, name], check=True)
