"""`pyrometer mcp`, asked by the client of the protocol's own library."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters

from pyrometer.cli.assistant import MOST_BYTES, _selected, server
from pyrometer.cli.mcp import command

WORK = """
import torch
import pyrometer as pm

def small():
    return pm.Inference(torch.nn.Linear(8, 8), torch.randn(4, 8))
"""
SLOW = """
import torch

def read(losses: list[torch.Tensor]) -> float:
    model = torch.nn.Linear(2, 2)
    for batch in torch.randn(100, 2).split(1):
        total = model(batch).sum().item()
    return total
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def ask(asked: Any, tool: str, **arguments: Any) -> Any:
    """What a tool of a server answers."""

    async def asking() -> Any:
        async with Client(asked) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(asking)


def refusal(project: Path, tool: str, **arguments: Any) -> str:
    answer = ask(server(project), tool, **arguments)
    assert answer.is_error
    text: str = answer.content[0].text
    return text


def test_every_tool_says_what_it_is_for_and_what_it_takes(project: Path) -> None:
    async def listing() -> Any:
        async with Client(server(project)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(listing)}
    assert set(tools) == {
        "check",
        "bench",
        "trace",
        "compile",
        "memory",
        "tune",
        "lint",
        "rule",
        "show",
        "compare",
    }
    assert all(tool.description for tool in tools.values())
    assert tools["check"].input_schema["required"] == ["target"]
    assert set(tools["bench"].input_schema["properties"]) == {"target", "against", "budget_s", "part"}


def test_findings_in_source_text_come_as_a_document(project: Path) -> None:
    answer = ask(server(project), "lint", paths=["slow.py"])
    assert not answer.is_error
    assert answer.structured_content["exit_code"] == 1
    (finding,) = answer.structured_content["document"]
    assert (finding["code"], finding["file"], finding["line"]) == ("PYR101", "slow.py", 7)
    assert json.dumps(finding["code"]) in answer.content[0].text


def test_a_rule_is_explained(project: Path) -> None:
    (rule,) = ask(server(project), "rule", code="PYR109").structured_content["document"]
    assert rule["name"] == "python-loop-over-dimension"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("check", {"target": "../work.py:small"}, "lies outside of"),
        ("check", {"target": "/etc/hostname"}, "lies outside of"),
        ("bench", {"target": "work.py:small", "against": "../other.py:small"}, "lies outside of"),
        ("trace", {"inputs": ["../*.json.gz"]}, "lies outside of"),
        ("lint", {"paths": ["--fix"]}, "begins with a dash"),
        ("show", {"run": "--store=/"}, "begins with a dash"),
        ("check", {"target": "os:getcwd"}, "no such file or module"),
        ("show", {"run": "last"}, "no runs"),
        ("rule", {"code": "PYR999999"}, "PYR999999"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    project: Path, tool: str, arguments: dict[str, Any], said: str
) -> None:
    text = refusal(project, tool, **arguments)
    assert said in text
    assert "Traceback" not in text
    assert len(text.splitlines()) == 1


def test_long_parts_are_named_with_their_sizes() -> None:
    document = {"evidence": {"trace": ["x" * MOST_BYTES], "target": "t"}, "verdict": None}
    held = _selected(document, "/evidence")
    assert list(held["parts"]) == ["/evidence/trace", "/evidence/target"]
    assert _selected(document, "/evidence/target") == "t"
    assert _selected(document, "/evidence/trace/0") == "x" * MOST_BYTES
    assert _selected(document, "/verdict") is None


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyrometer.cli.assistant", None)
    monkeypatch.delitem(sys.modules, "pyrometer.cli.assistant")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    done = CliRunner().invoke(command, [])
    assert "pip install 'pyrometer[mcp]'" in str(done.exception)


@pytest.mark.slow
def test_a_program_is_checked_changed_and_compared_over_stdio(project: Path) -> None:
    asked = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from pyrometer.cli.main import run; run()", "mcp", "--root", str(project)],
        env=dict(os.environ),
    )

    async def asking() -> tuple[Any, Any, Any]:
        async with Client(asked) as client:
            small = {"target": "work.py:small", "budget_s": 0.3}
            checked = await client.call_tool("check", small)
            assert not checked.is_error, checked.content
            part = {"run": checked.structured_content["run_id"], "part": "/evidence/measurement/median_s"}
            compared = {**small, "against": "work.py:small"}
            return checked, await client.call_tool("show", part), await client.call_tool("bench", compared)

    checked, measured, verdict = anyio.run(asking)
    assert checked.content[0].text.startswith("work.py:small   ")
    assert measured.structured_content["document"] > 0
    assert verdict.structured_content["document"]["outcome"] in {"same", "undecided"}
    assert verdict.structured_content["exit_code"] in {0, 3}
