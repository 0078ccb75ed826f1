"""`pyrometer trace` through the real command line: files of one or many ranks, questions, damage, captures."""

from __future__ import annotations

import gzip
import json
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from click.testing import CliRunner
from document_fixtures import ranks_of

from pyrometer.cli.main import main
from pyrometer.report.schema import schema_of
from pyrometer.trace.reading.read import read_trace

ENTRY = "import sys; from pyrometer.cli.main import run; run()"
PARTS = {
    "compute", "exposed_comm", "exposed_memcpy", "memset", "sync", "runtime", "data", "host", "other", "idle",
}  # fmt: skip
RANK_KEYS = {
    "rank", "num_events", "num_lost_events", "repaired", "span_ns", "breakdown_ns", "num_kernels", "kernel_busy_ns",
    "kernel_sum_ns", "num_orphans", "steps", "idle_gaps", "sync_points", "top_ops", "top_kernels", "collectives",
    "critical_path", "health", "confidence",
}  # fmt: skip
BASE_NS = 1_700_000_000_000_000_000
NUM_STEPS = 4
NUM_EVENTS = 9 * NUM_STEPS

WORK = """
import torch
from torch import nn
import pyrometer as pm

def small():
    print("a factory that prints")
    return pm.Inference(nn.Linear(64, 64), torch.randn(8, 64), unit="frames", per_step=8)

def raises():
    raise RuntimeError("no such split")
"""
SCRIPT = """
import sys, torch
from torch import nn
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for i in range(30):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
print("done", sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


def write_trace(
    path: Path, *, rank: int = 0, world: int = 1, kernel_us: float = 300, late_us: float = 0
) -> Path:
    """Steps of 1 ms on a GPU: a copy, a kernel, with several ranks an all-reduce, and a wait of the host for it."""
    events: list[dict[str, Any]] = []

    def add(cat: str, name: str, ts: float, dur: float, *, device: bool = False, **args: Any) -> None:
        place = {"pid": 0, "tid": 7} if device else {"pid": 100, "tid": 100}
        args |= {"device": 0, "stream": 7} if device else {}
        events.append({"ph": "X", "cat": cat, "name": name, **place, "ts": ts, "dur": dur, "args": args})

    for step in range(NUM_STEPS):
        at, number = 1000.0 * step + late_us, 10 * step
        add("user_annotation", f"ProfilerStep#{step}", at, 950)
        add("python_function", "train.py(12): train_step", at + 1, 940)
        add("cpu_op", "aten::mm", at + 10, 40)
        add("cuda_runtime", "cudaMemcpyAsync", at + 12, 5, correlation=number + 1)
        add(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            at + 20,
            40,
            device=True,
            correlation=number + 1,
            bytes=65536,
        )
        add("cuda_runtime", "cudaLaunchKernel", at + 30, 5, correlation=number + 2)
        add("kernel", "sm80_gemm", at + 80, kernel_us, device=True, correlation=number + 2)
        begins, ends = at + 80 + kernel_us, 1000.0 * step + 80 + kernel_us + 200
        if world > 1:
            add("cpu_op", "c10d::allreduce_", at + 60, 10)
            add("cuda_runtime", "cudaLaunchKernel", at + 62, 5, correlation=number + 3)
            about = {
                "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Out msg nelems": 1000,
                "Group size": world, "Process Group Name": "0", "Process Group Ranks": str(list(range(world))),
                "Seq": step + 1,
            }  # fmt: skip
            add(
                "kernel",
                "ncclDevKernel_AllReduce_Sum_f32_RING",
                begins,
                ends - begins,
                device=True,
                correlation=number + 3,
                **about,
            )
        add("cpu_op", "aten::item", at + 100, 800)
        add("cuda_runtime", "cudaStreamSynchronize", at + 110, 780, correlation=number + 4)
    head = {
        "schemaVersion": 1,
        "baseTimeNanoseconds": BASE_NS,
        "deviceProperties": [{"id": 0, "name": "NVIDIA Test", "totalGlobalMem": 1}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
    }
    path.write_text(json.dumps({**head, "traceEvents": events}, indent=1), encoding="utf-8")
    return path


class Done:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> dict[str, Any]:
        """The one document on stdout."""
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def error(self) -> str:
        """The one line on stderr that says what is wrong."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs the verb in this process, in an empty folder, with output as the operating system sees it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYROMETER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        code = main(["trace", *map(str, arguments)])
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A trace of one rank."""
    return write_trace(tmp_path / "one.json")


@pytest.fixture
def ranks(tmp_path: Path) -> list[Path]:
    """Traces of four ranks, of which the third begins each step late."""
    return [
        write_trace(tmp_path / f"rank{rank}.json", rank=rank, world=4, late_us=60 if rank == 2 else 0)
        for rank in range(4)
    ]


def test_json_and_the_page_hold_what_is_promised(traced: Any, one: Path, tmp_path: Path) -> None:
    document = traced(one, "--json", "-o", tmp_path / "deep" / "page.html").document
    page = (tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert "sm80_gemm" in page
    assert "Where the time goes" in page
    jsonschema.validate(document, schema_of("trace"))
    assert {"evidence", "diagnosis", "diff", "before", "schema_version", "tool_version"} <= set(document)
    assert (document["evidence"]["job"], document["diff"], document["evidence"]["environment"]) == (
        None,
        None,
        None,
    )
    (rank,) = ranks_of(document)
    assert set(rank) >= RANK_KEYS
    assert set(rank["breakdown_ns"]) == PARTS
    assert sum(rank["breakdown_ns"].values()) == rank["span_ns"]
    assert (rank["num_kernels"], rank["kernel_sum_ns"]) == (NUM_STEPS, NUM_STEPS * 300_000)
    assert [set(step) >= {"name", "start_ns", "end_ns"} for step in rank["steps"]] == [True] * NUM_STEPS
    assert [step["start_ns"] for step in rank["steps"]] == [0, 1_000_000, 2_000_000, 3_000_000]
    assert all(set(issue) >= {"code", "severity", "message"} for issue in rank["health"])
    assert rank["sync_points"][0]["name"] == "aten::item"
    assert rank["sync_points"][0]["where"]["line"] == 12


def test_what_to_capture_is_a_setting(traced: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work.py").write_text(WORK)
    monkeypatch.setenv("PYROMETER_CAPTURE", "stack,colour")
    done = traced("work.py:small")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "capture: got 'colour'; legal are stack, shapes" in done.err


def test_terminal_gives_the_answer_first(traced: Any, one: Path) -> None:
    done = traced(one)
    assert (done.code, done.err) == (0, "")
    answer, bound = done.out.splitlines()[:2]
    assert answer.startswith("one.json   ")
    assert f"({NUM_STEPS} steps, " in answer
    assert re.match(r"\w+-bound: ", bound)
    assert max(map(len, done.out.splitlines())) <= 100
    full = traced(one, "--full").out
    assert len(full.splitlines()) > len(done.out.splitlines())
    assert ("Is the measurement itself sound?" in full, "Reading" in done.out) == (True, False)
    assert list(one.parent.iterdir()) == [one], "files leave nothing in a store"


def test_the_files_of_a_folder_are_a_job(traced: Any, ranks: list[Path], tmp_path: Path) -> None:
    assert len(ranks) == 4
    document = traced(tmp_path, "--json").document
    jsonschema.validate(document, schema_of("trace"))
    assert [rank["rank"] for rank in ranks_of(document)] == [0, 1, 2, 3]
    assert document["evidence"]["job"]["world_size"] == 4
    assert document["evidence"]["job"]["stragglers"][0]["rank"] == 2
    assert document["evidence"]["trace_verdict"]["rank"] == 2
    assert document["evidence"]["trace_verdict"]["sentence"].startswith("rank 2 makes the others wait ")
    assert ranks_of(document)[0]["collectives"]


def test_one_bad_file_among_several_is_said_and_left_out(
    traced: Any, ranks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks[1].write_text("nonsense")
    done = traced(*ranks, "--json")
    assert done.code == 0
    assert [rank["rank"] for rank in ranks_of(done.document)] == [0, 2, 3]
    assert "rank1.json" in done.document["evidence"]["job"]["failures"][0]["message"]
    assert done.document["evidence"]["job"]["missing_ranks"] == [1]
    monkeypatch.setenv("PYROMETER_STRICT", "1")
    strict = traced(*ranks)
    assert strict.code == 2
    assert "rank1.json" in strict.error


def test_two_files_are_compared(traced: Any, one: Path, tmp_path: Path) -> None:
    slower = write_trace(tmp_path / "slower.json", kernel_us=450)
    done = traced("--diff", one, slower, "--json")
    document = done.document
    jsonschema.validate(document, schema_of("trace"))
    (kernel,) = [row for row in document["diff"]["kernels"] if row["name"] == "sm80_gemm"]
    assert kernel["time"]["b_ns"] - kernel["time"]["a_ns"] == pytest.approx(150_000)
    assert document["diff"]["num_steps_a"] == NUM_STEPS
    assert document["diff"]["sentence"] in " ".join(traced("--diff", one, slower).out.splitlines()[:2])


def test_operators_that_only_one_side_has_are_named(traced: Any, tmp_path: Path) -> None:
    def write_host_trace(name: str, *operators: str) -> Path:
        events = []
        for step in range(6):
            at, own = 1000 * step, {"ph": "X", "pid": 1, "tid": 1}
            events.append(
                own | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 900}
            )
            events += [
                own | {"cat": "cpu_op", "name": name, "ts": at + 10 + 200 * place, "dur": 180 + step}
                for place, name in enumerate(operators)
            ]
        (tmp_path / name).write_text(json.dumps({"traceEvents": events}))
        return tmp_path / name

    fewer = write_host_trace("a.json", "aten::mm")
    done = traced("--diff", fewer, write_host_trace("b.json", "aten::mm", "aten::sort", "aten::topk"))
    assert done.code == 0, done.err
    assert "new: aten::sort and 1 more" in done.out


def test_a_trace_is_the_same_as_itself(traced: Any, one: Path) -> None:
    diff = traced("--diff", one, one, "--json").document["diff"]
    assert diff["outcome"] == "same"
    assert all(part["a_ns"] == part["b_ns"] for part in diff["parts"])


def test_another_program_is_refused_in_one_line_or_described_anyway(
    traced: Any, one: Path, tmp_path: Path
) -> None:
    text = one.read_text().replace("aten::mm", "aten::conv2d").replace("sm80_gemm", "xmma_fprop")
    (other := tmp_path / "other.json").write_text(text)
    done = traced("--diff", one, other)
    assert (done.code, done.out) == (2, "")
    assert "different programs: product in the first only, convolution in the second only" in done.error
    assert "--diff-anyway" in done.error
    diff = traced("--diff-anyway", one, other, "--json").document["diff"]
    assert diff["differences"][0]["field"] == "program"
    assert diff["outcome"] == "undecided"


@pytest.mark.parametrize("number", [1, 3])
def test_a_comparison_takes_two_files(traced: Any, one: Path, number: int) -> None:
    done = traced("--diff", *[one] * number)
    assert done.code == 2
    assert f"got {number} files" in done.error


def test_a_query_is_answered(traced: Any, one: Path) -> None:
    query = "select name, count(*) as calls, sum(dur_ns) as total_ns from kernels group by name"
    done = traced(one, "--sql", query, "--json")
    assert json.loads(done.out) == [
        {"name": "sm80_gemm", "calls": NUM_STEPS, "total_ns": NUM_STEPS * 300_000}
    ]
    assert "sm80_gemm" in traced(one, "--sql", query).out


def test_a_wrong_query_is_one_line(traced: Any, one: Path) -> None:
    done = traced(one, "--sql", "select nothing from nowhere")
    assert done.code == 2
    assert "nowhere" in done.error


def test_a_change_is_predicted(traced: Any, one: Path) -> None:
    document = traced(one, "--what-if", "kernel:gemm=2", "--json").document
    assert 0 < document["gain_ns"] <= NUM_STEPS * 150_000
    assert "kernel gemm 2× faster" in traced(one, "--what-if", "kernel:gemm=2").out
    wrong = traced(one, "--what-if", "wish")
    assert wrong.code == 2
    assert "wish" in wrong.error


@pytest.mark.parametrize("ending", ["json", "json.gz", "parquet", "csv", "folded", "speedscope.json"])
def test_every_export_can_be_read_again(traced: Any, one: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / "out" / f"trace.{ending}"
    path.parent.mkdir()
    done = traced(one, "--export", path)
    assert done.code == 0, done.err
    assert f"wrote {path}" in done.err
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    if ending in {"json", "json.gz"}:
        again = read_trace(path).ranks[0]
        assert again.of_kind("kernel")["dur_ns"].sum() == NUM_STEPS * 300_000
        if ending == "json.gz":
            assert gzip.decompress(path.read_bytes())[:1] == b"{"
    elif ending == "parquet":
        assert "sm80_gemm" in pl.read_parquet(path)["name"].to_list()
    elif ending == "csv":
        assert "sm80_gemm" in pl.read_csv(path, infer_schema_length=None)["name"].to_list()
    elif ending == "folded":
        assert all(line.rsplit(" ", 1)[1].isdigit() for line in path.read_text().splitlines())
    else:
        assert "speedscope" in json.loads(path.read_text())["$schema"]


def test_an_unknown_export_is_refused(traced: Any, one: Path, tmp_path: Path) -> None:
    done = traced(one, "--export", tmp_path / "trace.bmp")
    assert done.code == 2
    assert ".parquet" in done.error
    assert not (tmp_path / "trace.bmp").exists()


DAMAGE = {
    "cut off": lambda text: text[: len(text) * 2 // 3],
    "a bad escape": lambda text: text.replace('"sm80_gemm"', '"sm80\\qgemm"', 1),
    "a bare NaN": lambda text: text.replace('"dur": 40,', '"dur": NaN,', 1).replace(
        '"dur": 40}', '"dur": NaN}', 1
    ),
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_damage_is_repaired_and_said_or_refused(
    traced: Any, one: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.write_text(DAMAGE[damage](one.read_text()))
    done = traced(one, "--json")
    assert done.code == 0, done.err
    rank = ranks_of(done.document)[0]
    assert rank["repaired"]
    assert 0 < rank["num_events"] <= NUM_EVENTS
    assert sum(rank["breakdown_ns"].values()) == rank["span_ns"]
    assert rank["repaired"][0]["message"]
    monkeypatch.setenv("PYROMETER_STRICT", "yes")
    refused = traced(one)
    assert (refused.code, refused.out) == (2, "")
    assert "one.json" in refused.error


def test_damage_is_told_in_the_terminal(traced: Any, one: Path) -> None:
    one.write_text(DAMAGE["cut off"](one.read_text()))
    assert read_trace(one).ranks[0].info.repaired[0].message[:40] in " ".join(traced(one).out.split())


def png() -> bytes:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + chunk
        + struct.pack(">I", zlib.crc32(chunk))
        + bytes(64)
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.json", None),
        ("picture.png", png()),
        ("empty.json", b""),
        ("empty.json.gz", gzip.compress(b"", mtime=0)),
        ("other.json", b'{"name": "package", "version": "1.0"}'),
        ("number.json", b"42"),
        ("text.json", b"hello\n"),
        ("cut.json.gz", gzip.compress(b'{"traceEvents": []}', mtime=0)[:12]),
    ],
)
def test_what_is_no_trace_is_one_line(traced: Any, tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    done = traced(path)
    assert (done.code, done.out) == (2, "")
    assert name in done.error


def test_an_empty_folder_is_one_line(traced: Any, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    done = traced(tmp_path / "nothing")
    assert done.code == 2
    assert "nothing" in done.error


def test_a_trace_without_events_is_no_failure(traced: Any, tmp_path: Path) -> None:
    (tmp_path / "bare.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    done = traced(tmp_path / "bare.json", "--json")
    assert done.code == 0, done.err
    assert ranks_of(done.document)[0]["span_ns"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no trace and no program"),
        (["work.py:small", "--diff"], "--diff"),
        (["work.py:smal"], "small"),
        (["gone.py:small"], "gone.py"),
    ],
)
def test_wrong_use_is_one_line(traced: Any, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "work.py").write_text(WORK)
    done = traced(*arguments)
    assert done.code == 2
    assert said in done.error


@pytest.mark.exhaustive
def test_files_are_analysed_without_torch(one: Path) -> None:
    code = (
        "import sys; from pyrometer.cli.main import main; "
        f"assert main(['trace', {str(one)!r}, '--json', '-o', {str(one.parent / 'page.html')!r}]) == 0; "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=one.parent
    )
    assert done.returncode == 0, done.stderr


def pyrometer(folder: Path, *arguments: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", ENTRY, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_a_capture_is_reported_stored_and_shown_again(traced: Any, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)
    done = traced("work.py:small", "--steps", "3", "--json", "--export", "kept.json.gz")
    assert done.code == 0, done.err
    document = done.document
    jsonschema.validate(document, schema_of("trace"))
    assert document["evidence"]["environment"]["fingerprint"]
    assert document["evidence"]["capture"]
    left_out = sum(
        part["count"] for part in ranks_of(document)[0]["left_out"] if part["reason"] == "first_steps"
    )
    assert len(ranks_of(document)[0]["steps"]) + left_out == 3
    assert {"forward"} <= {phase["name"] for phase in ranks_of(document)[0]["phases"]["phases"]}
    assert "a factory that prints" in done.err
    assert read_trace(tmp_path / "kept.json.gz").ranks[0].steps.height == 3
    again = shown(tmp_path, document["run_id"], "--json")
    assert ranks_of(json.loads(again)) == ranks_of(document)
    assert shown(tmp_path, "last").splitlines()[0] == shown(tmp_path, document["run_id"]).splitlines()[0]
    assert "Breakdown" in shown(tmp_path, "last", "--full")


def shown(folder: Path, *arguments: str) -> str:
    """What `pyrometer show` prints of the store in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        from pyrometer.cli.show import command

        done = CliRunner().invoke(command, list(arguments), catch_exceptions=False, standalone_mode=False)
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.exhaustive
def test_a_capture_that_is_not_to_be_stored_is_not(
    traced: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYROMETER_CAPTURE", "none")
    (tmp_path / "work.py").write_text(WORK)
    done = traced("work.py:small", "--steps", "1", "--no-store")
    assert done.code == 0, done.err
    assert not (tmp_path / ".pyrometer").exists()
    assert "Where the time goes" in done.out
    assert "work.py:small:" not in done.out


def test_a_factory_that_raises_is_the_users_failure(traced: Any, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)
    done = traced("work.py:raises")
    assert done.code == 4
    assert "RuntimeError: no such split" in done.error


@pytest.mark.exhaustive
def test_a_script_keeps_its_output_and_its_exit_code(traced: Any, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = traced("train.py", "--steps", "3", "--", "7")
    assert done.code == 7
    assert done.out == "done ['7']\n"
    assert done.err.count("train.py 7   ") == 1
    assert "Where the time goes" in done.err


@pytest.mark.slow
def test_a_script_with_json_prints_one_document_and_keeps_its_exit_code(traced: Any, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = traced("train.py", "--json", "--steps", "2", "--no-store", "--", "7")
    assert done.code == 7, done.err
    jsonschema.validate(done.document, schema_of("trace"))
    rank = ranks_of(done.document)[0]
    # The first one is slow on a busy machine, and is said to be left out then.
    assert len(rank["steps"]) + sum(part["count"] for part in rank["left_out"]) == 2
    assert "done ['7']" in done.err


def test_a_script_without_steps_says_why_there_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text("print('nothing to see')\n")
    done = pyrometer(tmp_path, "trace", "quiet.py", "--no-store")
    assert done.code == 3
    assert done.out == "nothing to see\n"
    assert "no step was seen" in done.err
