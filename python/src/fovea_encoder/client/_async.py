"""The client for asyncio, over httpx."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any, AsyncIterator, Dict, Iterable, List, Optional, Sequence, Tuple, TypeVar

from .._native import Embedding
from ._calls import Options, ServerClient
from ._http import (
    Bytes,
    Pause,
    Request,
    Response,
    Steps,
    cannot_connect,
    connection_lost,
    took_too_long,
)

T = TypeVar("T")


class AsyncClient(ServerClient):
    """As Client, for asyncio, over httpx. The arguments are those of ServerClient."""

    def _open(self, ssl_context: Optional[ssl.SSLContext]) -> None:
        try:
            import httpx
        except ImportError:
            raise ImportError(
                "fovea_encoder.client.AsyncClient needs httpx: install it, or use Client in threads"
            ) from None
        self._httpx = httpx
        self._ssl_context = ssl_context
        address = self._address
        scheme = "http" if address.scheme == "unix" else address.scheme
        self._base = f"{scheme}://{_in_url(address.host)}:{address.port or 80}{address.root}"
        self._home: Optional[Tuple[int, asyncio.AbstractEventLoop]] = None

    def _connections(self) -> Any:
        """The client of httpx, which has connections of this process in the loop that runs: replies to others would not
        come here, or would go to either process."""
        home = os.getpid(), asyncio.get_running_loop()
        if self._home != home:
            self._client = self._httpx.AsyncClient(
                transport=self._httpx.AsyncHTTPTransport(
                    uds=self._address.socket or None,
                    verify=self._ssl_context or True,
                    limits=self._httpx.Limits(max_connections=None, max_keepalive_connections=64),
                ),
                timeout=None,  # calls have a deadline
                trust_env=False,
            )
            self._home = home
        return self._client

    async def encode(
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
        """As Client.encode(). Cancelling the task ends the request on the server, too."""
        options = Options(dtype, on_error, fps, use_cache)
        return await self._run(self._calls.encode(images, videos, options, timeout))

    async def plan(self, sizes: Iterable[Any], *, timeout: Optional[float] = None) -> Dict[str, Any]:
        """As Client.plan()."""
        return await self._run(self._calls.plan(sizes, timeout))

    async def info(self, *, timeout: Optional[float] = None) -> Dict[str, Any]:
        """As Client.info()."""
        return await self._run(self._calls.info(timeout))

    async def health(self, *, timeout: Optional[float] = None) -> str:
        """As Client.health()."""
        return await self._run(self._calls.health(timeout))

    async def cached(self, key: str, *, timeout: Optional[float] = None) -> Optional[Embedding]:
        """As Client.cached()."""
        return await self._run(self._calls.cached(key, timeout))

    async def cached_file(self, key: str, *, timeout: Optional[float] = None) -> Optional[Bytes]:
        """As Client.cached_file()."""
        return await self._run(self._calls.cached_file(key, timeout))

    async def is_cached(self, key: str, *, timeout: Optional[float] = None) -> bool:
        """As Client.is_cached()."""
        return await self._run(self._calls.is_cached(key, timeout))

    async def close(self) -> None:
        """Closes all connections. A later call makes new ones."""
        home, self._home = self._home, None
        if home == (os.getpid(), asyncio.get_running_loop()):
            await self._client.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        """Does what a call yields."""
        outcome: Any = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Request):
                    outcome = await self._send(step)
                elif isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    outcome = None
                else:
                    outcome = await asyncio.to_thread(step.call)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _send(self, request: Request) -> Response:
        exchange = asyncio.ensure_future(self._exchange(request))
        try:
            # asyncio.wait_for() before Python 3.12 forgets that the task was cancelled if the reply comes just then.
            if not (await asyncio.wait([exchange], timeout=max(0.0, request.remaining())))[0]:
                raise took_too_long(self._address)
            return exchange.result()
        except self._httpx.ConnectError as problem:
            raise cannot_connect(self._address, problem) from None
        except self._httpx.TransportError as problem:
            raise connection_lost(self._address, problem) from None
        finally:
            exchange.cancel()
            await asyncio.gather(exchange, return_exceptions=True)

    async def _exchange(self, request: Request) -> Response:
        """Twice, if a connection is lost: httpx does not say whether the server had closed it while
        it was idle."""
        try:
            return await self._exchange_once(request)
        except (self._httpx.ReadError, self._httpx.WriteError, self._httpx.RemoteProtocolError):
            return await self._exchange_once(request)

    async def _exchange_once(self, request: Request) -> Response:
        reply = await self._connections().request(
            request.method,
            self._base + request.path,
            headers=request.headers(self._api_key),
            content=_pieces(request.body) if request.body else None,
        )
        return Response(reply.status_code, {k.lower(): v for k, v in reply.headers.items()}, reply.content)


async def _pieces(body: Sequence[Bytes]) -> AsyncIterator[bytes]:
    for piece in body:
        yield piece if isinstance(piece, bytes) else bytes(piece)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
