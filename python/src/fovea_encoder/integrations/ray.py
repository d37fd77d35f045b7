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
from .._native import Embedding

Path = Union[str, "os.PathLike[str]"]

_ITEM_BYTES = {"auto": 4, "float32": 4, "bfloat16": 2, "float16": 2}


class EncodeBatch:
    """A stage of `map_batches(..., batch_format="pyarrow")` with one engine per actor.

    Items are in `column`: encoded images where it holds bytes, paths where it holds strings; by
    default it is "bytes" where there is one, otherwise "path". With `modality="video"` they are
    containers. Bytes are left out of the result; all other columns stay and are followed by

    | rows      | large_binary | the rows, one after the other; null where there is an error         |
    | num_rows  | int64        | 0 where there is an error                                           |
    | width     | int64        | elements of a row                                                   |
    | dtype     | string       | of an element                                                       |
    | grid_thw  | list<int64>  | patches in time, height and width; null for families without a grid |
    | key       | string       | names the rows, if the engine has an encoder cache; otherwise null  |
    | error     | string       | why there are no rows; null where there are some                    |

    and for videos `timestamps`, list<float64>, and `retained`, list<int64>, of pruned ones.

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
        device: Optional[str] = None,
        threads: Optional[int] = None,
        block_bytes: int = 128 << 20,
        **options: Any,
    ) -> None:
        if modality not in ("image", "video"):
            raise ValueError(f'modality: expected image or video, got "{modality}"')
        if block_bytes < 1:
            raise ValueError(f"block_bytes: expected at least 1, got {block_bytes}")
        given_device, given_threads = _resources()
        device = given_device if device is None else device
        threads = given_threads if threads is None else threads
        self._model, self._column, self._modality, self._dtype = os.fspath(model), column, modality, dtype
        self._fps, self._block_bytes, self._options = fps, block_bytes, options
        self._engine = Engine.from_pretrained(model, device=device, threads=threads, **options)
        self._engine.encode([], dtype=dtype)  # refuses a wrong dtype before the first batch
        self._rows_of_size = functools.lru_cache(4096)(self._plan)

    def __call__(self, batch: pyarrow.Table) -> Iterator[pyarrow.Table]:
        column = self._column_of(batch)
        items = _items(batch, column)
        kept = batch.drop_columns([column]) if _is_binary(batch, column) else batch
        for begin, end in self._groups(items):
            yield self._table(kept.slice(begin, end - begin), items[begin:end])

    def _table(self, kept: pyarrow.Table, items: List[Any]) -> pyarrow.Table:
        """Encodes one group; `kept` are its columns that stay."""
        encoded = self._encode(items)
        rows = [None if item.error else memoryview(item.numpy().view(numpy.uint8)).cast("B") for item in encoded]
        return _with_columns(
            kept, {"rows": pyarrow.array(rows, pyarrow.large_binary()), **self._description(encoded)}
        )

    def _encode(self, items: List[Any]) -> List[Embedding]:
        images, videos = (None, items) if self._modality == "video" else (items, None)
        return self._engine.encode(images, videos, dtype=self._dtype, on_error="record", fps=self._fps)

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
        if self._modality == "video":
            times = [item.timestamps for item in encoded]
            columns["timestamps"] = pyarrow.array(times, pyarrow.list_(pyarrow.float64()))
            columns["retained"] = pyarrow.array([item.retained for item in encoded], integers)
        return columns

    def _column_of(self, batch: pyarrow.Table) -> str:
        wanted = [self._column] if self._column else ["bytes", "path"]
        for name in wanted:
            if name in batch.column_names:
                return name
        raise ValueError(f"expected a column {' or '.join(wanted)}, got {', '.join(batch.column_names)}")

    def _groups(self, items: List[Any]) -> Iterator[Tuple[int, int]]:
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

    def _bytes_ahead(self, item: Any) -> int:
        """Bytes of the rows to come; 0 for an image without a readable header, which has none."""
        if self._modality == "video":
            return self._block_bytes
        size = _image_size(item)
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

    def _table(self, kept: pyarrow.Table, items: List[Any]) -> pyarrow.Table:
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

    def _digest(self, paths: List[Optional[str]], items: List[Any]) -> str:
        arguments = [os.path.abspath(self._model), self._modality, self._dtype, self._fps]
        digest = hashlib.sha256(json.dumps([*arguments, self._options], sort_keys=True, default=str).encode())
        for path, item in zip(paths, items):
            content = _state_of(item) if isinstance(item, str) else hashlib.sha256(item).hexdigest()
            digest.update(json.dumps([path, content]).encode())
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


def _items(batch: pyarrow.Table, column: str) -> List[Any]:
    """Paths, or bytes that lie in the batch. Null becomes no bytes, which is an error of the item."""
    if _is_binary(batch, column):
        return [b"" if value is None else value for value in _values(batch[column])]
    kind = batch.schema.field(column).type
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
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


def _state_of(path: str) -> List[int]:
    try:
        state = os.stat(path)
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
