"""Rows that a server of this host lends in memory of a GPU, from the scheduler that has them lent to
the worker that copies them, the only one: several would be on as many GPUs. Without vLLM."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from typing import TYPE_CHECKING, Dict, FrozenSet, Iterable, List, Mapping, Optional

from .._error import Error
from ..client._device import Lease, Lent, Mappings, Memory, Place

if TYPE_CHECKING:
    import torch

_logger = logging.getLogger("fovea.vllm")

# What goes wrong between processes and in the driver.
NOT_COPIED = (Error, OSError, RuntimeError, ValueError, ImportError)


@dataclasses.dataclass(frozen=True)
class LentRows:
    """Where rows [rows, width] are, for processes of this host, as long as their LeasedRows is open.
    Can be pickled."""

    memory: Memory
    place: Place
    end: float  # of the lease, as time.monotonic() has it in all processes of the host

    def zeros(self, device: str) -> "torch.Tensor":
        """What stands in the place of rows that are not there."""
        import torch

        return torch.zeros(self.place.shape, dtype=getattr(torch, self.place.dtype), device=device)


class LeasedRows:
    """The rows of one key that a server lends. The counterpart of RowFile."""

    def __init__(self, lease: Lease, lenders: "Lenders") -> None:
        """Takes over a lease of exactly one place, in memory that the worker has mapped."""
        (place,) = lease.lent.places
        self._lease, self._lenders = lease, lenders
        self._rows = LentRows(lease.lent.memories[place.memory], place, lease.end)
        self.shape, self.nbytes = place.shape, place.size

    def rows(self, *, by_value: bool = False) -> LentRows:
        """@raises ValueError for rows by value: they stay where they are."""
        if by_value:
            raise ValueError("rows that are lent do not travel by value")
        return self._rows

    def is_fresh(self) -> bool:
        """Whether the worker can copy the rows, and half of the time for that is left."""
        lease = self._lease
        is_early = 2 * time.monotonic() < lease.begin + lease.end
        return is_early and lease.is_open() and self._lenders.is_mapped(self._rows.memory)

    def close(self) -> None:
        """Gives the rows back. Once more does nothing."""
        self._lease.close()


@dataclasses.dataclass(frozen=True)
class Mapped:
    """What a worker says about memories that it was asked to map: which it has mapped, and why not the
    others."""

    memories: FrozenSet[Memory] = frozenset()
    refused: Dict[Memory, str] = dataclasses.field(default_factory=dict)

    def __or__(self, other: "Mapped") -> "Mapped":
        return Mapped(self.memories | other.memories, {**self.refused, **other.refused})

    def __bool__(self) -> bool:
        return bool(self.memories or self.refused)


class Lenders:
    """Which memories of servers the worker has mapped, for the scheduler: nothing is lent from others.
    Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_mapped: Dict[Memory, bool] = {}  # False: the worker is asked to map it
        self._refused: Dict[Memory, str] = {}

    def want(self, memory: Memory) -> Optional[str]:
        """Has the worker map a memory, if it has not, from the next step on. @returns why it cannot, as
        soon as that is known."""
        with self._lock:
            if memory not in self._refused:
                self._is_mapped.setdefault(memory, False)
            return self._refused.get(memory)

    def is_mapped(self, memory: Memory) -> bool:
        with self._lock:
            return self._is_mapped.get(memory, False)

    def memories(self) -> Dict[Memory, bool]:
        """Those that the worker has to have mapped; False: and to say whether it has."""
        with self._lock:
            return dict(self._is_mapped)

    def report(self, mapped: Mapped) -> None:
        """Of the worker, behind a step."""
        with self._lock:
            for memory, why in mapped.refused.items():
                if self._is_mapped.pop(memory, None) is not None:
                    self._refused[memory] = why
                    _logger.warning("rows in memory of %s come over HTTP: %s", memory.gpu, why)
            for memory in mapped.memories:
                if self._is_mapped.get(memory) is False:
                    self._is_mapped[memory] = True
                    _logger.info("rows in memory of %s are copied on the GPU", memory.gpu)

    def forget(self, memories: Iterable[Memory]) -> None:
        """Of a server that may have ended."""
        with self._lock:
            for memory in memories:
                self._is_mapped.pop(memory, None)
                self._refused.pop(memory, None)


class Borrower:
    """Copies rows that are lent, for a worker. It maps memory of `gpu` alone, the UUID of its own GPU:
    that of another would cost it a context there."""

    def __init__(self, gpu: str) -> None:
        self._gpu = gpu
        self._mappings = Mappings()
        self._memories: List[Memory] = []
        self._refused: Dict[Memory, str] = {}

    def map(self, memories: Mapping[Memory, bool]) -> Mapped:
        """Maps memories, forgets all others, and says what became of those that are False."""
        self._memories = list(memories)
        self._mappings.keep(memories)
        self._refused = {memory: why for memory, why in self._refused.items() if memory in memories}
        for memory in memories.keys() - self._refused.keys():
            try:
                if memory.gpu != self._gpu:
                    raise ValueError(f"the worker is on {self._gpu or 'a CPU'}")
                self._mappings.map(memory)
            except NOT_COPIED as problem:
                self._refused[memory] = str(problem)
        asked = {memory for memory, is_known in memories.items() if not is_known}
        refused = {memory: self._refused[memory] for memory in asked & self._refused.keys()}
        return Mapped(frozenset(asked - refused.keys()), refused)

    def copy(self, rows: "Mapping[str, LentRows]") -> "Dict[str, torch.Tensor]":
        """Copies on the current stream, complete when this returns; those whose lease had not ended by
        then. @raises one of NOT_COPIED."""
        places = [
            one.place._replace(key=key, memory=self._memories.index(one.memory)) for key, one in rows.items()
        ]
        if not places:
            return {}
        places.sort(key=lambda place: (place.memory, place.offset))
        tensors = self._mappings.copy(Lent(self._memories, places, 0.0))
        now = time.monotonic()
        return {key: tensor for key, tensor in tensors.items() if now < rows[key].end}


def gpu_of(device: str) -> str:
    """The UUID of a GPU, "cuda:0" for example, as servers spell it; "" of a CPU."""
    import torch

    return f"GPU-{torch.cuda.get_device_properties(device).uuid}" if device.startswith("cuda") else ""
