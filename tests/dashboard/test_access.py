"""Who is let in, and what every answer carries."""

from __future__ import annotations

import re
import socket

import httpx
import pytest

from pyrometer.dashboard.access import names_of
from pyrometer.dashboard.server import Dashboard
from pyrometer.errors import InputError, UsageError
from pyrometer.listening import is_loopback

EVERYWHERE = [
    "/", "/runs/last", "/runs/x/files", "/runs/x/files/y", "/running/x", "/compare", "/targets", "/guard", "/events",
    "/assets/report.js", "/api/runs", "/api/runs/x", "/api/compare", "/api/history", "/api/running", "/nowhere",
]  # fmt: skip


@pytest.mark.parametrize("address", EVERYWHERE)
def test_without_the_token_nothing_is_answered(kept, address):
    server = kept.server
    with server.stranger() as stranger:
        for cookie in ("", "pyrometer-1=x", f"pyrometer-{server.origin.rsplit(':')[-1]}=é"):
            answer = stranger.get(address, headers={"cookie": cookie.encode()})
            assert answer.status_code == 403
            assert "token" in answer.text
            assert "model.py" not in answer.text


def test_a_wrong_token_opens_nothing_even_beside_the_right_cookie(server):
    assert server.get("/?token=wrong").status_code == 403
    assert server.get("/?token=").status_code == 403
    assert server.get("/?token=%ff%00").status_code == 403


def test_the_token_moves_from_the_address_to_a_cookie(server):
    with server.stranger() as browser:
        answer = browser.get(server.url + "&q=loop")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/?q=loop"
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert re.search("samesite=strict", cookie, re.IGNORECASE)
        assert browser.get("/").status_code == 200


def test_the_redirect_stays_on_this_server(server):
    with server.stranger() as browser:
        answer = browser.get(server.origin + "//evil.example/x" + server.url[len(server.origin) + 1 :])
        assert answer.headers["location"] == "/evil.example/x"
        answer = browser.get(server.origin + "/a%0d%0aset-cookie:x" + server.url[len(server.origin) + 1 :])
        assert answer.headers["location"] == "/a%0D%0Aset-cookie%3Ax"


def test_a_link_on_another_site_gets_its_cookie_before_the_first_page(server):
    """A strict cookie is not sent along a redirect that another site began; a page of ours leads on instead."""
    with server.stranger() as browser:
        answer = browser.get(server.url, headers={"sec-fetch-site": "cross-site"})
        assert answer.status_code == 200
        assert answer.headers["refresh"] == "0; url=/"
        assert "set-cookie" in answer.headers


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", "", "127.0.0.1@evil.example"],
)
def test_only_our_own_names_are_answered(kept, host):
    """Or a site could point its name at this machine, and read with the reader's own browser."""
    assert kept.server.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_this_machine_has_several_names_and_any_port_of_a_tunnel(kept, name):
    cookie = f"pyrometer-9999={kept.server.dashboard.token}"
    with kept.server.stranger() as browser:
        answer = browser.get("/api/running", headers={"host": f"{name}:9999", "cookie": cookie})
    assert answer.status_code == 200


def test_two_hosts_are_none(server):
    port = server.origin.rsplit(":")[-1]
    lines = f"GET / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nhost: evil.example\r\nconnection: close\r\n\r\n"
    assert b" 200 " not in server.raw_bytes(lines.encode()).splitlines()[0]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(kept, method):
    answer = kept.server.client.request(method, "/")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"


def test_methods_that_nobody_knows_are_refused(server):
    assert server.client.request("BREW", "/").status_code in {
        400,
        405,
    }  # httptools does not let it come so far


@pytest.mark.parametrize("address", EVERYWHERE[:-2])
def test_every_answer_carries_the_headers(kept, address):
    with kept.server.client.stream("GET", address) as answer:
        headers = answer.headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers
    kept = "immutable" if address.startswith("/assets/") else "no-store"
    assert kept in headers["cache-control"]


def test_a_report_keeps_its_own_policy(server, save):
    run = save()
    answer = server.get(f"/runs/{run.id}")
    assert "connect-src 'none'" in answer.text
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "connect-src 'self'" in server.get("/").headers["content-security-policy"]


def test_other_machines_are_let_in_only_when_that_was_asked_for(folder):
    with pytest.raises(UsageError, match="--allow-remote"):
        Dashboard(folder, host="0.0.0.0")
    dashboard = Dashboard(folder, host="0.0.0.0", allow_remote=True)
    assert dashboard.url.startswith("http://127.0.0.1:")
    dashboard._socket.close()


def test_a_port_that_is_taken_is_said_in_a_line(folder, server):
    port = int(server.origin.rsplit(":")[-1])
    with pytest.raises(InputError, match="pass another --port"):
        Dashboard(folder, port=port)


def test_an_address_of_nobody_is_said_in_a_line(folder):
    with pytest.raises(InputError, match="legal is an address of this machine"):
        Dashboard(folder, host="no-such-host.invalid", allow_remote=True)


def test_names():
    assert names_of("127.0.0.1") == {"127.0.0.1", "localhost", "::1"}
    assert "192.0.2.7" in names_of("192.0.2.7")
    assert socket.gethostname().lower() in names_of("0.0.0.0")
    assert not is_loopback("127.evil.example")


def test_every_server_has_a_token_of_its_own(folder):
    dashboards = [Dashboard(folder) for _ in range(2)]
    for dashboard in dashboards:
        dashboard._socket.close()
    assert dashboards[0].token != dashboards[1].token
    assert all(len(dashboard.token) >= 40 for dashboard in dashboards)


def test_websockets_are_refused(server):
    headers = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-key": "eA==",
        "sec-websocket-version": "13",
    }
    answer = httpx.get(server.origin, headers=headers)
    assert answer.status_code == 403
