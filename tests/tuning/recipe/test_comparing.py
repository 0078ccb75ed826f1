"""Two searches are compared only where they are of one model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pyrometer as pm
from pyrometer.errors import IncomparableError
from pyrometer.hardware.record import Environment
from pyrometer.record import from_dict
from pyrometer.store.saving import save_result
from pyrometer.store.store import Store
from pyrometer.tuning.recipe.comparing import compare_tunings

SEARCH = Path(__file__).parents[2] / "report" / "searches" / "convolutions.json"
SIGNATURE = {
    "model": "Net",
    "num_parameters": 10,
    "parameters": "aa",
    "modules": "bb",
    "inputs": ["float32[1, 3]"],
}


def search(**signature):
    document = json.loads(SEARCH.read_text(encoding="utf-8"))
    return {**document, "signature": SIGNATURE | signature}


def test_of_one_model_they_stand_beside_each_other():
    recipes = compare_tunings(search(), search())
    assert recipes.a == recipes.b
    assert all(pair.a == pair.b for pair in recipes.levers)


@pytest.mark.parametrize(
    ("field", "value"),
    [("model", "Other"), ("num_parameters", 11), ("modules", "cc"), ("inputs", ["float32[8, 3]"])],
)
def test_of_two_models_they_are_refused_with_the_fields_that_differ(field, value):
    with pytest.raises(IncomparableError) as refused:
        compare_tunings(search(), search(**{field: value}))
    assert f"{field}: {SIGNATURE[field]} and {value}" in str(refused.value)


def test_of_an_older_version_without_a_signature_they_are_compared():
    older = {**search(), "signature": None}
    assert compare_tunings(older, search(model="Other")).levers


def test_two_stored_searches_are_compared_in_python(tmp_path):
    document = search()
    environment = from_dict(Environment, document["environment"])
    for _ in range(2):
        save_result(
            tmp_path, document, kind="tune", target="model.py:work", environment=environment, command=[]
        )
    runs = [summary.id for summary in Store.open(tmp_path).runs()]
    compared = pm.compare_runs(*runs, store=tmp_path)
    assert compared.recipes.a == compared.recipes.b
    assert "channels_last" in {pair.lever for pair in compared.recipes.levers}
