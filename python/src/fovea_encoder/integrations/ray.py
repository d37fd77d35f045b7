"""Stages for Ray Data: encoded images or paths in, rows or files of rows out.

    data = ray.data.read_binary_files(folder, include_paths=True)
    data = data.map_batches(
        EncodeBatch,
        fn_constructor_kwargs={"model": "Qwen3-VL-8B-Instruct"},
        batch_format="pyarrow", batch_size=64, num_cpus=4, num_gpus=1,
        compute=ray.data.ActorPoolStrategy(size=8),
    )
    data.write_parquet(target)
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
import os
import uuid
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy
import pyarrow
import ray

from .. import __version__
from .._engine import Engine
from .._native import Embedding, row_dtype

Path = Union[str, "os.PathLike[str]"]

_ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_MODALITIES = ("image", "video")


@dataclasses.dataclass(frozen=True)
class _Item:
    """A row of a batch: the medium, and how it is encoded."""

    media: Any
    modality: str
    fps: float
    options: str  # mm_processor_kwargs as JSON; empty: none

    @property
    def is_video(self) -> bool:
        return self.modality == "video"

    def kwargs(self) -> Optional[Dict[str, Any]]:
        return json.loads(self.options) if self.options else None


class EncodeBatch:
    """A stage of `map_batches(..., batch_format="pyarrow")` with one engine per actor.

    Items are in `column`: encoded images where it holds bytes, paths where it holds strings; by
    default it is "bytes" where there is one, otherwise "path". With `modality="video"` they are
    containers, or paths of folders with frames; where images and videos are mixed, `modality_column`
    names a column of strings that says which is which. Bytes are left out of the result; all other
    columns stay and are followed by

    | rows      | large_binary | the rows, one after the other; null where there is an error         |
    | num_rows  | int64        | 0 where there is an error                                           |
    | width     | int64        | elements of a row                                                   |
    | dtype     | string       | of an element                                                       |
    | grid_thw  | list<int64>  | patches in time, height and width; null for families without a grid |
    | key       | string       | names the rows, if the engine has an encoder cache; otherwise null  |
    | error     | string       | why there are no rows; null where there are some                    |

    and, unless all are images, `timestamps`, list<float64>, and `retained`, list<int64>, of pruned
    videos.

    `mm_processor_kwargs` are options of the checkpoint's processor for all items, as Engine.encode()
    takes them. `options_column` names a column of strings with those of each item, JSON objects,
    whose keys come before the others; `fps_column` one of numbers with the rate of each video in the
    place of `fps`. A null is none.

    An item that cannot be read, decoded or planned is a row with an error. Anything else raises, so
    that Ray ends or repeats the task: a wrong argument, a full device.

    A batch is one call of the engine as long as its rows fit into `block_bytes`, and several calls
    with a table each where they do not. Images are planned by the size in their header; a video is
    a call of its own.

    `device` and `threads` are by default what Ray gave the actor: its GPUs, or the CPU where it has
    none (`num_gpus`), and as many threads as CPUs, all where it claims none (`num_cpus`). `options`
    are those of Engine.from_pretrained. Arguments travel to every actor: `model` is a path that all
    nodes can read.
    """

    def __init__(
        self,
        model: Path,
        column: Optional[str] = None,
        modality: str = "image",
        dtype: str = "bfloat16",
        *,
        fps: float = 2.0,
        modality_column: Optional[str] = None,
        options_column: Optional[str] = None,
        fps_column: Optional[str] = None,
        mm_processor_kwargs: Optional[Dict[str, Any]] = None,
        device: Optional[str] = None,
        threads: Optional[int] = None,
        block_bytes: int = 128 << 20,
        **options: Any,
    ) -> None:
        if modality not in _MODALITIES:
            raise ValueError(f'modality: expected image or video, got "{modality}"')
        if block_bytes < 1:
            raise ValueError(f"block_bytes: expected at least 1, got {block_bytes}")
        given_device, given_threads = _resources()
        device = given_device if device is None else device
        threads = given_threads if threads is None else threads
        self._dtype = row_dtype(dtype)  # refuses a wrong one before the first batch
        self._model, self._column, self._modality = os.fspath(model), column, modality
        self._modality_column, self._options_column, self._fps_column = modality_column, options_column, fps_column
        self._kwargs = dict(mm_processor_kwargs or {})
        self._fps, self._block_bytes, self._options = fps, block_bytes, options
        self._has_videos = modality == "video" or modality_column is not None
        self._engine = Engine.from_pretrained(model, device=device, threads=threads, **options)
        self._rows_of_size = functools.lru_cache(4096)(self._plan)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.Table]:
        column = self._column_of(batch)
        items = self._items(batch, column)
        kept = batch.drop_columns([column]) if _holds_bytes(batch, column) else batch
        for begin, end in self._groups(items):
            yield self._table(kept.slice(begin, end - begin), items[begin:end])

    def _items(self, batch: pyarrow.Table, column: str) -> List[_Item]:
        media = _media(batch, column)
        modalities = _texts(batch, self._modality_column) or [self._modality] * len(media)
        options = _texts(batch, self._options_column) or [None] * len(media)
        rates = _numbers(batch, self._fps_column) or [None] * len(media)
        items = []
        for medium, modality, own, fps in zip(media, modalities, options, rates):
            modality = self._modality if modality is None else modality
            if modality not in _MODALITIES:
                raise ValueError(f'column {self._modality_column}: expected image or video, got "{modality}"')
            items.append(_Item(medium, modality, self._fps if fps is None else fps, self._merged(own)))
        return items

    def _merged(self, own: Optional[str]) -> str:
        """The options of an item and those of all, as JSON."""
        try:
            given = json.loads(own) if own else {}
        except ValueError as error:
            raise ValueError(f"column {self._options_column}: expected JSON objects, got {own!r}: {error}") from None
        if not isinstance(given, dict):
            raise ValueError(f"column {self._options_column}: expected JSON objects, got {own!r}")
        merged = {**self._kwargs, **given}
        return json.dumps(merged, sort_keys=True) if merged else ""

    def _table(self, kept: pyarrow.Table, items: List[_Item]) -> pyarrow.Table:
        """Encodes one group; `kept` are its columns that stay."""
        encoded = self._encode(items)
        rows = [None if item.error else memoryview(item.numpy().view(numpy.uint8)).cast("B") for item in encoded]
        return _with_columns(
            kept, {"rows": pyarrow.array(rows, pyarrow.large_binary()), **self._description(encoded)}
        )

    def _encode(self, items: List[_Item]) -> List[Embedding]:
        """The embeddings of a group, in its order. A group has one video at most, so one rate."""
        order = sorted(range(len(items)), key=lambda i: items[i].is_video)  # images come first
        images = [items[i].media for i in order if not items[i].is_video]
        videos = [items[i].media for i in order if items[i].is_video]
        fps = next((item.fps for item in items if item.is_video), self._fps)
        encoded = self._engine.encode(
            images,
            videos,
            dtype=self._dtype,
            on_error="record",
            fps=fps,
            mm_processor_kwargs=[items[i].kwargs() for i in order],
        )
        in_order: List[Any] = [None] * len(items)
        for i, item in zip(order, encoded):
            in_order[i] = item
        return in_order

    def _description(self, encoded: List[Embedding]) -> Dict[str, pyarrow.Array]:
        integers = pyarrow.list_(pyarrow.int64())
        columns = {
            "num_rows": pyarrow.array([item.shape[0] for item in encoded], pyarrow.int64()),
            "width": pyarrow.array([item.shape[1] for item in encoded], pyarrow.int64()),
            "dtype": pyarrow.array([None if item.error else item.dtype for item in encoded], pyarrow.string()),
            "grid_thw": pyarrow.array([item.grid_thw for item in encoded], integers),
            "key": pyarrow.array([item.key or None for item in encoded], pyarrow.string()),
            "error": pyarrow.array([_message(item) for item in encoded], pyarrow.string()),
        }
        if self._has_videos:
            times = [item.timestamps if item.modality == "video" else None for item in encoded]
            columns["timestamps"] = pyarrow.array(times, pyarrow.list_(pyarrow.float64()))
            columns["retained"] = pyarrow.array([item.retained for item in encoded], integers)
        return columns

    def _column_of(self, batch: pyarrow.Table) -> str:
        wanted = [self._column] if self._column else ["bytes", "path"]
        for name in wanted:
            if name in batch.column_names:
                return name
        raise ValueError(f"expected a column {' or '.join(wanted)}, got {', '.join(batch.column_names)}")

    def _groups(self, items: List[_Item]) -> Iterator[Tuple[int, int]]:
        """Ranges of items whose rows fit into a block, or of one with more. Items without rows start none."""
        begin, used = 0, 0
        for i, item in enumerate(items):
            size = self._bytes_ahead(item)
            if used > 0 and size > 0 and used + size > self._block_bytes:
                yield begin, i
                begin, used = i, 0
            used += size
        if items:
            yield begin, len(items)

    def _bytes_ahead(self, item: _Item) -> int:
        """Bytes of the rows to come; 0 for an image without a readable header, which has none."""
        if item.is_video:
            return self._block_bytes
        if item.options:
            (rows,) = self._engine.plan_items([item.media], mm_processor_kwargs=item.kwargs()).rows
            rows = rows or 0
        else:
            size = _image_size(item.media)
            rows = self._rows_of_size(size) if size else 0
        return rows * self._engine.width * _ITEM_BYTES[self._dtype]

    def _plan(self, size: Tuple[int, int]) -> int:
        try:
            return self._engine.plan([size]).items[0].rows
        except RuntimeError:  # fovea.Error: encode() says it of the item
            return 0


class EncodeShards(EncodeBatch):
    """As EncodeBatch, but the rows go into safetensors files in the folder `output`, and the result
    has the columns `file` and `tensor` in the place of `rows`: nothing large travels through Ray.

    A file holds the rows of one call, in the layout of `fovea encode`: `item_0`, `item_0.grid_thw`
    and so on, and a list of the items in its metadata. Its name is a digest of the items (path and
    content; path, size and time of change where items are paths), the model's path and the options,
    and it appears complete or not at all. A task that Ray repeats therefore replaces its own files.
    What a killed actor had begun is left behind as a hidden file that ends in ".tmp".

    All nodes write to `output`, which is made if it is missing. A group without any rows has no file.
    """

    def __init__(self, model: Path, output: Path, **arguments: Any) -> None:
        super().__init__(model, **arguments)
        self._output = os.fspath(output)
        os.makedirs(self._output, exist_ok=True)

    def _table(self, kept: pyarrow.Table, items: List[_Item]) -> pyarrow.Table:
        paths: List[Optional[str]] = kept["path"].to_pylist() if "path" in kept.column_names else [None] * len(items)
        name = self._digest(paths, items) + ".safetensors"
        encoded = self._encode(items)
        tensors, metadata = self._file_of(paths, encoded)
        if tensors:
            _write(os.path.join(self._output, name), tensors, metadata)
        names = [None if item.error else f"item_{i}" for i, item in enumerate(encoded)]
        files = [name if tensor else None for tensor in names]
        pointers = {
            "file": pyarrow.array(files, pyarrow.string()),
            "tensor": pyarrow.array(names, pyarrow.string()),
        }
        return _with_columns(kept, {**pointers, **self._description(encoded)})

    def _digest(self, paths: List[Optional[str]], items: List[_Item]) -> str:
        arguments = [os.path.abspath(self._model), self._dtype]
        digest = hashlib.sha256(json.dumps([*arguments, self._options], sort_keys=True, default=str).encode())
        for path, item in zip(paths, items):
            media = item.media
            content = _state_of(media) if isinstance(media, str) else hashlib.sha256(media).hexdigest()
            rate = item.fps if item.is_video else None
            digest.update(json.dumps([path, content, item.modality, rate, item.options]).encode())
        return digest.hexdigest()[:32]

    def _file_of(
        self, paths: List[Optional[str]], encoded: List[Embedding]
    ) -> Tuple[Dict[str, Any], Dict[str, str]]:
        """Tensors and metadata of the file."""
        tensors: Dict[str, Any] = {}
        for i, item in enumerate(encoded):
            if item.error is not None:
                continue
            tensors[f"item_{i}"] = item.numpy()
            for name, integers in ("grid_thw", item.grid_thw), ("retained", item.retained):
                if integers is not None:
                    tensors[f"item_{i}.{name}"] = numpy.array(integers, numpy.int64)
        entries = [_entry(i, path, item) for i, (path, item) in enumerate(zip(paths, encoded))]
        model = os.path.basename(os.path.abspath(self._model))
        metadata = {"format": "pt", "fovea.version": __version__, "fovea.model": model}
        return tensors, {**metadata, "fovea.items": json.dumps(entries)}


def rows_of(table: pyarrow.Table, output: Optional[Path] = None) -> List[Optional[numpy.ndarray[Any, Any]]]:
    """The rows of each item of a result, as an array [num_rows, width], and None where there is an
    error. Those of EncodeBatch share the memory of the table; those of EncodeShards are read from
    the folder `output`. Rows of bfloat16 need ml_dtypes."""
    if "rows" in table.column_names:
        kinds, heights, widths = (table[name].to_pylist() for name in ("dtype", "num_rows", "width"))
        return [
            None if rows is None else numpy.frombuffer(rows, _numpy_dtype(kind)).reshape(height, width)
            for rows, kind, height, width in zip(_values(table["rows"]), kinds, heights, widths)
        ]
    if output is None:
        raise ValueError("rows_of: the rows of EncodeShards take the folder they were written to, output")
    return _rows_of_files(table, os.fspath(output))


def _rows_of_files(table: pyarrow.Table, output: str) -> List[Optional[numpy.ndarray[Any, Any]]]:
    from safetensors import safe_open

    rows: List[Optional[numpy.ndarray[Any, Any]]] = [None] * table.num_rows
    places: Dict[str, List[Tuple[int, str]]] = {}
    for i, (file, tensor) in enumerate(zip(table["file"].to_pylist(), table["tensor"].to_pylist())):
        if file is not None:
            places.setdefault(file, []).append((i, tensor))
    for file, wanted in places.items():
        with safe_open(os.path.join(output, file), "numpy") as tensors:
            for i, tensor in wanted:
                rows[i] = tensors.get_tensor(tensor)
    return rows


def _resources() -> Tuple[str, int]:
    """Device and threads that Ray gave this actor; everything outside of one."""
    if not ray.is_initialized() or ray.get_runtime_context().get_actor_id() is None:
        return "auto", 0
    context = ray.get_runtime_context()
    cpus = context.get_assigned_resources().get("CPU", 0)
    gpus = len(context.get_accelerator_ids().get("GPU", []))
    device = ",".join(f"cuda:{i}" for i in range(gpus)) or "cpu"  # Ray hides the GPUs of others
    return device, max(1, int(cpus)) if cpus else 0


def _is_binary(batch: pyarrow.Table, column: str) -> bool:
    kind = batch.schema.field(column).type
    return bool(pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind))


def _holds_bytes(batch: pyarrow.Table, column: str) -> bool:
    """Also of a block without any value, whose columns are of type null."""
    return _is_binary(batch, column) or (column == "bytes" and bool(pyarrow.types.is_null(batch[column].type)))


def read_list(path: Path, **arguments: Any) -> "ray.data.Dataset":
    """A list of `fovea encode` (docs/shards.md) as a dataset of the columns `path`, `type` ("image"
    or "video"), `options` (mm_processor_kwargs as JSON, or null) and `fps` (or null): what
    EncodeBatch(modality_column="type", options_column="options", fps_column="fps") takes. Relative
    paths start at the folder of the list. `arguments` are those of ray.data.read_text. A line that
    is wrong ends the run with a ValueError that shows it."""
    folder = os.path.dirname(os.path.abspath(path))
    lines = ray.data.read_text(os.fspath(path), **arguments)
    return lines.flat_map(functools.partial(_listed, folder))


def _listed(folder: str, row: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The item of a line; none of empty lines and comments."""
    line = row["text"].removeprefix("\ufeff").strip(" \t\r")
    if not line or line.startswith("#"):
        return []
    given = {"image": line}
    if line.startswith("{"):
        try:
            given = {key: value for key, value in json.loads(line).items() if value is not None}
        except ValueError as error:
            raise ValueError(f"expected a JSON object, got {line}: {error}") from None
    kinds = [kind for kind in _MODALITIES if kind in given]
    unknown = given.keys() - {"image", "video", "fps", "mm_processor_kwargs"}
    options = given.get("mm_processor_kwargs") or {}
    fps = given.get("fps")
    if len(kinds) != 1 or unknown or not isinstance(given[kinds[0]], str) or not isinstance(options, dict):
        raise ValueError(f"expected image or video with a path, fps and mm_processor_kwargs, got {line}")
    is_rate = isinstance(fps, (int, float)) and not isinstance(fps, bool) and fps > 0
    if fps is not None and (kinds == ["image"] or not is_rate):
        raise ValueError(f"fps: expected a number above 0, of a video, got {line}")
    return [{
        "path": os.path.join(folder, given[kinds[0]]),
        "type": kinds[0],
        "options": json.dumps(options, sort_keys=True) if options else None,
        "fps": None if fps is None else float(fps),
    }]


