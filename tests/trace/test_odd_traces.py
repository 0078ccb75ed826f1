"""Traces and files that nobody would write by hand: an answer that holds, or one line that says what is wrong."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from document_fixtures import document_of
from representative import standing_for_all

from pyrometer.cli.main import main
from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.report.html import page
from pyrometer.trace.difference.compare import diff_traces
from pyrometer.trace.jobs.merge import merge_ranks
from pyrometer.trace.jobs.reduce import reduce_rank
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.job_report import report_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import NOTHING, judge
from pyrometer.trace.trace import Trace

CANARY = "<script>alert(1)</script>'\"&<img src=x onerror=alert(2)></style></title>"
ESCAPES = "\x1b[31mred\x1b]0;title\x07\x9b1m\r\n"


class Done(NamedTuple):
    """What a run of the verb gave."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        assert (self.code, self.out) == (2, "")
        assert len(self.err.splitlines()) == 1
        assert "internal fault" not in self.err
        return self.err


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs `pyrometer trace` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        return Done(main(["trace", *map(str, arguments)]), *capfd.readouterr())

    return run


def event(cat: str, name: Any, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    """One complete event as it stands in a file."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def work(
    number: int = 4, *, op: Any = "aten::mm", kernel: Any = "gemm", at: float = 1000
) -> list[dict[str, Any]]:
    """Operators of 50 µs, each of which launches a kernel of 40 µs."""
    events = []
    for i in range(number):
        start, told = at + 100 * i, {"correlation": i + 1, "device": 0, "stream": 7}
        events.append(event("cpu_op", op, start, 50))
        events.append(event("cuda_runtime", "cudaLaunchKernel", start + 10, 10, args={"correlation": i + 1}))
        events.append(event("kernel", kernel, start + 30, 40, args=told) | {"pid": 0, "tid": 7})
    return events


def write(path: Path, events: list[Any], **head: Any) -> Path:
    """A trace file."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, **head}))
    return path


STEP = event("user_annotation", "ProfilerStep#1", 10, 50)
COPY = event("gpu_memcpy", "Memcpy HtoD", 5, 3, args={"device": 0, "stream": 7, "bytes": 64}) | {
    "pid": 0,
    "tid": 7,
}
KERNEL = event("kernel", "k", 5, 3, args={"device": 0, "stream": 7}) | {"pid": 0, "tid": 7}
ODD: dict[str, list[Any]] = {
    "nothing": [],
    "only metadata": [{"ph": "M", "name": "process_name", "pid": 1, "ts": 0, "args": {"name": "python"}}],
    "only a step": [STEP],
    "only Python": [
        event("python_function", f"a.py({i}): f", 10 * i, 5, args={"Python id": i}) for i in range(9)
    ],
    "only a copy": [COPY],
    "only a kernel": [KERNEL],
    "a kernel of no length": [KERNEL | {"dur": 0}],
    "an operator of no length": [event("cpu_op", "aten::mm", 5, 0)],
    "only memory": [
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 3, "args": {"Bytes": 8, "Addr": 1}}
    ],
    "negative durations": [event("cpu_op", "aten::mm", 100 + i, -10) for i in range(5)],
    "no names": work(op=None, kernel=None),
    "empty names": work(op="", kernel=""),
    "long names": work(op="o" * 10_000, kernel="k<" + "LongName::" * 1000 + ">"),
    "escapes in names": work(op="aten::" + ESCAPES, kernel="k" + ESCAPES),
    "text for times": [one | {"ts": str(one["ts"]), "dur": str(one["dur"])} for one in work()],
    "text for processes": [one | {"pid": "Renderer", "tid": f"t{one['tid']}"} for one in work()],
    "no processes": [{key: one[key] for key in ("ph", "cat", "name", "ts", "dur")} for one in work()],
    "no categories": [{key: value for key, value in one.items() if key != "cat"} for one in work()],
    "arguments of no use": [
        one | {"args": {"correlation": "x", "stream": None, "grid": "g"}} for one in work()
    ],
    "one correlation for all": [one | {"args": {**one.get("args", {}), "correlation": 1}} for one in work()],
    "steps that overlap": [*work(), *(STEP | {"ts": 1000 + 50 * i, "dur": 120} for i in range(4))],
    "far beyond 64 bits": [*work(), event("cpu_op", "far", 10**30, 1), event("cpu_op", "long", 1000, 10**30)],
    "begin and end": [
        {"ph": "B", "name": "main", "cat": "function", "pid": "a", "tid": "b", "ts": 10},
        {"ph": "E", "name": "main", "pid": "a", "tid": "b", "ts": 40},
        {"ph": "E", "name": "unmatched", "pid": "a", "tid": "b", "ts": 50},
    ],
}


