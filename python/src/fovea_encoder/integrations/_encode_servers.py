"""The servers that a connector takes rows from, without vLLM."""

from __future__ import annotations

import logging
import threading
import time
from typing import List, Optional, Sequence

from .._error import Error
from ..client import Client, ServerError
from ..client._device import Memory
from ._lent_rows import LeasedRows, Lenders
from ._prefetch import RowSource
from ._row_files import RowFile

_logger = logging.getLogger("fovea.vllm")

_PAUSE_SECONDS = 0.5  # between two looks at servers that have not started
_PROBE_SECONDS = 2.0  # that a probe may take
# How long a server that failed is left alone: at first, and after failures one after the other.
_SHORTEST_AWAY_SECONDS, _LONGEST_AWAY_SECONDS = 1.0, 30.0

_FAILURES = (Error, ValueError, OSError)


class _Server:
    """A server with its circuit breaker, which is closed while the server is `approved`."""

    def __init__(self, url: str, client: Client) -> None:
        self.url, self.client = url, client
        self.approved = False
        self.disagrees = False
        self.away_seconds = _SHORTEST_AWAY_SECONDS
        self.probe_at = 0.0  # of time.monotonic(); of one that is not approved
        self.problem = ""
        self.lends = True  # as far as it is known
        self.memories: List[Memory] = []  # that it lends rows of


