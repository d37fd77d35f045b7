"""Which rows vLLM's scheduler waits for, and which its workers load in a step; without vLLM."""

from __future__ import annotations

import collections
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Set, Union

from ._lent_rows import LentRows
from ._prefetch import Prefetch, RowSource
from ._row_files import Rows


class RowScheduler:
    """The books of the connector in the scheduler, whose thread alone calls it. No method waits.

    An item goes from `ensure`, which asks for its rows, over `has` and `allocated` into the rows of
    the next `step`. Their files stay open until all workers have read them: vLLM schedules
    `steps_in_flight` steps before it has the result of the first. `requests` are vLLM's; of them
    `request_id`, `mm_features` and `get_num_encoder_embeds` are used."""

    def __init__(
        self,
        find: Callable[[str], Optional[RowSource]],
        seconds: float,
        *,
        steps_in_flight: int = 1,
        by_value: bool = False,
    ) -> None:
        self._prefetch = Prefetch(find, seconds)
        self._steps_in_flight = steps_in_flight
        self._by_value = by_value
        self._wanted: Dict[str, RowSource] = {}
        self._handed: Deque[List[RowSource]] = collections.deque()
        # What vLLM's encoder cache holds, and which of that has zeros in the place of rows.
        self._cached: Set[str] = set()
        self._unreadable: Set[str] = set()
        self._users: Dict[str, Set[str]] = {}  # requests by the keys that they may have read
        self._unavailable: Set[str] = set()

    def ensure(self, request: Any, num_computed_tokens: int) -> bool:
        """Whether the request can be scheduled: all rows that it still needs are here, or known not
        to come, so that vLLM encodes the item."""
        is_settled = True
        for index, feature in enumerate(request.mm_features):
            position = feature.mm_position
            if position.offset + position.length > num_computed_tokens:
                is_settled = self._ensure_item(request, index) and is_settled
        return is_settled

    def has(self, key: str) -> bool:
        """Whether the rows are here. vLLM asks for what its encoder cache does not hold."""
        self._forget_cached(key)
        return self._prefetch.has(key)

    def allocated(self, request: Any, index: int) -> None:
        """vLLM has taken room for an item: its rows, if they are here, go into the next step."""
        key = request.mm_features[index].identifier
        self._cached.add(key)
        self._use(key, request)
        self._load(key)

    def step(self, evicted: Iterable[str]) -> Dict[str, Union[Rows, LentRows]]:
        """The rows that workers load in the step that is scheduled now, by key. `evicted` are the keys
        that vLLM's cache has given up before."""
        for key in evicted:
            self._forget_cached(key)
        rows = {key: file.rows(by_value=self._by_value) for key, file in self._wanted.items()}
        self._handed.append(list(self._wanted.values()))
        self._wanted = {}
        while len(self._handed) > self._steps_in_flight + 1:
            _close(self._handed.popleft())
        return rows

    def unreadable(self, keys: Iterable[str]) -> None:
        """Workers could not read rows, and the requests that use them have computed with zeros."""
        for key in keys:
            self._prefetch.count("unreadable")
            self._unreadable.add(key)
            self._unavailable |= self._users.get(key, set())

    def take_unavailable(self) -> Set[str]:
        """Requests that have to end with an error."""
        unavailable, self._unavailable = self._unavailable, set()
        return unavailable

    def finished(self, request: Any) -> None:
        keys = {feature.identifier for feature in request.mm_features}
        self._prefetch.forget(request.request_id, keys)
        for key in keys & self._users.keys():
            self._users[key].discard(request.request_id)
            if not self._users[key]:
                del self._users[key]

    def take_counters(self) -> Dict[str, float]:
        """As Prefetch.take_counters(), and items that were `unreadable`."""
        return self._prefetch.take_counters()

    def close(self) -> None:
        self._prefetch.close()
        _close(self._wanted.values())
        for files in self._handed:
            _close(files)

    def _ensure_item(self, request: Any, index: int) -> bool:
        key = request.mm_features[index].identifier
        if key in self._cached:
            self._use(key, request)
            if key not in self._unreadable:
                return True
        if not self._prefetch.want(key, request.request_id, request.get_num_encoder_embeds(index)):
            return False
        # vLLM believes that it has the rows, and does not encode: load them once more.
        if key in self._unreadable and not self._load(key):
            self._unavailable.add(request.request_id)
            return False
        return True

    def _load(self, key: str) -> bool:
        file = self._prefetch.take(key)
        if file is None:
            return False
        self._wanted[key] = file
        self._unreadable.discard(key)
        return True

    def _use(self, key: str, request: Any) -> None:
        self._users.setdefault(key, set()).add(request.request_id)

    def _forget_cached(self, key: str) -> None:
        self._cached.discard(key)
        self._unreadable.discard(key)


def _close(files: Iterable[RowSource]) -> None:
    for file in files:
        file.close()
