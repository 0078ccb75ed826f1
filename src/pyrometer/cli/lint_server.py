"""`pyrometer lint --lsp`: findings in an editor while one types, over the Language Server Protocol on stdin and stdout."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyrometer.cli.lint_flags import LintFlags
from pyrometer.errors import ExitCode, PyrometerError, UsageError
from pyrometer.version import __version__

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer

    from pyrometer.rules.lint.output.editor import OpenFile
    from pyrometer.rules.lint.result import LintFinding
    from pyrometer.rules.rule import Rule
    from pyrometer.rules.settings import RuleSettings

_PAUSE_S = 0.15  # after a change: who types on is not disturbed


def serve(asked: LintFlags) -> int:
    """Serve one editor until it says exit.

    Raises:
        UsageError: `pygls` is not installed.
    """
    try:
        import pygls.lsp.server  # noqa: F401 - to say at once what is missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"pygls", "lsprotocol"}:
            raise
        raise UsageError(
            "pyrometer lint --lsp needs pygls, which is not installed; install it by pip install 'pyrometer[lsp]'"
        ) from error
    make_server(asked).start_io()
    return ExitCode.OK


def make_server(asked: LintFlags) -> LanguageServer:
    """A server that looks at what is opened, changed and saved, with the flags of the command over the settings of each file."""
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer

    server = LanguageServer("pyrometer", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
    desk = _Desk(server, asked)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        desk.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        desk.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(_PAUSE_S)
        document = server.workspace.text_documents.get(uri)
        if document is not None and document.version == version:
            desk.publish(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        desk.close(params.text_document.uri)

    kinds = lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        return desk.look(params.text_document.uri).actions(params.range, params.context.only)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        return desk.look(params.text_document.uri).hover(params.position)

    return server


class _Desk:
    """What lies open in the editor, and what was found in it last."""

    def __init__(self, server: LanguageServer, asked: LintFlags) -> None:
        self._server = server
        self._asked = asked
        self._last: dict[str, OpenFile] = {}
        self._told = ""

    def publish(self, uri: str) -> None:
        """Look at a text anew, and show what is found."""
        self._last.pop(uri, None)
        self._show(uri, self.look(uri).diagnostics())

    def close(self, uri: str) -> None:
        self._last.pop(uri, None)
        self._show(uri, [])

    def look(self, uri: str) -> OpenFile:
        """What is found in the present state of a text."""
        from pyrometer.rules.lint.check import check_text
        from pyrometer.rules.lint.output.editor import OpenFile

        document = self._server.workspace.get_text_document(uri)
        last = self._last.get(uri)
        if last is not None and last.text == document.source:
            return last
        text, path = document.source, Path(document.path or "untitled.py")
        settings, rules = self._rules_of(path)
        result = _lint(path, text, rules, settings)
        self._last[uri] = OpenFile(
            uri=uri,
            text=text,
            findings=result,
            find=lambda later: check_text(str(path), later, rules, settings.limits).found,
            codec=document.position_codec,
        )
        return self._last[uri]

    def _rules_of(self, path: Path) -> tuple[RuleSettings, Sequence[Rule]]:
        """The rules for a file; none where it is excluded, or where the settings cannot be used, which is told once."""
        from pyrometer.rules.lint.files import SourceFile
        from pyrometer.rules.lint.run import rules_for
        from pyrometer.rules.settings import RuleSettings

        try:
            settings = self._asked.settings(path.parent)
            rules = rules_for(SourceFile(path, str(path)), settings, settings.chosen())
        except PyrometerError as error:
            self._tell(str(error))
            return RuleSettings(), ()
        self._told = ""
        return settings, () if settings.excludes(path) else rules

    def _show(self, uri: str, diagnostics: list[lsp.Diagnostic]) -> None:
        from lsprotocol import types as lsp

        document = self._server.workspace.text_documents.get(uri)
        version = None if document is None else document.version
        self._server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version)
        )

    def _tell(self, said: str) -> None:
        from lsprotocol import types as lsp

        if said != self._told:
            self._told = said
            self._server.window_show_message(
                lsp.ShowMessageParams(lsp.MessageType.Error, f"Pyrometer: {said}")
            )


def _lint(path: Path, text: str, rules: Sequence[Rule], settings: RuleSettings) -> list[LintFinding]:
    """Findings in a text as the editor has it, whatever encoding the file has; notebooks come cell by cell, if at all."""
    from pyrometer.rules.lint.document import SourceText
    from pyrometer.rules.lint.run import is_worth_parsing, lint_document

    if not rules or path.suffix == ".ipynb" or not is_worth_parsing(text.encode("utf-8", "surrogatepass")):
        return []
    return lint_document(str(path), SourceText(text, "utf-8", b""), rules, settings.limits).findings
