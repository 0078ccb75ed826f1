"""What people see of a trace: terminal, Markdown and page, from files with a known truth to text that is safe."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from document_fixtures import changed, document_of
from markdown_it import MarkdownIt
from representative import every
from rich.console import Console, RenderableType

from pyrometer.record import from_dict, to_dict
from pyrometer.report import html, kinds, markdown, terminal
from pyrometer.report.documents import CheckDocument, TraceDocument
from pyrometer.report.inline import inline
from pyrometer.trace.analysis.what_if import what_if
from pyrometer.trace.difference.compare import diff_traces
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.job_report import report_files
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge, judge_all

SNAPSHOTS = Path(__file__).parent / "snapshots"
CANARY = "</script><img src=x onerror=alert(1)>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NAMES = ("gpu", "host", "job", "diff", "empty", "poisoned")
VOID = {"meta", "link", "br", "img"}
HEAD = {
    "tool_version": "0.1.0",
    "run_id": "r7k2m9",
    "created": "2026-11-21T09:30:00Z",
    "command": ["pyrometer", "trace", "trace.json.gz"],
}
SAFE = {
    "device": "NVIDIA Test",
    "kernel": "sm80_xmma_gemm_f32f32_tn_n",
    "op": "aten::mm",
    "module": "module:encoder.0",
    "file": "project/train.py(12): train_step",
    "thread": "python",
    "phase": "phase:forward",
}


class Writer:
    """Steps of 1 ms with all that a view shows; every name can be replaced."""

    def __init__(
        self, *, rank: int = 0, world: int = 1, device: bool = True, names: dict[str, str] | None = None
    ) -> None:
        self.rank, self.world, self.device = rank, world, device
        self.names = {**SAFE, **(names or {})}
        self.events: list[dict[str, Any]] = [
            {"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "args": {"name": self.names["thread"]}}
        ]

    def add(
        self, cat: str, name: str, ts: float, dur: float, *, stream: int | None = None, **args: Any
    ) -> None:
        place = {"pid": 100, "tid": 100} if stream is None else {"pid": 0, "tid": stream}
        args |= {} if stream is None else {"device": 0, "stream": stream}
        self.events.append({"ph": "X", "cat": cat, "name": name, **place, "ts": ts, "dur": dur, "args": args})

    def allocate(self, ts: float, size: int, total: int, address: int) -> None:
        about = {"Device Type": 0, "Device Id": -1, "Addr": address, "Bytes": size, "Total Allocated": total}
        place = {"pid": 100, "tid": 100}
        self.events.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "s": "t",
                "name": "[memory]",
                **place,
                "ts": ts,
                "args": about,
            }
        )

    def step(self, number: int, *, kernel_us: float = 300, late_us: float = 0) -> None:
        at, first = 1000.0 * number + late_us, 10 * number
        self.add("user_annotation", f"ProfilerStep#{number}", at, 960)
        self.add("python_function", self.names["file"], at + 1, 950)
        self.add("user_annotation", "phase:data", at + 2, 90)
        self.add("user_annotation", self.names["phase"], at + 95, 800)
        self.add("user_annotation", self.names["module"], at + 96, 700)
        self.add("cpu_op", "aten::zeros", at + 5, 10)
        shapes = {
            "Input Dims": [[512, 256], [256, 128]],
            "Input type": ["float", "float"],
            "Sequence number": number,
        }
        self.add("cpu_op", self.names["op"], at + 100, 60 if self.device else 600, **shapes)
        self.allocate(at + 101, 40 << 20, 41 << 20, number + 4096)
        self.allocate(at + 150, -(40 << 20), 1 << 20, number + 4096)
        if not self.device:
            for i in range(10):
                self.add("cpu_op", "aten::item", at + 720 + 10 * i, 2)
            return
        self.add("cuda_runtime", "cudaMemcpyAsync", at + 102, 5, correlation=first + 1)
        self.add(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            at + 110,
            40,
            stream=7,
            correlation=first + 1,
            bytes=65536,
        )
        self.add("cuda_runtime", "cudaLaunchKernel", at + 120, 5, correlation=first + 2)
        grid = {
            "grid": [4, 4, 1],
            "block": [128, 1, 1],
            "registers per thread": 64,
            "est. achieved occupancy %": 40,
        }
        self.add("kernel", self.names["kernel"], at + 160, kernel_us, stream=7, correlation=first + 2, **grid)
        if self.world > 1:
            begins, ends = at + 160 + kernel_us, 1000.0 * number + 160 + kernel_us + 200
            about = {
                "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Out msg nelems": 1000,
                "Group size": self.world, "Process Group Name": "0", "Seq": number + 1,
                "Process Group Ranks": str(list(range(self.world))),
            }  # fmt: skip
            self.add("cuda_runtime", "cudaLaunchKernel", at + 130, 5, correlation=first + 3)
            name = "ncclDevKernel_AllReduce_Sum_f32_RING"
            self.add("kernel", name, begins, ends - begins, stream=20, correlation=first + 3, **about)
        self.add("cpu_op", "aten::item", at + 170, 700)
        self.add("cuda_runtime", "cudaStreamSynchronize", at + 180, 680, correlation=first + 4)

    def write(self, path: Path) -> Path:
        head = {
            "schemaVersion": 1,
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
            "deviceProperties": [{"id": 0, "name": self.names["device"], "totalGlobalMem": 1}],
            "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.world},
        }
        path.write_text(json.dumps({**head, "traceEvents": self.events}, indent=1), encoding="utf-8")
        return path


def of_files(*paths: Path, target: str) -> TraceDocument:
    job_report = report_files(list(paths), executor=SerialExecutor())
    ranks = [msgspec.structs.replace(report, path=Path(report.path).name) for report in job_report.ranks]
    return document_of(
        TraceDocument,
        target=target,
        verdict=judge_all(ranks, job_report.job),
        ranks=ranks,
        job=job_report.job,
        **HEAD,
    )


def poisoned(folder: Path) -> TraceDocument:
    """A canary wherever the text of a file or a user goes."""
    names = dict.fromkeys(("device", "kernel", "op", "thread"), CANARY)
    names |= {
        "module": f"module:{CANARY}",
        "file": f"{CANARY}/net.py(3): {CANARY}",
        "phase": f"phase:{CANARY}",
    }
    paths = []
    for rank in range(2):
        writer = Writer(rank=rank, world=2, names=names)
        for number in range(3):
            writer.step(number, late_us=50 * rank)
        paths.append(writer.write(folder / f"poisoned{rank}.json"))
    (folder / "bad.json").write_text(CANARY)
    return changed(of_files(*paths, folder / "bad.json", target=CANARY), command=[CANARY])


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TraceDocument]:
    """One document per kind of trace, by name."""
    folder = tmp_path_factory.mktemp("views")

    def steps(name: str, *, late_us: float = 0, kernel_us: float = 300, **options: Any) -> Path:
        writer = Writer(**options)
        for number in range(5):
            writer.step(number, late_us=late_us, kernel_us=kernel_us)
        return writer.write(folder / f"{name}.json")

    gpu, slower = steps("gpu"), steps("slower", kernel_us=450)
    a, b = (read_trace(path).ranks[0] for path in (gpu, slower))
    ranks = [steps(f"rank{rank}", rank=rank, world=3, late_us=60 * (rank == 2)) for rank in range(3)]
    (folder / "empty.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    documents = {
        "gpu": of_files(gpu, target="gpu.json"),
        "host": of_files(steps("host", device=False), target="host.json"),
        "job": of_files(*ranks, target="rank0.json rank1.json rank2.json"),
        "diff": document_of(
            TraceDocument,
            target="gpu.json against slower.json",
            before=report_rank(a),
            trace=report_rank(b),
            diff=diff_traces(a, b),
            **HEAD,
        ),
        "empty": of_files(folder / "empty.json", target="empty.json"),
        "poisoned": poisoned(folder),
    }
    assert tuple(documents) == NAMES
    return documents


@pytest.fixture(scope="module")
def checked(documents: dict[str, CheckDocument], traced: dict[str, TraceDocument]) -> CheckDocument:
    """A check of a workload that also traced a few steps."""
    report = traced["host"].reports[0]
    note = "operators are not compared with what this machine can do"
    return changed(documents["steady"], trace=report, trace_verdict=judge(report), notes=[note])


def shown(view: RenderableType, *, width: int = 100, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    Console(file=stream, width=width, highlight=False, _environ={}).print(view)
    stream.flush()
    return raw.getvalue().decode(encoding)


def view_of(document: Any) -> RenderableType:
    return terminal.render_document(kinds.kind_of(document), to_dict(document))


def text_of(document: Any) -> str:
    return markdown.render_document(kinds.kind_of(document), to_dict(document))


def matches_snapshot(name: str, text: str) -> None:
    """Compare with the stored text; `PYROMETER_UPDATE_SNAPSHOTS=1` stores it instead."""
    path = SNAPSHOTS / name
    plain = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("PYROMETER_UPDATE_SNAPSHOTS"):
        path.write_text(plain, encoding="utf-8")
    assert plain == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["gpu", "host", "job", "diff"])
def test_terminal_is_as_stored(traced: dict[str, TraceDocument], name: str) -> None:
    matches_snapshot(f"trace_{name}.txt", shown(view_of(traced[name])))


@pytest.mark.parametrize("name", ["gpu", "job"])
def test_markdown_is_as_stored(traced: dict[str, TraceDocument], name: str) -> None:
    matches_snapshot(f"trace_{name}.md", text_of(traced[name]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", every(3, [40, 80, 200]))
def test_no_line_is_wider_than_the_terminal(traced: dict[str, TraceDocument], name: str, width: int) -> None:
    assert max(map(len, shown(view_of(traced[name]), width=width).splitlines())) <= width


@pytest.mark.parametrize("name", [name for name in NAMES if name != "poisoned"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_cannot_encode_our_characters_gets_others(
    traced: dict[str, TraceDocument], name: str, encoding: str
) -> None:
    assert "?" not in shown(view_of(traced[name]), encoding=encoding)


def test_the_answer_comes_first(traced: dict[str, TraceDocument], checked: CheckDocument) -> None:
    for document in traced.values():
        first = shown(view_of(document), width=400).splitlines()[0]
        sentence = (
            document.diff.sentence
            if document.diff is not None
            else document.evidence.trace_verdict and document.evidence.trace_verdict.sentence
        )
        assert first.rstrip() == (sentence or "").rstrip()
        assert text_of(document).lstrip("# ").startswith(text_of(document).lstrip("# ")[:20])
    assert checked.evidence.trace_verdict is not None
    assert checked.evidence.trace_verdict.sentence in shown(view_of(checked), width=400)


def test_a_single_question_has_a_view(tmp_path: Path) -> None:
    writer = Writer()
    for number in range(4):
        writer.step(number)
    trace = read_trace(writer.write(tmp_path / "one.json")).ranks[0]
    found = what_if(trace, change="kernel:gemm=2")
    text = shown(terminal.what_if_view(found))
    assert text.startswith("kernel gemm 2× faster: ")
    assert max(map(len, shown(terminal.what_if_view(found), width=60).splitlines())) <= 60


class Page(HTMLParser):
    """Elements of a page; fails on elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages(traced: dict[str, TraceDocument], checked: CheckDocument) -> dict[str, str]:
    return {name: html.page(document) for name, document in {**traced, "check": checked}.items()}


