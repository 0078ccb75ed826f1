"""Whatever a public function returns prints a short answer, saves itself and shows itself in notebooks."""

from __future__ import annotations

import inspect
import json
import types
import typing

import msgspec
import pytest

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.record import Record
from pyrometer.report.documents import AuditDocument
from pyrometer.rules.explain import explain
from recorded import checked, evidence_of

LINES, COLUMNS = 25, 240
MANY = 300
DEEPEST = 6
"""Records hold records of their own kind."""

WORDS = {"metric": "cpu", "created_at": "2026-11-21T09:30:00.000000Z"}


def returned_by(function):
    """The records that a function returns, alone or in a list."""
    written = inspect.unwrap(function)
    hint = written.__annotations__.get("return")
    hint = eval(hint, written.__globals__) if isinstance(hint, str) else hint
    parts = (hint, *typing.get_args(hint)) if not isinstance(hint, types.UnionType) else typing.get_args(hint)
    return [part for part in parts if inspect.isclass(part) and issubclass(part, Record)]


def public_records():
    found = {}
    for name in dir(pm):
        value = getattr(pm, name)
        kinds = [value] if inspect.isclass(value) else returned_by(value) if callable(value) else []
        found |= {kind.__name__: kind for kind in kinds if issubclass(kind, Record)}
    return found


RECORDS = public_records()


def plain(kind, depth=0):
    """A value of a type with everything filled, and far more than fits on a screen."""
    make = MAKERS.get(type(kind))
    return make(kind, depth + 1) if make is not None else SCALARS.get(type(kind))


def fields(kind, depth):
    return {field.encode_name: WORDS.get(field.name) or plain(field.type, depth) for field in kind.fields}


def items(kind, depth):
    return [] if depth > DEEPEST else [plain(kind.item_type, depth)] * (MANY if flat(kind) else 3)


def either(kind, depth):
    options = [one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType)]
    return None if depth > DEEPEST and kind.includes_none else plain(options[0], depth)


SCALARS = {
    msgspec.inspect.StrType: "a word " * 30,
    msgspec.inspect.BoolType: True,
    msgspec.inspect.FloatType: 0.5,
    msgspec.inspect.IntType: 2,
}
MAKERS = {
    msgspec.inspect.StructType: fields,
    msgspec.inspect.ListType: items,
    msgspec.inspect.DictType: lambda kind, depth: {
        f"key {n}": plain(kind.value_type, depth) for n in range(30)
    },
    msgspec.inspect.TupleType: lambda kind, depth: [plain(item, depth) for item in kind.item_types],
    msgspec.inspect.UnionType: either,
    msgspec.inspect.LiteralType: lambda kind, _depth: kind.values[0],
    msgspec.inspect.Metadata: lambda kind, depth: plain(kind.type, depth),
}


def flat(kind):
    return type(kind.item_type) in SCALARS


def sample(name):
    if name == "CheckDocument":
        return checked("tiny_ops")
    if name == "AuditDocument":
        evidence = evidence_of("tiny_ops", "workload")
        return AuditDocument(evidence=evidence, diagnosis=explain(evidence, with_audit=True))
    return msgspec.convert(plain(msgspec.inspect.type_info(RECORDS[name])), RECORDS[name])


def test_the_walk_finds_the_results():
    assert {"Measurement", "Verdict", "Diagnosis", "CheckDocument", "LintResult", "LoaderTuning"} <= set(
        RECORDS
    )
    assert len(RECORDS) > 25


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_record_prints_saves_and_shows_itself(name, tmp_path):
    record = sample(name)
    lines = str(record).splitlines()
    assert 1 <= len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    json.loads(record.to_json())
    for suffix, begins in {".html": "<!doctype html>", ".md": "#", ".json": ("{", "[")}.items():
        text = record.save(tmp_path / f"{name}{suffix}").read_text()
        assert text.lower().startswith(begins)
    assert {"text/html", "text/plain"} <= set(record._repr_mimebundle_())
    with pytest.raises(InputError, match=r"\.html, \.json, \.md"):
        record.save(tmp_path / "record.pdf")
