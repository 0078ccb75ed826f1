"""The JSON Schemas fit what is printed, and the files in the repository fit the code."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from referencing import Registry, Resource

from pyrometer.record import to_json
from pyrometer.report.schema import DOCUMENTS, schema_of, schema_texts, write_schemas

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


def test_files_are_up_to_date():
    texts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert texts == schema_texts(), "run `make docs`"


def test_writing_gives_the_same_files(tmp_path):
    written = write_schemas(tmp_path / "new")
    assert {path.name: path.read_text(encoding="utf-8") for path in written} == schema_texts()


def test_files_that_refer_to_each_other_are_as_strict_as_one_piece(documents):
    plain = json.loads(to_json(documents["steady"]))
    schemas = {name: json.loads(text) for name, text in schema_texts().items()}
    registry = Registry().with_resources(
        (name, Resource.from_contents(schema)) for name, schema in schemas.items()
    )
    validator = jsonschema.Draft202012Validator(schemas["check.json"], registry=registry)
    validator.validate(plain)
    plain["evidence"]["measurement"]["median_s"] = "fast"
    with pytest.raises(jsonschema.ValidationError, match="'fast'"):
        validator.validate(plain)


def test_schemas_are_valid():
    """Each piece is looked at once, whichever verbs print it."""
    pieces = {"$defs": {}}
    for verb in DOCUMENTS:
        whole = schema_of(verb)
        pieces["$defs"] |= whole.pop("$defs", {}) | {f" {verb}": whole}
    jsonschema.Draft202012Validator.check_schema(pieces)


def test_real_documents_fit(documents):
    verbs = {record: verb for verb, record in DOCUMENTS.items()}
    for document in documents.values():
        plain = json.loads(to_json(document), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        jsonschema.Draft202012Validator(schema_of(verbs[type(document)])).validate(plain)


def test_a_wrong_document_does_not_fit(documents):
    plain = json.loads(to_json(documents["steady"]))
    plain["evidence"]["measurement"]["median_s"] = "fast"
    with pytest.raises(jsonschema.ValidationError, match="'fast'"):
        jsonschema.Draft202012Validator(schema_of("check")).validate(plain)


def test_figures_that_are_no_number_become_null(documents):
    measurement = msgspec.structs.replace(
        documents["steady"].evidence.measurement, padding_ratio=float("nan"), host_s=float("inf")
    )
    plain = json.loads(to_json(measurement), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert plain["padding_ratio"] is None
    assert plain["host_s"] is None


def test_every_figure_of_a_measurement_says_what_it_is():
    fields = schema_of("bench")["$defs"]["Measurement"]["properties"]
    undocumented = {name for name, schema in fields.items() if "description" not in schema}
    # These say it by their name and unit.
    assert undocumented <= {
        "median_s", "mean_s", "min_s", "max_s", "stdev_s", "p50_s", "p90_s", "p95_s", "p99_s", "throughput_low",
        "throughput_high", "unit", "units_per_step", "memory", "phases",
    }  # fmt: skip
