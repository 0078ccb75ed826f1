"""A page in a real browser: opened from disk, allowed nothing from outside, and silent on its console."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from document_fixtures import document_of
from every_area import Case, areas, rich  # noqa: F401 - fixtures

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import Document, TraceDocument
from pyrometer.report.html import write_report
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.view.tables import tables_of
from pyrometer.trace.view.view import view_trace

OWN = re.compile(r"(file|data|blob|about):")


class Watch:
    """What went wrong in the pages of one test."""

    def __init__(self) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []

    def add(self, page: Any) -> None:
        """Listen to a page."""
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.console.append(f"uncaught: {error}"))
        page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.console.append(f"{message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not OWN.match(request.url):
            self.requests.append(request.url)


OperatorsTraced = Callable[[list[str], Callable[[int], int]], tuple[TraceDocument, Attachments]]
"""Names of operators, and how many µs the i-th takes on the host."""


@pytest.fixture(scope="module")
def operators_traced(tmp_path_factory: pytest.TempPathFactory) -> OperatorsTraced:
    """Makes the document of a trace: operators one after the other, the i-th with a kernel `gemm<i>` of 10·i µs."""

    def document(names: list[str], host_us: Callable[[int], int]) -> tuple[TraceDocument, Attachments]:
        events: list[dict[str, Any]] = []
        for i, name in enumerate(names, 1):
            at = 7e6 + 1000.0 * i
            host, device = {"pid": 1, "tid": 1}, {"pid": 0, "tid": 7}
            events += [
                {"ph": "X", "cat": "cpu_op", "name": name, **host, "ts": at, "dur": host_us(i), "args": {}},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **host, "ts": at + 9, "dur": 5, "args": {"correlation": i}},
                {"ph": "X", "cat": "kernel", "name": f"gemm{i}", **device, "ts": at + 20, "dur": 10 * i, "args": {"correlation": i, "device": 0, "stream": 7}},
            ]  # fmt: skip
        path = tmp_path_factory.mktemp("traces") / "trace.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        rank = read_trace(str(path)).ranks[0]
        attachments = Attachments(traces=[view_trace(rank)], tables=[tables_of(rank)])
        return document_of(TraceDocument, target="trace.json", ranks=[report_rank(rank)]), attachments

    return document


class OpenPage(Protocol):
    """Opens the page of a document, or a file; more options go to the browser context."""

    def __call__(
        self,
        document: Document | Path,
        attachments: Attachments | None = None,
        *,
        fragment: str = "",
        width: int = 1280,
        dark: bool = False,
        **context: Any,
    ) -> Any:
        """Return Playwright's page."""


@pytest.fixture
def watch() -> Watch:
    """The errors of this test's pages; a test that expects some takes them out before it ends."""
    return Watch()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Document, Attachments | None], Path]:
    """Writes the page of a document, once for all tests that open it."""
    folder = tmp_path_factory.mktemp("pages")
    pages: dict[tuple[int, int], tuple[Path, Document, Attachments | None]] = {}

    def write(document: Document, attachments: Attachments | None) -> Path:
        key = (id(document), id(attachments))
        if key not in pages:
            path = write_report(document, folder / f"report-{len(pages)}.html", attachments)
            pages[key] = (
                path,
                document,
                attachments,
            )  # which stay alive, so that no other gets their identity
        return pages[key][0]

    return write


@pytest.fixture
def open_page(
    new_page: Callable[..., Any],
    settled: Callable[[Any], Any],
    watch: Watch,
    written: Callable[[Document, Attachments | None], Path],
) -> Iterator[OpenPage]:
    """Opens pages from disk; at the end of the test their consoles must have been silent and nothing asked for."""
    pages = []

    def opened(
        document: Document | Path,
        attachments: Attachments | None = None,
        *,
        fragment: str = "",
        width: int = 1280,
        dark: bool = False,
        **context: Any,
    ) -> Any:
        path = document if isinstance(document, Path) else written(document, attachments)
        context = {
            "viewport": {"width": width, "height": 800},
            "color_scheme": "dark" if dark else "light",
            **context,
        }
        pages.append(new_page(**context))
        watch.add(pages[-1])
        pages[-1].goto(path.as_uri() + fragment)
        return settled(pages[-1]) if context.get("java_script_enabled", True) else pages[-1]

    yield opened
    for page in pages:
        page.close()
    assert watch.console == []
    assert watch.requests == []
