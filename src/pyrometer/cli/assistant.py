"""The tools of `pyrometer mcp`: verbs, each run in a process of its own, so that a program cannot take the server along."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from pyrometer.errors import InputError
from pyrometer.version import __version__

MOST_BYTES = 60_000
"""Of a document that an answer holds: an assistant reads all of it. Of longer parts it is told what they hold."""

SCREEN = 80
INSTRUCTIONS = (
    "Measure before and after a change. `check` says where the time of a program goes and what to fix first, with places; change the code; "
    "`bench` with `against` proves whether it helped, since two runs of `check` prove nothing. `rule` explains a finding. Every answer starts "
    "with the short answer; `part` is a JSON pointer into the whole document, such as /evidence/measurement, also later by `show`."
)

Target = Annotated[
    str, Field(description="file.py:factory, package.module:factory, or script.py, within the folder")
]
Arguments = Annotated[list[str] | None, Field(description="what a script itself is given")]
Budget = Annotated[float, Field(gt=0, description="seconds to spend on measuring")]
Part = Annotated[str, Field(description="JSON pointer into the document; empty for what it holds")]
Run = Annotated[str, Field(description="id of a stored run, the beginning of one, or `last`")]


def server(root: Path) -> MCPServer:
    """The server, not yet running, whose verbs run in a folder."""
    tools = Tools(root)
    made = MCPServer("pyrometer", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    verbs = (tools.check, tools.bench, tools.trace, tools.compile, tools.memory, tools.tune)
    for tool in (*verbs, tools.lint, tools.rule, tools.show, tools.compare):
        made.tool()(tool)
    return made


@dataclass(frozen=True)
class Tools:
    """The verbs in a folder; the docstrings of its methods are what an assistant reads."""

    root: Path

    async def check(
        self, target: Target, arguments: Arguments = None, budget_s: Budget = 5.0, part: Part = "/diagnosis/findings"
    ) -> CallToolResult:  # fmt: skip
        """Measure, observe and explain a program: how long a step takes, where the time goes, what to fix first."""
        return await self._target("check", target, arguments, ["--budget", f"{budget_s:g}s"], part)

    async def bench(
        self, target: Target, against: Target | None = None, budget_s: Budget = 5.0, part: Part = "/verdict"
    ) -> CallToolResult:  # fmt: skip
        """Time a program; with `against`, prove whether that is faster: both run in turn, in one process."""
        rival = [] if against is None else ["--vs", self._within(against)]
        part = "/evidence/measurement" if against is None and part == "/verdict" else part
        return await self._target("bench", target, [], [*rival, "--budget", f"{budget_s:g}s"], part)

    async def trace(
        self, inputs: Annotated[list[str], Field(min_length=1, description="traces of torch.profiler, one per rank, or one target")],
        part: Part = "/diagnosis/findings",
    ) -> CallToolResult:  # fmt: skip
        """Where the time of a trace goes and what bounds it; of a target one is captured."""
        return await self._answer("trace", [*map(self._within, inputs), "--json"], part)

    async def compile(
        self, target: Target, arguments: Arguments = None, part: Part = "/diagnosis/findings"
    ) -> CallToolResult:  # fmt: skip
        """What torch.compile makes of a program: graphs, breaks with rewrites, recompilations, cost and gain."""
        return await self._target("compile", target, arguments, [], part)

    async def memory(
        self, target: Target, arguments: Arguments = None, part: Part = "/diagnosis/findings"
    ) -> CallToolResult:  # fmt: skip
        """What the peak of a program's memory is for, and whether something stays; also of a CUDA snapshot."""
        return await self._target("memory", target, arguments, [], part)

    async def tune(
        self, target: Target, latency: str | None = None, budget_s: Budget = 300.0, part: Part = "/recipe"
    ) -> CallToolResult:  # fmt: skip
        """Try what could make a program faster, one lever at a time; what is proved is written to a recipe in the folder."""
        goal = [] if latency is None else ["--latency", _plain(latency)]
        return await self._target("tune", target, [], [*goal, "--budget", f"{budget_s:g}s"], part)

    async def lint(
        self, paths: Annotated[list[str], Field(min_length=1, description="files and folders of source text")]
    ) -> CallToolResult:  # fmt: skip
        """What is slow or wrong in source text, without running it; each finding with line, advice and fix."""
        return await self._answer("lint", [*map(self._within, paths), "--json"], "")

    async def rule(self, code: Annotated[str, Field(description="such as PYR109")]) -> CallToolResult:
        """What a rule means, why it matters, an example and its fix."""
        return await self._answer("rule", [_plain(code), "--json"], "/rules")

    async def show(self, run: Run, part: Part = "/diagnosis/findings") -> CallToolResult:
        """A stored run again: any part of its document."""
        return await self._answer("show", [_plain(run), "--json"], part)

    async def compare(self, before: Run, after: Run, part: Part = "/comparison") -> CallToolResult:
        """Two stored runs side by side; to prove a change, use `bench` with `against`."""
        return await self._answer("compare", [_plain(before), _plain(after), "--json"], part)

    async def _target(
        self, verb: str, target: str, arguments: Sequence[str] | None, options: Sequence[str], part: str
    ) -> CallToolResult:
        words = [self._within(target), *options, "--json"]
        return await self._answer(verb, [*words, "--", *arguments] if arguments else words, part)

    async def _answer(self, verb: str, words: Sequence[str], part: str) -> CallToolResult:
        """Run a verb and answer with what it found; what it refuses is the tool's error, in its own words."""
        done = await anyio.run_process(
            [sys.executable, "-m", "pyrometer", verb, *words], input=b"", cwd=self.root, check=False
        )
        try:
            document = json.loads(done.stdout)
        except ValueError:
            said = done.stderr.decode("utf-8", "replace").strip() or f"no answer, exit code {done.returncode}"
            raise ToolError(said[-2000:]) from None
        held = _selected(document, part)
        text = f"{_short_answer(document)}\nexit code {done.returncode}\n{part or '/'}: {json.dumps(held, ensure_ascii=False)}"
        return CallToolResult(
            content=[TextContent(type="text", text=text.lstrip("\n"))],
            structured_content={"exit_code": done.returncode, "run_id": _run_id(document), "part": part, "document": held},
        )  # fmt: skip

    def _within(self, target: str) -> str:
        """A target or a file as a verb takes it, if it lies within the folder."""
        place = _plain(target).rpartition(":")[0] or target
        file = (self.root / place).resolve()
        module = self.root.joinpath(*place.split("."))
        if not file.is_relative_to(self.root):
            raise ToolError(f"{target}: lies outside of {self.root.name}; name a file within it")
        if (
            ":" in target
            and not file.exists()
            and not (module.is_dir() or module.with_suffix(".py").exists())
        ):
            raise ToolError(f"{target}: no such file or module in {self.root.name}")
        return target


