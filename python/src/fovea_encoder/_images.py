"""Objects of other libraries as what the native module takes: paths, buffers and DLPack tensors."""

from __future__ import annotations

import sys
from typing import Any, List, Tuple

from ._error import Error

PROFILES = ("vllm", "vllm-0.23", "transformers", "sglang")

_ORIENTATION = 0x0112
# Modes with an alpha channel that a profile composites; vLLM since 0.24 adds tRNS, which Pillow
# keeps in `info`.
_COMPOSITED = {
    "vllm": {"RGBA", "LA", "PA", "RGBa", "La"},
    "vllm-0.23": {"RGBA"},
}


def as_list(items: Any) -> List[Any]:
    """One item, or several in a list, a tuple or an iterator, as a list."""
    if items is None:
        return []
    if isinstance(items, (list, tuple)):
        return list(items)
    if hasattr(items, "__next__") and not hasattr(items, "read"):  # an open file is no list of its lines
        return list(items)
    return [items]


def _rgb(image: Any, profile: str, background: Tuple[int, int, int]) -> Any:
    """The pixels that the loader of `profile` makes of a file with this image."""
    from PIL import Image, ImageOps

    if profile in ("vllm", "transformers") and image.getexif().get(_ORIENTATION, 1) != 1:
        image = ImageOps.exif_transpose(image)
    composited = image.mode in _COMPOSITED.get(profile, ())
    if composited or (profile == "vllm" and "transparency" in image.info):
        layer = image.convert("RGBA")
        image = Image.new("RGB", layer.size, tuple(background))
        image.paste(layer, mask=layer.getchannel("A"))
    return image if image.mode == "RGB" else image.convert("RGB")


def _pixels(image: Any, profile: str, background: Tuple[int, int, int]) -> Any:
    """Bytes and shape of an image, which PIL may only read from its file now."""
    try:
        rgb = _rgb(image, profile, background)
        return rgb.tobytes(), (rgb.height, rgb.width, 3)
    except MemoryError:
        raise
    except Exception as problem:  # whatever a decoder says of bytes from outside
        return Error(f"PIL cannot read it: {problem}", "corrupt_data")


def prepare(items: List[Any], profile: str, background: Tuple[int, int, int]) -> List[Any]:
    """PIL images become pixels, the one copy that they need, or an Error where they cannot be read;
    arrays that have only `__array_interface__` go through numpy, which copies nothing."""
    pil = sys.modules.get("PIL.Image")
    prepared = []
    for item in items:
        if pil is not None and isinstance(item, pil.Image):
            item = _pixels(item, profile, background)
        elif hasattr(item, "__array_interface__") and not _is_array(item):
            import numpy

            item = numpy.asarray(item)
        prepared.append(item)
    return prepared


def _is_array(item: Any) -> bool:
    if hasattr(item, "__dlpack__"):
        return True
    try:
        memoryview(item)
    except TypeError:
        return False
    return True
