"""Files of TORCH_TRACE tell what a handler in the process is told; what we write, tlparse reads."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.collecting.export import export_log
from pyrometer.compiler.collecting.files import rank_of, read_logs
from pyrometer.compiler.log import CompileLog
from pyrometer.errors import InputError

PROGRAM = """
import torch
def f(x):
    y = x + 1
    if y.sum() > 0:
        y = y * 2
    return y
g = torch.compile(f, backend="aot_eager")
for n in (3, 4):
    g(torch.ones(n))
torch._dynamo.reset()
g(torch.ones(5))
"""

keeps_compiled = True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What torch itself writes."""
    place = tmp_path_factory.mktemp("traced")
    (place / "program.py").write_text(PROGRAM)
    subprocess.run(
        [sys.executable, "program.py"],
        cwd=place,
        env=os.environ | {"TORCH_TRACE": str(place / "logs")},
        check=True,
    )
    return place / "logs"


@pytest.fixture(scope="module")
def log():
    """The same, recorded in this process."""
    torch._dynamo.reset()
    space = {}
    exec(compile(PROGRAM.split("torch._dynamo", maxsplit=1)[0], "program.py", "exec"), space)
    torch._dynamo.reset()
    with collect() as collector:
        exec(compile(PROGRAM, "program.py", "exec"), {})
    torch._dynamo.reset()
    return collector.log()


def told(log: CompileLog) -> Counter[str]:
    return Counter(entry.kind for entry in log.entries if entry.compile_id is not None)


def test_a_file_tells_what_the_process_was_told(folder, log):
    (found,) = read_logs(folder)
    assert found.compile_ids() == log.compile_ids()
    differing = {kind for kind in told(found) | told(log) if told(found)[kind] != told(log)[kind]}
    assert differing <= {"chromium_event"}  # phases of the process's first compilation
    assert found.num_faults == 0
    assert found.torch_version == torch.__version__
    stack = next(found.of("dynamo_start")).metadata["stack"]
    assert stack[-1]["filename"].endswith("program.py")
    reasons = [[one.payload for one in each.of("recompile_reasons")] for each in (found, log)]
    assert reasons[0] == reasons[1]


def test_times_of_a_file_are_those_of_its_events(folder):
    (found,) = read_logs(folder)
    assert abs(found.entries[-1].time_ns * 1e-9 - found.entries[0].time_ns * 1e-9) < 300
    assert abs(found.entries[0].time_ns * 1e-9 - folder.stat().st_mtime) < 300


def test_what_we_write_is_read_back_the_same(log, tmp_path):
    path = export_log(log, tmp_path / "out")
    (found,) = read_logs(path)
    assert [
        (entry.kind, entry.compile_id and entry.compile_id._replace(epoch=0))
        for entry in found.entries
        if entry.kind != "torch_version"
    ] == [(entry.kind, entry.compile_id and entry.compile_id._replace(epoch=0)) for entry in log.entries]
    assert [entry.payload for entry in found.entries if entry.kind != "torch_version"] == [
        entry.payload for entry in log.entries
    ]
    assert [entry.metadata for entry in found.of("dynamo_start")] == [
        one.metadata for one in log.of("dynamo_start")
    ]


def test_tlparse_reads_what_we_write(log, tmp_path):
    tlparse = shutil.which("tlparse", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if tlparse is None:
        pytest.skip("tlparse is not installed")
    path = export_log(log, tmp_path)
    done = subprocess.run(
        [tlparse, str(path), "-o", str(tmp_path / "page"), "--no-browser"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ParseStats" not in done.stderr or "other_rank: 0" in done.stderr
    page = (tmp_path / "page" / "index.html").read_text()
    assert "dynamo_graph_break_reason" in page or "0_0_0" in page


def test_a_damaged_file_loses_only_its_damaged_lines(folder, tmp_path):
    (whole,) = read_logs(folder)
    text = next(folder.iterdir()).read_text()
    lines = text.splitlines(keepends=True)
    middle = len(lines) // 2
    while not lines[middle].startswith("V"):
        middle += 1
    damaged = [*lines[:middle], "out of memory\n", lines[middle][:60] + "\n", *lines[middle + 1 :]]
    (tmp_path / "damaged.log").write_text("".join(damaged))
    (found,) = read_logs(tmp_path / "damaged.log")
    assert found.num_faults >= 1
    assert len(whole.entries) - len(found.entries) <= 1


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.85])
def test_a_truncated_file_is_read_up_to_its_end(folder, tmp_path, share):
    raw = next(folder.iterdir()).read_bytes()
    (tmp_path / "cut.log").write_bytes(raw[: int(len(raw) * share)])
    (found,) = read_logs(tmp_path / "cut.log")
    (whole,) = read_logs(folder)
    kept = len(found.entries)
    assert [entry.kind for entry in found.entries[: kept - 1]] == [
        entry.kind for entry in whole.entries[: kept - 1]
    ]
    assert kept > len(whole.entries) * share * 0.3


def test_gzip_is_read_as_it_is(folder, tmp_path):
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(next(folder.iterdir()).read_bytes()))
    assert read_logs(tmp_path / "a.log.gz")[0].compile_ids() == read_logs(folder)[0].compile_ids()


def test_logs_of_several_processes_come_rank_by_rank(folder, tmp_path):
    text = next(folder.iterdir()).read_text()
    for rank, name in ((1, "a.log"), (0, "b.log")):
        (tmp_path / name).write_text(text.replace('"attempt": 0', f'"rank": {rank}, "attempt": 0'))
    assert [rank_of(log) for log in read_logs(tmp_path)] == [0, 1]


def test_what_is_no_log_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_logs(tmp_path / "missing.log")
    (tmp_path / "notes.log").write_text("hello\nworld\n")
    with pytest.raises(InputError, match="it holds no entry"):
        read_logs(tmp_path / "notes.log")
    with pytest.raises(InputError, match="its 1 logs hold no entry"):
        read_logs(tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(log, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        export_log(log, tmp_path / "file")
