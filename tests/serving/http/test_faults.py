"""Models that fail and clients that go away or mean no good: each gets a clear answer, and the others theirs."""

import socket
import threading

import httpx
import pytest
from moody import HANGS, LOSES_ROWS, PATH, RAISES, WAITS, beside, body_of, infer, row
from services import until

import pyrometer as pm
from pyrometer.errors import InputError, UsageError


def tallied(client):
    return client.get("/v2/models/moody/stats").json()["measured"]


@pytest.mark.parametrize(
    ("mood", "said"), [(RAISES, "ValueError: a bad row"), (LOSES_ROWS, "for 1 rows of input")]
)
def test_a_bad_request_takes_none_of_its_batch_along(serving, moody, mood, said):
    server = serving(moody)
    first = beside(server.url, row(WAITS))
    assert moody.is_waiting.wait(60)
    others = [beside(server.url, row(value)) for value in (1.0, mood, 3.0)]
    with httpx.Client(base_url=server.url) as client:
        until(lambda: client.get("/v2/models/moody/stats").json()["waiting_rows"] == 3, "three never waited")
    moody.batches.clear()
    moody.go_on.set()
    assert first.result().status_code == 200
    good, bad, fine = (one.result() for one in others)
    assert (good.status_code, bad.status_code, fine.status_code) == (200, 500, 200)
    assert good.json()["outputs"][0]["data"][0] == 2.0
    assert fine.json()["outputs"][0]["data"][0] == 6.0
    assert said in bad.json()["error"]
    assert moody.batches == [3, 1, 1, 1]  # together, then each alone, once


def test_a_model_that_hangs_is_given_up_and_another_thread_goes_on(serving, moody):
    server = serving(moody, hang_s=0.3)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        answer = infer(client, row(HANGS))
        assert answer.status_code == 504
        assert "did not answer within 0.3 s" in answer.json()["error"]
        assert infer(client, row(1.0)).status_code == 200
        assert client.get("/v2/health/live").status_code == 200


def test_a_server_whose_model_hangs_again_and_again_says_that_it_is_dead(serving, moody):
    server = serving(moody, hang_s=0.2)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for _ in range(3):
            assert infer(client, row(HANGS)).status_code == 504
        assert client.get("/v2/health/live").status_code == 503
        assert client.get("/v2/health/ready").status_code == 503
        assert infer(client, row(1.0)).status_code == 503


def test_a_full_queue_refuses_and_says_when_to_come_back(serving, moody):
    server = serving(moody, most_waiting=4)
    running = beside(server.url, row(WAITS))
    assert moody.is_waiting.wait(60)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        waiting = [beside(server.url, row(1.0)) for _ in range(4)]
        until(lambda: client.get("/v2/models/moody/stats").json()["waiting_rows"] == 4, "four never waited")
        answer = infer(client, row(1.0))
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) >= 1
        assert "4 of 4 rows wait" in answer.json()["error"]
        moody.go_on.set()
        assert all(one.result().status_code == 200 for one in [running, *waiting])
        assert infer(client, row(1.0)).status_code == 200


def test_a_deadline_that_passes_is_told_before_the_model_is_free(serving, moody):
    server = serving(moody)
    running = beside(server.url, row(WAITS))
    assert moody.is_waiting.wait(60)
    moody.batches.clear()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        answer = infer(client, row(1.0), parameters={"timeout": 20_000})
        assert answer.status_code == 504
        assert "deadline" in answer.json()["error"]
        moody.go_on.set()
        assert running.result().status_code == 200
        assert tallied(client)["refused_expired"] == 1
    assert moody.batches == []  # it cost nothing


def test_a_client_that_goes_away_costs_nothing(serving, moody):
    server = serving(moody)
    running = beside(server.url, row(WAITS))
    assert moody.is_waiting.wait(60)
    moody.batches.clear()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        raw = httpx.Request("POST", server.url + PATH, json=body_of([row(1.0)]))
        with connected(server) as connection:
            connection.sendall(plain(raw))
            until(lambda: client.get("/v2/models/moody/stats").json()["waiting_rows"] == 1, "it never waited")
        until(lambda: client.get("/v2/models/moody/stats").json()["waiting_rows"] == 0, "it still waits")
        moody.go_on.set()
        assert running.result().status_code == 200
        assert tallied(client)["refused_cancelled"] == 1
    assert moody.batches == []


def connected(server):
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def plain(request):
    head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(request.content)}\r\n\r\n"
    return head.encode() + request.content


def test_half_a_body_and_gone_leaves_no_trace(serving, moody):
    server = serving(moody)
    request = httpx.Request("POST", server.url + PATH, json=body_of([row(1.0)]))
    moody.batches.clear()
    for _ in range(20):
        with connected(server) as connection:
            connection.sendall(plain(request)[:-10])
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert infer(client, row(1.0)).status_code == 200
    assert moody.batches == [1]


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"POST /v2/models/moody/infer HTT",
        b"POST /v2/models/moody/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{",
    ],
    ids=["nothing", "half of the headers", "a byte of the body"],
)
def test_who_sends_too_slowly_is_hung_up_on(serving, moody, beginning):
    server = serving(moody, slow_s=0.2)
    with connected(server) as connection:
        connection.sendall(beginning)
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")
        assert connection.recv(4096) == b""


def test_headers_without_end_are_cut_off(server):
    with connected(server) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\n")
        answer = b""
        with pytest.raises(OSError):  # noqa: PT012 - whichever of the two sees the end first
            for _ in range(100):
                connection.sendall(b"x: " + b"y" * 4096 + b"\r\n")
            answer = connection.recv(4096)
            raise OSError
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")


def test_what_is_accepted_is_answered_when_the_server_ends(serving, moody):
    server = serving(moody)
    running = beside(server.url, row(WAITS))
    assert moody.is_waiting.wait(60)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        waiting = [beside(server.url, row(1.0)) for _ in range(6)]
        until(lambda: client.get("/v2/models/moody/stats").json()["waiting_rows"] == 6, "six never waited")
        ending = threading.Thread(target=server.close)
        ending.start()
        until(lambda: client.get("/v2/health/ready").status_code == 503, "it stays ready")
        answer = infer(client, row(1.0))
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]
        moody.go_on.set()
        assert all(one.result().status_code == 200 for one in [running, *waiting])
    ending.join(60)
    assert not ending.is_alive()


def test_a_token_keeps_others_out(serving, moody):
    token = "0123456789abcdef"
    server = serving(moody, token=token)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/v2/health/ready").status_code == 200  # probes have none
        for path in ("/v2", "/metrics", "/docs"):
            assert client.get(path).status_code == 401
        assert infer(client, row(1.0)).status_code == 401
        client.headers["Authorization"] = f"Bearer {token}x"
        assert infer(client, row(1.0)).status_code == 401
        client.headers["Authorization"] = f"Bearer {token}"
        assert infer(client, row(1.0)).status_code == 200


def test_other_machines_need_a_token(moody):
    work = pm.Inference(moody, body_tensor())
    with pytest.raises(UsageError, match="set PYROMETER_SERVE_TOKEN"):
        pm.serve(work, host="0.0.0.0", port=0)


def test_a_port_that_is_taken_is_told(server, moody):
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(InputError, match="pass another --port"):
        pm.serve(pm.Inference(moody, body_tensor()), port=port)


def body_tensor():
    import torch

    return torch.randn(2, 4)
