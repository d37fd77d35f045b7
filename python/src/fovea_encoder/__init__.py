"""Vision-encoder engine: images and videos in, rows for language models out."""

from ._engine import Engine
from ._error import Error
from ._hub import pull_model
from ._native import Embedding, ItemInfo, PackingPlan, PlannedBatch, PlannedItems
from ._native import version as _version
from ._pixel_values import PixelValues, pixel_values

__version__ = _version()
__all__ = [
    "Embedding",
    "Engine",
    "Error",
    "ItemInfo",
    "PackingPlan",
    "PixelValues",
    "PlannedBatch",
    "PlannedItems",
    "pixel_values",
    "pull_model",
]
