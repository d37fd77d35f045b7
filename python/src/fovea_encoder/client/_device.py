"""Rows that a server lends in memory of a GPU. Source: docs/serving.md, "POST /v1/cache/lend"."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import threading
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from .._error import Error
from .._native import MappedMemory
from ._http import Response, quoted
from ._rows import ITEM_BYTES

# Slots of a server's cache begin at multiples of this: rows of two slots that lie side by side are
# copied together.
_SLOT_BYTES = 256

_NOT_PLACES = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, binascii.Error)


class Memory(NamedTuple):
    """Memory of a server, as it names it."""

    gpu: str
    handle: bytes
    size: int


class Place(NamedTuple):
    """Where the rows of a key are."""

    key: str
    memory: int
    offset: int
    size: int
    dtype: str
    shape: Tuple[int, int]


class Lent(NamedTuple):
    """A reply of /v1/cache/lend."""

    memories: List[Memory]
    places: List[Place]  # of the keys whose rows are on a GPU, in the order of their memory
    seconds: float

    def used(self) -> List[int]:
        """The memories that rows lie in."""
        return sorted({place.memory for place in self.places})


@dataclasses.dataclass
class Run:
    """Places side by side, which are copied together."""

    places: List[Place]
    begin: int
    end: int


def parse_lent(response: Response, keys: Sequence[str]) -> Lent:
    """What a reply says about these keys. @raises Error("corrupt_data") for what no server says."""
    try:
        document = response.json()
        memories = [
            Memory(str(memory["gpu"]), base64.b64decode(memory["handle"], validate=True), int(memory["bytes"]))
            for memory in document["memories"]
        ]
        places = [
            _parse_place(key, document["items"][key], memories)
            for key in dict.fromkeys(keys)
            if document["items"][key] is not None
        ]
        places.sort(key=lambda place: (place.memory, place.offset))
        return Lent(memories, places, document["lasts_ms"] / 1000)
    except _NOT_PLACES as problem:
        text = f"the reply does not say where rows are as a fovea server does: {quoted(str(problem))}"
        raise Error(text, "corrupt_data") from problem


def _parse_place(key: str, item: Dict[str, Any], memories: Sequence[Memory]) -> Place:
    rows, width = item["shape"]
    place = Place(
        key, int(item["memory"]), int(item["offset"]), int(item["bytes"]), str(item["dtype"]), (rows, width)
    )
    if place.size != rows * width * ITEM_BYTES[place.dtype]:
        raise ValueError(f"{place.size} bytes for {rows} x {width} elements of {place.dtype}")
    if place.memory < 0 or place.offset < 0 or place.offset + place.size > memories[place.memory].size:
        raise ValueError(f"{place.size} bytes from {place.offset} on end behind the memory")
    if place.offset % _SLOT_BYTES != 0:
        raise ValueError(f"rows begin at {place.offset}, which is no multiple of {_SLOT_BYTES}")
    return place


def runs_of(places: Sequence[Place]) -> List[Run]:
    """Places of one memory, in its order, in as few runs as there can be."""
    runs: List[Run] = []
    for place in places:
        end = place.offset + place.size
        if runs and place.offset < runs[-1].end + _SLOT_BYTES:
            runs[-1].places.append(place)
            runs[-1].end = max(end, runs[-1].end)
        else:
            runs.append(Run([place], place.offset, end))
    return runs


class Mappings:
    """The memories of a server in this process, and copies of what lies there. Mapping takes longer
    than a copy, so that memories stay mapped until the server names others. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mapped: Dict[Memory, Any] = {}  # tensors of bytes

    def copy(self, lent: Lent) -> Dict[str, Any]:
        """Fresh tensors with the rows, on the current streams of their GPUs; returns when they are
        complete."""
        import torch

        tensors: Dict[str, Any] = {}
        self.keep(lent.memories)
        for index in lent.used():
            source = self.map(lent.memories[index])
            places = [place for place in lent.places if place.memory == index]
            with torch.cuda.device(source.device):
                tensors.update(copy_runs(source, runs_of(places)))
        for device in {tensor.device for tensor in tensors.values()}:
            torch.cuda.current_stream(device).synchronize()
        return tensors

    def clear(self) -> None:
        """Forgets the memories. They are unmapped when nothing is copied from them any more."""
        with self._lock:
            self._mapped.clear()

    def keep(self, memories: Iterable[Memory]) -> None:
        """Forgets all others, as of a server that has ended."""
        with self._lock:
            for other in self._mapped.keys() - set(memories):
                del self._mapped[other]

    def map(self, memory: Memory) -> Any:
        """A tensor of its bytes. @raises Error if it cannot be mapped."""
        import torch

        with self._lock:
            if memory not in self._mapped:
                mapped = MappedMemory(memory.gpu, memory.handle, memory.size)
                self._mapped[memory] = torch.from_dlpack(mapped)
            return self._mapped[memory]


def copy_runs(source: Any, runs: Sequence[Run]) -> Dict[str, Any]:
    """Tensors of one fresh memory beside `source`, a tensor of bytes, with what lies in it: a copy for
    each run, queued on the current stream."""
    import torch

    sizes = [_rounded(run.end - run.begin) for run in runs]
    target = torch.empty(sum(sizes), dtype=torch.uint8, device=source.device)
    names = {place.dtype for run in runs for place in run.places}
    elements = {name: target.view(getattr(torch, name)) for name in names}
    tensors = {}
    begin = 0
    for run, size in zip(runs, sizes):
        length = run.end - run.begin
        target[begin : begin + length].copy_(source[run.begin : run.end], non_blocking=True)
        for place in run.places:
            at = (begin + place.offset - run.begin) // ITEM_BYTES[place.dtype]
            tensors[place.key] = elements[place.dtype].as_strided(place.shape, (place.shape[1], 1), at)
        begin += size
    return tensors


def _rounded(size: int) -> int:
    return -(-size // _SLOT_BYTES) * _SLOT_BYTES


class Lease:
    """Rows of one server that stay where they are until close(), and no longer than until `end` (of
    time.monotonic(), which all processes of a host share). For another process of the host, which
    copies them."""

    def __init__(self, response: Response, keys: Sequence[str]) -> None:
        """Takes over the reply. @raises as parse_lent()."""
        try:
            self.lent = parse_lent(response, keys)
        except BaseException:
            response.close()
            raise
        self.begin = response.sent
        self.end = response.sent + self.lent.seconds
        self._response: Optional[Response] = response

    def is_open(self) -> bool:
        """Whether the server holds the rows."""
        response = self._response
        return response is not None and time.monotonic() < self.end and response.is_open()

    def close(self) -> None:
        """Gives the rows back. Once more does nothing."""
        response, self._response = self._response, None
        if response is not None:
            response.close()


def copy_lent(response: Response, keys: Sequence[str], mappings: Mappings) -> Dict[str, Any]:
    """Copies the rows that a reply lends, and closes it. What was copied while it was lent is right.
    @raises Error("deadline") if that took too long, Error("unavailable") if the server has ended."""
    try:
        lent = parse_lent(response, keys)
        tensors = mappings.copy(lent)
        took = time.monotonic() - response.sent
        if took >= lent.seconds:
            text = f"rows were lent for {lent.seconds:g} s, and copying them took {took:.3g} s (--lend-timeout)"
            raise Error(text, "deadline")
        if not response.is_open():
            raise Error("the server has ended while rows were copied that it lent", "unavailable")
        return tensors
    finally:
        response.close()
