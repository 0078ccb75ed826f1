"""The pages of the site that are made while it is built: public names, flags, and the documents of `--json`."""  # noqa: INP001 - a script

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import generate

import pyrometer as pm
from pyrometer.cli.main import VERBS, Verbs, cli
from pyrometer.record import Record

SCHEMAS = Path(__file__).parent / "schemas"
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
API_HEAD = """# Public names

Everything that `import pyrometer as pm` offers, with its signature. [The library](library.md) shows how it is used.
"""
FLAGS_HEAD = """# Every flag

What `pyrometer VERB --help` prints. [Settings](settings.md) that hold for every verb can stand in `pyproject.toml`.
"""
SCHEMAS_HEAD = """# JSON schemas

`--json` prints one of these documents; [JSON](json.md) says how to read them. The schemas are JSON Schema 2020-12, and
`definitions.json` holds the records that several documents share.
"""


# --- public names


def api_page() -> str:
    """Every public name: classes first, then functions."""
    held = {name: getattr(pm, name) for name in pm.__all__ if name != "__version__"}
    kinds = {"Functions": False, "Classes and records": True}
    parts = [API_HEAD]
    for title, is_class in kinds.items():
        parts.append(f"## {title}\n")
        parts += [
            public_name(name, value)
            for name, value in sorted(held.items(), key=lambda pair: pair[0].lower())
            if inspect.isclass(value) is is_class
        ]
    return "\n".join(parts)


def public_name(name: str, value: Any) -> str:
    """One name with its signature, what its docstring says, and the fields of a record."""
    parts = [f"### {name}\n"]
    if not (inspect.isclass(value) and issubclass(value, Record)):
        parts.append(f"```python\n{signature(name, value)}\n```\n")
    parts.append(docstring(value))
    if inspect.isclass(value):
        parts.append(members(value))
    return "\n".join(parts)


def signature(name: str, value: Any) -> str:
    """The call of a function or class, one argument a line where it is long."""
    made = inspect.signature(value)
    text = ADDRESS.sub("", f"{name}{made}".replace("'", "").replace("pyrometer.", ""))
    if len(text) <= 88:
        return text
    lines = [f"    {ADDRESS.sub('', str(one))}," for one in made.parameters.values()]
    stars = [index for index, one in enumerate(made.parameters.values()) if one.kind is one.KEYWORD_ONLY]
    variadic = any(one.kind is one.VAR_POSITIONAL for one in made.parameters.values())
    if stars and not variadic:
        lines.insert(stars[0], "    *,")
    after = made.return_annotation
    end = "" if after is inspect.Signature.empty else f" -> {getattr(after, '__name__', after)}"
    return "\n".join([f"{name}(", *lines, f"){end}"]).replace("'", "").replace("pyrometer.", "")


