"""Tensors of other libraries as room for rows, and the streams that order work on them."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Sequence, Tuple

_GPU_KINDS = (2, 13)  # kDLCUDA and kDLCUDAManaged of DLPack
_LEGACY_DEFAULT = 1
_PER_THREAD_DEFAULT = 2

Stream = Tuple[int, int]
"""A GPU and a cudaStream_t on it."""


def caller_stream(tensors: Sequence[Any], stream: Any) -> Optional[Stream]:
    """The stream of a call whose rows go to `tensors`: None if all are on the host and none is given,
    else `stream`, a torch.cuda.Stream or a cudaStream_t, by default the current one of torch where
    that is in use."""
    gpus = [gpu for gpu in map(gpu_of, tensors) if gpu is not None]
    if stream is None:
        if not gpus:
            return None
        torch = sys.modules.get("torch")
        stream = torch.cuda.current_stream(gpus[0]) if torch is not None else _LEGACY_DEFAULT
    handle = int(getattr(stream, "cuda_stream", stream))
    if handle == _PER_THREAD_DEFAULT:
        raise ValueError(
            "stream: expected one that all threads know, got the per-thread default stream: an engine "
            "submits from threads of its own"
        )
    device = getattr(stream, "device_index", gpus[0] if gpus else 0)
    return int(device), 0 if handle == _LEGACY_DEFAULT else handle


def capsules(tensors: Sequence[Any], stream: Optional[Stream]) -> List[Any]:
    """The tensors as capsules of DLPack, to be used on `stream`: it waits for what their library has
    queued for them. They hold the memory until they go."""
    return [_capsule(tensor, f"out[{i}]", stream) for i, tensor in enumerate(tensors)]


def gpu_of(tensor: Any) -> Optional[int]:
    """The number of the GPU that a tensor is on; None: another place, or no tensor of DLPack."""
    if not hasattr(tensor, "__dlpack_device__"):
        return None
    kind, number = tensor.__dlpack_device__()
    return int(number) if int(kind) in _GPU_KINDS else None


def _capsule(tensor: Any, name: str, stream: Optional[Stream]) -> Any:
    if not hasattr(tensor, "__dlpack__"):
        raise TypeError(f"{name}: expected a tensor with __dlpack__, got a {type(tensor).__name__}")
    try:
        if stream is None or gpu_of(tensor) is None:
            return tensor.__dlpack__()
        return tensor.__dlpack__(stream=stream[1] or _LEGACY_DEFAULT)
    except BufferError as problem:  # read-only, for example
        raise BufferError(f"{name}: {problem}") from None