def _texts(batch: pyarrow.Table, column: Optional[str]) -> List[Optional[str]]:
    """The strings of a column that the caller named; nothing without a name."""
    return _column(batch, column, (pyarrow.types.is_string, pyarrow.types.is_large_string), "strings")


def _numbers(batch: pyarrow.Table, column: Optional[str]) -> List[Optional[float]]:
    return _column(batch, column, (pyarrow.types.is_floating, pyarrow.types.is_integer), "numbers")


def _column(batch: pyarrow.Table, column: Optional[str], kinds: Tuple[Any, ...], expected: str) -> List[Any]:
    if column is None:
        return []
    if column not in batch.column_names:
        raise ValueError(f"expected a column {column}, got {', '.join(batch.column_names)}")
    kind = batch.schema.field(column).type
    if not pyarrow.types.is_null(kind) and not any(is_kind(kind) for is_kind in kinds):
        raise ValueError(f"column {column}: expected {expected}, got {kind}")
    return list(batch[column].to_pylist())


def _media(batch: pyarrow.Table, column: str) -> List[Any]:
    """Paths, or bytes that lie in the batch. Null becomes no bytes, which is an error of the item."""
    if _is_binary(batch, column):
        return [b"" if value is None else value for value in _values(batch[column])]
    kind = batch.schema.field(column).type
    is_path = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
    if not is_path and not pyarrow.types.is_null(kind):
        raise ValueError(f"column {column}: expected bytes or paths, got {kind}")
    return [b"" if path is None else path for path in batch[column].to_pylist()]