def _plain(word: str) -> str:
    """A word that is no option of the verb."""
    if word.startswith("-"):
        raise ToolError(f"{word}: begins with a dash; name a target, a file, a rule or a run")
    return word


def _run_id(document: Any) -> str | None:
    return document.get("run_id") if isinstance(document, dict) else None


def _selected(document: Any, pointer: str) -> Any:
    """The part of a document, or what it holds, with sizes, where that is too long to read."""
    held = document
    for name in pointer.split("/")[1:]:
        try:
            held = held[int(name)] if isinstance(held, list) else held[name]
        except (KeyError, IndexError, ValueError, TypeError):
            legal = (
                ", ".join(held)
                if isinstance(held, dict)
                else f"0 to {len(held) - 1}"
                if isinstance(held, list)
                else "nothing"
            )
            raise ToolError(f"{pointer}: there is no {name!r}; there is {legal}") from None  # fmt: skip
    if len(json.dumps(held)) <= MOST_BYTES or not isinstance(held, dict | list):
        return held
    parts = held.items() if isinstance(held, dict) else enumerate(held)
    return {"too_long": f"{len(json.dumps(held)):,} bytes; ask for one of these", "parts": {
        f"{pointer}/{name}": f"{len(json.dumps(value)):,} bytes" for name, value in parts
    }}  # fmt: skip


def _short_answer(document: Any) -> str:
    """What the verb prints by default, without colours; nothing for what has no such answer."""
    command = document.get("command") if isinstance(document, dict) else None
    if not command:
        return ""
    from rich.console import Console

    from pyrometer.record import from_dict
    from pyrometer.report.schema import DOCUMENTS
    from pyrometer.report.terminal import view

    kind = DOCUMENTS.get(command[1] if len(command) > 1 else "")
    if kind is None:
        return ""
    console = Console(file=io.StringIO(), width=SCREEN, no_color=True, highlight=False)
    try:
        shown = view(from_dict(kind, document))
    except InputError:  # of a kind that one verb prints in several forms
        return ""
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