@pytest.mark.parametrize(
    "events",
    standing_for_all(
        ODD, "nothing", "only a kernel", "no names", "escapes in names", "far beyond 64 bits", "begin and end",
    ),
)  # fmt: skip
def test_every_odd_trace_is_answered_in_all_views(traced: Any, tmp_path: Path, events: list[Any]) -> None:
    path = write(tmp_path / "odd.json", events)
    done = traced(path, "--json")
    rank = done.document["evidence"]["trace"]
    assert sum(rank["breakdown_ns"].values()) == rank["span_ns"]
    told = traced(path, "-o", "odd.html")
    assert (told.code, told.err) == (0, "")
    assert not set(told.out) & set("\x1b\x07\x9b\r")
    assert (tmp_path / "odd.html").stat().st_size


EXPORTS = {
    f"{what} as {kind}": (ODD[what], kind)
    for what in ("nothing", "only a step", "no names", "escapes in names", "far beyond 64 bits")
    for kind in (".json", ".parquet", ".csv", ".folded", ".speedscope.json")
}


@pytest.mark.parametrize(
    "export",
    standing_for_all(
        EXPORTS,
        *(name for name in EXPORTS if name.startswith("escapes")),
    ),
)
def test_every_odd_trace_can_be_exported(traced: Any, tmp_path: Path, export: tuple[list[Any], str]) -> None:
    events, kind = export
    path = write(tmp_path / "odd.json", events)
    assert traced(path, "--export", f"out{kind}").code == 0
    if kind.endswith(".json"):
        json.loads((tmp_path / f"out{kind}").read_text())


@pytest.mark.parametrize(
    "what", ["nothing", "only metadata", "only memory", "a kernel of no length", "an operator of no length"]
)
def test_a_trace_without_time_is_bound_by_nothing(tmp_path: Path, what: str) -> None:
    report = report_rank(read_trace(write(tmp_path / "odd.json", ODD[what])).rank())
    assert report.span_ns == 0
    verdict = judge(report)
    assert (verdict.sentence, verdict.bound, verdict.share) == (NOTHING, "unrecorded", 0.0)


def test_winning_back_everything_is_no_fault(tmp_path: Path) -> None:
    report = report_rank(read_trace(write(tmp_path / "odd.json", [COPY])).rank())
    assert [gain.ratio for gain in report.recoverable] == [0.0]
    assert judge(report).sentence.startswith("copy-bound: 100 %")


def test_events_without_a_name_are_counted_under_a_stand_in(tmp_path: Path) -> None:
    report = report_rank(read_trace(write(tmp_path / "odd.json", ODD["no names"])).rank())
    (op,) = report.top_ops
    assert (op.name, op.calls, op.host_self_ns) == ("(no name)", 4, 200_000)


def test_names_never_become_markup(traced: Any, tmp_path: Path) -> None:
    events = [
        *work(op="aten::" + CANARY, kernel="k" + CANARY),
        STEP | {"name": "ProfilerStep#1" + CANARY, "dur": 900},
    ]
    head = {"deviceProperties": [{"id": 0, "name": CANARY}], CANARY: CANARY}
    assert traced(write(tmp_path / "a<b>&'.json", events, **head), "-o", "page.html").code == 0
    text = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    for block in re.findall(r"<script type=\"application/json\"[^>]*>(.*?)</script>", text, re.DOTALL):
        assert "<" not in block


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes only there")
def test_a_file_name_that_is_not_utf_8_is_replaced_in_json(traced: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "plain.json", work())
    odd = path.rename(tmp_path / os.fsdecode(b"odd\xff.json"))
    assert traced(odd, "--json").document["evidence"]["trace"]["path"].endswith("odd?.json")


@pytest.mark.parametrize(
    ("events", "sentence"),
    [(work(), "no change"), ([STEP, *work(1)], "no change"), (work(7), "no change")],
    ids=["no steps", "one step", "more"],
)
def test_a_trace_is_no_change_to_itself_however_few_steps_it_has(
    tmp_path: Path, events: list[Any], sentence: str
) -> None:
    a, b = (read_trace(write(tmp_path / f"{name}.json", events)).rank() for name in "ab")
    diff = diff_traces(a, b)
    assert diff.outcome == "same"
    assert diff.sentence.startswith(sentence)


