"""Models of vLLM that compute rows with several modules, a tower and a projector for most: a method of the model calls one
after the other, and an engine answers in its place. Source: vLLM 0.32, model_executor/models. Needs vLLM and torch.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import torch

from .._engine import Engine
from ._patches import Items, items_of_images, items_of_patches
from ._vllm_tower import TowerEngine

Scaling = Tuple[Sequence[float], Sequence[float]]
"""Mean and deviation of the channels."""

_FILE = "preprocessor_config.json"
_IMAGENET: Scaling = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclasses.dataclass(frozen=True)
class Pictures:
    """Pictures [pictures, 3, height, width], bytes or normalised floats, that an engine takes as images of their own, which it
    neither resizes nor cuts: `options` say so where it would."""

    pixels: torch.Tensor
    sizes: Optional[Sequence[int]] = None  # how many of them an item has; None: it has one
    options: Optional[Dict[str, Any]] = None

    def items(self, engine: Engine, scaling: Callable[[], Scaling]) -> Items:
        return Items(list(picture_bytes(self.pixels, scaling())), [], self.options)

    @property
    def device(self) -> torch.device:
        return self.pixels.device

    def split(self, rows: torch.Tensor, counts: Sequence[int]) -> Tuple[torch.Tensor, ...]:
        """Rows of each item."""
        if self.sizes is None:
            return tuple(rows.split(list(counts)))
        left = iter(counts)
        return tuple(rows.split([sum(next(left) for _ in range(size)) for size in self.sizes]))


@dataclasses.dataclass(frozen=True)
class Patches:
    """Patches [patches, ...] of all images, one after the other, and `grids` [images, 3]. `are_frames`: of pieces of videos,
    too, of which an image is one of one frame."""

    values: torch.Tensor
    grids: Any
    are_frames: bool = False

    def items(self, engine: Engine, scaling: Callable[[], Scaling]) -> Items:
        items_of = items_of_patches if self.are_frames else items_of_images
        return items_of(engine, self.values.flatten(1), self.grids)

    @property
    def device(self) -> torch.device:
        return self.values.device

    def split(self, rows: torch.Tensor, counts: Sequence[int]) -> Tuple[torch.Tensor, ...]:
        return tuple(rows.split(list(counts)))


@dataclasses.dataclass(frozen=True)
class Seam:
    """Where an engine answers instead of the modules of a model."""

    method: str  # of the model, which calls them
    read: Callable[[Any, Any], Any]  # Pictures or Patches of the method's first argument, and the model
    are_stacked: bool = False  # the method answers [items, rows, width], not a sequence of [rows, width]
    scaling: Optional[Scaling] = None  # None: that of the checkpoint's processor
    # Of the tensors of a module in the checkpoint, where vLLM's loader gives them another one.
    prefixes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)  # beginnings of their names, behind these prefixes
    vision: Optional[str] = None  # model_type of the vision_config that an engine takes of this class, if it has several

    def refusal(self, model: Any, hf_config: Any) -> str:
        """Why the modules stay vLLM's; empty: they do not."""
        name = type(model).__name__
        if not hasattr(type(model), self.method):
            return f"this vLLM has no {name}.{self.method}()"
        if self.vision is not None and self.vision != hf_config.vision_config.model_type:
            return f"expected a {name} with a tower of {self.vision}, got {hf_config.vision_config.model_type}"
        return ""

    def install(self, model: Any, engine: TowerEngine) -> None:
        """Has the engine answer when the method is called."""
        has_file = os.path.exists(os.path.join(engine.folder, _FILE))

        def scaling() -> Scaling:
            return self.scaling or read_scaling(engine.folder)

        def items(read: Any, made: Engine) -> Items:
            items: Items = read.items(made, scaling)
            return items if has_file else items._replace(options=None)  # which replace values of the file

        own = getattr(model, self.method)

        def answer(argument: Any, **more: Any) -> Any:  # some models add what they were called with
            if not isinstance(argument, torch.Tensor) and argument["type"] == "image_embeds":
                return own(argument, **more)  # rows that the request has brought
            read = self.read(argument, model)
            rows, counts = engine.rows(lambda made: items(read, made), read.device)
            parts = read.split(rows, counts)
            return torch.stack(parts) if self.are_stacked else parts

        setattr(model, self.method, answer)


