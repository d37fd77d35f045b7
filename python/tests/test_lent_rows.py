"""What Client.device_rows() asks of a server and makes of its replies; no GPU is needed."""

import base64
import json

import pytest
from servers import Scripted, reply

import fovea_encoder as fovea
from fovea_encoder.client import Client, ServerError, _device

END = b"0\r\n\r\n"  # of a reply in chunks
HANDLE = bytes(range(64))
MEMORY = {"gpu": "GPU-a", "handle": base64.b64encode(HANDLE).decode(), "bytes": 4096}


def item(offset, rows=2, width=3, dtype="bfloat16", **more):
    size = rows * width * (4 if dtype == "float32" else 2)
    return {"memory": 0, "offset": offset, "bytes": size, "dtype": dtype, "shape": [rows, width], **more}


def lent(items, lasts_ms=60_000, memories=(MEMORY,)):
    return {"memories": list(memories), "items": items, "lasts_ms": lasts_ms}


def open_reply(document, end=b""):
    """The beginning of a reply in chunks."""
    line = json.dumps(document).encode() + b"\n"
    head = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n" % (len(line), line) + end


@pytest.fixture
def copied(monkeypatch):
    """What was to be copied, in place of copies."""
    calls = []

    def copy(self, lent):
        calls.append(lent)
        return {place.key: f"rows of {place.key}" for place in lent.places}

    monkeypatch.setattr(_device.Mappings, "copy", copy)
    return calls


def test_rows_are_found_or_not(copied):
    answer = open_reply(lent({"a": item(256), "b": None}))
    with Scripted(answer) as server, Client(server.url) as client:
        assert client.device_rows(["b", "a"]) == {"b": None, "a": "rows of a"}
    assert server.requests == ["/v1/cache/lend"]
    (given,) = copied
    assert given.memories == [("GPU-a", HANDLE, 4096)]
    assert given.places == [("a", 0, 256, 12, "bfloat16", (2, 3))]
    assert given.seconds == 60


def test_rows_are_given_back_by_an_empty_line(copied):
    answer = open_reply(lent({"a": item(0)}))
    script = (answer, (END,), answer, (END,), reply(200, {"model": "m"}))
    with Scripted(*script) as server, Client(server.url) as client:
        for _ in range(2):
            assert client.device_rows(["a"]) == {"a": "rows of a"}
        assert client.info() == {"model": "m"}
    assert server.connections == 1


def test_they_are_given_back_when_the_copy_fails(copied, monkeypatch):
    def copy(self, lent):
        raise fovea.Error("no GPU", "unsupported")

    monkeypatch.setattr(_device.Mappings, "copy", copy)
    script = (open_reply(lent({"a": item(0)})), (END,), reply(200, {"model": "m"}))
    with Scripted(*script) as server, Client(server.url) as client:
        with pytest.raises(fovea.Error, match="no GPU") as held:  # with all that the call referred to
            client.device_rows(["a"])
        client.info()
        assert held.value.code == "unsupported"
    assert server.connections == 1


def test_a_reply_that_has_ended_meanwhile_costs_no_connection(copied):
    answer = open_reply(lent({"a": item(0)}, lasts_ms=0), END)
    script = (answer, (b"",), reply(200, {"model": "m"}))
    with Scripted(*script) as server, Client(server.url) as client:
        with pytest.raises(fovea.Error, match="--lend-timeout"):
            client.device_rows(["a"])
        assert client.info() == {"model": "m"}
    assert server.connections == 1


@pytest.mark.parametrize("end", [None, b"no chunk\r\n", b"HTTP/1.1 200 X\r\n\r\n"])
def test_a_reply_without_an_end_costs_a_connection(copied, end):
    answer = open_reply(lent({"a": item(0)}))
    script = (answer, (end,), reply(200, {"model": "m"}))
    with Scripted(*script) as server, Client(server.url) as client:
        client.device_rows(["a"])
        assert client.info() == {"model": "m"}
    assert server.connections == 2


def test_a_connection_that_the_server_wants_closed_is_closed(copied):
    answer = open_reply(lent({"a": item(0)})).replace(b"Content-Type", b"Connection: close\r\nContent-Type")
    with Scripted(answer, reply(200, {"model": "m"})) as server, Client(server.url) as client:
        client.device_rows(["a"])
        assert client.info() == {"model": "m"}
    assert server.connections == 2


def test_many_keys_are_several_requests(copied):
    answers = [open_reply(lent({str(i): item(0) for i in group})) for group in ([0, 1], [2])]
    with Scripted(answers[0], (END,), answers[1]) as server, Client(server.url, batch_size=2) as client:
        assert client.device_rows("012"[i] for i in range(3)) == {str(i): f"rows of {i}" for i in range(3)}
    assert len(server.requests) == 2


def test_no_keys_are_no_request():
    with Client("http://127.0.0.1:1") as client:
        assert client.device_rows([]) == {}