def docstring(value: Any) -> str:
    """A docstring as Markdown: arguments and errors as lists, examples as Python."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(value) or "").splitlines():
        if re.fullmatch(r"(Args|Returns|Raises|Yields|Attributes):", line):
            section = line
            lines += ["", f"**{line[:-1]}**", ""]
        elif not section:
            lines.append(line)
        elif line.startswith("        "):
            lines[-1] += f" {line.strip()}"
        elif line.startswith("    ") and section not in {"Returns:", "Yields:"}:
            name, colon, meaning = line.strip().partition(": ")
            lines.append(f"- `{name}`: {meaning}" if colon else f"- {name}")
        else:
            lines.append(line.strip())
    return fenced("\n".join(lines)) + "\n"


def fenced(text: str) -> str:
    """Put doctests into blocks of their own."""
    return re.sub(
        r"((?:^(?:>>>|\.\.\.).*\n?(?:^(?!>>>|\.\.\.)\S.*\n?)*)+)",
        r"\n```pycon\n\1\n```\n",
        text,
        flags=re.MULTILINE,
    )


def members(value: type) -> str:
    """The fields of a record as a table, and the public methods of any class."""
    parts = []
    if issubclass(value, Record):
        table = generate.record_text(value).partition("\n\n")[2]
        parts.append(f"{table[table.index('| field') :]}\n" if "| field" in table else "")
    for name, method in vars(value).items():
        target = (
            inspect.unwrap(getattr(method, "__func__", method))
            if callable(method) or isinstance(method, classmethod)
            else method
        )
        if not name.startswith("_") and (inspect.isfunction(target) or isinstance(target, property)):
            said = (inspect.getdoc(target) or "").partition("\n\n")[0].replace("\n", " ")
            call = f"{name}" if isinstance(target, property) else f"{name}(…)"
            parts.append(f"- `{call}`: {said}")
    return "\n".join(parts) + "\n"


# --- flags


def flags_page() -> str:
    """The help text of every verb."""
    context = click.Context(cli, info_name="pyrometer", max_content_width=88)
    parts = [FLAGS_HEAD]
    for name in VERBS:
        verb = Verbs().get_command(context, name)
        assert verb is not None, name
        inner = click.Context(verb, info_name=name, parent=context, max_content_width=88, terminal_width=88)
        parts.append(f"## pyrometer {name}\n\n```text\n{verb.get_help(inner)}\n```\n")
        for below in verb.list_commands(inner) if isinstance(verb, click.Group) else ():
            own = verb.get_command(inner, below)
            assert own is not None, below
            named = click.Context(own, info_name=below, parent=inner, max_content_width=88, terminal_width=88)
            parts.append(f"## pyrometer {name} {below}\n\n```text\n{own.get_help(named)}\n```\n")
    return "\n".join(parts)


# --- documents


def schemas_page() -> str:
    """Every document with its keys, then every record."""
    records = json.loads((SCHEMAS / "definitions.json").read_text(encoding="utf-8"))["$defs"]
    parts = [SCHEMAS_HEAD, "| document | schema |\n|---|---|"]
    documents = {}
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            documents[name] = schema["title"]
            parts.append(f"| [`{schema['title']}`](#{name.lower()}) | [{path.name}](schemas/{path.name}) |")
    parts.append("\n[All definitions](schemas/definitions.json)\n\n## Documents\n")
    parts += [record_section(name, records[name], records) for name in documents]
    parts.append("## Records\n")
    parts += [record_section(name, records[name], records) for name in sorted(set(records) - set(documents))]
    return "\n".join(parts)


def record_section(name: str, schema: dict[str, Any], records: dict[str, Any]) -> str:
    """One record: what it is, and a table of its keys."""
    rows = [
        f"| `{key}` | {cell(kind(one, records))} | {cell(one.get('description', ''))} |"
        for key, one in schema.get("properties", {}).items()
    ]
    table = (
        ["| key | type | meaning |", "|---|---|---|", *rows] if rows else [cell(", ".join(values(schema)))]
    )
    return "\n".join([f"### {name}\n", schema.get("description", ""), "", *table, ""])


def kind(schema: dict[str, Any], records: dict[str, Any]) -> str:
    """The type of a key, with a link to the record that it holds."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if name in records else name
    if "anyOf" in schema:
        return " or ".join(kind(one, records) for one in schema["anyOf"])
    if "allOf" in schema:
        return kind(schema["allOf"][0], records)
    if schema.get("type") == "array":
        inner = schema.get("items") or {}
        return f"list of {kind(inner, records)}" if inner else "list"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"object of {kind(inner, records)}" if isinstance(inner, dict) else "object"
    return ", ".join(values(schema)) or str(schema.get("type", "any"))


def values(schema: dict[str, Any]) -> Iterator[str]:
    """The values that a key may have, where they are listed."""
    return (f"`{value}`" for value in schema.get("enum", ()))


def cell(text: str) -> str:
    """A text that stays within its cell."""
    return " ".join(text.split()).replace("|", "\\|")