def of_rank(folder: Path, rank: int, world: int) -> Any:
    path = write(folder / f"{rank}_{world}.json", work(), distributedInfo={"rank": rank, "world_size": world})
    return read_trace(path).rank()


def test_files_of_jobs_of_different_sizes_are_told(tmp_path: Path) -> None:
    job = merge_ranks([reduce_rank(of_rank(tmp_path, 0, 8)), reduce_rank(of_rank(tmp_path, 1, 4))])
    assert any("jobs of 4 and of 8 ranks" in note for note in job.warnings)


def test_a_rank_beyond_the_world_is_told(tmp_path: Path) -> None:
    job = merge_ranks([reduce_rank(of_rank(tmp_path, 0, 4)), reduce_rank(of_rank(tmp_path, 9, 4))])
    assert any("rank 9 is beyond the 4" in note for note in job.warnings)


def test_beside_the_others_a_rank_is_not_told_to_be_alone(tmp_path: Path) -> None:
    ranks = tuple(of_rank(tmp_path, rank, 2) for rank in (0, 1))
    alone = report_trace(Trace(ranks[:1]))
    assert "one_rank" in {issue.code for issue in alone.ranks[0].health}
    together = report_trace(Trace(ranks))
    assert not any(issue.code == "one_rank" for report in together.ranks for issue in report.health)


@pytest.mark.parametrize(
    "flags",
    [
        ("--sql", "select 1", "--what-if", "sync"),
        ("--sql", "select 1", "-o", "page.html"),
        ("--what-if", "sync", "-o", "page.html"),
        ("--sql", ""),
        ("--what-if", ""),
        ("--attach", "1"),
        ("--diff", "b.json", "--sql", "select 1"),
        ("--diff", "b.json", "--export", "out.csv"),
    ],
    ids=" ".join,
)
def test_flags_are_never_left_undone_in_silence(traced: Any, tmp_path: Path, flags: tuple[str, ...]) -> None:
    for name in ("a.json", "b.json"):
        write(tmp_path / name, work())
    assert traced("a.json", *flags).refusal.startswith("error: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_a_change_that_meets_nothing_is_told_apart_from_one_that_is_hidden(
    traced: Any, tmp_path: Path
) -> None:
    write(tmp_path / "a.json", work())
    assert "nothing in the trace is shortened" in traced("a.json", "--what-if", "kernel:conv=2").out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_place_that_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with replacing(pipe) as beside:
        assert beside == pipe
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_keeps_leading_where_it_led(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replacing(tmp_path / "link") as beside:
        beside.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_fault_of_our_own_is_told_as_one_with_its_traceback(
    traced: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("pyrometer.trace.reporting.job_report.report_settled", fail)
    path = write(tmp_path / "a.json", work())
    assert "internal fault, ZeroDivisionError: ours" in traced(path).err
    assert "in fail" in traced(path, "--debug").err


def test_a_job_can_be_drawn_even_if_a_rank_holds_nothing(tmp_path: Path) -> None:
    from pyrometer.report.documents import TraceDocument

    empty = read_trace(write(tmp_path / "e.json", [], distributedInfo={"rank": 1, "world_size": 2})).rank()
    report = report_trace(Trace((of_rank(tmp_path, 0, 2), empty)))
    text = page(document_of(TraceDocument, target="both", ranks=report.ranks, job=report.job))
    assert "Rank" in text


def test_a_pipe_is_refused_in_one_line(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"is a pipe or a terminal.*write it to a file first"):
        read_trace(pipe)


def test_numbers_of_the_head_that_no_table_holds_count_as_missing(builder):
    builder.op("aten::mm", 0, 10)
    builder.head["deviceProperties"] = [{"id": 0, "name": "GPU", "numSms": 2**63, "totalGlobalMem": -(2**70)}]
    builder.head["distributedInfo"] = {"rank": 0, "pg_config": [{"pg_name": "0", "ranks": [0, None, 2**65]}]}
    info = builder.read().info
    assert (info.devices[0].num_sms, info.devices[0].total_memory_bytes) == (None, None)
    assert info.groups[0].ranks == [0]
