"""Write the parts of the documentation that are generated from the code; run by `make docs`."""  # noqa: INP001 - a script

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lever_reference
import msgspec
import polars as pl
import rule_reference

from pyrometer.record import Record
from pyrometer.report.schema import write_schemas
from pyrometer.trace import schema
from pyrometer.trace.analysis.registry import Analysis, analyses
from pyrometer.trace.info import RankInfo
from pyrometer.trace.kinds import KIND_OF_CATEGORY, Kind
from pyrometer.trace.sql import ADDED, EVENT, VIEWS
from pyrometer.trace.trace import RankTrace, Trace

FOLDER = Path(__file__).parent
ANALYSES = FOLDER / "trace-analyses.md"
HEAD = """# Analyses, tables and views of traces

<!-- Generated from the code by `make docs`. -->

Each analysis is a function of a trace. It gives a record (an immutable object with named fields) or a
[Polars](https://docs.pola.rs) frame, and draws nothing:

```python
import pyrometer as pm

for name, analysis in pm.analyses().items():
    print(name, analysis.scope, analysis.summary)
```

`pm.analyze(trace, "idle")` runs one, `pm.analyze(trace, "idle", rank=2, top=50)` on one rank of several and with an option of its own.
A result without options is kept with the trace. Times are whole nanoseconds on the clock of the file, sizes bytes, shares 0 to 1; what a
trace does not say is null. How to read the same figures in a report: [traces](trace.md#the-report-chapter-by-chapter).

"""
KINDS_HEAD = """## Kinds

What an event is follows from its category (`cat`) in lower case, not from its name; only allocations are instants that are named
`[memory]`. What is not listed is `other`: kept, and counted in `RankInfo.unknown_categories`."""
TABLES_HEAD = """## Tables

Of one rank: `one = trace.rank(0)`. `one.events` is the table `events` with the columns of `links`, `one.steps` the steps, `one.tracks`
threads and streams, `one.tables[name]` any table, and `one.detail(name)` a table of arguments joined to its events."""
VIEWS_HEAD = """## Views

What a query may read: `trace.sql(QUERY)`, or `pyrometer trace FILE… --sql QUERY`. All ranks together: `event`, `parent`, `op`, `step` and
`track` count within their rank, so join on `rank` as well. Columns are those of the tables above."""
SHOWN_TYPES = {type(None): "null"}
OWN_SECTIONS = ("Args:", "Returns:", "Raises:")


