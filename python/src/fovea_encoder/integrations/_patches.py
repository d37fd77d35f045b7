"""What the towers inside transformers and vLLM have in common. Needs torch and transformers."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from transformers.utils.hub import cached_file

from .._engine import Engine
from .._pixel_values import pixel_values


class Items(NamedTuple):
    """What an engine is given."""

    images: List[Any]
    videos: List[Any]
    options: Optional[Dict[str, Any]] = None  # mm_processor_kwargs


def items_of_patches(engine: Engine, patches: torch.Tensor, grid_thw: Any) -> Items:
    """Items of patches [patches, C * T * P * P], bytes or normalised floats, and of `grid_thw` [items, 3]. An engine on a
    GPU reads bytes there; floats pass through host memory."""
    # A grid does not tell an image from two frames: as frames both are read as they are.
    return Items([], pixel_values({"pixel_values_videos": readable(engine, patches), "video_grid_thw": grid_thw})[1])


def items_of_images(engine: Engine, patches: torch.Tensor, grid_thw: Any) -> Items:
    """As items_of_patches(), of families that take no videos."""
    return Items(pixel_values({"pixel_values": readable(engine, patches), "image_grid_thw": grid_thw})[0], [])


def readable(engine: Engine, patches: torch.Tensor) -> torch.Tensor:
    """Patches where the engine reads them."""
    stay = patches.is_cuda and patches.dtype == torch.uint8 and engine.device.startswith("cuda")
    return (patches if stay else patches.cpu()).detach().contiguous()


def rows_of_items(engine: Engine, items: Items, dtype: torch.dtype, device: torch.device) -> Tuple[torch.Tensor, List[int]]:
    """Rows [rows, width] of all items, images first, in `dtype` on `device`, and how many each item has."""
    planned = engine.plan_items(images=items.images, videos=items.videos, mm_processor_kwargs=items.options)
    counts = [count or 0 for count in planned.rows]  # the call tells what is wrong with an item without rows
    rows = torch.empty(sum(counts), engine.width, dtype=dtype, device=device)
    engine.encode_into(planned, out=rows.split(counts))
    return rows, counts


def checkpoint_folder(name: str, revision: Any) -> str:
    """The folder of a checkpoint's JSON files: `name` itself, or where the hub's cache has it."""
    if os.path.isdir(name):
        return name
    return os.path.dirname(str(cached_file(name, "preprocessor_config.json", revision=revision)))
