"""Pages: what they show, what they escape, and what they say when something is wrong."""

from __future__ import annotations

import re
import sqlite3
import time

import pytest

from pyrometer.dashboard.index import PAGE_SIZE
from pyrometer.report.attachments import ARTIFACT, Attachments, pack

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&{{7*7}}"


def ids_in(text: str) -> list[str]:
    return re.findall(r'<tr data-run="([^"]+)"', text)


def test_the_list_shows_the_newest_first(server, save):
    old, new = save(0.002, age_s=60), save(0.001, target="other.py:work", kind="check")
    page = server.get("/")
    assert ids_in(page.text) == [new.id, old.id]
    assert f'href="/runs/{new.id}"' in page.text
    assert "2.00 ms (1.98 ms–2.02 ms)" in page.text
    assert "012345678" in page.text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=other", ["check"]),
        ("q=OTHER+ms", ["check"]),
        ("q=other+nowhere", []),
        ("kind=bench", ["bench"]),
        ("target=model.py:work", ["bench"]),
        ("target=model.py", []),
        ("commit=beef", ["check"]),
        ("commit=BEEF", ["check"]),
        ("q=%25", []),
        ("q=&kind=&commit=", ["check", "bench"]),
        ("page=99", ["check", "bench"]),
        ("page=-1", ["check", "bench"]),
        ("page=٣", ["check", "bench"]),
        ("unknown=1", ["check", "bench"]),
    ],
)
def test_the_list_is_filtered(kept, query, found):
    server, ids = kept
    assert ids_in(server.get(f"/?{query}").text) == [ids[kind] for kind in found]
    answer = server.get(f"/api/runs?{query}").json()
    assert [run["id"] for run in answer["runs"]] == [ids[kind] for kind in found]
    assert answer["total"] == len(found)


def test_a_long_list_comes_in_pages(server, save):
    for number in range(PAGE_SIZE + 3):
        save(age_s=number)
    first, second = server.get("/?q=bench").text, server.get("/?q=bench&page=2").text
    assert (len(ids_in(first)), len(ids_in(second))) == (PAGE_SIZE, 3)
    assert 'href="/?q=bench&amp;page=2"' in first
    assert 'rel="prev" href="/?q=bench"' in second
    assert not set(ids_in(first)) & set(ids_in(second))


def test_a_search_for_the_code_of_a_rule_finds_the_runs_with_its_findings(server, save, folder):
    from pyrometer.store.store import Store

    found = {"code": "PYR101", "name": "item-in-hot-loop", "severity": "warning"}
    with_it = save(document={"diagnosis": {"findings": [found]}, "target": "model.py:work"}, age_s=60)
    save(
        document={
            "diagnosis": {"findings": []},
            "advice": 'not "code":"PYR1012" nor PYR101',
            "target": "model.py:work",
        }
    )
    assert ids_in(server.get("/?q=PYR101").text) == [with_it.id]
    assert ids_in(server.get("/?q=model.py+pyr101").text) == [with_it.id]
    assert ids_in(server.get("/?q=PYR102").text) == []
    later = save(document={"diagnosis": {"findings": [found]}, "target": "model.py:work"})
    assert ids_in(server.get("/?q=PYR101").text) == [later.id, with_it.id]
    Store.open(folder).delete([with_it.id])
    assert ids_in(server.get("/?q=PYR101").text) == [later.id]


def test_a_search_keeps_its_words_from_page_to_page(server, save):
    for number in range(PAGE_SIZE + 1):
        save(age_s=number)
    assert 'href="/?q=1&amp;page=2"' in server.get("/?q=1").text


def test_targets_come_in_pages_and_can_be_searched(server, fill, folder):
    fill(folder, 2 * PAGE_SIZE + 7, num_targets=2 * PAGE_SIZE + 7)
    first, last = server.get("/targets").text, server.get("/targets?page=3").text
    rows = [page.count('<td class="target">') for page in (first, last)]
    assert rows == [PAGE_SIZE, 7]
    assert "107 targets" in first
    assert 'rel="next" href="/targets?page=2"' in first
    assert 'rel="prev" href="/targets?page=2"' in last
    narrowed = server.get("/targets?q=MODEL_10").text
    assert narrowed.count('<td class="target">') == 8  # 10 and 100 to 106
    assert "No target is like this." in server.get("/targets?q=nowhere").text


