"""Requests that no task answers: in pieces, one after the other in one packet, to known heads and to others, each gets its own answer."""

import asyncio
import json
import socket

import pytest
import torch
from moody import PATH, WAITS, beside, body_of, row
from torch import nn
from uvicorn.config import Config
from uvicorn.server import ServerState

from pyrometer.serving.http.answers import document, read_headers
from pyrometer.serving.http.direct import LONGEST_HEAD, MOST_HEADS, DirectProtocol


class Client:
    """Bytes to a server, and answers from it."""

    def __init__(self, server):
        host, _, port = server.url.removeprefix("http://").partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.file = self.socket.makefile("rb")

    def send(self, raw):
        self.socket.sendall(raw)

    def answer(self):
        """Status, headers and document of the next one."""
        status = int(self.file.readline().split()[1])
        headers = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name] = value
        return status, headers, json.loads(self.file.read(int(headers.get("content-length", 0))) or "null")

    def first(self):
        """The first value of the next answer."""
        status, _, document = self.answer()
        assert status == 200, document
        return document["outputs"][0]["data"][0]


@pytest.fixture
def raw(server):
    client = Client(server)
    with client.socket:
        yield client


def request(first, *headers, path=PATH, **more):
    body = json.dumps(body_of([row(first)], **more)).encode()
    lines = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_one_request_after_the_other_over_one_connection(raw):
    for value in (1.0, 2.0, 3.0, 4.0):
        raw.send(request(value))
        assert raw.first() == 2 * value


def test_a_request_in_pieces_is_one_whether_its_head_is_known_or_not(raw):
    whole = request(1.0)
    raw.send(whole)  # known from here on
    assert raw.first() == 2.0
    raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = whole.index(b"\r\n\r\n") + 4
    for at in (1, 20, head - 2, head, head + 1, len(whole) - 1):
        raw.send(whole[:at])
        raw.send(whole[at:])
        assert raw.first() == 2.0
        raw.send(whole)
        assert raw.first() == 2.0


@pytest.mark.parametrize("is_known", [True, False])
def test_requests_in_one_packet_are_answered_in_their_order(raw, is_known):
    mark = "x-known: 1" if is_known else "x-unknown: 1"
    if is_known:
        raw.send(request(9.0, mark))
        assert raw.first() == 18.0
    raw.send(b"".join(request(value, mark) for value in (1.0, 2.0, 3.0)))
    assert [raw.first() for _ in range(3)] == [2.0, 4.0, 6.0]
    last = request(5.0, mark)
    raw.send(request(4.0, mark) + last[:30])
    assert raw.first() == 8.0
    raw.send(last[30:])
    assert raw.first() == 10.0


