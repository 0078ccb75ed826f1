"""How far reading and analysing are is told, once somebody listens."""

from __future__ import annotations

from typing import Any

from pyrometer.trace.progress import heard_by
from pyrometer.trace.reporting.job_report import READING, report_files


def test_a_file_is_read_and_then_analysed_with_shares_that_only_grow(builder: Any) -> None:
    for step in range(3):
        builder.op("aten::mm", step * 100, 50)
    path = builder.write()
    heard: list[tuple[float, str]] = []
    with heard_by(lambda share, what: heard.append((share, what))):
        report_files([path])
    shares = [share for share, _ in heard]
    reading = [share for share, what in heard if what == f"reading {path.name}"]
    assert shares == sorted(shares)
    assert reading
    assert max(reading) == READING
    assert {what for share, what in heard if share > READING} <= {
        what for _, what in heard if what.startswith("analysing: ")
    }
    assert 0.8 < shares[-1] <= 1


def test_ranks_are_counted(builder: Any, tmp_path: Any) -> None:
    builder.op("aten::mm", 0, 50)
    text = builder.write().read_bytes()
    paths = [tmp_path / f"rank{rank}.json" for rank in range(3)]
    for path in paths:
        path.write_bytes(text)
    heard: list[tuple[float, str]] = []
    with heard_by(lambda share, what: heard.append((share, what))):
        report_files(paths)
    assert [what for _, what in heard] == ["1 of 3 files", "2 of 3 files", "3 of 3 files"]
