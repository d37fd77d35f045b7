"""Rows of an item as an open file that other processes of this host map, without vLLM.

A file lives as long as somebody has it open: rows that came over HTTP are in an anonymous file of
memory (memfd), those that a server on this host has published are its file. Neither has a name of
ours, so that nothing is left behind by a process that was killed. Source: memfd_create(2), proc(5).
"""

from __future__ import annotations

import dataclasses
import mmap
import os
from typing import TYPE_CHECKING, Optional, Tuple

from ..client._http import Bytes
from ..client._rows import cached_tensor

if TYPE_CHECKING:
    import torch


@dataclasses.dataclass(frozen=True)
class Rows:
    """Where rows [rows, width] are, for any process of this host and user, as long as their RowFile
    is open; with `data` for any process. Can be pickled."""

    dtype: str
    shape: Tuple[int, int]
    offset: int  # of the first element in the file, bytes
    path: str
    inode: Tuple[int, int]  # device and number: the path may stand for another file later
    data: Optional[bytes] = None  # the elements themselves; nothing is opened then

    def tensor(self, device: str) -> "torch.Tensor":
        """A copy of the rows on a device. @raises OSError, ValueError if they are not there."""
        import torch

        dtype = getattr(torch, self.dtype)
        if self.data is not None:
            rows = torch.frombuffer(bytearray(self.data), dtype=dtype)
            return rows.reshape(self.shape).to(device)
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino) != self.inode:
                raise ValueError(f"{self.path}: is another file by now")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        count = self.shape[0] * self.shape[1]
        rows = torch.frombuffer(mapped, dtype=dtype, count=count, offset=self.offset)
        return rows.reshape(self.shape).to(device, copy=True)

    def zeros(self, device: str) -> "torch.Tensor":
        """What stands in the place of rows that are not there."""
        import torch

        return torch.zeros(self.shape, dtype=getattr(torch, self.dtype), device=device)


class RowFile:
    """An open file of safetensors with the tensor `ec_cache` [rows, width]."""

    def __init__(self, descriptor: int) -> None:
        """Takes over the descriptor. @raises Error "corrupt_data", ValueError if it holds no rows."""
        self._descriptor = descriptor
        try:
            status = os.fstat(descriptor)
            self._inode = (status.st_dev, status.st_ino)
            tensor = cached_tensor(memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)))
            self.dtype, self.shape, self._offset = tensor.dtype, tensor.shape, tensor.offset
            self.nbytes = len(tensor.data)
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def of_bytes(cls, file: Bytes) -> "RowFile":
        """A file of memory. @raises OSError if there is no room, Error as above."""
        descriptor = os.memfd_create("fovea-rows")
        try:
            view = memoryview(file)
            while view:
                view = view[os.write(descriptor, view) :]
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    @classmethod
    def published(cls, folder: str, key: str) -> Optional["RowFile"]:
        """The file of a key in a folder of `fovea serve --ec-dir`; None if there is none. It stays
        readable after the server has replaced or removed it. @raises OSError, and as above."""
        if key in ("", ".", "..") or "/" in key or "\0" in key:
            return None
        try:
            return cls(os.open(os.path.join(folder, key, "encoder_cache.safetensors"), os.O_RDONLY))
        except FileNotFoundError:
            return None

    def rows(self, *, by_value: bool = False) -> Rows:
        """Of the open file."""
        path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        data = os.pread(self._descriptor, self.nbytes, self._offset) if by_value else None
        return Rows(self.dtype, (self.shape[0], self.shape[1]), self._offset, path, self._inode, data)

    def is_fresh(self) -> bool:
        """Whether workers can read the rows: as long as the file is open."""
        return True

    def close(self) -> None:
        """Once more does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