class EncodeServers:
    """Servers of one fingerprint. A server is asked for rows only while it is approved: its /info has
    agreed, and it has answered since. One that fails is asked for nothing until a probe in the
    background, after 1 s and after up to 30 s where it fails again, finds that it agrees: it may
    have come back with another model. No call but wait() waits for a probe.

    `fingerprint` and `dtype` are what is expected; without a fingerprint, that of the first server
    that answers. One that disagrees is a ValueError while wait() runs, and passed over later. Those
    that are asked for an item one after the other share `timeout` seconds. `folder` is the --ec-dir
    of servers on this host: rows that are there are taken from there, also while their server is
    away, but not while a server disagrees. With `lenders`, rows that a server lends are not sent, once
    the worker has mapped its memory. Thread-safe."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        fingerprint: Optional[str] = None,
        dtype: Optional[str] = None,
        timeout: float = 5.0,
        api_key: Optional[str] = None,
        folder: Optional[str] = None,
        lenders: Optional[Lenders] = None,
    ) -> None:
        self._patience = timeout / max(1, len(urls))
        self._servers = [_Server(url, Client(url, timeout=self._patience, api_key=api_key)) for url in urls]
        self._fingerprint = fingerprint
        self._fingerprint_of = "the configuration" if fingerprint else ""
        self._dtype = dtype
        self._folder = folder
        self._lenders = lenders
        self._changed = threading.Condition()
        self._closed = False

    def wait(self, seconds: float) -> None:
        """Returns once one of the servers agrees; the others are probed from then on. @raises Error
        "unavailable" if none answers within this time, with what each of them said."""
        end = time.monotonic() + seconds
        while True:
            problems: List[str] = []
            for server in self._servers:
                try:
                    self._approve(server)
                except Error as problem:
                    problems.append(str(problem))
            if any(server.approved for server in self._servers):
                for text in problems:
                    _logger.warning("%s; going on without it", text)
                break
            if time.monotonic() + _PAUSE_SECONDS >= end:
                text = f"no fovea server answered within {seconds:g} s (start_timeout_s): "
                raise Error(text + "; ".join(problems), "unavailable")
            time.sleep(_PAUSE_SECONDS)
        threading.Thread(target=self._probe_for_ever, name="fovea-probes", daemon=True).start()

    def find(self, key: str) -> Optional[RowSource]:
        """The rows of a key from the folder, or the first server that has them; None if none of those
        that answer has. Takes up to `timeout` seconds, and never fails."""
        published = self._find_published(key)
        if published is not None:
            return published
        for server in self._servers:
            if not server.approved:
                continue
            end = time.monotonic() + self._patience
            try:
                rows = self._find_lent(server, key, end) or _find_sent(server, key, end)
            except _FAILURES as problem:
                with self._changed:
                    if server.approved:  # otherwise another call has failed before, for the same reason
                        self._fail(server, problem)
                continue
            server.away_seconds = _SHORTEST_AWAY_SECONDS
            if rows is not None:
                return rows
        return None

    def num_away(self) -> int:
        return sum(not server.approved for server in self._servers)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        for server in self._servers:
            server.client.close()

    def _find_lent(self, server: _Server, key: str, end: float) -> Optional[LeasedRows]:
        if self._lenders is None or not server.lends:
            return None
        try:
            lease = server.client.lease([key], timeout=end - time.monotonic())
        except ServerError as refusal:
            server.lends = refusal.status == 429  # it lends to others now
            return None
        server.memories = lease.lent.memories
        for place in lease.lent.places:
            memory = server.memories[place.memory]
            if self._lenders.is_mapped(memory) and self._dtype in (None, place.dtype):
                return LeasedRows(lease, self._lenders)
            server.lends = self._lenders.want(memory) is None
        lease.close()
        return None

    def _find_published(self, key: str) -> Optional[RowFile]:
        if self._folder is None or any(server.disagrees for server in self._servers):
            return None
        try:
            file = RowFile.published(self._folder, key)
        except _FAILURES as problem:
            _logger.warning("%s: the rows of %s cannot be read: %s; asking servers", self._folder, key, problem)
            return None
        if file is None or self._dtype in (None, file.dtype):
            return file
        text = "%s: the rows of %s are of %s, and vLLM computes in %s; asking servers"
        _logger.warning(text, self._folder, key, file.dtype, self._dtype)
        file.close()
        return None

    def _fail(self, server: _Server, problem: Exception) -> None:
        """Opens the breaker. Says so once for each reason: a running vLLM does not end because of a
        server, and its log is not to be full of it."""
        text = str(problem)
        if server.url not in text:
            text = f"{server.url}: {text}"
        with self._changed:
            if text != server.problem:
                _logger.warning("%s; looking elsewhere for rows", text)
            server.problem = text
            server.approved = False
            if self._lenders is not None:
                self._lenders.forget(server.memories)
            server.probe_at = time.monotonic() + server.away_seconds
            server.away_seconds = min(2 * server.away_seconds, _LONGEST_AWAY_SECONDS)
            self._changed.notify()

    def _probe_for_ever(self) -> None:
        while (server := self._next_to_probe()) is not None:
            try:
                self._approve(server)
            except _FAILURES as problem:
                self._fail(server, problem)
            else:
                _logger.info("%s: takes part again", server.url)
                server.problem = ""

    def _next_to_probe(self) -> Optional[_Server]:
        """A server whose time has come, once it has; None after close()."""
        with self._changed:
            while not self._closed:
                away = [server for server in self._servers if not server.approved]
                first = min(away, key=lambda server: server.probe_at, default=None)
                if first is not None and first.probe_at <= time.monotonic():
                    return first
                self._changed.wait(None if first is None else first.probe_at - time.monotonic())
            return None

    def _approve(self, server: _Server) -> None:
        info = server.client.info(timeout=min(self._patience, _PROBE_SECONDS))
        server.disagrees = True  # until it is known that it does not
        url, fingerprint, dtype = server.url, str(info.get("fingerprint", "")), str(info.get("dtype", ""))
        if not fingerprint:
            raise ValueError(
                f"{url}: has no fingerprint; start it with an encoder cache (--encoder-cache-size)"
            )
        if self._fingerprint is not None and fingerprint != self._fingerprint:
            raise ValueError(
                f"{url}: expected rows of the fingerprint {self._fingerprint} of {self._fingerprint_of}, "
                f"got {fingerprint}; start all with the same model, revision and media options"
            )
        if self._dtype is not None and dtype != self._dtype:
            raise ValueError(
                f"{url}: sends rows of {dtype}, and vLLM computes in {self._dtype}; "
                f"start vLLM with --dtype {dtype}"
            )
        if self._fingerprint is None:
            self._fingerprint, self._fingerprint_of = fingerprint, url
            _logger.info("%s: rows of the fingerprint %s", url, fingerprint)
        server.disagrees = False
        server.lends = True
        server.approved = True


def _find_sent(server: _Server, key: str, end: float) -> Optional[RowFile]:
    file = server.client.cached_file(key, timeout=end - time.monotonic())
    return None if file is None else RowFile.of_bytes(file)
