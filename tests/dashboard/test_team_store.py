"""The dashboard of a store on a server."""

from __future__ import annotations

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
