"""Rows of a server in tensors of this process, through memory of the GPU. Skipped without a GPU."""

import base64
import contextlib
import http.client
import json
import pickle
import subprocess
import sys
import urllib.request

import pytest
from conftest import IMAGES, MODEL
from servers import PATIENCE, served

import fovea_encoder as fovea
from fovea_encoder.client import Client
from fovea_encoder.integrations._lent_rows import Borrower, LeasedRows, Lenders, gpu_of

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

LONG = 2_000_000_000  # cycles: about a second
LENDS = ("--encoder-device-cache-size", "64Mi", "--lend-rows")


def publish(url, images):
    """Encodes images as an encode server of vLLM does: their rows are found by their names."""
    content = []
    for key, path in images.items():
        with open(path, "rb") as file:
            data = "data:image/png;base64," + base64.b64encode(file.read()).decode()
        content.append({"type": "image_url", "image_url": {"url": data}, "uuid": key})
    body = json.dumps({"messages": [{"role": "user", "content": content}]}).encode()
    request = urllib.request.Request(url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def bits(tensor):
    return tensor.contiguous().view(torch.uint8).cpu()


@pytest.fixture(scope="module")
def lender(program):
    with served(program, MODEL, *LENDS, "2", device="cuda:0") as url:
        publish(url, {f"image {i}": path for i, path in enumerate(IMAGES)})
        yield url


@pytest.fixture
def client(lender):
    with Client(lender, timeout=PATIENCE) as client:
        yield client


KEYS = [f"image {i}" for i in range(len(IMAGES))]


def test_rows_have_the_bits_that_the_server_sends(client):
    for _ in range(3):  # the second time the memory is mapped already
        found = client.device_rows([*KEYS, "nothing"])
        assert list(found) == [*KEYS, "nothing"] and found["nothing"] is None
        for key in KEYS:
            expected = client.cached(key).torch()
            assert found[key].device == torch.device("cuda", 0)
            assert (found[key].shape, found[key].dtype) == (expected.shape, expected.dtype)
            assert torch.equal(bits(found[key]), bits(expected))


def test_copies_stay_when_the_server_has_let_go(program):
    with served(program, MODEL, *LENDS, "1", device="cuda:0") as url, Client(url, timeout=PATIENCE) as client:
        publish(url, {"a": IMAGES[0]})
        found = client.device_rows(["a"])["a"]
        expected = client.cached("a").torch()
    assert torch.equal(bits(found), bits(expected)), "the server has ended"


def test_they_are_copied_on_the_current_stream(client):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG // 20)
        found = client.device_rows(KEYS)
        assert stream.query(), "copies are waited for"
    for key in KEYS:
        assert torch.equal(bits(found[key]), bits(client.cached(key).torch()))


def test_a_stream_that_is_far_behind_is_an_error(program):
    flags = (*LENDS, "1", "--lend-timeout", "0.3")
    with served(program, MODEL, *flags, device="cuda:0") as url, Client(url, timeout=PATIENCE) as client:
        publish(url, {"a": IMAGES[0]})
        client.device_rows(["nothing"])
        torch.cuda._sleep(LONG)
        with pytest.raises(fovea.Error, match="lend-timeout") as caught:
            client.device_rows(["a"])
        assert caught.value.code == "deadline"
        assert client.device_rows(["a"])["a"] is not None


def test_a_worker_copies_rows_that_its_scheduler_has_lent(client):
    lenders, borrower = Lenders(), Borrower(gpu_of("cuda:0"))
    with contextlib.closing(client.lease(["nothing"])) as lease:
        assert lenders.want(lease.lent.memories[0]) is None
    lenders.report(borrower.map(lenders.memories()))
    leased = {key: LeasedRows(client.lease([key]), lenders) for key in KEYS[:2]}
    assert all(one.is_fresh() for one in leased.values())
    rows = pickle.loads(pickle.dumps({key: one.rows() for key, one in leased.items()}))
    copies = borrower.copy(rows)
    for one in leased.values():
        one.close()
    for key, tensor in copies.items():
        assert torch.equal(bits(tensor), bits(client.cached(key).torch()))
    assert list(copies) == KEYS[:2]


DIES = """
import http.client, json, os, sys
connection = http.client.HTTPConnection(sys.argv[1])
connection.request("POST", "/v1/cache/lend", json.dumps({"keys": ["image 0"]}))
assert json.loads(connection.getresponse().readline())["items"]["image 0"]
os._exit(0)
"""


def test_a_process_that_dies_gives_rows_back(client, lender):
    address = lender.removeprefix("http://")
    for _ in range(4):  # more than are lent to at a time
        subprocess.run([sys.executable, "-c", DIES, address], check=True, timeout=PATIENCE)
    assert client.device_rows(KEYS)[KEYS[0]] is not None


def test_more_requests_than_are_lent_to_are_refused(lender):
    held = [http.client.HTTPConnection(lender.removeprefix("http://")) for _ in range(3)]
    answers = []
    for connection in held:
        connection.request("POST", "/v1/cache/lend", json.dumps({"keys": KEYS}))
        answers.append(connection.getresponse())
    assert [answer.status for answer in answers] == [200, 200, 429]
    for connection, answer in zip(held, answers, strict=True):
        connection.close()
        answer.close()


def test_a_handle_of_nothing_is_an_error():
    name = torch.cuda.get_device_properties(0).uuid
    with pytest.raises(fovea.Error) as caught:
        fovea._native.MappedMemory(f"GPU-{name}", bytes(64), 4096)
    assert caught.value.code == "device"
