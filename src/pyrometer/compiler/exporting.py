"""Writing what a compilation left: graphs as pictures and text, code, bytecode, and torch's log for tlparse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from pyrometer.compiler.collecting.export import export_log
from pyrometer.compiler.graphs.dot import graph_dot
from pyrometer.compiler.graphs.layout import lay_out
from pyrometer.compiler.graphs.record import Graph
from pyrometer.compiler.graphs.svg import graph_svg
from pyrometer.compiler.graphs.table import graph_text
from pyrometer.compiler.log import CompileLog
from pyrometer.errors import InputError
from pyrometer.files import replacing


def export_compile(graphs: Sequence[Graph], log: CompileLog, folder: str | Path) -> list[Path]:
    """Write `graphs/<compilation>-<stage>.svg`, `.dot` and `.txt`, `code/<file>.py`, `bytecode/….txt`, and the log.

    All of it holds source text and file names of the program, but no weights.

    Returns:
        The files.

    Raises:
        InputError: the folder cannot be written to.
    """
    folder = Path(folder)
    written = []
    try:
        for name, content in (*_drawings(graphs), *_code(log), *_bytecode(log)):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as beside:
                beside.write_text(content, encoding="utf-8", errors="replace")
            written.append(path)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}; name a folder that can") from error
    return [*written, export_log(log, folder)]


def _drawings(graphs: Sequence[Graph]) -> Iterator[tuple[str, str]]:
    for graph in graphs:
        stem = "graphs/" + f"{graph.compile_id}-{graph.stage}".replace(":", "-").replace("/", "_")
        yield f"{stem}.svg", graph_svg(lay_out(graph))
        yield f"{stem}.dot", graph_dot(graph)
        yield f"{stem}.txt", graph_text(graph)


def _code(log: CompileLog) -> Iterator[tuple[str, str]]:
    for entry in log.of("inductor_output_code"):
        field = entry.fields.get("filename")
        name = PurePath(str(field or f"{entry.id_text or 'unknown'}.py")).name
        yield f"code/{name}", entry.payload


def _bytecode(log: CompileLog) -> Iterator[tuple[str, str]]:
    """Of functions behind a break, as Dynamo found and as it left them."""
    for entry in log.entries:
        if entry.kind.endswith("_BYTECODE") and entry.compile_id is not None:
            stem = f"{entry.compile_id.text}-{entry.kind}".replace(":", "-").replace("/", "_")
            yield f"bytecode/{stem}.txt", entry.payload