def test_pages_are_well_formed_and_reachable(pages: dict[str, str]) -> None:
    for text in pages.values():
        page = Page(text)
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        links = {(attrs["href"] or "")[1:] for tag, attrs in page.elements if tag == "a"}
        labels = {attrs["aria-labelledby"] for _, attrs in page.elements if "aria-labelledby" in attrs}
        assert links | labels <= set(ids)
        assert [tag for tag, _ in page.elements].count("h1") == 1


def test_the_overview_of_a_trace_tells_what_could_be_won(pages: dict[str, str]) -> None:
    assert '<section data-page="overview operators" aria-labelledby="gains-0">' in pages["gpu"]
    assert "#/findings" not in pages["gpu"].partition("<main")[0].rpartition("<nav")[2]
    assert (
        pages["job"].count('data-page="overview operators"') == 1
    )  # of several ranks, the one of the verdict
    assert '<section data-page="overview comparison" aria-labelledby="parts">' in pages["diff"]


def test_nothing_is_loaded_and_nothing_runs(pages: dict[str, str]) -> None:
    for text in pages.values():
        for tag, attrs in Page(text).elements:
            assert not [name for name in attrs if name.startswith("on") or name == "style"]
            assert all("http" not in (attrs.get(name) or "") for name in ("src", "href"))
            if tag == "script" and attrs:  # our own two have none; test_html.py says which they are
                assert attrs["type"] == "application/json"
            if tag == "svg" and attrs.get("class") == "plot":
                assert attrs["role"] == "img"
                assert attrs["aria-label"]