def test_a_run_that_was_stored_or_pruned_meanwhile_is_seen_at_once(server, save, folder):
    from pyrometer.store.store import Store

    for _ in range(5):
        run = save()
        assert ids_in(server.get("/").text)[0] == run.id
        Store.open(folder).delete([run.id])
        assert ids_in(server.get("/").text) == []
        assert server.get(f"/runs/{run.id}").status_code == 404


def test_a_trend_is_of_one_kind_and_target_on_one_machine(server, save):
    save(0.002, age_s=50)
    save(0.003, age_s=40, kind="check")
    save(0.003, age_s=30, environment={"fingerprint": "beef"})
    save(0.003, age_s=20, target="other.py:work")
    assert 'class="spark"' not in server.get("/").text
    save(0.004)
    assert server.get("/").text.count('aria-label="2 runs, from 2.00 ms to 4.00 ms"') == 1


def test_a_report_is_the_page_that_export_writes_with_a_way_back(server, save):
    from pyrometer.report.html import render_document

    run = save()
    text = server.get(f"/runs/{run.id}").text
    way = re.search(r'\n<nav class="way".*?</nav>', text, re.DOTALL)
    assert 'href="/"' in way[0]
    assert text.replace(way[0], "") == render_document(run.kind, run.document)
    assert server.get("/runs/last").text == text


def test_a_report_draws_its_attachments_and_does_without_damaged_ones(server, save):
    sound = save(artifacts={ARTIFACT: pack(Attachments())})
    damaged = save(artifacts={ARTIFACT: b"\x1f\x8b nothing"})
    assert server.get(f"/runs/{sound.id}").status_code == 200
    assert "2.00 ms" in server.get(f"/runs/{damaged.id}").text


def test_two_runs_are_compared(server, save):
    a, b = save(0.002, age_s=60), save(0.001)
    page = server.get("/compare", params={"a": a.id, "b": b.id})
    assert page.status_code == 200
    assert "for display and no verdict" in page.text
    assert 'class="way"' in page.text
    answer = server.get("/api/compare", params={"a": a.id, "b": b.id}).json()
    assert answer["comparison"]["ratio_of_medians"] == pytest.approx(0.5)


def test_a_comparison_is_the_page_that_compare_writes(server, save, folder, tmp_path, capsys):
    from pyrometer.cli.main import main

    a, b = save(0.002, age_s=60), save(0.001)
    written = tmp_path / "page.html"
    assert main(["compare", a.id, b.id, "--store", str(folder), "-o", str(written)]) == 0
    capsys.readouterr()
    text = server.get("/compare", params={"a": a.id, "b": b.id}).text
    way = re.search(r'\n<nav class="way".*?</nav>', text, re.DOTALL)
    assert text.replace(way[0], "") == written.read_text(encoding="utf-8")
    for address in (f"/runs/{a.id}", f"/runs/{b.id}", f"/compare?a={b.id}&amp;b={a.id}"):
        assert f'href="{address}"' in way[0]


def test_a_report_offers_the_run_before_for_comparison(server, save):
    first, other, second = save(age_s=60), save(age_s=30, kind="check"), save()
    offered = f'href="/compare?a={first.id}&amp;b={second.id}"'
    assert offered in server.get(f"/runs/{second.id}").text
    assert 'href="/compare?' not in server.get(f"/runs/{first.id}").text
    assert 'href="/compare?' not in server.get(f"/runs/{other.id}").text


def test_runs_that_must_not_be_compared_are_refused_with_what_differs(server, save):
    a, b = save(), save(environment={"torch": "2.4.0"})
    page = server.get("/compare", params={"a": a.id, "b": b.id})
    assert page.status_code == 409
    assert "torch: 2.13.0 and 2.4.0" in page.text
    answer = server.get("/api/compare", params={"a": a.id, "b": b.id})
    assert answer.status_code == 409
    assert "torch: 2.13.0 and 2.4.0" in answer.json()["error"]


@pytest.mark.parametrize("query", ["", "a=x", "b=x", "a=&b="])
def test_a_comparison_needs_two_runs(server, save, query):
    page = server.get(f"/compare?{query}")
    assert page.status_code == 422
    assert "choose one as A and one as B" in page.text


def test_a_target_over_time(server, save):
    runs = [save(median_s, age_s=60 - 10 * i) for i, median_s in enumerate((0.002, 0.0021, 0.003))]
    save(None, kind="trace")
    page = server.get("/targets", params={"target": "model.py:work"}).text
    assert [run.id in page for run in runs] == [True] * 3
    assert page.count("▲ slower</span>") == 2
    assert 'data-block="history/0"' in page
    assert "Without a step time" in page
    series = server.get("/api/history", params={"target": "model.py:work"}).json()["series"]
    assert [one["kind"] for one in series] == ["bench"]
    assert [run["change"] for run in series[0]["runs"]] == [None, "slower", "slower"]
    assert "model.py:work" in server.get("/targets").text