def test_what_comes_while_a_request_runs_waits_for_its_turn(serving, moody):
    server = serving(moody)
    raw = Client(server)
    with raw.socket:
        raw.send(request(1.0))
        assert raw.first() == 2.0
        raw.send(request(WAITS))
        assert moody.is_waiting.wait(60)
        moody.batches.clear()
        raw.send(request(3.0))
        raw.send(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n" + request(4.0))
        other = beside(server.url, row(5.0))
        moody.go_on.set()
        assert other.result().status_code == 200
        assert raw.first() == 2 * WAITS
        assert raw.first() == 6.0
        assert raw.answer()[2] == {"live": True}
        assert raw.first() == 8.0


def test_a_refusal_leaves_the_connection_open(raw):
    bad = request(1.0, path=PATH).replace(b"FP32", b"FP64")
    for _ in range(2):
        raw.send(bad)
        status, _, document = raw.answer()
        assert status == 400
        assert "the model takes FP32" in document["error"]
        raw.send(request(2.0))
        assert raw.first() == 4.0


@pytest.mark.parametrize(
    "headers",
    [("connection: close",), ("expect: 100-continue",), ("content-encoding: identity",), ("X-Y: é",)],
)
def test_heads_that_say_more_are_heeded(server, headers):
    raw = Client(server)
    with raw.socket:
        whole = request(3.0, *headers)
        raw.send(whole)
        if "expect" in headers[0]:
            assert raw.answer()[0] == 100
        assert raw.first() == 6.0
        if "close" in headers[0]:
            assert raw.file.read() == b""
        else:
            raw.send(request(1.0))
            assert raw.first() == 2.0


def test_a_known_head_lets_nobody_in_without_its_token(serving, moody):
    token = "0123456789abcdef"
    raw = Client(serving(moody, token=token))
    with raw.socket:
        for _ in range(2):
            raw.send(request(1.0, f"authorization: Bearer {token}"))
            assert raw.first() == 2.0
            for other in ((), ("authorization: Bearer 0123456789abcdeF",)):
                raw.send(request(1.0, *other))
                assert raw.answer()[0] == 401


class Wide(nn.Module):
    """Answers that are too large to be written in the loop."""

    def forward(self, x):
        return x[:, :1].expand(-1, 100_000).contiguous()


def test_large_answers_come_in_order_too(serving):
    raw = Client(serving(Wide(), torch.randn(2, 4)))
    with raw.socket:
        raw.send(b"".join(request(value) for value in (1.0, 2.0)))
        raw.send(request(3.0))
        assert [raw.first() for _ in range(3)] == [1.0, 2.0, 3.0]


def test_a_client_that_goes_away_while_a_large_answer_is_written_harms_nobody(serving):
    server = serving(Wide(), torch.randn(2, 4))
    for _ in range(5):
        gone = Client(server)
        gone.send(request(1.0))
        gone.file.close()
        gone.socket.close()
    raw = Client(server)
    with raw.socket:
        raw.send(request(3.0))
        assert raw.first() == 3.0


class Transport:
    """Of one connection, without a network."""

    def __init__(self):
        self.sent = []
        self.is_reading = True

    def write(self, data):
        self.sent.append(data)

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True

    def get_extra_info(self, _name):
        return None

    def is_closing(self):
        return "closed" in self.sent

    def close(self):
        self.sent.append("closed")


class Asked:
    """A request whose outcome the test says."""

    def submit(self, on_outcome):
        self.end = on_outcome

    def response(self, outcome):
        return document(outcome)


class App:
    """Asks nobody."""

    def __init__(self):
        self.heads = {}
        self.asked = []
        self.endpoint = self

    def read(self, _body, _json_length):
        self.asked.append(Asked())
        return self.asked[-1]

    def direct(self, scope):
        return read_headers(scope)


def on_connection(act):
    """Let something act on a connection, in a loop."""

    async def main():
        app, transport = App(), Transport()
        config = Config(app, http=DirectProtocol, lifespan="off", interface="asgi3", proxy_headers=False)
        connection = DirectProtocol(config, ServerState(), {}, _loop=asyncio.get_running_loop())
        connection.connection_made(transport)
        await act(app, transport, connection)

    asyncio.run(main())


def test_who_does_not_read_is_not_read_from():
    async def act(app, transport, connection):
        connection.pause_writing()
        connection.data_received(request(1.0))
        assert (len(app.asked), transport.is_reading) == (0, False)
        connection.resume_writing()
        await asyncio.sleep(0)
        assert (len(app.asked), transport.is_reading) == (1, True)

    on_connection(act)


def test_the_server_ends_after_the_answer_under_way():
    async def act(app, transport, connection):
        connection.data_received(request(1.0))
        connection.shutdown()
        assert transport.sent == []
        app.asked[0].end(1)
        assert b"connection: close" in transport.sent[0]
        assert transport.sent[1] == "closed"

    on_connection(act)


def test_a_connection_where_nobody_asks_any_more_is_closed():
    async def act(app, transport, connection):
        connection.data_received(request(1.0))
        later_s = asyncio.get_running_loop().time() + 2 * connection.timeout_keep_alive
        connection.close_if_late(later_s, 1.0)
        assert transport.sent == []  # it is the model that takes so long
        app.asked[0].end(1)
        connection.close_if_late(later_s, 1.0)
        assert transport.sent[1:] == ["closed"]

    on_connection(act)


def test_as_many_heads_as_clients_like_are_known_at_most():
    async def act(app, _transport, connection):
        for number in range(MOST_HEADS + 2):
            connection.data_received(request(1.0, f"x-request-id: {number}"))
            app.asked[-1].end(1)
            assert len(app.heads) <= MOST_HEADS
        assert len(app.asked) == MOST_HEADS + 2
        before = len(app.heads)
        connection.data_received(request(1.0, "x: " + "y" * LONGEST_HEAD))
        assert len(app.heads) == before

    on_connection(act)
