"""Arguments of a caller, checked where they have their names."""

from __future__ import annotations

import math
import operator
from numbers import Integral, Real
from typing import Any, Iterable, List, Tuple


def check_type(kind: type, **arguments: Any) -> None:
    """TypeError that names the first argument that is none of this kind."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise TypeError(f"{name}: expected {_KINDS[kind]}, got a {type(value).__name__}")


_KINDS = {str: "a str", bool: "True or False", Integral: "a whole number"}


def frame_rate(fps: Any) -> float:
    """Frames per second. TypeError for what is no number, ValueError for what is no rate."""
    if isinstance(fps, bool) or not isinstance(fps, Real):
        raise TypeError(f"fps: expected a number, got a {type(fps).__name__}")
    rate = float(fps)
    if not 0 < rate < math.inf:
        raise ValueError(f"fps: expected a number above 0, got {rate:g}")
    return rate


def item_sizes(sizes: Iterable[Any]) -> List[Tuple[int, ...]]:
    """(width, height) of images, (width, height, frames) of videos. TypeError for what are no whole
    numbers, ValueError for another count of them."""
    return [_item_size(size, f"sizes[{i}]") for i, size in enumerate(sizes)]


def _item_size(size: Any, name: str) -> Tuple[int, ...]:
    expected = f"{name}: expected (width, height), or (width, height, frames) of a video"
    try:
        integers = tuple(map(operator.index, size))
    except TypeError:
        raise TypeError(f"{expected}, in whole numbers, got {size!r}") from None
    if len(integers) not in (2, 3) or not all(-(1 << 63) <= number < 1 << 63 for number in integers):
        raise ValueError(f"{expected}, got {size!r}")
    return integers
