"""Code that a checkpoint brings along: a configuration and processors, as those of published checkpoints are called. It is copied
beside tiny models, and written for them alone."""

import math

import numpy
import torch
from PIL import Image
from transformers import AutoConfig, BatchFeature, PretrainedConfig
from transformers.image_processing_utils import BaseImageProcessor
from transformers.processing_utils import ProcessorMixin


class InternVLChatConfig(PretrainedConfig):
    model_type = "internvl_chat"

    def __init__(self, vision_config=None, llm_config=None, **more):
        self.vision_config = PretrainedConfig(**(vision_config or {}))
        words = dict(llm_config or {"model_type": "qwen2"})
        self.llm_config = AutoConfig.for_model(words.pop("model_type"), **words)
        super().__init__(**more)


class KimiVLImageProcessor(BaseImageProcessor):
    """Patches [patches, 3, side, side] of images, row by row, and `image_grid_hws`."""

    model_input_names = ["pixel_values", "image_grid_hws"]

    def __init__(self, **values):
        super().__init__(**values)
        for name in ("patch_size", "merge_kernel_size", "in_token_limit", "image_mean", "image_std"):
            setattr(self, name, values[name])

    def preprocess(self, images, return_tensors=None, **_):
        patches, grids = zip(*map(self._patches, images if isinstance(images, (list, tuple)) else [images]))
        return BatchFeature({"pixel_values": torch.cat(patches), "image_grid_hws": numpy.array(grids)}, tensor_type=return_tensors)

    def _patches(self, image):
        side, limit = self.patch_size, self.in_token_limit
        count = (image.width // side) * (image.height // side)
        if count > limit:
            scale = math.sqrt(limit / count)
            image = image.resize((int(image.width * scale), int(image.height * scale)), Image.Resampling.BICUBIC)
        rows, columns = (-(-size // (2 * side)) * 2 for size in (image.height, image.width))
        canvas = numpy.zeros((rows * side, columns * side, 3), numpy.float32)
        canvas[: image.height, : image.width] = numpy.asarray(image.convert("RGB"), numpy.float32) / 255
        values = (canvas - numpy.float32(self.image_mean)) / numpy.float32(self.image_std)
        patches = values.reshape(rows, side, columns, side, 3).transpose(0, 2, 4, 1, 3)
        return torch.from_numpy(patches.reshape(-1, 3, side, side).copy()), (rows, columns)


class KimiVLProcessor(ProcessorMixin):
    attributes = ["image_processor", "tokenizer"]
    image_token = "<|media_pad|>"

    def __init__(self, image_processor=None, tokenizer=None, chat_template=None, **more):
        super().__init__(image_processor, tokenizer, chat_template=chat_template, **more)

    def __call__(self, images=None, text=None, return_tensors=None, **_):
        text = [text] if isinstance(text, str) else list(text or [""])
        pixels = self.image_processor.preprocess(images, return_tensors=return_tensors) if images else {}
        counts = iter([rows * columns // 4 for rows, columns in pixels["image_grid_hws"]] if images else [])
        pieces = [line.split(self.image_token) for line in text]
        text = ["".join(part + self.image_token * int(next(counts)) for part in line[:-1]) + line[-1] for line in pieces]
        return BatchFeature({**self.tokenizer(text), **pixels}, tensor_type=return_tensors)
