"""Rows that are brought in the background before vLLM needs them, without vLLM."""

from __future__ import annotations

import collections
import dataclasses
import logging
import threading
import time
from typing import Callable, Deque, Dict, Iterable, Optional, Set, Union

from ._lent_rows import LeasedRows
from ._row_files import RowFile

RowSource = Union[RowFile, LeasedRows]

_logger = logging.getLogger("fovea.vllm")

_THREADS = 8
# Where rows wait for their request: then no more are brought.
_MAX_WAITING_FILES = 512
_MAX_WAITING_BYTES = 4 << 30


@dataclasses.dataclass
class _Item:
    """An item that requests wait for. `settled`: its rows are here, or vLLM encodes it itself."""

    key: str
    rows: int  # that the prompt has places for
    deadline: float  # of time.monotonic()
    requests: Set[str] = dataclasses.field(default_factory=set)
    settled: bool = False
    file: Optional[RowSource] = None


class Prefetch:
    """Brings rows by `find`, which may take its time, in threads of its own. No method waits for it.

    An item is settled after `seconds` at the latest, and then stays as it is for all requests that
    wait for it. Files are kept until take(), forget() or close(); one that comes too late is closed.
    Rows that are lent are brought anew when they have waited too long to be taken.
    """

    def __init__(self, find: Callable[[str], Optional[RowSource]], seconds: float) -> None:
        self._find = find
        self._seconds = seconds
        self._items: Dict[str, _Item] = {}
        self._queue: Deque[_Item] = collections.deque()
        self._changed = threading.Condition()
        self._waiting_bytes = 0
        self._waiting_files = 0
        self._counters: Dict[str, float] = {}
        self._closed = False
        for i in range(_THREADS):
            threading.Thread(target=self._run, name=f"fovea-rows-{i}", daemon=True).start()

    def want(self, key: str, request_id: str, rows: int) -> bool:
        """Whether it is settled if there are rows of this key, so many of them; asks for them first."""
        with self._changed:
            item = self._items.get(key)
            known: Set[str] = set()
            if item is not None and item.file is not None and not item.file.is_fresh():
                known = item.requests
                self._drop(item)
                item = None
            if item is None:
                item = self._items[key] = _Item(key, rows, time.monotonic() + self._seconds, known)
                self._queue.append(item)
                self._changed.notify()
            item.requests.add(request_id)
            if not item.settled and time.monotonic() >= item.deadline:
                item.settled = True
                self.count("late")
            return item.settled

    def has(self, key: str) -> bool:
        """Whether the rows are here. Settles the item."""
        with self._changed:
            item = self._items.get(key)
            if item is None:
                return False
            item.settled = True
            if item.file is not None and not item.file.is_fresh():
                self._drop(item)
            return item.file is not None

    def take(self, key: str) -> Optional[RowSource]:
        """The rows, if they are here; they are the caller's then. The item is forgotten."""
        with self._changed:
            item = self._items.pop(key, None)
            if item is None:
                return None
            item.settled = True
            return self._remove_file(item)

    def forget(self, request_id: str, keys: Iterable[str]) -> None:
        """The request has ended. Items that no other one waits for go."""
        with self._changed:
            for key in keys:
                item = self._items.get(key)
                if item is None:
                    continue
                item.requests.discard(request_id)
                if not item.requests:
                    self._drop(self._items.pop(key))

    def take_counters(self) -> Dict[str, float]:
        """What was counted since the last call: items that were `found`, `absent`, `mismatched` or
        `late`, `bytes` of rows, `seconds` until these had come."""
        with self._changed:
            counters, self._counters = self._counters, {}
            return counters

    def count(self, name: str, value: float = 1) -> None:
        with self._changed:
            self._counters[name] = self._counters.get(name, 0) + value

    def close(self) -> None:
        with self._changed:
            self._closed = True
            for item in self._items.values():
                self._drop(item)
            self._items.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while (item := self._next()) is not None:
            begin, file = time.monotonic(), None
            try:
                file = self._find(item.key)
            except Exception:  # this thread is needed for the next item
                _logger.exception("the rows of %s cannot be brought; vLLM encodes the item itself", item.key)
            with self._changed:
                self._settle(item, file, time.monotonic() - begin)

    def _next(self) -> Optional[_Item]:
        """The next item that is wanted, once there is room; None after close()."""
        with self._changed:
            while not self._closed:
                if self._queue and self._has_room():
                    item = self._queue.popleft()
                    if not item.settled:
                        return item
                else:
                    self._changed.wait()
            return None

    def _has_room(self) -> bool:
        return self._waiting_files < _MAX_WAITING_FILES and self._waiting_bytes < _MAX_WAITING_BYTES

    def _settle(self, item: _Item, file: Optional[RowSource], seconds: float) -> None:
        if file is None or item.settled or file.shape[0] != item.rows:
            if file is not None:
                file.close()
            if item.settled:
                return
            if file is not None:
                text = "%s: expected %d rows, as the prompt has places, got %d; vLLM encodes the item itself"
                _logger.warning(text, item.key, item.rows, file.shape[0])
            self.count("absent" if file is None else "mismatched")
        else:
            item.file = file
            self._waiting_files += 1
            self._waiting_bytes += file.nbytes
            for name, value in (("found", 1), ("bytes", file.nbytes), ("seconds", seconds)):
                self.count(name, value)
        item.settled = True

    def _drop(self, item: _Item) -> None:
        item.settled = True  # whoever brings its rows closes them
        file = self._remove_file(item)
        if file is not None:
            file.close()

    def _remove_file(self, item: _Item) -> Optional[RowSource]:
        file, item.file = item.file, None
        if file is not None:
            self._waiting_files -= 1
            self._waiting_bytes -= file.nbytes
            self._changed.notify_all()
        return file