def _chat_tiles(pixel_values: Any, _: Any) -> Pictures:
    return Pictures(pixel_values, options={"min_dynamic_patch": 1, "max_dynamic_patch": 1})


def _tiles(pixel_values: Any, _: Any) -> Pictures:
    return Pictures(pixel_values, options={"min_patches": 1, "max_patches": 1})


def _cohere2_vision(image_input: Any, _: Any) -> Pictures:
    options = {"min_patches": 1, "max_patches": 1}
    return Pictures(image_input["pixel_values"], image_input["num_patches"].tolist(), options)


def _gemma3(image_input: Any, _: Any) -> Pictures:
    return Pictures(image_input["pixel_values"], image_input["num_patches"].tolist(), {"do_pan_and_scan": False})


def _paligemma(image_input: Any, _: Any) -> Pictures:
    return Pictures(image_input["data"])


def _kimi_vl(image_input: Any, _: Any) -> Patches:
    grids = [(1, height, width) for height, width in image_input["image_grid_hws"].tolist()]
    return Patches(image_input["pixel_values"], torch.tensor(grids))


def _kimi_k25(media_input: Any, _: Any) -> Patches:
    return Patches(media_input["pixel_values"], media_input["grid_thws"], are_frames=True)


def _paddleocr_vl(image_input: Any, _: Any) -> Patches:
    return Patches(torch.cat(list(image_input["pixel_values"])), image_input["image_grid_thw"])


def _mistral3(image_input: Any, model: Any) -> Patches:
    """Images [3, height, width] of any size, which an engine could only resize as the checkpoint says."""
    side = model.config.vision_config.patch_size
    cut = [image.unfold(1, side, side).unfold(2, side, side) for image in image_input["pixel_values"]]
    patches = [image.permute(1, 2, 0, 3, 4).flatten(0, 1) for image in cut]
    return Patches(torch.cat(patches), torch.tensor([(1, *image.shape[1:3]) for image in cut]))


# By class. tools/compare_text_with_vllm.py was run with each.
SEAMS: Mapping[str, Seam] = {
    "InternVLChatModel": Seam("extract_feature", _chat_tiles, are_stacked=True, scaling=_IMAGENET),
    "QianfanOCRForConditionalGeneration": Seam("extract_feature", _chat_tiles, are_stacked=True, scaling=_IMAGENET),
    "InternS1ForConditionalGeneration": Seam("extract_feature", _tiles, are_stacked=True),
    "KimiVLForConditionalGeneration": Seam("_process_image_input", _kimi_vl),
    "KimiK25ForConditionalGeneration": Seam(
        "_process_media_input",
        _kimi_k25,
        renamed={"mm_projector.linear_1.": "mm_projector.proj.0.", "mm_projector.linear_2.": "mm_projector.proj.2."},
    ),
    "Gemma3ForConditionalGeneration": Seam("_process_image_input", _gemma3),
    "PaliGemmaForConditionalGeneration": Seam("_process_image_input", _paligemma),
    "Cohere2VisionForConditionalGeneration": Seam("_process_image_input", _cohere2_vision),
    "PaddleOCRVLForConditionalGeneration": Seam("_process_image_input", _paddleocr_vl),
    "Mistral3ForConditionalGeneration": Seam("_process_image_input", _mistral3),
    "LlavaForConditionalGeneration": Seam("_process_image_input", _mistral3, vision="pixtral"),
    "LightOnOCRForConditionalGeneration": Seam(
        "_process_image_input",
        _mistral3,
        prefixes={"vision_tower": "model.vision_encoder.", "multi_modal_projector": "model.vision_projection."},
    ),
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
    with open(os.path.join(folder, _FILE), encoding="utf-8") as file:
        values = json.load(file)
    return values["image_mean"], values["image_std"]
