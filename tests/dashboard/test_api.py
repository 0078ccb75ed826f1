"""The same as JSON: its keys, and that the documentation names them."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from pyrometer.dashboard.documents import History, Refused, RunningNow, RunningRuns, RunsPage, Series
from pyrometer.report.history_documents import CompareDocument
from pyrometer.store.run import Run
from pyrometer.store.running import Running

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dashboard.md"
ANSWERS = {
    "/api/runs": RunsPage,
    "/api/runs/ID": Run,
    "/api/compare?a=ID&b=ID": CompareDocument,
    "/api/history?target=TARGET": History,
    "/api/running": RunningRuns,
}


def own_keys(record: type[msgspec.Struct]) -> set[str]:
    head = {"schema_version", "tool_version", "run_id", "created"}
    return (
        set(record.__struct_fields__)
        - (head if record is not Run else set())
        - ({"command"} if record is not Run else set())
    )


@pytest.mark.parametrize("address", ANSWERS)
def test_the_documentation_names_every_key(address):
    text = PAGE.read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{re.escape(address)}` \| (.+) \|$", text, re.MULTILINE)
    matches = set(re.findall(r"`(\w+)`", row))
    assert own_keys(ANSWERS[address]) <= matches
    parts = (RunsPage, Run, CompareDocument, History, Series, RunningRuns, RunningNow, Running, Refused)
    assert matches <= {key for record in parts for key in record.__struct_fields__} | {
        "q",
        "kind",
        "target",
        "commit",
        "page",
    }


def test_answers_have_the_keys_of_their_records(server, save):
    a, b = save(age_s=60), save()
    addresses = {
        address: address.replace("ID", a.id, 1).replace("ID", b.id).replace("TARGET", "model.py:work")
        for address in ANSWERS
    }
    for address, record in ANSWERS.items():
        answer = server.get(addresses[address])
        assert answer.headers["content-type"] == "application/json"
        msgspec.json.decode(answer.content, type=record)
        assert set(answer.json()) == set(record.__struct_fields__)


def test_a_run_is_all_that_is_stored(server, save):
    run = save(artifacts={"x.bin": b"mine"})
    assert msgspec.json.decode(server.get(f"/api/runs/{run.id}").content, type=Run) == run


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/api/runs/x", 404),
        ("/api/compare", 422),
        ("/api/compare?a=x&b=y", 404),
        ("/api/history", 422),
        ("/api/history?target=x", 404),
        ("/api/nowhere", 404),
    ],
)
def test_what_is_wrong_is_said_in_one_key(server, save, address, status):
    save()
    answer = server.get(address)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
