"""What the towers inside transformers and vLLM have in common. Needs torch and transformers."""

from __future__ import annotations

import os
from typing import Any, Dict

import torch
from transformers.utils.hub import cached_file

from .._engine import Engine
from .._pixel_values import pixel_values


def rows_of_patches(engine: Engine, patches: torch.Tensor, grid_thw: Any, dtype: torch.dtype) -> torch.Tensor:
    """Rows [rows, width] of all items, in `dtype` and on the device of the patches. `patches`
    [patches, C * T * P * P] are bytes or normalised floats, `grid_thw` [items, 3]. An engine on a GPU reads
    bytes there; floats pass through host memory."""
    stay = patches.is_cuda and patches.dtype == torch.uint8 and engine.device.startswith("cuda")
    values = (patches if stay else patches.cpu()).detach().contiguous()
    # A grid does not tell an image from two frames: as frames both are read as they are.
    inputs: Dict[str, Any] = {"pixel_values_videos": values, "video_grid_thw": grid_thw}
    _, videos = pixel_values(inputs)
    planned = engine.plan_items(videos=videos)
    counts = [count or 0 for count in planned.rows]  # the call tells what is wrong with an item without rows
    rows = torch.empty(sum(counts), engine.width, dtype=dtype, device=patches.device)
    engine.encode_into(planned, out=rows.split(counts))
    return rows


def checkpoint_folder(name: str, revision: Any) -> str:
    """The folder of a checkpoint's JSON files: `name` itself, or where the hub's cache has it."""
    if os.path.isdir(name):
        return name
    return os.path.dirname(str(cached_file(name, "preprocessor_config.json", revision=revision)))