def _values(column: pyarrow.ChunkedArray) -> Iterator[Optional[memoryview]]:
    """The bytes of each value where they are; scalars of Arrow would copy them."""
    for chunk in column.chunks:
        _, offsets, data = chunk.buffers()
        kind = numpy.int64 if pyarrow.types.is_large_binary(chunk.type) else numpy.int32
        bounds = numpy.frombuffer(offsets or b"", kind)[chunk.offset :].tolist()
        content = memoryview(data or b"").cast("B")
        for i, valid in enumerate(chunk.is_valid().to_pylist()):
            yield content[bounds[i] : bounds[i + 1]] if valid else None


def _image_size(item: Any) -> Optional[Tuple[int, int]]:
    """Width and height from the header of an image; None if there is none that can be read."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a size that the engine has a limit for
            with Image.open(item if isinstance(item, str) else io.BytesIO(item)) as image:
                return image.size
    except Exception:  # whatever a decoder says of bytes from outside
        return None


def _message(item: Embedding) -> Optional[str]:
    """The error without the place in the call, which the row of the table says better."""
    return None if item.error is None else str(item.error).removeprefix(f"{item.name}: ")


def _with_columns(table: pyarrow.Table, columns: Dict[str, pyarrow.Array]) -> pyarrow.Table:
    taken = [name for name in columns if name in table.column_names]
    if taken:
        raise ValueError(f"the batch has columns named as those of the result: {', '.join(taken)}")
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table


def _numpy_dtype(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return numpy.dtype(name)


def _state_of(path: str) -> List[Any]:
    """Size and time of change of a file, and of all files of a folder."""
    try:
        state = os.stat(path)
        if os.path.isdir(path):
            return [state.st_mtime_ns, *(_state_of(os.path.join(path, name)) for name in sorted(os.listdir(path)))]
    except OSError:
        return []
    return [state.st_size, state.st_mtime_ns]


def _entry(index: int, path: Optional[str], item: Embedding) -> Dict[str, Any]:
    """As the program describes an item."""
    entry: Dict[str, Any] = {"index": index, "modality": item.modality, "name": path or item.name}
    if item.error is not None:
        return {**entry, "error": _message(item)}
    rows, width = item.shape
    entry.update(dtype=item.dtype, num_embeds=rows, shape=[rows, width], width=width)
    if item.grid_thw is not None:
        entry["grid_thw"] = list(item.grid_thw)
    if item.timestamps:
        entry["timestamps"] = list(item.timestamps)
    return entry


def _write(path: str, tensors: Dict[str, Any], metadata: Dict[str, str]) -> None:
    """A safetensors file that is complete under its name, also after a crash of the machine."""
    from safetensors.numpy import save_file

    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
    try:
        save_file(tensors, temporary, metadata)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