@pytest.mark.parametrize(
    "target", ["../before/m.py:w", "a b#c?d&e=f%2F+g", "模型.py:w", HOSTILE, "..", "%00"]
)
def test_any_target_has_an_address(server, save, target):
    run = save(target=target)
    assert server.get("/targets", params={"target": target}).status_code == 200
    for page in (server.get("/targets").text, server.get(f"/runs/{run.id}").text):
        links = re.findall(r'href="(/targets\?[^"]*)"', page)
        assert links
        assert all(server.get(link).status_code == 200 for link in links)


def test_hostile_names_are_text(server, save, folder):
    from pyrometer.store.running import Announcement

    run = save(target=HOSTILE, commit='"><b>')
    other = save(target=HOSTILE, age_s=9)
    with Announcement(folder, kind="<b>bench", target=HOSTILE) as announcement:
        announcement.tell(0.5, HOSTILE)
        addresses = [
            "/", f"/runs/{run.id}", f"/runs/{run.id}/files", "/targets", f"/compare?a={run.id}&b={other.id}",
            f"/?q={HOSTILE.replace('&', '%26')}", f"/running/{announcement._path.stem}", "/runs/%3Cimg%20src=x%3E",
        ]  # fmt: skip
        for address in addresses:
            page = server.get(address).text
            assert "<img" not in page, address
            assert "<b>" not in page.replace("<b>How to read this.</b>", ""), address
            assert "49" not in re.findall(r"onerror=alert\(1\)(?:&gt;|>)[^<]{0,40}", page), address
        page = server.get("/targets", params={"target": HOSTILE}).text
        assert "<img" not in page


@pytest.mark.parametrize(
    "address",
    [
        "/runs/..", "/..", "/runs/../../etc/passwd", "/../../../../etc/passwd", "/runs/..%2f..%2fetc%2fpasswd", "/runs/%2e%2e%2fruns.db",
        "/runs/{id}/files/..%2f..%2fruns.db", "/runs/{id}/files/%2e%2e", "/runs/{id}/files/x%00.bin",
        "/runs/{id}/files//etc/passwd", "/runs/..%2f{id}/files/x.bin", "/runs/{id}/files/other.bin",
        "/assets/..%2f..%2fhtml.py", "/assets/report.html", "/assets/LICENSES.txt", "/running/..%2f..%2fruns.db",
    ],
)  # fmt: skip
def test_nothing_but_what_the_store_names_is_served(kept, address):
    status, answer = kept.server.raw(address.format(id=kept.ids["bench"]))
    assert status == 404
    assert b"SQLite" not in answer
    assert b"root:" not in answer


def test_files_of_a_run_are_saved_and_never_shown(server, save):
    run = save(artifacts={"<b>.html": b"<script>alert(1)</script>", "x.bin": b"mine"})
    page = server.get(f"/runs/{run.id}/files").text
    links = re.findall(r'href="(/runs/[^"]*/files/[^"]*)"', page)
    answers = [server.get(link) for link in links]
    assert [answer.content for answer in answers] == [b"<script>alert(1)</script>", b"mine"]
    for answer in answers:
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_database_that_names_foreign_files_leads_nowhere(server, save, folder, tmp_path):
    run = save(artifacts={"x.bin": b"mine", "link.bin": b"mine"})
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with sqlite3.connect(folder / "runs.db") as database:
        database.execute("UPDATE artifacts SET path = '../secret' WHERE name = 'x.bin'")
    database.close()
    link = folder / "artifacts" / run.id / "link.bin"
    link.unlink()
    link.symlink_to(secret)
    assert server.get(f"/runs/{run.id}/files/x.bin").content == b"mine"
    answer = server.get(f"/runs/{run.id}/files/link.bin")
    assert answer.status_code == 422
    assert "secret" not in answer.text.replace(str(tmp_path), "")


def test_without_a_store_the_pages_say_so_and_find_it_when_it_comes(server, save, folder):
    page = server.get("/")
    assert page.status_code == 200
    assert "Nothing is stored here yet" in page.text
    assert not folder.exists()
    for address in ("/runs/last", "/targets", "/api/runs", "/api/running", "/events"):
        with server.client.stream("GET", address) as answer:
            assert answer.status_code == (404 if address == "/runs/last" else 200)
    run = save()
    assert ids_in(server.get("/").text) == [run.id]


