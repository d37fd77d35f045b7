"""The client for threads, of the standard library alone."""

from __future__ import annotations

import functools
import http.client
import io
import os
import select
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, TypeVar, cast

from .._native import Embedding
from ._calls import Options, ServerClient
from ._device import Lease, Mappings
from ._http import (
    Address,
    Bytes,
    Pause,
    Request,
    Response,
    Steps,
    cannot_connect,
    connection_lost,
    took_too_long,
)

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

_ROOM_BYTES = 64 << 20  # that a reply gets before it comes
_TOGETHER_BYTES = 16 << 10  # a request of that size is sent in one piece, so that the server wakes once


class _Pieces(io.RawIOBase):
    """The bytes of replies, none of which is waited for behind the deadline of the request."""

    def __init__(self, deadline: float, sock: socket.socket, raw: io.RawIOBase) -> None:
        self.deadline = deadline
        self._sock, self._raw = sock, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._sock.settimeout(_patience(self.deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        super().close()
        self._raw.close()


class _Reply(http.client.HTTPResponse):
    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.pieces = _Pieces(deadline, sock, self.fp.detach())
        self.fp = io.BufferedReader(self.pieces)


class _Idle(NamedTuple):
    """A connection for the next request, and the reply whose end is still to come."""

    connection: http.client.HTTPConnection
    unread: Optional[_Reply] = None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client(ServerClient):
    """A running `fovea serve`, over the standard library alone. May be used by several threads at the
    same time; connections are kept open for the next call. A context manager, which closes them.
    The arguments are those of ServerClient."""

    def _open(self, ssl_context: Optional[ssl.SSLContext]) -> None:
        self._ssl_context = ssl_context
        self._mappings = Mappings()
        self._begin()

    def _begin(self) -> None:
        """Has no connection yet, in this process."""
        self._lock = threading.Lock()
        self._idle: List[_Idle] = []
        self._process = os.getpid()  # the last: another thread takes from the list as soon as it is this one

    def encode(
        self,
        images: Any = None,
        videos: Any = None,
        dtype: str = "auto",
        on_error: str = "raise",
        *,
        fps: float = 2.0,
        use_cache: bool = True,
        timeout: Optional[float] = None,
    ) -> List[Embedding]:
        """As Engine.encode(). Paths are read here; URLs (http, https, file, data) by the server.
        `dtype` "auto" is the type of the checkpoint."""
        options = Options(dtype, on_error, fps, use_cache)
        return self._run(self._calls.encode(images, videos, options, timeout))

    def plan(self, sizes: Iterable[Any], *, timeout: Optional[float] = None) -> Dict[str, Any]:
        """The reply of /v1/plan for items of these sizes: (width, height) of images, (width, height,
        frames) of videos."""
        return self._run(self._calls.plan(sizes, timeout))

    def info(self, *, timeout: Optional[float] = None) -> Dict[str, Any]:
        """The reply of /info: model, limits, fingerprint."""
        return self._run(self._calls.info(timeout))

    def health(self, *, timeout: Optional[float] = None) -> str:
        """The state of the server: "ok", "starting", "draining" or "unhealthy"."""
        return self._run(self._calls.health(timeout))

    def cached(self, key: str, *, timeout: Optional[float] = None) -> Optional[Embedding]:
        """The rows that were published under a key; None if there are none."""
        return self._run(self._calls.cached(key, timeout))

    def cached_file(self, key: str, *, timeout: Optional[float] = None) -> Optional[Bytes]:
        """The file of the rows that were published under a key: safetensors with the tensor `ec_cache`
        [rows, width]; None if there are none."""
        return self._run(self._calls.cached_file(key, timeout))

    def is_cached(self, key: str, *, timeout: Optional[float] = None) -> bool:
        """Whether there are rows of this key."""
        return self._run(self._calls.is_cached(key, timeout))

    def device_rows(
        self, keys: Iterable[str], *, timeout: Optional[float] = None
    ) -> Dict[str, Optional["torch.Tensor"]]:
        """The rows that were published under keys, as tensors of torch on the GPU of the server, which
        is in the same host and has --lend-rows. They are copied there, on the current stream of that
        GPU, and are complete; all of a call share one memory. None for keys whose rows are not in
        memory of a GPU (any more): cached() may know them. Memory of the server stays mapped for the
        next call, until close().

        Raises Error: "unavailable" while rows are lent to as many as may be, "unsupported" without
        that GPU, "device" if its memory cannot be mapped, "deadline" if what is queued on the
        stream takes longer than rows are lent."""
        return self._run(self._calls.device_rows(keys, self._mappings, timeout))

    def lease(self, keys: Iterable[str], *, timeout: Optional[float] = None) -> Lease:
        """Has a server lend the rows that were published under keys, as device_rows(), but leaves
        copying them to another process of the host. Raises ServerError if it does not lend, or to as
        many as it may already."""
        return self._run(self._calls.lease(list(keys), timeout))

    def close(self) -> None:
        """Closes connections that wait for the next call, and lets memory of the server go. A later call
        makes new ones."""
        self._mappings.clear()
        with self._lock:
            idle, self._idle = self._idle, []
        for kept in idle:
            kept.connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        """Does what a call yields."""
        outcome: Any = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Request):
                    outcome = self._send(step)
                elif isinstance(step, Pause):
                    time.sleep(step.seconds)
                    outcome = None
                else:
                    outcome = step.call()
        except StopIteration as end:
            result: T = end.value
            return result

    def _send(self, request: Request) -> Response:
        if self._process != os.getpid():  # a fork: replies would go to either process
            self._begin()
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            try:
                _read_end(kept, request)
                return self._exchange(kept.connection, request)
            except (ConnectionError, http.client.BadStatusLine):
                kept.connection.close()  # the server closed it while it was idle
            except (OSError, http.client.HTTPException) as problem:
                kept.connection.close()
                raise _error(self._address, problem) from None
        connection = self._connect(request)
        try:
            return self._exchange(connection, request)
        except (OSError, http.client.HTTPException) as problem:
            raise _error(self._address, problem) from None

    def _connect(self, request: Request) -> http.client.HTTPConnection:
        address = self._address
        if request.remaining() <= 0:
            raise took_too_long(address)
        connection: http.client.HTTPConnection
        if address.scheme == "unix":
            connection = _UnixConnection(address.socket)
        elif address.scheme == "https":
            connection = http.client.HTTPSConnection(address.host, address.port, context=self._ssl_context)
        else:
            connection = http.client.HTTPConnection(address.host, address.port)
        try:
            connection.timeout = _patience(request.deadline)
            connection._create_connection = functools.partial(_connected, request.deadline)  # type: ignore[attr-defined]
            connection.connect()
        except TimeoutError:
            raise cannot_connect(address, "no answer") from None
        except OSError as problem:
            raise cannot_connect(address, problem) from None
        return connection

    def _exchange(self, connection: http.client.HTTPConnection, request: Request) -> Response:
        """The reply, and the connection back among the idle ones if it can be used again."""
        keep = is_held = False
        try:
            sent = time.monotonic()
            is_sent = self._send_request(connection, request)
            connection.response_class = functools.partial(_Reply, request.deadline)  # type: ignore[assignment]
            reply = cast(_Reply, connection.getresponse())
            if request.is_held and reply.status == 200:
                response = _held(connection, reply, sent, self._keep)
                is_held = True
                return response
            response = Response(
                reply.status,
                {name.lower(): value for name, value in reply.getheaders()},
                _read_body(reply),
            )
            keep = is_sent and not reply.will_close
            return response
        finally:
            if keep:
                self._keep(_Idle(connection))
            elif not is_held:
                connection.close()

    def _keep(self, idle: _Idle) -> None:
        with self._lock:
            self._idle.append(idle)

    def _send_request(self, connection: http.client.HTTPConnection, request: Request) -> bool:
        """Whether all of it could be sent: a server that refuses a request replies to its headers and
        reads no further."""
        connection.sock.settimeout(_patience(request.deadline))
        connection.putrequest(request.method, self._address.root + request.path)
        for name, value in request.headers(self._api_key).items():
            connection.putheader(name, value)
        body = list(request.body)
        if sum(len(piece) for piece in body) > _TOGETHER_BYTES:
            connection.endheaders()
        else:
            _send_together(connection, body)
            body = []
        try:
            for piece in body:
                connection.sock.settimeout(_patience(request.deadline))
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True


def _connected(deadline: float, address: Tuple[str, int], *_: object) -> socket.socket:
    """As socket.create_connection(), whose time is that of each address of a host."""
    problem = OSError("no address")
    for family, kind, protocol, _name, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_patience(deadline))
            sock.connect(place)
            return sock
        except OSError as failure:
            sock.close()
            problem = failure
    raise problem


