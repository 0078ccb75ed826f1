"""The pages say what is: their examples run, their links lead somewhere, and the names in them exist."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
import torch

from pyrometer.bench.quality import CaveatCode
from pyrometer.cli.main import VERBS, Verbs, cli
from pyrometer.report.schema import DOCUMENTS, schema_of
from pyrometer.settings import _KEYS

ROOT = Path(__file__).resolve().parents[2]
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
PAGES = [*READMES, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tasks").glob("*.md"))]
FENCE = re.compile(r'^```(\w*(?: title="[^"]+")?)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)

MADE_WITH_THE_SITE = {"api.md", "flags.md", "schemas.md"}
"""Pages that are generated where the site is built, whose strict build follows the links to them."""


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(text_of(page))


def prose_of(page: Path) -> str:
    return FENCE.sub("", text_of(page))


def headings_of(page: Path) -> list[tuple[str, str]]:
    return HEADING.findall(prose_of(page))


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them of the headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for _, title in headings_of(page)}


LONG = {"library.md", "memory.md"}
"""Pages whose examples take more than ten seconds."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, id=str(page.relative_to(ROOT)), marks=[pytest.mark.slow] if page.name in LONG else []
        )
        for page in PAGES
        if "```python\n" in text_of(page) and ".zh" not in page.name
    ],
)
def test_python_blocks_run(page):
    torch._dynamo.reset()  # what another page compiled would count as a recompilation here
    namespace: dict[str, object] = {"__name__": "documentation"}
    for language, code in blocks_of(page):
        if language == "python":
            exec(compile(code, page.name, "exec"), namespace)


def test_every_relative_link_leads_somewhere():
    for page in PAGES:
        targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", prose_of(page))
        for target in filter(None, (inline or quoted for inline, quoted in targets)):
            place, _, anchor = unquote(target).partition("#")
            if "://" in place or place.rpartition("/")[2] in MADE_WITH_THE_SITE:
                continue
            file = (page.parent / place).resolve() if place else page
            assert file.exists(), (page, target)
            assert ROOT in [file, *file.parents], (page, target)
            assert not anchor or anchor in anchors_of(file), (page, target)


def commands_in(page: Path) -> list[str]:
    """Everything that looks like a call of ours: lines of shell blocks and code in the text."""
    spans = re.findall(r"`([^`\n]+)`", prose_of(page))
    lines = [line for language, code in blocks_of(page) if language == "sh" for line in code.splitlines()]
    outputs = re.findall(r"<!-- output: (.+?) -->", text_of(page))
    text = "\n".join([*spans, *lines, *outputs])
    return re.findall(r"\bpyrometer (?=[a-z-])([^|>&#\n]+)", text)


def flags_of(command: click.Command) -> set[str]:
    """Of a verb, and of the verbs below it where it has some."""
    names = (name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts))
    below = [
        command.get_command(click.Context(command), name)
        for name in (
            command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ()
        )
        if command is not cli
    ]
    own = {name for name in names if name.startswith("-")} | {"--help", "-h"}
    return own.union(*(flags_of(one) for one in below if one is not None))


def verb(name: str) -> click.Command:
    command = Verbs().get_command(click.Context(cli), name)
    assert command is not None, name
    return command


def test_every_command_exists_with_its_flags():
    for page in PAGES:
        for command in commands_in(page):
            words = command.split(" -- ")[0].split()
            general = [word for word in words[:1] if word.startswith("-")]
            assert set(general) <= {"--debug", *flags_of(cli)}, (page, command)
            name = words[len(general)]
            assert name in VERBS, (page, command)
            flags = {word.split("=")[0] for word in words if word.startswith("-")} - set(general)
            assert flags <= flags_of(verb(name)), (page, command)


