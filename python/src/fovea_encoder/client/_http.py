"""Requests and replies of both clients, without the connections between them.

A call is a generator: it yields what is to be done (a Request, a Pause, or Work that blocks), gets
the outcome, and returns the result of the call. Client and AsyncClient each do these three things in
their way.
"""

from __future__ import annotations

import dataclasses
import json
import random
import time
import urllib.parse
from typing import Any, Callable, Dict, Generator, Mapping, Optional, Sequence, TypeVar, Union

from .._error import Error

Bytes = Union[bytes, bytearray, memoryview]
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Address:
    """Where a server is."""

    scheme: str
    host: str = ""
    port: int = 0
    socket: str = ""  # of scheme "unix": the path
    root: str = ""  # in front of all paths
    text: str = ""


def parse_address(url: str) -> Address:
    if not isinstance(url, str):
        raise TypeError(f"url: expected a str, got a {type(url).__name__}")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "unix" and parts.path and not parts.netloc:
        return Address("unix", host="localhost", socket=parts.path, text=url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or parts.query or parts.fragment:
        raise ValueError(f'expected "http://host:port", "https://host" or "unix:/path", got "{url}"')
    if "@" in parts.netloc:
        raise ValueError("expected a URL without a user or a password: `api_key` is what servers are told")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Address(parts.scheme, parts.hostname, port, root=parts.path.rstrip("/"), text=url)


@dataclasses.dataclass
class Request:
    method: str
    path: str
    deadline: float  # of time.monotonic()
    body: Sequence[Bytes] = ()
    content_type: str = ""
    is_held: bool = False  # of a result only the first line is read, and the connection stays open

    def remaining(self) -> float:
        return self.deadline - time.monotonic()

    def headers(self, api_key: Optional[str]) -> Dict[str, str]:
        headers = {"X-Request-Timeout-Ms": str(max(1, round(1000 * self.remaining())))}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        if self.method == "POST":
            headers["Content-Type"] = self.content_type
            headers["Content-Length"] = str(sum(len(piece) for piece in self.body))
        return headers


@dataclasses.dataclass
class Response:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: Bytes
    sent: float = 0.0  # time.monotonic() before the request
    is_open: Callable[[], bool] = lambda: False  # of a held one: whether the server still holds it
    close: Callable[[], None] = lambda: None

    def json(self) -> Dict[str, Any]:
        try:
            document = json.loads(bytes(self.body))
        except NOT_JSON:
            document = None
        if not isinstance(document, dict):
            text = f"the server replied {self.status} with something that is no JSON object"
            raise Error(text, "io")
        return document


@dataclasses.dataclass
class Pause:
    seconds: float


@dataclasses.dataclass
class Work:
    """Something that reads files or computes for a while."""

    call: Callable[[], Any]


# What json.loads() raises. Too deep is RecursionError, and whoever replies decides how deep it is.
NOT_JSON = (ValueError, RecursionError)

# Most characters of a message that quotes a reply.
_MOST_QUOTED = 4096


def quoted(text: str) -> str:
    """A text of a reply as it may stand in a message: bounded, and without characters that would move
    the text of a terminal."""
    if len(text) > _MOST_QUOTED:
        text = f"{text[: _MOST_QUOTED // 2]}...{text[-_MOST_QUOTED // 2 :]}"
    return "".join(character if character.isprintable() else "?" for character in text)


Steps = Generator[Union[Request, Pause, Work], Any, T]


class ServerError(Error):
    """What a server replied in place of a result. `code` is as in other errors; `reason` is the code
    of the server (docs/serving.md), `status` that of HTTP, `param` what the server says is wrong."""

    def __init__(
        self,
        message: str,
        code: str = "internal",
        status: int = 0,
        reason: str = "",
        param: Optional[str] = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message, code)
        self.status = status
        self.reason = reason
        self.param = param
        self.request_id = request_id


_CODES_OF_REASONS = {
    "decode_failed": "corrupt_data",
    "device_error": "device",
    "non_finite_output": "device",
    "out_of_memory": "out_of_memory",
    "unsupported_media": "unsupported",
    "unsupported_dtype": "unsupported",
}
_CODES_OF_STATUSES = {
    404: "not_found",
    405: "unsupported",
    408: "deadline",
    415: "unsupported",
    429: "unavailable",
    501: "unsupported",
    502: "io",
    503: "unavailable",
    504: "deadline",
}


def error_of(response: Response) -> ServerError:
    """The error in a reply, whoever sent it: a proxy's has no JSON."""
    try:
        error = json.loads(bytes(response.body))["error"]
        message, reason = quoted(str(error["message"])), quoted(str(error["code"]))
        param, request_id = error.get("param"), quoted(str(error.get("request_id") or ""))
        param = None if param is None else quoted(str(param))
    except (*NOT_JSON, KeyError, TypeError, AttributeError):
        text = bytes(response.body[:200]).decode("utf-8", "replace").strip()
        message, reason, param, request_id = quoted(text) or "no message", "", None, ""
    status = response.status
    code = _CODES_OF_STATUSES.get(status, "internal" if status >= 500 else "invalid_argument")
    code = _CODES_OF_REASONS.get(reason, code)
    text = f"{message} (status {status}{', ' + reason if reason else ''})"
    return ServerError(text, code, status, reason, param, request_id)


def _retry_after(response: Response) -> Optional[float]:
    """Seconds after which a busy or starting server wants to be asked again."""
    if response.status not in (429, 503) or "retry-after" not in response.headers:
        return None
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except ValueError:  # a date, of a proxy
        return 1.0


def exchange(request: Request) -> Steps[Response]:
    """The reply to a request, which is repeated as long as the server says so and the deadline
    allows it."""
    while True:
        response: Response = yield request
        pause = _retry_after(response)
        if pause is None or pause >= request.remaining():
            return response
        # Clients that were refused together do not come back together.
        yield Pause(min(pause * random.uniform(1, 1.25), max(0.0, request.remaining())))


def checked(request: Request) -> Steps[Response]:
    """exchange(), for requests whose reply has to be a result."""
    response = yield from exchange(request)
    if response.status != 200:
        raise error_of(response)
    return response


def cannot_connect(address: Address, problem: object) -> Error:
    text = f"{address.text}: cannot connect: {problem}; is `fovea serve` running there?"
    return Error(text, "unavailable")


def connection_lost(address: Address, problem: object) -> Error:
    why = str(problem) or type(problem).__name__
    text = f"{address.text}: the connection was lost before the reply was complete: {why}"
    return Error(text, "unavailable")


def took_too_long(address: Address) -> Error:
    text = f"{address.text}: no reply in time; `timeout` says how many seconds a call may take"
    return Error(text, "deadline")