def test_a_store_that_is_being_written_is_read(server, save, folder):
    run = save()
    writer = sqlite3.connect(folder / "runs.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE runs SET headline = 'not committed'")
    page = server.get("/")
    writer.execute("ROLLBACK")
    writer.close()
    assert ids_in(page.text) == [run.id]
    assert "not committed" not in page.text


def test_a_locked_store_is_said_in_a_sentence(server, save, folder):
    run = save()
    locker = sqlite3.connect(folder / "runs.db", isolation_level=None)
    locker.execute("PRAGMA locking_mode=EXCLUSIVE")
    locker.execute("BEGIN EXCLUSIVE")
    locker.execute("UPDATE runs SET headline = 'x'")
    answers = [server.get(address) for address in ("/", "/api/runs")]
    locker.execute("ROLLBACK")
    locker.close()
    for answer in answers:
        assert answer.status_code == 503
        assert "another process kept the store locked" in answer.text
    assert ids_in(server.get("/").text) == [run.id]


def test_a_file_that_is_no_database_is_said_in_a_sentence(server, folder):
    folder.mkdir()
    (folder / "runs.db").write_text("not a database at all, but long enough to be taken for one" * 20)
    for address in ("/", "/targets", "/runs/last", "/api/runs"):
        answer = server.get(address)
        assert answer.status_code == 503
        assert "not a database" in answer.text
        assert "Traceback" not in answer.text


DAMAGE = {
    "document": ("document = '{'", 422),
    "other document": ("document = '{\"measurement\": 7}'", 422),
    "kind": ("kind = 'dance'", 422),
    "environment": ("environment = '[1]'", 422),
    "blob": ("document = x'ff00fe'", 422),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_costs_its_own_page_only(server, save, folder, damage):
    change, status = DAMAGE[damage]
    bad, good = save(age_s=60), save()
    with sqlite3.connect(folder / "runs.db") as database:
        database.execute(f"UPDATE runs SET {change} WHERE id = ?", [bad.id])
    database.close()
    for address in (f"/runs/{bad.id}", f"/compare?a={bad.id}&b={good.id}"):
        page = server.get(address)
        assert page.status_code in {status, 200 if damage == "kind" else status}
        assert "Traceback" not in page.text
    assert server.get(f"/runs/{bad.id}").status_code == status
    assert server.get(f"/runs/{good.id}").status_code == 200
    assert server.get("/targets?target=model.py:work").status_code == 200
    assert ids_in(server.get("/").text) == [good.id, bad.id]


def test_a_damaged_row_costs_its_own_row_only(server, save, folder):
    bad, good = save(age_s=60), save()
    with sqlite3.connect(folder / "runs.db") as database:
        database.execute("UPDATE runs SET created_at = 'yesterday' WHERE id = ?", [bad.id])
    database.close()
    page = server.get("/")
    assert ids_in(page.text) == [good.id]
    assert "1 stored run cannot be read" in page.text
    assert server.get("/api/runs").json()["damaged"] == 1


def test_an_error_of_our_own_is_one_sentence(server, save, monkeypatch, capfd):
    from pyrometer.dashboard.stored import StoredRuns

    save()

    def breaks(_runs):
        raise RuntimeError("boom \x1b[31m")

    monkeypatch.setattr(StoredRuns, "listing", breaks)
    page = server.get("/")
    assert page.status_code == 500
    assert "internal fault, RuntimeError: boom" in page.text
    assert server.get("/api/runs").json() == {
        "error": "internal fault, RuntimeError: boom \x1b[31m; please report it"
    }
    errors = capfd.readouterr().err
    assert "Traceback" not in errors
    assert "\x1b" not in errors


@pytest.mark.measuring
def test_a_list_of_thousands_is_nearly_as_quick_as_one_of_a_few(tmp_path, fill, serve):
    """As a ratio, since absolute times mean nothing on a busy machine; either fills its pages and trends."""

    def best_s(address):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            assert server.get(address).status_code == 200
            times.append(time.perf_counter() - start)
        return min(times)

    times = {}
    for count in (16 * PAGE_SIZE, 5000):
        fill(tmp_path / str(count), count)
        with serve(tmp_path / str(count)) as server:
            times[count] = [
                best_s(address) for address in ("/", "/?q=model_7", "/?page=90", "/api/runs?kind=bench")
            ]
            assert server.get("/api/runs").json()["total"] == count
    for few_s, many_s in zip(*times.values(), strict=True):
        assert many_s < 12 * few_s  # of what grows with the square it would be 39