def test_every_flag_in_the_text_is_one_of_ours():
    known = set().union({"--debug", "--version"}, *(flags_of(verb(name)) for name in VERBS))
    scripts_own = {"--epochs", "--no-python", "--pyrometer-undecided", "--pyrometer-json"}
    for page in PAGES:
        for span in re.findall(r"`(--[^`\n]+)`", prose_of(page)):
            assert span.split()[0].split("=")[0] in known | scripts_own, (page, span)


def test_every_flag_is_documented():
    text = "\n".join(text_of(page) for page in PAGES)
    flags = set().union(*(flags_of(verb(name)) for name in VERBS)) - {"--help", "-h", "-o", "--output"}
    assert [flag for flag in sorted(flags) if not re.search(rf"{flag}(?![\w-])", text)] == []


def test_every_caveat_is_documented():
    listed = re.findall(r"^\| `(\w+)` \|", text_of(ROOT / "docs" / "caveats.md"), re.MULTILINE)
    assert sorted(listed) == sorted(doubt.value for doubt in CaveatCode)


def test_every_setting_is_documented():
    listed = re.findall(r"^\| `(\w+)` \| `PYROMETER_", text_of(ROOT / "docs" / "settings.md"), re.MULTILINE)
    assert sorted(listed) == sorted(_KEYS)


def json_section(title: str) -> str:
    return text_of(ROOT / "docs" / "json.md").split(f"## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(
    ("title", "record", "parts"),
    [
        ("`measurement`", "Measurement", ["QuantileEstimate", "MemoryUse", "PhaseTime", "Caveat"]),
        ("`verdict`", "Verdict", []),
    ],
)
def test_the_documented_keys_are_those_of_the_schema(title, record, parts):
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", json_section(title), re.MULTILINE)
    listed = [key for keys, _ in rows for key in re.findall(r"`(\w+)`", keys)]
    schemas = schema_of("bench")["$defs"]
    assert sorted(listed) == sorted(schemas[record]["properties"])
    known = {*listed, *(key for part in parts for key in schemas[part]["properties"])}
    words = {"device events", "wall", "cpu", "faster", "slower", "same", "undecided", "wall_min", "warnings"}
    named = {key for _, meaning in rows for key in re.findall(r"`([^`]+)`", meaning)}
    assert named <= known | words | {"device"}


def test_every_document_is_listed_with_its_keys():
    head = set(schema_of("env")["$defs"]["EnvironmentDocument"]["properties"]) - {"environment"}
    listed = {}
    for schema, keys in re.findall(
        r"^\| `pyrometer .+?` \| `([\w-]+)` \| (.+) \|$", text_of(ROOT / "docs" / "json.md"), re.MULTILINE
    ):
        listed[schema] = set(re.findall(r"`(\w+)`", keys))
    assert listed == {
        name: set(schema_of(name)["$defs"][kind.__name__]["properties"]) - head
        for name, kind in DOCUMENTS.items()
    }


def test_both_readmes_have_the_same_sections_and_code():
    english, chinese = READMES
    assert [level for level, _ in headings_of(english)] == [level for level, _ in headings_of(chinese)]
    assert blocks_without_comments(english) == blocks_without_comments(chinese)
    figures = [re.findall(r"^\| (?:\d|\*\*).*$", prose_of(page), re.MULTILINE) for page in READMES]
    assert figures[0] == figures[1]
    assert "(README.zh-CN.md)" in text_of(english).split("\n##")[0]
    assert "(README.md)" in text_of(chinese).split("\n##")[0]


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.name)
def test_a_readme_is_read_in_minutes(page):
    assert len(page.read_bytes()) <= 10_000


def blocks_without_comments(page: Path) -> list[tuple[str, str]]:
    """The comments in shell and Python may be translated."""
    plain = re.compile(r"[ ]+# .*$", re.MULTILINE)
    return [
        (language, code if language == "console" else plain.sub("", code))
        for language, code in blocks_of(page)
    ]


def test_outputs_show_nothing_of_the_machine_they_were_made_on():
    for page in PAGES:
        for place in (ROOT, Path.home(), tempfile.gettempdir()):
            assert f"{place}/" not in text_of(page), page
