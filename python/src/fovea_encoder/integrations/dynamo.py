"""Fovea as the vision encoder of a Dynamo worker: Dynamo's door for encoders of others. Needs ai-dynamo.

    FOVEA_DYNAMO='{"device": "cuda", "dtype": "bfloat16"}' python -m dynamo.vllm --model Qwen3-VL-8B-Instruct \\
        --enable-multimodal --custom-encoder-class fovea_encoder.integrations.dynamo.FoveaVisionEncoder

Source: ai-dynamo 1.6.1, dynamo/vllm/multimodal_utils/custom_encoder/backend/base.py and adapter/qwen3_vl.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import Any, Dict, List, Optional

from dynamo.common.http import AiohttpClient, HttpConfigurationError, HttpError
from dynamo.common.http.media_reference import max_media_bytes
from dynamo.common.http.url_validator import UrlValidationPolicy, validate_media_url
from dynamo.common.multimodal.media_source import is_local_media_url, read_local_media_bytes
from dynamo.vllm.multimodal_utils.custom_encoder import (
    Preprocessed,
    Qwen3VLImageEncoding,
    VisionEncoderBackend,
)

from .._engine import Engine
from .._native import Embedding

__all__ = ["FoveaVisionEncoder", "UndecodableImage"]

_VARIABLE = "FOVEA_DYNAMO"
_FETCH_SECONDS = 30.0


class UndecodableImage:
    """In the place of an image whose header was well and whose data are not. Dynamo refuses it by this
    name, and with it the request that sent it, where an exception would fail all of a batch."""


class FoveaVisionEncoder(VisionEncoderBackend):  # type: ignore[misc]
    """Images of the vision-language models that Dynamo takes encoded images of: Qwen3-VL and Qwen3.5.

    The environment variable FOVEA_DYNAMO may hold a JSON object of options: those of
    Engine.from_pretrained, and `dtype` of the rows ("bfloat16"). URLs are read in the way that
    Dynamo's variables DYN_MM_* and DYN_HTTP_* allow. An image that cannot be fetched or read is a
    ValueError, which the client sees. The engine packs what Dynamo hands over: there is no limit here.
    """

    preprocess_concurrency = 8

    def __init__(self) -> None:
        self._options = _options()
        self._dtype = str(self._options.pop("dtype", "bfloat16"))
        self._engine: Optional[Engine] = None
        self._reader = _Reader()

    def build(self, model_id: str) -> None:
        """Loads the tower of the checkpoint in the folder `model_id`, and captures its graphs."""
        self._engine = Engine.from_pretrained(model_id, **self._options)
        self._engine.encode([], dtype=self._dtype)  # refuses a wrong dtype before the first request
        self._engine.warm_up()

    def preprocess(self, raw: str) -> Preprocessed:
        """Fetches an image; in threads of Dynamo. @raises ValueError for what is no image."""
        data = self._reader.read(raw)
        planned = self._loaded().plan_items([data])
        rows = planned.rows[0]
        if rows is None:
            raise ValueError("an image of the request cannot be read: expected JPEG, PNG, WebP, BMP, GIF, TIFF, AVIF or HEIC within the limits")
        return Preprocessed(item=data, cost=rows)

    def forward_batch(self, items: List[bytes], target_bucket: Optional[int] = None) -> List[Any]:
        """Rows and grids of images, on the CPU."""
        encoded = self._loaded().encode(items, dtype=self._dtype, on_error="record")
        return [_artifact(item) for item in encoded]

    def close(self) -> None:
        self._engine = None
        self._reader.close()

    def _loaded(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("FoveaVisionEncoder: expected a call of build() before, and none of close()")
        return self._engine


class _Reader:
    """Bytes of URLs by Dynamo's own client, which belongs to the event loop that it was used in first:
    so it has one here, for all threads."""

    def __init__(self) -> None:
        self._client = AiohttpClient()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fovea-fetch", daemon=True)
        self._thread.start()

    def read(self, url: str) -> bytes:
        """@raises ValueError for a URL that is not allowed or cannot be fetched."""
        return asyncio.run_coroutine_threadsafe(self._read(url), self._loop).result()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        """Ends what is being read: its thread would wait for ever once the loop has stopped."""
        reading = asyncio.all_tasks() - {asyncio.current_task()}
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        await self._client.close()

    async def _read(self, url: str) -> bytes:
        policy = UrlValidationPolicy.from_env()
        url = await validate_media_url(url, policy)
        if is_local_media_url(url):
            return bytes(await read_local_media_bytes(url, policy))
        try:
            fetched = self._client.fetch_bytes(url, _FETCH_SECONDS, policy=policy, max_bytes=max_media_bytes())
            return bytes(await fetched)
        except HttpConfigurationError:  # of this worker, not of the request
            raise
        except HttpError as problem:
            raise ValueError("an image of the request cannot be fetched from its URL") from problem


def _artifact(item: Embedding) -> Any:
    if item.error is None and item.grid_thw is not None:
        t, h, w = item.grid_thw
        return Qwen3VLImageEncoding(embeddings=item.torch(), grid_thw=(int(t), int(h), int(w)))
    error = item.error or RuntimeError(f"{item.name}: rows without a grid, which Dynamo needs")
    if getattr(error, "code", "") in ("corrupt_data", "unsupported", "invalid_argument"):
        return UndecodableImage()
    raise error


def _options() -> Dict[str, Any]:
    text = os.environ.get(_VARIABLE, "{}")
    try:
        options = json.loads(text)
    except ValueError as problem:
        raise ValueError(f"{_VARIABLE}: {problem}") from None
    if not isinstance(options, dict):
        raise ValueError(f'{_VARIABLE}: expected a JSON object, for example {{"device": "cuda"}}, got {text}')
    return options
