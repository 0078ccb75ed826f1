"""Whatever a public function returns prints a short answer, saves itself and shows itself in notebooks."""

from __future__ import annotations

import inspect
import json
import types
import typing

import msgspec
import pytest
from recorded import checked, evidence_of

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.record import Record
from pyrometer.report.documents import AuditDocument
from pyrometer.rules.explain import explain

LINES, COLUMNS = 25, 240
MANY = 300
DEEPEST = 6
"""Records hold records of their own kind."""

WORDS = {"metric": "cpu"}


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
    match kind:
        case msgspec.inspect.StructType():
            fields = {field.encode_name: field.type for field in kind.fields}
            return {name: WORDS.get(name) or plain(of, depth + 1) for name, of in fields.items()}
        case msgspec.inspect.ListType():
            items = [] if depth > DEEPEST else [plain(kind.item_type, depth + 1)]
            return items * (MANY if flat(kind) else 3)
        case msgspec.inspect.DictType():
            return {f"key {number}": plain(kind.value_type, depth + 1) for number in range(30)}
        case msgspec.inspect.TupleType():
            return [plain(item, depth + 1) for item in kind.item_types]
        case msgspec.inspect.UnionType():
            options = [one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType)]
            return None if depth > DEEPEST and kind.includes_none else plain(options[0], depth)
        case msgspec.inspect.LiteralType():
            return kind.values[0]
        case msgspec.inspect.Metadata():
            return plain(kind.type, depth)
        case msgspec.inspect.StrType():
            return "a word " * 30
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.FloatType():
            return 0.5
        case msgspec.inspect.IntType():
            return 2
    return None


def flat(kind):
    scalars = (msgspec.inspect.FloatType, msgspec.inspect.IntType, msgspec.inspect.StrType)
    return isinstance(kind.item_type, scalars)


def sample(name):
    if name == "CheckDocument":
        return checked("tiny_ops")
    if name == "AuditDocument":
        evidence = evidence_of("tiny_ops", "workload")
        return AuditDocument(evidence=evidence, diagnosis=explain(evidence, with_audit=True))
    return msgspec.convert(plain(msgspec.inspect.type_info(RECORDS[name])), RECORDS[name])


def test_the_walk_finds_the_results():
    assert {"Measurement", "Verdict", "Diagnosis", "CheckDocument", "LintResult", "LoaderTuning"} <= set(RECORDS)
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
