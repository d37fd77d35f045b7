"""Client and AsyncClient with a server."""

import asyncio
import base64
import concurrent.futures
import contextlib
import http.server
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import types
import urllib.request

import numpy
import pytest
from conftest import FRAMES, IMAGES, MODEL, read_safetensors
from PIL import Image
from servers import PATIENCE, Scripted, reply, served

import fovea_encoder as fovea
from fovea_encoder.client import AsyncClient, Client, ServerError
from fovea_encoder.client._http import Response

CLIP = str(MODEL.parents[1] / "media" / "videos" / "ramp_h264.mp4")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def pixels(path):
    return numpy.array(Image.open(path).convert("RGB"))


def data_url(path):
    return "data:image/png;base64," + base64.b64encode(read(path)).decode()


class InALoop:
    """An AsyncClient whose calls are awaited."""

    def __init__(self, url, **options):
        self.loop = asyncio.new_event_loop()
        self.client = AsyncClient(url, **options)

    def __getattr__(self, name):
        method = getattr(self.client, name)
        return lambda *args, **kwargs: self.loop.run_until_complete(method(*args, **kwargs))


@pytest.fixture(params=["threads", "asyncio"])
def connect(request):
    """Makes clients of either kind."""
    made = []

    def make(url, **options):
        if request.param == "asyncio":
            pytest.importorskip("httpx")
        made.append((InALoop if request.param == "asyncio" else Client)(url, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()
        if isinstance(client, InALoop):
            client.loop.close()


@pytest.fixture
def client(connect, server):
    return connect(server)


KINDS = {
    "path": lambda path: path,
    "bytes": read,
    "view": lambda path: memoryview(read(path)),
    "PIL": Image.open,
    "array": pixels,
    "strided array": lambda path: pixels(path)[:, ::-1][:, ::-1],
    "URL": data_url,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_have_the_bits_of_the_program(client, program_rows, kind, dtype):
    items = client.encode([KINDS[kind](path) for path in IMAGES], dtype=dtype)
    for item, rows in zip(items, program_rows(dtype), strict=False):
        assert isinstance(item, fovea.Embedding)
        assert (item.dtype, item.shape) == (dtype, rows.shape)
        assert item._array().tobytes() == rows.tobytes()


def test_an_embedding_says_what_that_of_an_engine_says(client, engine):
    given = [IMAGES[0], read(IMAGES[1])]
    for mine, theirs in zip(client.encode(given), engine.encode(given), strict=True):
        for name in ("name", "modality", "shape", "grid_thw", "timestamps", "retained", "error"):
            assert getattr(mine, name) == getattr(theirs, name)
        assert mine.key


@pytest.fixture(scope="session")
def clip_rows(program, tmp_path_factory):
    """Rows of CLIP that the program writes."""
    output = tmp_path_factory.mktemp("clip") / "rows.safetensors"
    command = [program, "encode", MODEL, "--video", CLIP, "--fps", "4", "--device", "cpu", "-o", output]
    done = subprocess.run([*command, "--dtype", "float32"], capture_output=True, text=True)
    if "need the video plugin" in done.stderr:
        pytest.skip("the program was built without the video plugin")
    assert done.returncode == 0, done.stderr
    return read_safetensors(output)["item_0"]


@pytest.mark.parametrize("kind", ["path", "bytes", "with a URL"])
def test_a_video_has_the_rows_of_the_program(client, clip_rows, kind):
    images = data_url(IMAGES[0]) if kind == "with a URL" else IMAGES[0]
    video = read(CLIP) if kind == "bytes" else CLIP
    image, item = client.encode(images, video, dtype="float32", fps=4.0)
    assert (image.modality, item.modality) == ("image", "video")
    assert len(item.timestamps) == item.grid_thw[0]
    assert item._array().tobytes() == clip_rows.tobytes()


@pytest.fixture(scope="session")
def frame_rows(program, tmp_path_factory):
    """Rows of the frames that the program writes."""
    output = tmp_path_factory.mktemp("frames") / "rows.safetensors"
    command = [program, "encode", MODEL, "--video", MODEL / "video_frames", "--device", "cpu", "-o", output]
    subprocess.run([*command, "--dtype", "float32"], check=True, capture_output=True)
    return read_safetensors(output)["item_0"]


@pytest.mark.parametrize("kind", ["folder", "pixels"])
def test_frames_have_the_rows_of_the_program(client, frame_rows, kind):
    video = MODEL / "video_frames" if kind == "folder" else numpy.stack([pixels(path) for path in FRAMES])
    image, item = client.encode(IMAGES[0], [video], dtype="float32")
    assert (image.modality, item.modality) == ("image", "video")
    assert item._array().tobytes() == frame_rows.tobytes()


def test_a_folder_without_frames_is_refused(client, tmp_path):
    (tmp_path / "notes.txt").write_text("no frame")
    with pytest.raises(fovea.Error, match=r"expected .jpg, .*, found none") as caught:
        client.encode(videos=tmp_path)
    assert caught.value.code == "not_found"
    with pytest.raises(TypeError, match=r"videos\[0\]: expected a path of a container"):
        client.encode(videos=numpy.zeros((2, 3), numpy.uint8))


def test_a_bad_frame_is_an_error_of_its_video(client, tmp_path):
    for number, content in enumerate([read(FRAMES[0]), b"no image"]):
        (tmp_path / f"{number}.png").write_bytes(content)
    good, bad = client.encode(IMAGES[0], tmp_path, on_error="record")
    assert good.error is None
    assert bad.error is not None and bad.error.code == "corrupt_data"


def test_auto_is_the_type_of_the_checkpoint(client):
    (item,) = client.encode(IMAGES[0])
    assert item.dtype == client.info()["dtype"]


def test_nothing_gives_nothing(client):
    assert client.encode([]) == []


def test_more_items_than_a_request_takes(connect, server, program_rows):
    items = connect(server, batch_size=2).encode(IMAGES, dtype="float32")
    assert [item.name for item in items] == IMAGES
    for item, rows in zip(items, program_rows("float32"), strict=False):
        assert item._array().tobytes() == rows.tobytes()


def test_a_bad_image_is_named(client):
    with pytest.raises(ServerError, match=r"images\[1\].*decode_failed") as caught:
        client.encode([IMAGES[0], b"no image"])
    error = caught.value
    assert (error.code, error.reason, error.status) == ("corrupt_data", "decode_failed", 422)
    assert error.param == "file[1]"
    assert error.request_id


def test_bad_images_are_recorded_between_good_ones(client, program_rows, tmp_path):
    bad = [b"no image", str(tmp_path / "none.jpg"), read(IMAGES[0])[:100], "data:image/png;base64,AAAA"]
    given = [item for pair in zip(IMAGES, bad, strict=False) for item in pair]
    items = client.encode(given, dtype="float32", on_error="record")
    assert len(items) == len(given)
    for item, rows in zip(items[::2], program_rows("float32"), strict=False):
        assert item._array().tobytes() == rows.tobytes()
    codes = [item.error.code for item in items[1::2]]
    assert codes == ["corrupt_data", "not_found", "corrupt_data", "corrupt_data"][: len(codes)]
    assert items[3].name == bad[1]


def test_a_file_that_is_not_there_is_an_error_before_any_request(connect):
    with Scripted() as nobody:
        with pytest.raises(fovea.Error, match="none.jpg: no such image file") as caught:
            connect(nobody.url).encode("none.jpg")
    assert caught.value.code == "not_found"


@pytest.mark.parametrize("item", [3, numpy.zeros((4, 4), numpy.uint8), numpy.zeros((4, 4, 3))])
def test_an_object_of_a_wrong_type_is_named(client, item):
    with pytest.raises(TypeError, match=r"images\[1\]: expected a path"):
        client.encode([IMAGES[0], item], on_error="record")


def test_pixels_without_any_are_an_error_of_their_item(client):
    """As they are for an engine."""
    images = [numpy.zeros((0, 4, 3), numpy.uint8), Image.new("RGB", (0, 4)), numpy.zeros((4, 0, 3), numpy.uint8)]
    videos = [numpy.zeros((0, 4, 4, 3), numpy.uint8)]
    for item in client.encode(images, videos, on_error="record"):
        assert item.error.code == "invalid_argument"
        assert str(item.error).startswith(f"{item.name}: expected at least 1x1 pixels, got an array")
    with pytest.raises(fovea.Error, match=r"images\[1\]: expected at least 1x1 pixels, got an array \[4, 0, 3\]"):
        client.encode([IMAGES[0], images[1]])
    (item,) = client.encode(numpy.zeros(0, numpy.uint8), on_error="record")
    assert item.error.code == "invalid_argument"
    with pytest.raises(TypeError, match=r"images\[0\]: expected a path"):
        client.encode(numpy.zeros((0, 4), numpy.uint8))


def test_element_types_have_short_names(client):
    for short, full in ("bf16", "bfloat16"), ("fp16", "float16"), ("f32", "float32"):
        (item,) = client.encode(IMAGES[0], dtype=short)
        assert item.dtype == full


def test_words_that_are_not_known(client):
    with pytest.raises(ValueError, match="dtype: expected one of auto"):
        client.encode(IMAGES[0], dtype="int4")
    with pytest.raises(ValueError, match="on_error: expected one of raise, record"):
        client.encode(IMAGES[0], on_error="ignore")


def test_a_plan_has_the_rows_of_the_engine(client, engine):
    sizes = [(640, 480), (320, 240, 4)]
    plan, expected = client.plan(sizes), engine.plan(sizes)
    assert [item["num_embeds"] for item in plan["data"]] == [item.rows for item in expected.items]


def test_info_and_health(client, engine):
    info = client.info()
    assert (info["family"], info["width"]) == (engine.family, engine.width)
    assert len(info["fingerprint"]) == 64
    assert client.health() == "ok"


def publish(url, key, path, **options):
    """Has a server publish rows of an image, or of the video whose frames are in a folder, as the
    proxy of vLLM does. `options` stand beside the messages."""
    if os.path.isdir(path):
        frames = [data_url(os.path.join(path, name)).split(",")[1] for name in sorted(os.listdir(path))]
        part = {"type": "video_url", "video_url": {"url": "data:video/jpeg;base64," + ",".join(frames)}, "uuid": key}
    else:
        part = {"type": "image_url", "image_url": {"url": data_url(path)}, "uuid": key}
    body = {"messages": [{"role": "user", "content": [part]}], **options}
    request = urllib.request.Request(
        url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=PATIENCE).close()


def test_published_rows_are_found_under_their_key(client, server):
    publish(server, "a key/0".replace("/", "-"), IMAGES[0])
    (encoded,) = client.encode(IMAGES[0])
    item = client.cached("a key-0")
    assert item.key == "a key-0"
    assert (item.dtype, item.shape) == (encoded.dtype, encoded.shape)
    assert item._array().tobytes() == encoded._array().tobytes()
    file = client.cached_file("a key-0")
    assert file.endswith(item._array().tobytes()) and b'"ec_cache"' in file
    assert client.is_cached("a key-0")
    assert client.cached("another") is None
    assert client.cached_file("another") is None
    assert not client.is_cached("another")
    for name in ("", ".", "..", "a/b", "../cache/a key-0"):
        assert client.cached(name) is None
        assert not client.is_cached(name)


def test_a_unix_socket(connect, program, program_rows, tmp_path):
    with served(program, MODEL, "--uds", str(tmp_path / "socket")) as url:
        assert url.startswith("unix:")
        (item,) = connect(url).encode(IMAGES[0], dtype="float32")
        assert item._array().tobytes() == program_rows("float32")[0].tobytes()


def test_a_key_for_the_server(connect, program):
    with served(program, MODEL, "--api-key", "secret") as url:
        assert connect(url, api_key="secret").encode(IMAGES[0])
        with pytest.raises(ServerError, match="Authorization") as caught:
            connect(url, api_key="wrong").encode(IMAGES[0])
        assert (caught.value.status, caught.value.reason) == (401, "invalid_api_key")


def test_a_body_that_is_refused_before_it_is_read(connect, program, monkeypatch):
    monkeypatch.setenv("FOVEA_MAX_BODY_BYTES", "1M")
    with served(program, MODEL) as url:
        client = connect(url)
        with pytest.raises(fovea.Error) as caught:
            client.encode(numpy.zeros((2000, 2000, 3), numpy.uint8))
        assert "body_too_large" in str(caught.value)
        assert client.encode(IMAGES[0])


def test_another_model_is_refused(connect, server):
    with pytest.raises(ServerError) as caught:
        connect(server, model="another").encode(IMAGES[0])
    assert (caught.value.code, caught.value.reason) == ("not_found", "model_not_found")


def test_calls_share_a_connection(connect):
    with Scripted(reply(200), reply(200)) as scripted:
        client = connect(scripted.url)
        client.info()
        client.info()
        assert scripted.connections == 1


@pytest.fixture
def callers():
    """The URL of a server, and the addresses that its requests come from."""
    addresses = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            addresses.append(self.client_address)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "http://127.0.0.1:%d" % server.server_port, addresses
        server.shutdown()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_connections_of_its_own(connect, callers):
    url, addresses = callers
    client = connect(url)
    client.info()
    child = os.fork()
    if child == 0:
        try:
            if isinstance(client, InALoop):
                asyncio.run(client.client.info(timeout=5))
            else:
                client.info(timeout=5)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    client.info()
    ours, of_child, ours_again = addresses
    assert ours == ours_again
    assert ours != of_child


def test_threads_of_a_forked_process_take_no_connection_of_the_other(callers, monkeypatch):
    url, addresses = callers
    with Client(url) as client:
        client.info()
        client._process = -1  # as one that was forked finds it
        begun, finish = threading.Event(), threading.Event()

        def lock():
            if not begun.is_set():
                begun.set()
                finish.wait(PATIENCE)
            return threading.Lock()

        monkeypatch.setattr("fovea_encoder.client._sync.threading", types.SimpleNamespace(Lock=lock))
        first = threading.Thread(target=client.info)
        first.start()
        begun.wait(PATIENCE)
        client.info()
        finish.set()
        first.join()
    assert len(addresses) == 3
    assert addresses[0] not in addresses[1:]


def test_an_event_loop_makes_connections_of_its_own(callers):
    pytest.importorskip("httpx")
    url, addresses = callers
    client = AsyncClient(url)

    async def twice():
        return [await client.info() for _ in range(2)]

    assert asyncio.run(client.info()) == {}
    assert asyncio.run(twice()) == [{}, {}]
    asyncio.run(client.close())
    first, second, second_again = addresses
    assert first != second
    assert second == second_again


def test_a_client_that_was_closed_connects_again(connect):
    with Scripted(reply(200), reply(200)) as scripted:
        client = connect(scripted.url)
        for _ in range(2):
            assert client.info() == {}
            client.close()
        client.close()
        assert scripted.connections == 2


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_call_without_time_is_an_error_at_once(connect, timeout):
    with Scripted() as nobody:
        with pytest.raises(fovea.Error, match="no reply in time") as caught:
            connect(nobody.url).info(timeout=timeout)
    assert caught.value.code == "deadline"
    assert nobody.connections == 0


def test_a_connection_that_was_closed_while_idle_is_made_again(connect):
    with Scripted(reply(200), reply(200), close_after_reply=True) as scripted:
        client = connect(scripted.url)
        client.info()
        client.info()
        assert scripted.connections == 2


def test_a_busy_server_is_asked_again(connect):
    busy = reply(429, {"error": {"message": "m", "code": "queue_full"}}, "Retry-After: 0\r\n")
    with Scripted(busy, busy, reply(200, {"model": "m"})) as scripted:
        assert connect(scripted.url).info() == {"model": "m"}
        assert scripted.requests == ["/info"] * 3


def test_a_server_that_is_busy_beyond_the_deadline_is_an_error(connect):
    busy = reply(429, {"error": {"message": "full", "code": "queue_full"}}, "Retry-After: 9999\r\n")
    with Scripted(busy) as scripted:
        with pytest.raises(ServerError, match="full") as caught:
            connect(scripted.url).info()
    assert (caught.value.code, caught.value.reason) == ("unavailable", "queue_full")


def test_a_reply_that_is_no_json_is_an_error(connect):
    with Scripted(reply(502, body=b"<html>proxy")) as scripted:
        with pytest.raises(ServerError, match="<html>proxy .status 502") as caught:
            connect(scripted.url).info()
    assert caught.value.code == "io"


def test_a_reply_without_an_end_is_an_error(connect):
    """Whatever a server sends: JSON too deep to be read, a message of megabytes, codes of terminals."""
    deep = b"[" * 100_000
    for body in (deep, b'{"a":' * 100_000, b"[1]"):
        with Scripted(reply(200, body=body)) as scripted:
            with pytest.raises(fovea.Error, match="no JSON") as caught:
                connect(scripted.url).info()
        assert caught.value.code == "io"
    with Scripted(reply(400, body=deep)) as scripted:
        with pytest.raises(ServerError, match="status 400"):
            connect(scripted.url).info()
    rows = len(deep).to_bytes(8, "little") + deep
    with Scripted(reply(200, body=rows)) as scripted:
        with pytest.raises(fovea.Error, match="does not hold rows"):
            connect(scripted.url).encode(IMAGES[0])
    wild = "\x1b[31m\x9b2J\u202e" + "x" * 1_000_000
    error = {"message": wild, "code": wild, "param": wild, "request_id": wild}
    with Scripted(reply(400, {"error": error})) as scripted:
        with pytest.raises(ServerError) as caught:
            connect(scripted.url).info()
    for text in (str(caught.value), caught.value.reason, caught.value.param, caught.value.request_id):
        assert len(text) < 10_000
        assert text.isprintable()


def test_rows_that_are_none_are_an_error(connect):
    with Scripted(reply(200, body=b"\1\0\0\0\0\0\0\0{")) as scripted:
        with pytest.raises(fovea.Error, match="does not hold rows") as caught:
            connect(scripted.url).encode(IMAGES[0])
    assert caught.value.code == "corrupt_data"


def test_a_connection_that_is_lost_is_an_error(connect):
    with Scripted(None, None) as scripted:
        with pytest.raises(fovea.Error, match="the connection was lost") as caught:
            connect(scripted.url).encode(IMAGES[0])
    assert caught.value.code == "unavailable"


def test_a_reply_that_ends_early_is_an_error(connect):
    cut = reply(200, body=b"0123456789")[:-3]
    with Scripted(cut, cut, close_after_reply=True) as scripted:
        with pytest.raises(fovea.Error, match="the connection was lost") as caught:
            connect(scripted.url).info()
    assert caught.value.code == "unavailable"


@pytest.mark.parametrize("length", [10**14, 10**19])
def test_a_reply_that_is_said_to_be_longer_than_memory_is_an_error(connect, length):
    cut = b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n{}" % length
    with Scripted(cut, cut, close_after_reply=True) as scripted:
        with pytest.raises(fovea.Error, match="the connection was lost") as caught:
            connect(scripted.url).info()
    assert caught.value.code == "unavailable"


def test_a_reply_may_be_longer_than_what_is_read_at_once(connect, monkeypatch):
    monkeypatch.setattr("fovea_encoder.client._sync._ROOM_BYTES", 1000)
    document = {"text": "0123456789" * 1000}
    with Scripted(reply(200, document), reply(200, document)) as scripted:
        client = connect(scripted.url)
        assert client.info() == document
        assert client.info() == document
        assert scripted.connections == 1


def test_a_server_that_is_not_there_is_an_error(connect):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = "http://127.0.0.1:%d" % free.getsockname()[1]
    with pytest.raises(fovea.Error, match="cannot connect.*is `fovea serve` running") as caught:
        connect(url).health()
    assert caught.value.code == "unavailable"


def test_a_server_that_does_not_reply_is_an_error(connect):
    with Scripted("wait") as scripted:
        with pytest.raises(fovea.Error, match="no reply in time") as caught:
            connect(scripted.url).info(timeout=0.2)
    assert caught.value.code == "deadline"


HEAD = b"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n"


@pytest.mark.parametrize(
    ("at_once", "drop"),
    [
        (HEAD, b"a"),
        (HEAD + b"\r\n", b"a"),
        (b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    ],
    ids=["head", "body", "chunks"],
)
def test_a_server_that_replies_drop_by_drop_is_an_error_at_the_deadline(connect, at_once, drop):
    """Each drop comes in time, and all of them together do not."""
    gone = threading.Event()

    def answer(listening):
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(at_once)
            while not gone.wait(0.05):
                connection.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        calls = concurrent.futures.ThreadPoolExecutor(1)
        client = connect("http://127.0.0.1:%d" % listening.getsockname()[1])
        call = calls.submit(client.info, timeout=0.5)
        try:
            with pytest.raises(fovea.Error, match="no reply in time") as caught:
                call.result(10)
        finally:
            gone.set()
            thread.join()
            calls.shutdown()
    assert caught.value.code == "deadline"


def test_a_host_with_several_addresses_that_do_not_answer_is_an_error_at_the_deadline(monkeypatch):
    """A listening socket whose queue is full leaves connections waiting, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as queue:
        for _ in range(8):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [address] * 8)
        begin = time.monotonic()
        with Client("http://host:1") as client, pytest.raises(fovea.Error, match="no answer") as caught:
            client.info(timeout=0.5)
    assert caught.value.code == "unavailable"
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://", "unix:", "http://h/?a=b", "http://h:0", "http://h:99999"])
def test_a_url_that_is_none(connect, url):
    with pytest.raises(ValueError, match="expected|Port out of range"):
        connect(url)


@pytest.mark.parametrize("url", [None, 8080, b"http://host", pathlib.Path("/run/fovea.sock")])
def test_a_url_is_text(connect, url):
    with pytest.raises(TypeError, match="url: expected a str, got a "):
        connect(url)


def test_what_becomes_of_pil_images_is_checked_at_once(connect):
    with pytest.raises(ValueError, match="media_profile: expected one of vllm, vllm-0.23, transformers, sglang, got"):
        connect("http://host", media_profile="vLLM")
    for colour in ((0, 0), (0, 0, 256), (0, 0, 0.5), "white"):
        with pytest.raises(ValueError, match="rgba_background_color: expected three numbers from 0 to 255, got"):
            connect("http://host", rgba_background_color=colour)
    connect("http://host", rgba_background_color=[0, 128, 255], media_profile="sglang")
    connect("http://host", rgba_background_color=numpy.array([0, 128, 255]))


def test_a_url_with_a_password_is_refused_and_not_repeated(connect):
    with pytest.raises(ValueError, match="without a user or a password.*api_key") as caught:
        connect("http://me:secret@localhost")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e12])
def test_a_time_that_no_clock_has_is_refused(connect, seconds):
    with Scripted(reply(200)) as scripted:
        with pytest.raises(ValueError, match="timeout: expected at most 31536000 seconds"):
            connect(scripted.url).info(timeout=seconds)
        assert connect(scripted.url).info(timeout=31536000) == {}


def test_threads_share_a_client(server, program_rows):
    with Client(server) as client, concurrent.futures.ThreadPoolExecutor(8) as pool:
        for (item,) in pool.map(lambda _: client.encode(IMAGES[0], dtype="float32"), range(32)):
            assert item._array().tobytes() == program_rows("float32")[0].tobytes()


def test_tasks_share_a_client(server, program_rows):
    pytest.importorskip("httpx")

    async def encode():
        async with AsyncClient(server) as client:
            calls = (client.encode(IMAGES[0], dtype="float32") for _ in range(32))
            return await asyncio.gather(*calls)

    for (item,) in asyncio.run(encode()):
        assert item._array().tobytes() == program_rows("float32")[0].tobytes()


def test_a_task_that_is_cancelled_when_its_reply_comes_is_cancelled():
    pytest.importorskip("httpx")

    async def cancel():
        async with AsyncClient("http://localhost") as client:
            loop = asyncio.get_running_loop()

            async def exchange(request):
                loop.call_soon(task.cancel)
                return Response(200, {}, b"{}")

            client._exchange = exchange
            task = asyncio.ensure_future(client.info())
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())


def test_without_httpx_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ImportError, match="needs httpx"):
        AsyncClient("http://localhost")


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (2700, 2100)])
def test_pixels_come_out_of_the_file_that_is_sent(size):
    from fovea_encoder.client._png import png

    image = numpy.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), numpy.uint8)
    file = png(image.tobytes(), *size)
    assert (numpy.array(Image.open(io.BytesIO(file))) == image).all()