def _send_together(connection: http.client.HTTPConnection, body: List[Bytes]) -> None:
    """Sends the head that has been put, and a body."""
    pieces: List[Bytes] = []
    connection.send = pieces.append  # type: ignore[assignment]
    try:
        connection.endheaders()
    finally:
        del connection.send
    connection.send(b"".join([*pieces, *body]))


def _held(
    connection: http.client.HTTPConnection,
    reply: _Reply,
    sent: float,
    keep: Callable[[_Idle], None],
) -> Response:
    """The first line of a body whose end the client decides about."""

    def is_open() -> bool:
        if connection.sock is None:  # its reply closes
            return True
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        return not poll.poll(0)  # nothing more comes but the end

    def close() -> None:
        try:
            if connection.sock is None:  # its reply closes
                raise ConnectionError
            connection.sock.sendall(b"\r\n")  # the server ends a reply that lends when more comes
            keep(_Idle(connection, reply))
        except OSError:
            connection.close()
            reply.close()

    headers = {name.lower(): value for name, value in reply.getheaders()}
    return Response(reply.status, headers, reply.readline(), sent, is_open, close)


def _read_end(kept: _Idle, request: Request) -> None:
    """Reads what is left of the reply before. @raises ConnectionError if that does not come."""
    if kept.unread is None:
        return
    kept.unread.pieces.deadline = request.deadline
    try:
        kept.unread.read()
    except http.client.HTTPException as problem:
        raise ConnectionError from problem


def _read_body(reply: http.client.HTTPResponse) -> bytearray:
    body = bytearray()
    while reply.length:  # which a server may say as it likes: memory is taken as it comes
        begin = len(body)
        body += bytes(min(reply.length, _ROOM_BYTES))
        with memoryview(body) as view, view[begin:] as room:
            count = reply.readinto(room)
        if begin + count < len(body):
            raise http.client.IncompleteRead(bytes(), reply.length or 0)
    body += reply.read()  # of a reply in chunks; otherwise nothing
    return body


def _patience(deadline: float) -> float:
    """Seconds until the deadline. @raises TimeoutError behind it."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _error(address: Address, problem: Exception) -> Exception:
    if isinstance(problem, TimeoutError):
        return took_too_long(address)
    return connection_lost(address, problem)
