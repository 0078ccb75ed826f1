"""The dashboard of a store on a server."""

from __future__ import annotations

from pyrometer.guard.gate import Gate, GuardReport, Revision
from pyrometer.record import to_dict
from pyrometer.store.marks import with_accepted
from pyrometer.store.store import Store


def test_a_store_on_a_server_is_browsed(serve, database, stored):
    with serve(database) as server:
        assert "Nothing is stored here yet" in server.get("/").text
        store = Store.open(database)
        run = store.save(stored(), {"trace 1.bin": b"bytes"})
        page = server.get("/").text
        assert run.id in page
        assert "postgresql://postgres@/" in page
        assert server.get(f"/runs/{run.id}").status_code == 200
        answer = server.get(f"/runs/{run.id}/files/trace%201.bin")
        assert answer.content == b"bytes"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert server.get(f"/api/runs/{run.id}").json()["id"] == run.id
        origin = {"origin": server.origin}
        server.client.post(f"/runs/{run.id}/note", data={"note": "#fp8", "baseline": "yes"}, headers=origin)
        assert store.marks().baselines == {run.target: run.id}
        newer = store.save(stored(0.004))
        assert server.get("/api/runs").json()["total"] == 2
        assert server.get(f"/compare?a={run.id}&b={newer.id}").status_code == 200
        store.delete([newer.id])
        assert server.get("/api/runs").json()["total"] == 1


def test_a_server_that_goes_away_is_told_in_a_sentence_and_found_again(serve, database, stored, postgres):
    run = Store.open(database).save(stored())
    with serve(database) as server:
        assert run.id in server.get("/").text
        postgres.stop()
        try:
            answer = server.get("/")
            assert answer.status_code == 503
            assert "is the server running" in answer.text
        finally:
            postgres.start()
        assert run.id in server.get("/").text


def test_the_guards_history_is_a_page_once_a_commit_is_recorded(serve, folder, stored, save):
    save()
    with serve(folder) as server:
        assert server.get("/guard").status_code == 404
        assert "no commit is recorded" in server.get("/guard").text
        assert server.get("/api/guard").status_code == 422
        for number in range(3):
            gate = Gate(
                benchmark="perf_a.py::perf_f",
                metric="operators",
                kind="counter",
                outcome="unchanged",
                ratio=1 + number,
            )
            sides = {
                side: Revision(ref=side, sha=f"{number + at}" * 40)
                for at, side in enumerate(("base", "head"))
            }
            report = GuardReport(trusted=True, gates=[gate], **sides)
            save(kind="guard-record", document=to_dict(report))
        page = server.get("/guard").text
        assert "2 regressions proved and not accepted" in page
        assert "perf_a.py::perf_f" in page
        assert server.get("/api/guard").json()["history"]["num_commits"] == 3
        Store.open(folder).change_marks(lambda marks: with_accepted(marks, "3" * 40, "wanted"))
        assert "1 regression proved and not accepted" in server.get("/guard").text