def test_one_name_is_no_list_of_names():
    with Client("http://127.0.0.1:1") as client, pytest.raises(ValueError, match='a list of names, got "abc"'):
        client.device_rows("abc")


def test_rows_that_were_lent_for_too_short_a_time_are_an_error(copied):
    answer = open_reply(lent({"a": item(0)}, lasts_ms=0))
    with Scripted(answer) as server, Client(server.url) as client:
        with pytest.raises(fovea.Error, match="lent for 0 s.*--lend-timeout") as caught:
            client.device_rows(["a"])
        assert caught.value.code == "deadline"


def test_a_server_that_ends_meanwhile_is_an_error(monkeypatch):
    answer = open_reply(lent({"a": item(0)}))
    with Scripted(answer, close_after_reply=True) as server, Client(server.url) as client:

        def copy(self, lent):
            server._thread.join()  # the connection is closed
            return {}

        monkeypatch.setattr(_device.Mappings, "copy", copy)
        with pytest.raises(fovea.Error, match="the server has ended") as caught:
            client.device_rows(["a"])
        assert caught.value.code == "unavailable"


def test_a_busy_server_is_asked_again(copied):
    busy = reply(429, {"error": {"message": "full", "code": "queue_full"}}, "Retry-After: 0\r\n")
    with Scripted(busy, open_reply(lent({"a": item(0)}))) as server, Client(server.url) as client:
        assert client.device_rows(["a"]) == {"a": "rows of a"}
    assert server.connections == 1


def test_a_server_that_lends_nothing_says_so():
    error = {"message": "/v1/cache/lend takes GET, HEAD, DELETE", "code": "method_not_allowed"}
    with Scripted(reply(405, {"error": error})) as server, Client(server.url) as client:
        with pytest.raises(ServerError) as caught:
            client.device_rows(["a"])
        assert (caught.value.reason, caught.value.code) == ("method_not_allowed", "unsupported")


@pytest.mark.parametrize(
    "document",
    [
        {},
        lent({}),
        lent({"a": item(4090)}),
        lent({"a": item(-256)}),
        lent({"a": item(128)}),
        lent({"a": item(0, memory=1)}),
        lent({"a": item(0, memory=-1)}),
        lent({"a": item(0, bytes=13)}),
        lent({"a": item(0, dtype="int4", bytes=3)}),
        lent({"a": item(0, shape=[2])}),
        lent({"a": item(0)}, lasts_ms="long"),
        lent({"a": item(0)}, memories=[{**MEMORY, "handle": "?"}]),
        lent({"a": item(0)}, memories=[{"gpu": "GPU-a"}]),
        [],
    ],
)
def test_what_no_server_says_is_an_error(copied, document):
    with Scripted(open_reply(document)) as server, Client(server.url) as client:
        with pytest.raises(fovea.Error) as caught:
            client.device_rows(["a"])
        assert caught.value.code in ("corrupt_data", "io")
    assert copied == []


def test_rows_side_by_side_are_one_copy():
    response = _device.Response(
        200, {}, json.dumps(lent({"b": item(768), "a": item(256), "c": item(512, 1), "d": item(1280)})).encode()
    )
    places = _device.parse_lent(response, ["b", "a", "c", "d", "a"]).places
    assert [place.key for place in places] == ["a", "c", "b", "d"]
    runs = _device.runs_of(places)
    assert [(run.begin, run.end) for run in runs] == [(256, 780), (1280, 1292)]
    assert [[place.key for place in run.places] for run in runs] == [["a", "c", "b"], ["d"]]


def test_copies_have_the_bytes_of_their_rows():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    source = torch.arange(4096, dtype=torch.int64).remainder(251).to(torch.uint8)
    items = {
        "a": item(256),
        "b": item(512, 5, 7, "float32"),
        "c": item(2048, 1, 3, "float16"),
        "same": item(2048, 1, 3, "float16"),
    }
    response = _device.Response(200, {}, json.dumps(lent(items)).encode())
    found = _device.copy_runs(source, _device.runs_of(_device.parse_lent(response, list(items)).places))
    assert found.keys() == items.keys()
    for key, tensor in found.items():
        begin, size = items[key]["offset"], items[key]["bytes"]
        assert tensor.shape == tuple(items[key]["shape"])
        assert tensor.dtype == getattr(torch, items[key]["dtype"])
        assert torch.equal(tensor.contiguous().view(torch.uint8).flatten(), source[begin : begin + size])
    source.zero_()
    assert found["a"].view(torch.uint8).any(), "they are copies"


def test_memory_of_no_gpu_here_is_not_mapped():
    with pytest.raises(fovea.Error, match="memory of GPU-none cannot be mapped") as caught:
        fovea._native.MappedMemory("GPU-none", bytes(64), 4096)
    assert caught.value.code == "unsupported"
