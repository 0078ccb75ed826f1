"""The JSON Schemas fit what is printed, and the files in the repository fit the code."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from pyrometer.record import to_json
from pyrometer.report.schema import DOCUMENTS, schema_of, schema_text, write_schemas

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


def test_files_are_up_to_date():
    assert {path.stem for path in FOLDER.iterdir()} == set(DOCUMENTS)
    for verb in DOCUMENTS:
        assert (FOLDER / f"{verb}.json").read_text(encoding="utf-8") == schema_text(verb), "run `make docs`"


def test_writing_gives_the_same_files(tmp_path):
    written = write_schemas(tmp_path / "new")
    assert [path.stem for path in written] == list(DOCUMENTS)
    assert written[0].read_text(encoding="utf-8") == schema_text(written[0].stem)


@pytest.mark.parametrize("verb", DOCUMENTS)
def test_schemas_are_valid(verb):
    jsonschema.Draft202012Validator.check_schema(schema_of(verb))


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
