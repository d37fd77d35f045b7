"""FoveaVisionEncoder as a worker of Dynamo drives it. Run with ai-dynamo 1.6.1."""

import asyncio
import base64
import pathlib
import threading
import time
import types

import pytest
from conftest import IMAGES, MODEL
from servers import Scripted, reply

import fovea_encoder as fovea

torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("dynamo.vllm.multimodal_utils.custom_encoder")

from fovea_encoder.integrations.dynamo import FoveaVisionEncoder  # noqa: E402


def url_of(data):
    return "data:image/png;base64," + base64.b64encode(data).decode()


URLS = [url_of(pathlib.Path(path).read_bytes()) for path in IMAGES]


class Worker:
    """What a worker makes of --custom-encoder-class. Source: dynamo/vllm/handlers.py."""

    def __init__(self):
        backend = FoveaVisionEncoder()
        config = types.SimpleNamespace(
            architectures=["Qwen3VLForConditionalGeneration"],
            hf_config=types.SimpleNamespace(vision_config=types.SimpleNamespace(spatial_merge_size=2)),
        )
        self.adapter = dynamo.create_custom_encoder_adapter(backend, config, None)
        self.encoder = dynamo.AsyncVisionEncoder(backend)
        self.encoder.load(str(MODEL))

    def answer(self, *requests):
        """Of requests that come together: their prompts, or what they end with."""

        async def one(urls):
            return self.adapter.prepare_prompt([1, 2], await self.encoder.encode(urls))

        async def all_of_them():
            return await asyncio.gather(*map(one, requests), return_exceptions=True)

        return asyncio.run(all_of_them())


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setenv("FOVEA_DYNAMO", '{"device": "cpu", "threads": 2, "dtype": "float32"}')
    worker = Worker()
    yield worker
    worker.encoder.shutdown()


def test_prompts_hold_rows_and_grids(worker, engine):
    first, both = worker.answer(URLS[:1], URLS[:2])
    items = engine.encode(IMAGES[:2], dtype="float32")
    data = both["multi_modal_data"]["image"]
    assert torch.equal(data["image_embeds"], torch.cat([item.torch() for item in items]))
    assert data["image_grid_thw"].tolist() == [list(item.grid_thw) for item in items]
    assert torch.equal(first["multi_modal_data"]["image"]["image_embeds"], items[0].torch())


def test_images_are_fetched_as_dynamo_allows_it(worker, monkeypatch):
    data = pathlib.Path(IMAGES[0]).read_bytes()
    with Scripted(reply(200, body=data), reply(404)) as scripted:
        (refused,) = worker.answer([scripted.url + "/a.png"])
        assert isinstance(refused, ValueError) and scripted.requests == []
        monkeypatch.setenv("DYN_MM_ALLOW_INTERNAL", "1")
        fetched, given = worker.answer([scripted.url + "/a.png"], URLS[:1])
        rows = [prompt["multi_modal_data"]["image"]["image_embeds"] for prompt in (fetched, given)]
        assert torch.equal(*rows)
        (missing,) = worker.answer([scripted.url + "/b.png"])
        assert isinstance(missing, ValueError)
        assert str(missing) == "an image of the request cannot be fetched from its URL"


def test_a_bad_image_fails_its_own_request_alone(worker):
    whole = pathlib.Path(IMAGES[0]).read_bytes()
    header, data, good = worker.answer([url_of(b"no image")], [url_of(whole[: len(whole) // 2])], URLS[:1])
    assert isinstance(header, ValueError) and "cannot be read" in str(header)
    assert isinstance(data, TypeError) and "UndecodableImage" in str(data)
    assert good["multi_modal_data"]["image"]["image_embeds"].shape[0] > 0


def test_an_image_that_is_being_fetched_ends_with_the_encoder(monkeypatch):
    monkeypatch.setenv("DYN_MM_ALLOW_INTERNAL", "1")
    encoder, ends = FoveaVisionEncoder(), []

    def fetch(url):
        try:
            encoder.preprocess(url)
        except BaseException as problem:
            ends.append(problem)

    with Scripted("wait") as scripted:
        thread = threading.Thread(target=fetch, args=(scripted.url + "/a.png",), daemon=True)
        thread.start()
        while not scripted.requests:
            time.sleep(0.01)
        encoder.close()
        thread.join(10)
        assert len(ends) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("[]", "expected a JSON object"),
        ("{", "FOVEA_DYNAMO: "),
        ('{"devise": "cpu"}', "devise"),
        ('{"device": "cpu", "dtype": "int8"}', "int8"),
    ],
)
def test_options_that_make_no_sense_end_the_start(monkeypatch, options, message):
    monkeypatch.setenv("FOVEA_DYNAMO", options)
    with pytest.raises((ValueError, TypeError, fovea.Error), match=message):
        Worker()
