"""Embeddings of replies. Source: docs/serving.md, "POST /v1/encode"; the format of safetensors."""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from .._error import Error
from .._native import Embedding, embedding
from ._http import NOT_JSON, Bytes, quoted

_DTYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "I64": "int64"}
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}

_NOT_ROWS = (*NOT_JSON, KeyError, TypeError, AttributeError, OverflowError, struct.error)


class Tensor(NamedTuple):
    dtype: str
    shape: Tuple[int, ...]
    data: memoryview
    offset: int  # of the data in the file, bytes


def _read(file: Bytes) -> Tuple[Dict[str, str], Dict[str, Tensor]]:
    """Metadata and tensors of a safetensors file; the tensors refer to it."""
    (length,) = struct.unpack_from("<Q", file)
    header = json.loads(bytes(memoryview(file)[8 : 8 + length]))
    elements = memoryview(file)[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end <= len(elements):
            raise ValueError(f"{name} ends behind the end of the reply")
        shape = tuple(entry["shape"])
        tensors[name] = Tensor(_DTYPES[entry["dtype"]], shape, elements[begin:end], 8 + length + begin)
    return metadata, tensors


def _embedding(name: str, item: Dict[str, Any], rows: Tensor) -> Embedding:
    return embedding(
        name,
        item["modality"],
        rows.dtype,
        rows.shape,
        rows.data,
        grid_thw=item.get("grid_thw"),
        retained=item.get("retained"),
        timestamps=item.get("timestamps", ()),
        key=item.get("key", ""),
    )


def encoded_rows(file: Bytes, names: Sequence[str]) -> List[Embedding]:
    """The embeddings of a reply of /v1/encode; `names` are those of the items."""
    try:
        metadata, tensors = _read(file)
        items = json.loads(metadata["fovea.items"])
        if len(items) != len(names):
            raise ValueError(f"expected {len(names)} items, got {len(items)}")
        return [
            _embedding(name, item, tensors[f"item_{i}"])
            for i, (name, item) in enumerate(zip(names, items))
        ]
    except _NOT_ROWS as problem:
        raise _not_rows(problem) from problem


def cached_rows(file: Bytes, key: str) -> Embedding:
    """The embedding of a reply of /v1/cache. These do not say whether it is an image."""
    try:
        return _embedding(key, {"modality": "image", "key": key}, _read(file)[1]["ec_cache"])
    except _NOT_ROWS as problem:
        raise _not_rows(problem) from problem


def cached_tensor(file: Bytes) -> Tensor:
    """Where the rows of a reply of /v1/cache are in it, [rows, width]. Its data refer to `file`."""
    try:
        tensor = _read(file)[1]["ec_cache"]
        rows, width = tensor.shape
        if len(tensor.data) != rows * width * ITEM_BYTES[tensor.dtype]:
            raise ValueError(f"{len(tensor.data)} bytes for {rows} x {width} elements of {tensor.dtype}")
        return tensor
    except _NOT_ROWS as problem:
        raise _not_rows(problem) from problem


def _not_rows(problem: Exception) -> Error:
    text = f"the reply does not hold rows as a fovea server sends them: {quoted(str(problem))}"
    return Error(text, "corrupt_data")
