"""The Open Inference Protocol, as clients speak it, against a server that listens."""

import json
import shutil
import socket
import subprocess
import time

import numpy as np
import pytest
import torch
from moody import WIDTH, body_of, infer, row
from prometheus_client.parser import text_string_to_metric_families

from pyrometer.serving.http.tensors import decode_request, encode_answer
from pyrometer.serving.running.signature import DATATYPES, TensorSpec

URL = "/v2/models/moody"


def test_an_answer_has_a_row_per_row(client):
    answer = infer(client, row(1.0), row(3.0), id="a").json()
    assert answer["id"] == "a"
    assert (answer["model_name"], answer["model_version"]) == ("moody", "1")
    [output] = answer["outputs"]
    assert (output["name"], output["datatype"], output["shape"]) == ("output", "FP32", [2, WIDTH])
    assert output["data"] == [2.0, 2.0, 2.0, 2.0, 6.0, 2.0, 2.0, 2.0]


def test_the_server_says_what_it_is(client):
    assert "binary_tensor_data" in client.get("/v2").json()["extensions"]
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get(f"{URL}/ready").status_code == 200
    about = client.get(URL).json()
    assert about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, WIDTH]}]
    assert about["outputs"] == [{"name": "output", "datatype": "FP32", "shape": [-1, WIDTH]}]
    assert client.get(f"{URL}/versions/1").json() == about
    assert client.post("/v2/repository/index").json() == [{"name": "moody", "version": "1", "state": "READY"}]


def test_a_version_may_be_named(client):
    assert infer(client, row(1.0), path=f"{URL}/versions/1/infer").status_code == 200
    answer = infer(client, row(1.0), path=f"{URL}/versions/7/infer")
    assert answer.status_code == 404
    assert "legal are 1" in answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v2/models/other", 404),
        ("DELETE", "/v2", 405),
        ("GET", f"{URL}/infer", 404),
        ("POST", "/v2/repository/models/moody/load", 404),
    ],
)
def test_what_there_is_not_is_said(client, method, path, status):
    answer = client.request(method, path)
    assert answer.status_code == status
    assert "legal" in answer.json()["error"] or "/docs" in answer.json()["error"]


def test_metrics_tell_of_requests(client):
    for _ in range(3):
        infer(client, row(1.0))

    def answered():
        page = client.get("/metrics").text
        families = {one.name: one for one in text_string_to_metric_families(page)}
        found = families.get("pyrometer_serve_answers")
        return 0 if found is None else found.samples[0].value

    end = time.monotonic() + 30
    while answered() < 3:
        assert time.monotonic() < end, "the monitor never told of the requests"


def test_the_page_and_its_openapi_document_describe_the_model(client):
    page = client.get("/docs").text
    assert "moody" in page
    assert "http://" not in page  # nothing is loaded from elsewhere
    document = client.get("/openapi.json").json()
    operation = document["paths"][f"{URL}/infer"]["post"]
    assert {"400", "413", "429", "500", "503", "504"} <= operation["responses"].keys()
    example = operation["requestBody"]["content"]["application/json"]["example"]
    assert client.post(f"{URL}/infer", json=example).status_code == 200


def test_a_client_that_asks_once_is_told_that_the_connection_ends(client):
    answer = client.post(f"{URL}/infer", json=body_of([row(1.0)]), headers={"Connection": "close"})
    assert (answer.status_code, answer.headers["connection"]) == (200, "close")
    assert "connection" not in client.post(f"{URL}/infer", json=body_of([row(1.0)])).headers


def test_statistics_tell_what_was_measured(client):
    infer(client, row(1.0))
    found = client.get(f"{URL}/stats").json()
    assert found["measured"]["answers"] >= 1
    assert found["measured"]["p99_s"] > 0
    assert "predicted" not in found


def test_the_prediction_stands_beside_what_was_measured(client):
    for _ in range(110):
        infer(client, row(1.0))
    predicted = client.get(f"{URL}/prediction").json()["predicted"]
    assert predicted["p99_s"]["low"] <= predicted["p99_s"]["value"] <= predicted["p99_s"]["high"]


