"""Rows as vLLM takes them. Its server needs --enable-mm-embeds, its LLM enable_mm_embeds=True."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional

from .._native import Embedding, grid_file

if TYPE_CHECKING:
    from ._vllm_connector import FoveaECConnector

__all__ = ["FoveaECConnector", "content_part", "multi_modal_data"]


def __getattr__(name: str) -> Any:
    """The connector derives from a class of vLLM, which the rest does not need."""
    if name == "FoveaECConnector":
        from ._vllm_connector import FoveaECConnector

        return FoveaECConnector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _check(item: Embedding) -> None:
    """vLLM does not compare the number of rows with the grid: too many are cut off silently."""
    if item.error is not None:
        raise item.error
    if item.retained is not None:
        raise ValueError(f"{item.name}: vLLM takes no pruned videos")
    if item.grid_thw is None:
        return
    rows, (t, h, w) = item.shape[0], item.grid_thw
    merge = math.isqrt(t * h * w // rows) if rows > 0 else 0
    if merge == 0 or t * h * w != rows * merge * merge or h % merge or w % merge:
        raise ValueError(f"{item.name}: {rows} rows do not fit the grid {[t, h, w]}")


def _base64(file: bytes) -> str:
    return base64.b64encode(file).decode("ascii")


def content_part(item: Embedding, uuid: Optional[str] = None) -> Dict[str, Any]:
    """A content part of a chat request, ready for JSON. `uuid` names the item for vLLM's cache; by
    default it is the key of the item, where there is one."""
    _check(item)
    kind = f"{item.modality}_embeds"
    rows = _base64(item.torch_file())
    part: Dict[str, Any] = {"type": kind, kind: rows}
    if item.grid_thw is not None:
        part[kind] = {kind: rows, f"{item.modality}_grid_thw": _base64(grid_file(item.grid_thw))}
        if item.timestamps:
            part[kind]["timestamps"] = item.timestamps
    name = uuid or item.key
    if name:
        part["uuid"] = name
    return part


def multi_modal_data(items: Iterable[Embedding]) -> Dict[str, Any]:
    """`multi_modal_data` of an offline prompt, in the order of the items: of each modality one
    tensor of all rows and one of all grids, or a list of tensors for families without a grid."""
    import torch

    groups: Dict[str, List[Embedding]] = {}
    for item in items:
        _check(item)
        groups.setdefault(item.modality, []).append(item)
    data: Dict[str, Any] = {}
    for modality, group in groups.items():
        grids = [item.grid_thw for item in group if item.grid_thw is not None]
        if not grids:
            data[modality] = [item.torch() for item in group]
            continue
        if len(grids) != len(group):
            raise ValueError("items with and without a grid do not go together")
        data[modality] = {
            f"{modality}_embeds": torch.cat([item.torch() for item in group]),
            f"{modality}_grid_thw": torch.tensor(grids),
        }
        if modality == "video":
            data[modality]["timestamps"] = [item.timestamps for item in group]
    return data