def main() -> None:
    """Write all generated files."""
    for written in write_schemas(FOLDER / "schemas"):
        sys.stdout.write(f"{written}\n")
    ANALYSES.write_text(analyses_page(), encoding="utf-8")
    sys.stdout.write(f"{ANALYSES}\n")
    (FOLDER / "levers.md").write_text(lever_reference.page(), encoding="utf-8")
    for path, text in rule_reference.pages(FOLDER / "rules"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")


def analyses_page() -> str:
    """The reference of analyses, tables and views."""
    known = analyses()
    rows = [
        (f"[`{name}`](#{name})", analysis.scope, gives(analysis), analysis.summary.rstrip("."))
        for name, analysis in known.items()
    ]
    parts = [HEAD, table(("analysis", "of a", "gives", "says"), rows)]
    described: set[Any] = set()
    for name, analysis in known.items():
        parts.append(f"## {name}\n\n{analysis_text(analysis, described)}")
    parts.append(kinds_text())
    parts.append(tables_text())
    parts.append(views_text())
    return "\n".join(part.rstrip() + "\n" for part in parts)


# --- analyses


def gives(analysis: Analysis) -> str:
    """What an analysis returns, for the overview."""
    kind = returned(analysis)
    return "a frame" if kind is pl.DataFrame else shown_type(kind)


def returned(analysis: Analysis) -> Any:
    """The type that an analysis returns."""
    return typing.get_type_hints(inspect.unwrap(analysis.function))["return"]


def analysis_text(analysis: Analysis, described: set[Any]) -> str:
    """One analysis: what it says, its options, definitions, and the fields or columns of what it gives."""
    function = inspect.unwrap(analysis.function)
    module = inspect.getmodule(function)
    sections = docstring_sections(function)
    parts = [sections[""]]
    if sections["Args:"]:
        parts.append(bullets(sections["Args:"], left_out=("trace",)))
    if sections["Returns:"]:
        parts.append(sections["Returns:"])
    if module not in described:
        described.add(module)
        parts.append(definitions(module))
    parts.append(more_definitions(analysis))
    kind = returned(analysis)
    if kind is pl.DataFrame:
        parts.append(columns_text(analysis))
    else:
        parts.extend(record_text(record) for record in records_in(kind, described))
    return "\n\n".join(part for part in parts if part) + "\n"


def docstring_sections(function: Any) -> dict[str, str]:
    """The docstring of a function by section; the text before the first one under an empty name."""
    found = dict.fromkeys(("", *OWN_SECTIONS), "")
    at = ""
    for line in inspect.getdoc(function).splitlines():
        if line in OWN_SECTIONS:
            at = line
        else:
            found[at] += f"{line.removeprefix('    ') if at else line}\n"
    return {name: text.strip() for name, text in found.items()}


def bullets(text: str, *, left_out: tuple[str, ...]) -> str:
    """An `Args:` section as a list."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    pairs = [line.split(": ", 1) for line in lines]
    kept = [f"- `{name}`: {meaning}" for name, meaning in pairs if name not in left_out]
    return "Options:\n\n" + "\n".join(kept) if kept else ""


def definitions(module: types.ModuleType | None) -> str:
    """The docstring of a module without its first line."""
    return (inspect.getdoc(module) or "").partition("\n")[2].strip()


def more_definitions(analysis: Analysis) -> str:
    """Definitions that lie in other modules."""
    used = vars(inspect.getmodule(inspect.unwrap(analysis.function)))
    if analysis.name == "idle":
        causes = (inspect.getdoc(used["device_gaps"]) or "").partition("`cause` is")[2].strip()
        kinds = beside(inspect.getmodule(used["Idle"]), "HOST_KINDS")
        return f"Causes:\n\n{causes}\n\nWhat the host did: {kinds[0].lower()}{kinds[1:]}"
    if analysis.name == "critical_path":
        path = inspect.getmodule(used["path_pieces"])
        matches = re.findall(r'^    "(\w+)",(?:  # (.*))?$', inspect.getsource(path), re.MULTILINE)
        held = {key: meaning for key, meaning in matches if key in path.CLASSES}
        return "Classes:\n\n" + "\n".join(
            f"- `{key}`: {meaning}" if meaning else f"- `{key}`" for key, meaning in held.items()
        )
    return ""


def columns_text(analysis: Analysis) -> str:
    """The columns of a frame: as the module tells them, or else those for a trace without events."""
    told = vars(inspect.getmodule(inspect.unwrap(analysis.function))).get("CALLS")
    if told is not None:
        return table(("column", "type", "meaning"), column_rows(told))
    frame = analysis.function(Trace((nothing(),)) if analysis.scope == "job" else nothing())
    return (
        "Columns: "
        + ", ".join(f"`{name}` {shown_dtype(dtype)}" for name, dtype in frame.schema.items())
        + "."
    )


def nothing() -> RankTrace:
    """A trace without events."""
    info = RankInfo(rank=0, path="", raw_bytes=0, num_events=0)
    return RankTrace(info, {name: schema.empty(columns) for name, columns in schema.TABLES.items()})


# --- records


def records_in(kind: Any, described: set[Any]) -> Iterator[type]:
    """A record and all that it holds, each once, the outermost first."""
    if isinstance(kind, type) and (issubclass(kind, Record) or dataclasses.is_dataclass(kind)):
        if kind in described:
            return
        described.add(kind)
        yield kind
        for field in typing.get_type_hints(kind).values():
            yield from records_in(field, described)
    else:
        for part in typing.get_args(kind):
            yield from records_in(part, described)


def record_text(record: type) -> str:
    """One record with its fields."""
    text = (inspect.getdoc(record) or "").strip()
    hints = typing.get_type_hints(record, include_extras=True)
    names = getattr(record, "__struct_fields__", tuple(hints))
    rows = [(f"`{name}`", shown_type(hints[name]), meaning_of(hints[name])) for name in names]
    return (
        f"**{record.__name__}**: {text[0].lower()}{text[1:]}\n\n{table(('field', 'type', 'meaning'), rows)}"
    )


def meaning_of(hint: Any) -> str:
    """What `Annotated[..., doc(…)]` says."""
    notes = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, msgspec.Meta)]
    return next((note.description for note in notes if note.description), "")


def shown_type(hint: Any) -> str:
    """A type as a reader would write it."""
    if typing.get_origin(hint) is typing.Annotated:
        return shown_type(typing.get_args(hint)[0])
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(map(shown_type, arguments))
    if typing.get_origin(hint) is typing.Literal:
        return ", ".join(map(str, arguments))
    if arguments:
        inner = ", ".join(map(shown_type, arguments))
        return f"{typing.get_origin(hint).__name__} of {inner}"
    return SHOWN_TYPES.get(hint) or str(getattr(hint, "__name__", hint))


# --- tables and views


def kinds_text() -> str:
    """The kinds of events, and the categories behind them."""
    held = {kind.value: [name for name, of in KIND_OF_CATEGORY.items() if of is kind] for kind in Kind}
    rows = [(f"`{kind}`", ", ".join(f"`{name}`" for name in names)) for kind, names in held.items()]
    return f"{KINDS_HEAD}\n\n{table(('kind', 'categories'), rows)}\n"


def tables_text() -> str:
    """The tables of `RankTrace`."""
    extras = {"events": beside(schema, "EVENTS"), "steps": "Found, not read: see `source`."}
    held: dict[str, Mapping[str, schema.Column]] = {
        "events": schema.EVENTS,
        "links": schema.LINKS,
        "steps": schema.STEPS,
        **{name: columns for name, columns in schema.TABLES.items() if name != "events"},
    }
    parts = [TABLES_HEAD]
    for name, columns in held.items():
        said = extras.get(name) or beside(schema, name.upper())
        parts.append(
            f"### {name}\n\n{said}\n\n{table(('column', 'type', 'meaning'), column_rows(columns))}".replace(
                "\n\n\n\n", "\n\n"
            )
        )
    return "\n\n".join(parts) + "\n"


def views_text() -> str:
    """The views of `--sql`."""
    rows = []
    for name, view in VIEWS.items():
        extends = set(EVENT) <= set(view.columns) and len(view.columns) > len(EVENT)
        own = [f"`{column}`" for column in view.columns if not extends or column not in EVENT]
        text = ("all of `events`, and " if extends else "") + ", ".join(own)
        rows.append((f"`{name}`", view.meaning, text))
    added = [(f"`{name}`", str(column.dtype), column.meaning) for name, column in ADDED.items()]
    listed = table(("view", "holds", "columns"), rows)
    only_here = table(("column", "type", "meaning"), added)
    return f"{VIEWS_HEAD}\n\n{listed}\n\nColumns that only views have:\n\n{only_here}\n"


def column_rows(columns: Mapping[str, schema.Column]) -> list[tuple[str, str, str]]:
    """Name, type and meaning of each column."""
    return [(f"`{name}`", shown_dtype(column.dtype), column.meaning) for name, column in columns.items()]


def shown_dtype(dtype: Any) -> str:
    """A Polars type; of an enumeration its name only."""
    return "Enum" if isinstance(dtype, pl.Enum) else str(dtype)


def beside(module: types.ModuleType, name: str) -> str:
    """The text in quotes below the assignment of a name, on one line; empty where there is none."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, after in itertools.pairwise(body):
        targets = (
            [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
        )
        named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return " ".join(str(after.value.value).split())
    return ""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(head), "|".join("---" for _ in head).join("||")[1:-1]]
    lines += [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


if __name__ == "__main__":
    main()
