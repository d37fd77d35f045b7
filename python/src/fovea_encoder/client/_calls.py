"""What the calls of a server are, for both clients."""

from __future__ import annotations

import dataclasses
import json
import re
import ssl
import time
import urllib.parse
from numbers import Integral
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from .._arguments import check_type, frame_rate, item_sizes
from .._error import Error
from .._native import Embedding, failed_embedding, row_dtype
from ._device import Lease, Mappings, copy_lent
from ._http import Address, Bytes, Request, ServerError, Steps, Work, checked, error_of, exchange, parse_address, quoted
from ._media import Item, Loader, request_body
from ._rows import cached_rows, encoded_rows

# Bytes of media after which a request is sent before it has `batch_size` items. Servers take more
# (--max-body-bytes), but hold them until they are encoded.
_REQUEST_BYTES = 128 << 20
_MOST_SECONDS = 365 * 24 * 3600  # sockets and headers have an end of time of their own
_BLAMED = re.compile(r"(?:file|items)\[(\d+)\]")
_CHOICES = {
    "on_error": ("raise", "record"),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Of a call of encode()."""

    dtype: str
    on_error: str
    fps: float
    use_cache: bool

    def __post_init__(self) -> None:
        check_type(str, dtype=self.dtype, on_error=self.on_error)
        check_type(bool, use_cache=self.use_cache)
        if self.dtype != "auto":
            object.__setattr__(self, "dtype", row_dtype(self.dtype))  # of an alias the full name
        object.__setattr__(self, "fps", frame_rate(self.fps))

    def check(self) -> None:
        for name, words in _CHOICES.items():
            if getattr(self, name) not in words:
                raise ValueError(f'{name}: expected one of {", ".join(words)}, got "{getattr(self, name)}"')


class Calls:
    """The calls of one server, as steps."""

    def __init__(
        self, address: Address, loader: Loader, model: Optional[str], timeout: float, batch_size: int
    ) -> None:
        check_type(Integral, batch_size=batch_size)
        if batch_size < 1:
            raise ValueError(f"batch_size: expected at least 1, got {batch_size}")
        self.address = address
        self._loader = loader
        self._model = model
        self._timeout = timeout
        self._batch_size = batch_size

    def encode(
        self, images: Any, videos: Any, options: Options, timeout: Optional[float]
    ) -> Steps[List[Embedding]]:
        options.check()
        deadline = self._deadline(timeout)
        results: Dict[int, Embedding] = {}
        items = self._loader.items(images, videos)
        while group := (yield Work(lambda: self._group(items))):
            yield from self._encode_group(group, options, deadline, results)
        return [results[i] for i in range(len(results))]

    def plan(self, sizes: Any, timeout: Optional[float]) -> Steps[Dict[str, Any]]:
        items: List[Dict[str, Any]] = []
        for width, height, *frames in item_sizes(sizes):
            item = {"type": "video" if frames else "image", "width": width, "height": height}
            items.append({**item, "num_frames": frames[0]} if frames else item)
        body = json.dumps({**self._named(), "items": items}).encode()
        request = Request("POST", "/v1/plan", self._deadline(timeout), [body], "application/json")
        response = yield from checked(request)
        return dict(response.json())

    def info(self, timeout: Optional[float]) -> Steps[Dict[str, Any]]:
        response = yield from checked(Request("GET", "/info", self._deadline(timeout)))
        return dict(response.json())

    def health(self, timeout: Optional[float]) -> Steps[str]:
        response = yield Request("GET", "/health", self._deadline(timeout))
        if response.status not in (200, 503):
            raise error_of(response)
        return str(response.json().get("status", ""))

    def cached(self, key: str, timeout: Optional[float]) -> Steps[Optional[Embedding]]:
        file = yield from self.cached_file(key, timeout)
        return None if file is None else cached_rows(file, key)

    def cached_file(self, key: str, timeout: Optional[float]) -> Steps[Optional[Bytes]]:
        if not _is_key(key):
            return None
        path = "/v1/cache/" + urllib.parse.quote(key, safe="")
        response = yield from exchange(Request("GET", path, self._deadline(timeout)))
        if response.status == 200:
            return response.body
        error = error_of(response)
        if error.reason != "key_not_found":
            raise error
        return None

    def is_cached(self, key: str, timeout: Optional[float]) -> Steps[bool]:
        if not _is_key(key):
            return False
        path = "/v1/cache/" + urllib.parse.quote(key, safe="")
        response = yield from exchange(Request("HEAD", path, self._deadline(timeout)))
        if response.status not in (200, 404):
            raise error_of(response)
        return bool(response.status == 200)

    def device_rows(
        self, keys: Iterable[str], mappings: Mappings, timeout: Optional[float]
    ) -> Steps[Dict[str, Optional[Any]]]:
        if isinstance(keys, str):
            raise ValueError(f'keys: expected a list of names, got "{keys}"')
        names = list(keys)
        deadline = self._deadline(timeout)
        tensors: Dict[str, Any] = {}
        for begin in range(0, len(names), self._batch_size):
            tensors.update((yield from self._lent(names[begin : begin + self._batch_size], mappings, deadline)))
        return {name: tensors.get(name) for name in names}

    def _lent(self, names: List[str], mappings: Mappings, deadline: float) -> Steps[Dict[str, Any]]:
        body = json.dumps({"keys": names}).encode()
        request = Request("POST", "/v1/cache/lend", deadline, [body], "application/json", is_held=True)
        response = yield from checked(request)
        return (yield Work(lambda: copy_lent(response, names, mappings)))  # type: ignore[no-any-return]

    def lease(self, keys: List[str], timeout: Optional[float]) -> Steps[Lease]:
        body = json.dumps({"keys": keys}).encode()
        deadline = self._deadline(timeout)
        # Not repeated: a server that is full has the rows in other ways, too.
        response = yield Request("POST", "/v1/cache/lend", deadline, [body], "application/json", is_held=True)
        if response.status != 200:
            raise error_of(response)
        return Lease(response, keys)

    def _deadline(self, timeout: Optional[float]) -> float:
        seconds = self._timeout if timeout is None else timeout
        if not seconds <= _MOST_SECONDS:  # nor is NaN
            raise ValueError(f"timeout: expected at most {_MOST_SECONDS} seconds, a year, got {seconds}")
        return time.monotonic() + seconds

    def _named(self) -> Dict[str, Any]:
        return {} if self._model is None else {"model": self._model}

    def _group(self, items: Iterator[Item]) -> List[Item]:
        """Items of the next request, read."""
        group: List[Item] = []
        size = 0
        while len(group) < self._batch_size and size < _REQUEST_BYTES:
            item = next(items, None)
            if item is None:
                break
            group.append(item)
            size += item.size()
        return group

    def _encode_group(
        self, group: List[Item], options: Options, deadline: float, results: Dict[int, Embedding]
    ) -> Steps[None]:
        """Puts the embeddings of a group into `results`. One bad item fails a whole request of it, so
        that with on_error="record" the others are sent again."""
        waiting: List[Item] = []
        for item in group:
            if item.error is None:
                waiting.append(item)
            else:
                _settle(item, item.error, options, results)
        while waiting:
            request = yield Work(lambda: self._encode_request(waiting, options, deadline))
            response = yield from exchange(request)
            if response.status == 200:
                rows = yield Work(lambda: encoded_rows(response.body, [item.name for item in waiting]))
                results.update(zip((item.index for item in waiting), rows))
                return
            error = error_of(response)
            blamed = _blamed(error, waiting)
            if blamed is None:
                raise error
            _settle(blamed, _named_after(blamed, error), options, results)
            waiting.remove(blamed)

    def _encode_request(self, items: Sequence[Item], options: Options, deadline: float) -> Request:
        document = {
            **self._named(),
            "output": {
                "format": "safetensors",
                "dtype": options.dtype,
                "include": ["grid", "timestamps"],
            },
            "cache": "use" if options.use_cache else "bypass",
        }
        kind, body = request_body(items, document, options.fps)
        return Request("POST", "/v1/encode", deadline, body, kind)


class ServerClient:
    """What Client and AsyncClient have in common.

    `url` is "http://host:port", "https://host" or "unix:/path". `timeout` is how many seconds a call
    may take, with all that is repeated because the server is busy. `batch_size` items go into one
    request; servers take 64 (--max-items-per-request). `media_profile` and `rgba_background_color`
    say what becomes of PIL images, and are those of the server.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: Optional[str] = None,
        model: Optional[str] = None,
        timeout: float = 120.0,
        batch_size: int = 32,
        media_profile: str = "vllm",
        rgba_background_color: Tuple[int, int, int] = (255, 255, 255),
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._address = parse_address(url)
        self._api_key = api_key
        loader = Loader(media_profile, rgba_background_color)
        self._calls = Calls(self._address, loader, model, timeout, batch_size)
        self._open(ssl_context)

    def __repr__(self) -> str:
        return f"<fovea_encoder.client.{type(self).__name__} of {self._address.text}>"

    def _open(self, ssl_context: Optional[ssl.SSLContext]) -> None:
        """Prepares connections. Connects to nothing."""
        raise NotImplementedError


def _is_key(key: str) -> bool:
    """Whether rows can be published under a name (docs/serving.md, uuid): the path of another would lead
    elsewhere."""
    return key not in ("", ".", "..") and "/" not in key


def _settle(item: Item, error: Error, options: Options, results: Dict[int, Embedding]) -> None:
    if options.on_error == "raise":
        raise error
    results[item.index] = failed_embedding(item.name, item.modality, error)


def _blamed(error: ServerError, items: Sequence[Item]) -> Optional[Item]:
    """The item that a server refuses."""
    place = _BLAMED.match(error.param or "")
    if place is None or error.status in (429, 503) or int(place[1]) >= len(items):
        return None
    return items[int(place[1])]


def _named_after(item: Item, error: ServerError) -> ServerError:
    """The error with the name that the caller knows."""
    message, place = str(error), error.param or ""
    message = message[len(place) :].lstrip(": ") if message.startswith(place) else message
    text = f"{quoted(item.name)}: {message}"
    return ServerError(text, error.code, error.status, error.reason, error.param, error.request_id)