def test_tritonclient_infers_in_json_and_in_bytes(server):
    http = pytest.importorskip("tritonclient.http")
    client = http.InferenceServerClient(server.url.removeprefix("http://"))
    try:
        assert client.is_server_ready()
        assert client.is_model_ready("moody")
        assert client.get_model_metadata("moody")["name"] == "moody"
        rows = np.array([row(1.0), row(5.0)], np.float32)
        for is_binary in (False, True):
            x = http.InferInput("x", list(rows.shape), "FP32")
            x.set_data_from_numpy(rows, binary_data=is_binary)
            asked = http.InferRequestedOutput("output", binary_data=is_binary)
            answer = client.infer(
                "moody", [x], outputs=[asked], request_id="7", timeout=60_000_000, priority=1
            )
            np.testing.assert_array_equal(answer.as_numpy("output"), 2 * rows)
            assert answer.get_response()["id"] == "7"
    finally:
        client.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_plain_curl_infers(server):
    said = subprocess.run(
        ["curl", "-sS", "-d", json.dumps(body_of([row(2.0)])), f"{server.url}{URL}/infer"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(said.stdout)["outputs"][0]["data"][0] == 4.0


def test_values_that_are_no_numbers_are_allowed_and_told(client):
    answer = infer(client, row(1.0)).json()
    assert "parameters" not in answer
    body = body_of([row(1.0)])
    body["inputs"][0]["data"][1] = None
    answer = client.post(f"{URL}/infer", json=body).json()
    assert answer["parameters"] == {"nonfinite_outputs": "output"}
    assert None in answer["outputs"][0]["data"]


def changed(**fields):
    body = body_of([row(1.0)])
    body["inputs"][0] |= fields
    return json.dumps(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "no legal JSON"),
        ('{"inputs": [', "no legal JSON"),
        ("[" * 100_000, "no legal JSON"),
        ("{}", "missing required field"),
        ('{"inputs": []}', "takes each of x once"),
        (changed(name="y"), "takes each of x once"),
        (changed(datatype="FP64"), "the model takes FP32"),
        (changed(datatype="BYTES", data=["a"] * 4), "the model takes FP32"),
        (changed(shape=[1] * 100_000), "got 100000 dimensions"),
        (changed(shape=[1, 5]), r"legal is [any, 4]"),
        (changed(shape=[0, 4], data=[]), r"legal is [any, 4]"),
        (changed(shape=[-1, 4]), r"legal is [any, 4]"),
        (changed(shape=[10**18, 4]), "got 4 values"),
        (changed(data=[1.0] * 5), "got 5 values"),
        (changed(data=None), "has no data"),
        (changed(data=["a"] * 4), "FP32 takes numbers; got 'a'"),
        (changed(data=[{}] * 4), "what is no number"),
        (changed(data=[[1.0], [1.0, 2.0, 3.0]]), "unlike length"),
        (changed(parameters={"binary_data_size": 16}), "goes beyond the 0 bytes"),
        (json.dumps(body_of([row(1.0)] * 5)), "at most 4 in one request"),
        (json.dumps(body_of([row(1.0)], parameters={"timeout": -1})), "microseconds"),
        (json.dumps(body_of([row(1.0)], parameters={"priority": 9})), "priority: got 9"),
        (json.dumps(body_of([row(1.0)], parameters={"priority": [1]})), r"priority: got [1]"),
        (json.dumps(body_of([row(1.0)], outputs=[{"name": "z"}])), "legal are output"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_in_one_line(client, body, said):
    answer = client.post(f"{URL}/infer", content=body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert infer(client, row(1.0)).status_code == 200


def test_bodies_that_are_too_large_are_refused_before_they_are_read(client, server):
    address = server.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=60) as connection:
        connection.sendall(
            b"POST %s/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n" % URL.encode()
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")
    with client.stream("POST", f"{URL}/infer", content=iter([b" " * (1 << 20)] * 65)) as answer:
        assert answer.status_code == 413
    assert infer(client, row(1.0)).status_code == 200


def test_headers_that_lie_are_refused(client):
    answer = client.post(f"{URL}/infer", json=body_of([row(1.0)]), headers={"Content-Encoding": "br"})
    assert answer.status_code == 415
    for length in ("x", "99999"):
        answer = client.post(
            f"{URL}/infer", json=body_of([row(1.0)]), headers={"Inference-Header-Content-Length": length}
        )
        assert answer.status_code == 400
        assert f"Inference-Header-Content-Length: got {length}" in answer.json()["error"].replace("'", "")


VALUES = {
    "BOOL": [True, False],
    "BF16": [1.0, -2.5],
    "FP16": [1.0, -2.5],
    "FP32": [1.0, -2.5],
    "FP64": [1.0, -2.5],
}


@pytest.mark.parametrize("dtype", list(DATATYPES), ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_every_type_travels_both_ways(dtype):
    spec = TensorSpec("x", dtype, (-1,))
    values = VALUES.get(spec.datatype, [1, 100])
    given = {"name": "x", "shape": [2], "datatype": spec.datatype}
    plain = json.dumps({"inputs": [{**given, "data": values}]}).encode()
    decoded = decode_request(plain, None, [spec])
    assert spec.to_torch(decoded.arrays[0]).tolist() == values
    answer = encode_answer({}, [(spec, decoded.arrays[0])], decoded.request)
    assert json.loads(answer.body)["outputs"][0]["data"] == values
    raw = decoded.arrays[0].tobytes()
    head = json.dumps(
        {
            "inputs": [{**given, "parameters": {"binary_data_size": len(raw)}}],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    again = decode_request(head + raw, len(head), [spec])
    assert spec.to_torch(again.arrays[0].copy()).tolist() == values
    answer = encode_answer({}, [(spec, again.arrays[0])], again.request)
    assert answer.body[answer.json_length :] == raw


@pytest.mark.parametrize(
    ("dtype", "data", "said"),
    [
        (torch.int64, [1.5, 2.0], "takes whole numbers"),
        (torch.int8, [1, 300], "INT8 holds -128 to 127"),
        (torch.uint8, [-1, 3], "UINT8 holds 0 to 255"),
        (torch.bool, [0, 1], "takes true and false"),
        (torch.float32, [True, False], "takes numbers"),
    ],
)
def test_values_of_another_kind_are_refused(dtype, data, said):
    spec = TensorSpec("x", dtype, (-1,))
    body = {"inputs": [{"name": "x", "shape": [2], "datatype": spec.datatype, "data": data}]}
    with pytest.raises(Exception, match=said):
        decode_request(json.dumps(body).encode(), None, [spec])
