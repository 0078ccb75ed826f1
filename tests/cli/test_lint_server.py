"""`pyrometer lint --lsp`, asked by a client over its stdin and stdout, as an editor does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

PYROMETER = (sys.executable, "-c", "from pyrometer.cli.main import run; run()")
SLOW = """\
import torch

def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        "😀"; print(loss.item())
"""
UNUSED = "import torch\n\nx = 1  # pyrometer: ignore[PYR101] once\n"
UNSAFE = """\
import torch
from torch.nn import functional as F

class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5)
"""


class Editor:
    """A client with a folder, which keeps what the server says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shown: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.said: asyncio.Queue[lsp.ShowMessageParams] = asyncio.Queue()
        self.client = LanguageClient("editor", "1")
        self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self.shown.put_nowait))
        self.client.feature(lsp.WINDOW_SHOW_MESSAGE)(partial(self.said.put_nowait))

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    async def open(self, name: str, text: str) -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(self.uri(name), "python", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        return list((await self.shown.get()).diagnostics)

    async def change(self, name: str, version: int, text: str) -> None:
        which = lsp.VersionedTextDocumentIdentifier(uri=self.uri(name), version=version)
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(which, [change]))

    async def actions(self, name: str, line: int, only: list[str] | None = None) -> list[lsp.CodeAction]:
        place = lsp.Range(lsp.Position(line, 0), lsp.Position(line, 0))
        return await self.client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(self.uri(name)), place, lsp.CodeActionContext([], only=only)
            )
        )

    async def hover(self, name: str, line: int, character: int) -> lsp.Hover | None:
        return await self.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(self.uri(name)), lsp.Position(line, character))
        )


@pytest.fixture
def edit(tmp_path: Path):
    """`edit(scene, "--select", "PYR1")`: an editor at work; the scene is an async function of it."""

    async def session(scene: Callable[[Editor], Awaitable[None]], arguments: tuple[str, ...]) -> None:
        editor = Editor(tmp_path)
        command = (*PYROMETER, "lint", "--lsp", *arguments)
        await editor.client.start_io(*command, cwd=tmp_path)
        await editor.client.initialize_async(
            lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=tmp_path.as_uri())
        )
        editor.client.initialized(lsp.InitializedParams())
        await scene(editor)
        await editor.client.shutdown_async(None)
        editor.client.exit(None)
        await editor.client.stop()

    return lambda scene, *arguments: asyncio.run(asyncio.wait_for(session(scene, arguments), 120))


def test_what_is_found_is_shown_while_one_types(edit):
    async def scene(editor: Editor) -> None:
        (found,) = await editor.open("slow.py", SLOW)
        assert (found.code, found.source) == ("PYR101", "pyrometer")
        assert found.severity == lsp.DiagnosticSeverity.Warning
        assert found.message.startswith("item-in-hot-loop: `loss.item()`")
        # As the protocol counts: lines and columns from 0, in units of UTF-16.
        assert found.range == lsp.Range(lsp.Position(7, 20), lsp.Position(7, 31))
        await editor.change("slow.py", 2, SLOW.replace("loss.item()", "loss.it"))
        await editor.change("slow.py", 3, SLOW.replace("loss.item()", "loss"))
        shown = await editor.shown.get()
        assert (shown.version, list(shown.diagnostics)) == (3, [])
        await editor.change("slow.py", 4, "import torch\ndef f(:\n")
        assert [one.code for one in await editor.diagnostics()] == ["PYR092"]
        closed = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(editor.uri("slow.py")))
        editor.client.text_document_did_close(closed)
        assert await editor.diagnostics() == []

    edit(scene, "--select", "PYR101")


def test_fixes_are_actions_and_only_exact_ones_are_preferred(edit):
    async def scene(editor: Editor) -> None:
        await editor.open("unused.py", UNUSED)
        quick, every = await editor.actions("unused.py", 2)
        assert quick.is_preferred
        (change,) = quick.edit.changes[editor.uri("unused.py")]
        assert (change.range, change.new_text) == (lsp.Range(lsp.Position(2, 5), lsp.Position(2, 39)), "")
        assert every.kind == "source.fixAll.pyrometer"
        (whole,) = every.edit.changes[editor.uri("unused.py")]
        assert whole.new_text == "import torch\n\nx = 1\n"
        assert [one.kind for one in await editor.actions("unused.py", 0)] == ["source.fixAll.pyrometer"]
        assert [one.kind for one in await editor.actions("unused.py", 2, ["quickfix"])] == ["quickfix"]
        await editor.open("unsafe.py", UNSAFE)
        (unsafe,) = await editor.actions("unsafe.py", 5)
        assert unsafe.title.endswith("(unsafe: semantic)")
        assert not unsafe.is_preferred

    edit(scene)


@pytest.mark.slow
def test_the_rule_is_explained_where_it_speaks_and_where_it_is_named(edit):
    async def scene(editor: Editor) -> None:
        await editor.open("slow.py", SLOW + "# noqa: PYR201\n")
        hover = await editor.hover("slow.py", 7, 22)
        assert "## Why it costs" in hover.contents.value
        assert "item-in-hot-loop" in hover.contents.value
        assert (await editor.hover("slow.py", 8, 10)).contents.value.startswith("**PYR201**")
        assert await editor.hover("slow.py", 0, 0) is None

    edit(scene)


@pytest.mark.exhaustive
def test_settings_of_the_project_and_flags_hold(edit, tmp_path):
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.pyrometer.rules]\nexclude = ["legacy"]\n')

    async def scene(editor: Editor) -> None:
        assert await editor.open("slow.py", SLOW)
        assert not await editor.open("legacy/slow.py", SLOW)
        assert not await editor.open("old/slow.py", SLOW)
        settings.write_text("[tool.pyrometer.rules]\nexlude = []\n")
        editor.client.text_document_did_save(
            lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(editor.uri("slow.py")))
        )
        assert await editor.diagnostics() == []
        assert "exlude: no such setting; did you mean exclude?" in (await editor.said.get()).message

    edit(scene, "--exclude", "old")


def test_without_the_library_the_extra_is_named(tmp_path):
    (tmp_path / "pygls.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'pygls'\", name='pygls')\n"
    )
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*PYROMETER, "lint", "--lsp"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: pyrometer lint --lsp needs pygls, which is not installed; install it by pip install 'pyrometer[lsp]'\n"
    )
