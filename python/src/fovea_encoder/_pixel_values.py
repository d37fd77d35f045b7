"""Items of what a Hugging Face processor returned."""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

from . import _native
from ._tensors import caller_stream


class PixelValues(_native.PixelValues):
    """An image or a video as a Hugging Face processor returns it, for `images` or `videos` of encode(): `values`
    [patches, values of a patch] and `grid_thw`, the patches in time, height and width.

    Values are float32, bfloat16 or float16, or uint8 where nothing was rescaled and normalised yet: any
    object of DLPack or the buffer protocol in host memory, or uint8 on a GPU of the engine. They are read where
    they are and must not change while they are used; on a GPU that is behind what `stream` holds when this
    object is made, a torch.cuda.Stream or a cudaStream_t as a number, by default the current stream of
    torch. Rows have the bits of those of the image itself. TypeError for other values; what does not fit the
    model or the grid is an error of the item.
    """

    def __init__(self, values: Any, grid_thw: Any, stream: Any = None) -> None:
        super().__init__(values, grid_thw, caller_stream([values], stream))


def pixel_values(inputs: Mapping[str, Any]) -> Tuple[List[PixelValues], List[PixelValues]]:
    """The images and the videos in what a Hugging Face processor returned: `pixel_values` cut by
    `image_grid_thw`, `pixel_values_videos` cut by `video_grid_thw`, without a copy. Other keys are
    ignored.

        images, videos = fovea.pixel_values(processor(text=text, images=pictures, return_tensors="pt"))
        items = engine.encode(images, videos)

    ValueError for values without grids, and for grids that do not have as many patches as there are
    values; TypeError as of PixelValues.
    """
    return (
        _items(inputs, "pixel_values", "image_grid_thw"),
        _items(inputs, "pixel_values_videos", "video_grid_thw"),
    )


def _items(inputs: Mapping[str, Any], name: str, grid_name: str) -> List[PixelValues]:
    values, grids = inputs.get(name), inputs.get(grid_name)
    if values is None:
        return []
    if grids is None:
        raise ValueError(f"{name} comes without {grid_name}: families whose processor returns no grid take images, no pixel values")
    items = []
    begin = 0
    for grid in grids.tolist() if hasattr(grids, "tolist") else grids:
        frames, height, width = grid
        end = begin + frames * height * width
        items.append(PixelValues(values[begin:end], grid))
        begin = end
    if begin != len(values):
        raise ValueError(f"{name}: the grids of {grid_name} have {begin} patches, got {len(values)}")
    return items
