"""Images and videos as a server takes them: encoded files or URLs."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import uuid
from numbers import Integral
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .. import _native
from .._error import Error
from .._images import PROFILES, as_list, prepare
from ._http import Bytes, quoted
from ._png import png

_URL = re.compile(r"(https?|file|data):", re.IGNORECASE)
_EXPECTED = {
    "image": "a path, a URL, an encoded image as bytes, a PIL image or uint8 pixels [height, width, 3]",
    "video": "a path of a container or of a folder of frames, a URL, an encoded video as bytes or uint8 "
    "pixels [frames, height, width, 3]",
}


@dataclasses.dataclass
class Item:
    """An image or a video; one of `file`, `frames`, `url` and `error` is there."""

    index: int
    name: str
    modality: str
    file: Optional[Bytes] = None
    frames: Sequence[Bytes] = ()  # of a video: encoded images
    url: str = ""
    error: Optional[Error] = None

    def size(self) -> int:
        return len(self.file or b"") + sum(len(frame) for frame in self.frames)


@dataclasses.dataclass(frozen=True)
class Loader:
    """How PIL images become pixels: by the media profile of the server."""

    profile: str
    background: Tuple[int, int, int]

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f'media_profile: expected one of {", ".join(PROFILES)}, got "{self.profile}"')
        colour = self.background
        if len(colour) != 3 or not all(isinstance(value, Integral) and 0 <= value <= 255 for value in colour):
            raise ValueError(f"rgba_background_color: expected three numbers from 0 to 255, got {colour!r}")
        object.__setattr__(self, "background", tuple(map(int, colour)))  # of numpy, perhaps

    def items(self, images: Any, videos: Any) -> Iterator[Item]:
        """Images, then videos, each read when it is asked for."""
        index = 0
        for modality, given in (("image", images), ("video", videos)):
            for place, source in enumerate(as_list(given)):
                yield self._item(source, Item(index, f"{modality}s[{place}]", modality))
                index += 1

    def _item(self, source: Any, item: Item) -> Item:
        if isinstance(source, str) and _URL.match(source):
            item.url = source
            item.name = item.name if source[:5].lower() == "data:" else source
        elif isinstance(source, (str, os.PathLike)):
            item.name = os.fsdecode(source)
            _read(item)
        else:
            (source,) = prepare([source], self.profile, self.background)
            if isinstance(source, Error):
                item.error = Error(f"{item.name}: {source}", source.code)
            else:
                _take(source, item)
        return item


def _read(item: Item) -> None:
    """The file, or the frames, at the path that is the name of the item."""
    name = quoted(item.name)
    try:
        if item.modality == "video" and os.path.isdir(item.name):
            item.frames = [_content(path) for path in _native.images_in(item.name)]
        else:
            item.file = _content(item.name)
    except Error as problem:
        item.error = problem
    except FileNotFoundError:
        item.error = Error(f"{name}: no such {item.modality} file", "not_found")
    except OSError as problem:
        item.error = Error(f"{name}: {problem.strerror or problem}", "io")
    except ValueError as problem:  # a null byte
        item.error = Error(f"{name}: {problem}", "not_found")


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _take(source: Any, item: Item) -> None:
    """An encoded file in memory, or pixels."""
    data, shape = _bytes_and_shape(source, item)
    if len(shape) == 1:
        item.file = data
    elif len(shape) != {"image": 3, "video": 4}[item.modality] or shape[-1] != 3:
        raise _refusal(item, f"an array {list(shape)}")
    elif 0 in shape:
        item.error = Error(f"{item.name}: expected at least 1x1 pixels, got an array {list(shape)}", "invalid_argument")
    elif item.modality == "image":
        item.file = png(data, shape[1], shape[0])
    else:
        size = len(data) // shape[0]
        pixels = (data[i * size : (i + 1) * size] for i in range(shape[0]))
        item.frames = [png(frame, shape[2], shape[1]) for frame in pixels]


def _bytes_and_shape(source: Any, item: Item) -> Tuple[memoryview, Tuple[int, ...]]:
    """Bytes that lie one after the other, and what they are of."""
    if isinstance(source, tuple):  # of prepare()
        return memoryview(source[0]), source[1]
    try:
        view = memoryview(source)
    except TypeError:
        view = _view_of_tensor(source, item)
    kind = view.format.lstrip("@=<>!")  # which ctypes puts in front
    if kind not in ("B", "b", "c") or view.ndim == 0 or (kind != "B" and view.ndim > 1):
        raise _refusal(item, f'an array of type "{view.format}"')
    shape = view.shape or ()
    if 0 in shape:  # which cast() does not take
        return memoryview(b""), shape
    is_plain = view.c_contiguous and kind == view.format  # what cast() takes
    return memoryview(view if is_plain else view.tobytes()).cast("B"), shape


def _view_of_tensor(source: Any, item: Item) -> memoryview:
    if not hasattr(source, "__dlpack__"):
        raise _refusal(item, f"a {type(source).__name__}")
    import numpy

    try:
        array: Any = numpy.from_dlpack(source)
        return memoryview(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        raise _refusal(item, f"an array that numpy does not take: {problem}") from None


def _refusal(item: Item, got: str) -> TypeError:
    return TypeError(f"{item.name}: expected {_EXPECTED[item.modality]}, got {got}")


def request_body(items: Sequence[Item], options: Dict[str, Any], fps: float) -> Tuple[str, List[Bytes]]:
    """Content type and pieces of a body: a form, which holds files as they are, or JSON where an item
    is no file."""
    if any(item.file is None for item in items):
        document = {**options, "items": [_json_item(item, fps) for item in items]}
        return "application/json", [json.dumps(document).encode()]
    if any(item.modality == "video" for item in items):
        options = {**options, "fps": fps}
    boundary = uuid.uuid4().hex
    pieces: List[Bytes] = [_part(boundary, "options", "application/json"), json.dumps(options).encode()]
    for item in items:
        # The kind alone: a server looks at the bytes for more.
        pieces += [b"\r\n" + _part(boundary, "file", f"{item.modality}/*"), item.file or b""]
    pieces.append(f"\r\n--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", pieces


def _part(boundary: str, name: str, kind: str) -> bytes:
    disposition = f'Content-Disposition: form-data; name="{name}"'
    return f"--{boundary}\r\n{disposition}\r\nContent-Type: {kind}\r\n\r\n".encode()


def _json_item(item: Item, fps: float) -> Dict[str, Any]:
    document: Dict[str, Any] = {"type": item.modality}
    if item.modality == "video":
        document["fps"] = fps
    if item.frames:
        document["frames"] = [_base64(frame) for frame in item.frames]
    else:
        document[item.modality] = item.url or _base64(item.file or b"")
    return document


def _base64(data: Bytes) -> str:
    return base64.b64encode(data).decode("ascii")
