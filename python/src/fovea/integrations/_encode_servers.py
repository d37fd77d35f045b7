"""The servers that a connector takes rows from, without vLLM."""

from __future__ import annotations

import logging
import time
from typing import Dict, List, Optional, Sequence, Set

from .._error import Error
from .._native import Embedding
from ..client import Client

_logger = logging.getLogger("fovea.vllm")

# A server that could not be reached is left alone for so long, or every lookup would wait for it.
_AWAY_SECONDS = 5.0
_PAUSE_SECONDS = 0.5


class EncodeServers:
    """Servers of one fingerprint. Nothing is taken from a server before its /info agreed, nor after
    it was away, until it agrees again: it may have come back with another model.

    `fingerprint` and `dtype` are what is expected; without a fingerprint, that of the first server
    that answers. One that disagrees is a ValueError while wait() runs, and passed over later."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        fingerprint: Optional[str] = None,
        dtype: Optional[str] = None,
        timeout: float = 5.0,
        api_key: Optional[str] = None,
    ) -> None:
        self._clients: Dict[str, Client] = {
            url: Client(url, timeout=timeout, api_key=api_key) for url in urls
        }
        self._fingerprint = fingerprint
        self._fingerprint_of = "the configuration" if fingerprint else ""
        self._dtype = dtype
        self._approved: Set[str] = set()
        self._away_until: Dict[str, float] = {}

    def wait(self, seconds: float) -> None:
        """Returns once one of the servers agrees. @raises Error "unavailable" if none answers within
        this time, with what each of them said."""
        end = time.monotonic() + seconds
        while True:
            problems: List[str] = []
            for url in self._clients:
                try:
                    self._approve(url)
                except Error as problem:
                    problems.append(str(problem))
            if self._approved:
                for text in problems:
                    _logger.warning("%s; going on without it", text)
                return
            if time.monotonic() + _PAUSE_SECONDS >= end:
                text = f"no fovea server answered within {seconds:g} s (start_timeout_s): "
                raise Error(text + "; ".join(problems), "unavailable")
            time.sleep(_PAUSE_SECONDS)

    def find(self, key: str) -> Optional[str]:
        """The URL of a server that has rows of this key."""
        for url, client in self._clients.items():
            if self._away_until.get(url, 0.0) > time.monotonic():
                continue
            try:
                self._approve(url)
                if client.is_cached(key):
                    return url
            except (Error, ValueError) as problem:  # a running vLLM does not end because of a server
                _logger.warning("%s; looking elsewhere for rows", problem)
                self._away_until[url] = time.monotonic() + _AWAY_SECONDS
                self._approved.discard(url)
        return None

    def rows(self, url: str, key: str) -> Embedding:
        """@raises Error if the rows are gone, or the server is."""
        self._approve(url)
        item = self._clients[url].cached(key)
        if item is None:
            raise Error(
                f"{url}: the rows of {key} were there and are gone; give the server more room for rows",
                "not_found",
            )
        return item

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _approve(self, url: str) -> None:
        if url in self._approved:
            return
        info = self._clients[url].info()
        fingerprint, dtype = str(info.get("fingerprint", "")), str(info.get("dtype", ""))
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
        self._approved.add(url)
