"""Tensors of other libraries as the weights of an engine."""

from __future__ import annotations

import sys
from typing import Any, Callable, List, Mapping, Tuple

from ._tensors import gpu_of

# Names of element types in safetensors files. Others are told as they are, and refused if the tower
# has such a tensor.
_FILE_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3"}

Listing = Tuple[str, str, List[int]]
Weights = Tuple[List[Listing], Callable[[int, memoryview], None]]


def weight_tensors(tensors: Mapping[str, Any]) -> Weights:
    """Name, type and shape of each tensor, and a function that writes the elements of one of them to
    memory. TypeError for what is no mapping of names."""
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors: expected a dict of tensors by their names, got a {type(tensors).__name__}")
    named = list(dict(tensors).items())
    for name, _ in named:
        if not isinstance(name, str):
            raise TypeError(f"tensors: expected names, got {name!r}")

    def read(index: int, out: memoryview) -> None:
        _copy(named[index][1], out)

    return [_listing(name, tensor) for name, tensor in named], read


def _listing(name: str, tensor: Any) -> Listing:
    if not (hasattr(tensor, "dtype") and hasattr(tensor, "shape")):  # extra state of a module
        return name, type(tensor).__name__, []
    dtype = str(tensor.dtype).rpartition(".")[2]
    return name, _FILE_TYPES.get(dtype, dtype), [int(size) for size in tensor.shape]


def _copy(tensor: Any, out: memoryview) -> None:
    """Copies the elements to `out`, from whatever device they are on."""
    torch = sys.modules.get("torch")
    if torch is not None and not isinstance(tensor, torch.Tensor) and gpu_of(tensor) is not None:
        tensor = torch.from_dlpack(tensor)
    if torch is not None and isinstance(tensor, torch.Tensor):
        with torch.no_grad():
            torch.frombuffer(out, dtype=tensor.dtype).view(tensor.shape).copy_(tensor)
        return
    import numpy

    array = numpy.asarray(tensor) if hasattr(tensor, "__array__") else numpy.from_dlpack(tensor)
    numpy.frombuffer(out, numpy.uint8)[:] = numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)