def test_text_of_a_trace_stays_text_on_the_page(pages: dict[str, str]) -> None:
    text = pages["poisoned"]
    assert "<img" not in text
    assert text.count("</script>") == text.count("<script")
    assert text.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") > 20


def test_text_of_a_trace_makes_no_markup(traced: dict[str, TraceDocument]) -> None:
    text = text_of(traced["poisoned"])
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = [child for token in reader.parse(text) for child in (token, *(token.children or []))]
    assert not {token.type for token in tokens} & {"html_block", "html_inline", "image", "link_open"}
    assert "onerror" in text


def test_text_of_a_trace_is_no_escape_sequence(tmp_path: Path) -> None:
    evil = "[red]k[/red] \x1b[2Jgone\x07"
    writer = Writer(names={"kernel": evil, "op": evil})
    for number in range(3):
        writer.step(number)
    text = shown(view_of(of_files(writer.write(tmp_path / "evil.json"), target=evil)))
    assert "[red]k[/red]" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_page_can_be_turned_back_into_its_document(
    traced: dict[str, TraceDocument], pages: dict[str, str]
) -> None:
    for name, document in traced.items():
        (found,) = re.findall(
            r'<script type="application/json" id="pyrometer-data"( data-encoding="gzip")?>(.*?)</script>',
            pages[name],
            re.DOTALL,
        )
        raw = gzip.decompress(base64.b64decode(found[1])) if found[0] else found[1]
        data = json.loads(raw, parse_constant=lambda constant: pytest.fail(f"{constant} in JSON"))
        assert from_dict(TraceDocument, data["document"]) == document


