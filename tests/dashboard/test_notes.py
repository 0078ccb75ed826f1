"""Notes, tags, baselines, several runs beside each other, and what got slower this week."""

from __future__ import annotations

import re

import pytest

from pyrometer.errors import InputError, StoreError
from pyrometer.store.folder import MARKS as NAME
from pyrometer.store.marks import Marks, with_baseline, with_note
from pyrometer.store.store import Store


def write(server, run, *, origin=None, **given):
    headers = {"origin": server.origin if origin is None else origin}
    return server.client.post(f"/runs/{run.id}/note", data=given, headers=headers)


def heading(page: str) -> str:
    found = re.search(r'<h1 class="words" id="week">(.*?)</h1>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub("<[^>]+>", "", found[1]).split())


def test_a_note_is_written_shown_found_and_taken_away(server, save, folder):
    run, other = save(), save(target="other.py:work")
    answer = write(server, run, note="after  the move <b> #bf16")
    assert answer.status_code == 200
    assert Store.open(folder).marks().notes == {run.id: "after the move <b> #bf16"}
    assert Store.open(folder).marks().tags(run.id) == ["bf16"]
    listed = server.get("/?q=%23bf16").text
    assert "after the move &lt;b&gt; #bf16" in listed
    assert f'data-run="{run.id}"' in listed
    assert f'data-run="{other.id}"' not in listed
    write(server, run, note="")
    assert Store.open(folder).marks().notes == {}


def test_a_baseline_is_pinned_and_offered(server, save, folder):
    old, new = save(0.002, age_s=60), save(0.001)
    write(server, old, baseline="yes")
    assert Store.open(folder).marks().baselines == {"model.py:work": old.id}
    assert f"/compare?a={old.id}&amp;b={new.id}" in server.get(f"/runs/{new.id}").text
    write(server, old)
    assert Store.open(folder).marks().baselines == {}


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
def test_another_site_writes_nothing(server, save, folder, origin):
    assert write(server, save(), origin=origin, note="mine").status_code == 405
    assert not (folder / NAME).exists()


def test_who_has_no_token_writes_nothing(server, save, folder):
    run = save()
    with server.stranger() as client:
        answer = client.post(f"/runs/{run.id}/note", data={"note": "x"}, headers={"origin": server.origin})
    assert answer.status_code == 403
    assert not (folder / NAME).exists()


def test_bad_notes_are_refused_in_a_sentence(server, save, folder):
    run = save()
    assert write(server, run, note="x" * 501).status_code == 422
    with pytest.raises(InputError, match="501 characters; 500 fit"):
        with_note(Marks(), run.id, "x" * 501)
    (folder / NAME).write_text("{")
    with pytest.raises(StoreError, match=r"move marks.json"):
        Store.open(folder).marks()
    assert server.get("/").status_code == 503


def test_more_than_two_runs_stand_beside_each_other(server, save, folder):
    first, second, third = save(0.001, age_s=90), save(0.002, age_s=60), save(0.004)
    Store.open(folder).change_marks(lambda marks: with_baseline(marks, "model.py:work", second.id))
    page = server.get(f"/several?run={third.id}&run={first.id}&run={second.id}").text
    assert re.findall(r'<tr data-run="([^"]+)"', page) == [second.id, first.id, third.id]
    assert "▲ 2.00×" in page
    assert "▼ 0.500×" in page
    assert server.get(f"/several?run={first.id}").status_code == 422


def test_the_list_begins_with_what_got_slower_this_week(server, save, folder):
    assert heading(server.get("/").text) == "Nothing got slower this week"
    day = 86_400
    save(0.001, age_s=9 * day)
    first = save(0.004, age_s=2 * day)
    save(0.002)
    save(0.002, target="new.py:work")
    assert heading(server.get("/").text) == "Slower this week: model.py:work (2.00×)"
    Store.open(folder).change_marks(lambda marks: with_baseline(marks, "model.py:work", first.id))
    assert heading(server.get("/").text) == "Nothing got slower this week"


def test_findings_and_machine_are_columns(server, save):
    save()
    page = server.get("/").text
    for column in ("Findings", "Machine", "Note and tags"):
        assert f'class="words">{column}</th>' in page
    assert re.search(r'<td class="machine">\w+', page)
