"""Models of vLLM that compute rows with several modules, a tower and a projector for most: a method of the model calls one
after the other, and an engine answers in its place. Source: vLLM 0.32, model_executor/models. Needs vLLM and torch.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

import torch

from .._engine import Engine
from ._patches import Items, items_of_images, items_of_patches
from ._vllm_tower import EnginePart, TowerEngine

Scaling = Tuple[Sequence[float], Sequence[float]]
"""Mean and deviation of the channels."""

_IMAGENET: Scaling = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclasses.dataclass(frozen=True)
class Pictures:
    """Pictures [3, height, width], bytes or normalised floats, that an engine takes as images that need no resizing."""

    pixels: Sequence[torch.Tensor]
    sizes: Optional[Sequence[int]] = None  # how many of them an item has; None: it has one

    def items(self, engine: Engine, scaling: Callable[[], Scaling]) -> Items:
        if isinstance(self.pixels, torch.Tensor):
            return list(picture_bytes(self.pixels, scaling())), []
        return [picture_bytes(picture, scaling()) for picture in self.pixels], []

    @property
    def device(self) -> torch.device:
        return self.pixels[0].device

    def split(self, rows: torch.Tensor, counts: Sequence[int]) -> Tuple[torch.Tensor, ...]:
        """Rows of each item."""
        if self.sizes is None:
            return tuple(rows.split(list(counts)))
        left = iter(counts)
        return tuple(rows.split([sum(next(left) for _ in range(size)) for size in self.sizes]))


@dataclasses.dataclass(frozen=True)
class Patches:
    """Patches [patches, ...] of all items, one after the other, and `grids` [items, 3]."""

    values: torch.Tensor
    grids: Any
    are_frames: bool = False

    def items(self, engine: Engine, scaling: Callable[[], Scaling]) -> Items:
        return (items_of_patches if self.are_frames else items_of_images)(engine, self.values.flatten(1), self.grids)

    @property
    def device(self) -> torch.device:
        return self.values.device

    def split(self, rows: torch.Tensor, counts: Sequence[int]) -> Tuple[torch.Tensor, ...]:
        return tuple(rows.split(list(counts)))


@dataclasses.dataclass(frozen=True)
class Seam:
    """Where an engine answers instead of the modules of a model."""

    method: str  # of the model, which calls them with one argument
    read: Callable[[Any], Any]  # Pictures or Patches of that argument
    are_stacked: bool = False  # the method answers [items, rows, width], not a sequence of [rows, width]
    scaling: Optional[Scaling] = None  # None: that of the checkpoint's processor

    def refusal(self, model: Any) -> str:
        """Why the modules stay vLLM's; empty: they do not."""
        return "" if hasattr(type(model), self.method) else f"this vLLM has no {type(model).__name__}.{self.method}()"

    def install(self, model: Any, engine: TowerEngine) -> None:
        """Has the engine answer when the method is called."""

        def scaling() -> Scaling:
            return self.scaling or read_scaling(engine.folder)

        def answer(argument: Any) -> Any:
            read = self.read(argument)
            rows, counts = engine.rows(lambda made: read.items(made, scaling), read.device)
            parts = read.split(rows, counts)
            return torch.stack(parts) if self.are_stacked else parts

        setattr(model, self.method, answer)


def _kimi_vl(image_input: Any) -> Patches:
    grids = [(1, height, width) for height, width in image_input["image_grid_hws"].tolist()]
    return Patches(image_input["pixel_values"], torch.tensor(grids))


# By class. tools/compare_text_with_vllm.py was run with each.
SEAMS: Mapping[str, Seam] = {
    "InternVLChatModel": Seam("extract_feature", Pictures, are_stacked=True, scaling=_IMAGENET),
    "InternS1ForConditionalGeneration": Seam("extract_feature", Pictures, are_stacked=True),
    "KimiVLForConditionalGeneration": Seam("_process_image_input", _kimi_vl),
}


def picture_bytes(picture: torch.Tensor, scaling: Scaling) -> torch.Tensor:
    """Bytes [..., height, width, 3] on the host of pictures [..., 3, height, width], which hold bytes or what a processor
    made of them. @raises ValueError for values that no byte becomes."""
    if picture.dtype != torch.uint8:
        mean, deviation = (torch.tensor(part, device=picture.device).view(3, 1, 1) for part in scaling)
        values = picture.float()
        nearest = ((values * deviation + mean) * 255).round().clamp(0, 255)
        again = (nearest / 255 - mean) / deviation
        if not torch.allclose(again, values, rtol=torch.finfo(picture.dtype).eps, atol=1e-6):
            raise ValueError("Fovea's vision tower: expected pixels that were bytes, scaled and normalised as the checkpoint says")
        picture = nearest.byte()
    return picture.movedim(-3, -1).contiguous().cpu()


@functools.lru_cache(maxsize=None)
def read_scaling(folder: str) -> Scaling:
    """Of `preprocessor_config.json`. @raises KeyError if it does not say."""
    with open(os.path.join(folder, "preprocessor_config.json"), encoding="utf-8") as file:
        values = json.load(file)
    return values["image_mean"], values["image_std"]