def test_same_document_same_page(traced: dict[str, TraceDocument], pages: dict[str, str]) -> None:
    assert html.page(from_dict(TraceDocument, to_dict(traced["job"]))) == pages["job"]


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        (
            "gpu",
            ["Where the time goes", "Call tree", "Kernels", "Copies and fills", "NVIDIA Test"],
            ["Collectives", "Rank 1"],
        ),
        (
            "host",
            ["no device work", "Synchronisation points", "there is no device here"],
            ["Kernels", "Copies and fills"],
        ),
        ("job", ["rank 2 makes the others wait", "Collectives", "Rank 2"], []),
        ("diff", ["What is compared", "sm80_xmma_gemm_f32f32_tn_n", "Where the step goes"], ["Call tree"]),
        ("empty", ["empty.json"], ["Kernels", "Steps"]),
        ("check", ["Where the step goes", "Functions of the program", "How to read this"], ["Kernels"]),
    ],
)
def test_chapters_follow_what_the_trace_holds(
    pages: dict[str, str], name: str, present: list[str], absent: list[str]
) -> None:
    body = re.sub(r"<[^>]+>", "", pages[name].split("<body>")[1].split("<script")[0])
    drawn = pages[name].split("<body>")[1].split("<script")[0]
    for said in present:
        assert said.lower() in body.lower()
    for unsaid in absent:
        assert f">{unsaid}<" not in drawn


def test_a_page_has_a_reasonable_size(pages: dict[str, str]) -> None:
    ours = len(inline("report.js").text)
    assert all(len(text.encode()) - ours < 500_000 for text in pages.values())


def test_a_real_trace_has_all_views(real: Callable[[str], TraceDocument]) -> None:
    document = real("h100_bert_small.json.gz")
    assert max(map(len, shown(view_of(document), width=80).splitlines())) <= 80
    assert text_of(document)
    Page(html.page(document))


@pytest.fixture
def real() -> Callable[[str], TraceDocument]:
    """A document about a published trace."""
    folder = Path(os.environ.get("PYROMETER_TRACES", "../shared/traces"))

    def read(name: str) -> TraceDocument:
        if not (folder / name).is_file():
            pytest.skip("no folder of real traces; set PYROMETER_TRACES to one")
        return of_files(folder / name, target=name)

    return read


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("name", ["poisoned"])
def test_page_opens_from_disk_without_a_console_message(
    traced: dict[str, TraceDocument], tmp_path: Path, name: str
) -> None:
    path = html.write_report(traced[name], tmp_path / "report.html")
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
    ]  # fmt: skip
    done = subprocess.run(
        [str(CHROMIUM), *flags, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert "How to read this" in done.stdout
    assert "<img" not in done.stdout
