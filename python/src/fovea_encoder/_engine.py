from __future__ import annotations

import atexit
import json
import os
import weakref
from numbers import Integral
from typing import TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from . import _native
from ._arguments import check_type, frame_rate, item_sizes
from ._hub import model_directory
from ._images import as_list, prepare
from ._progress import progress_bar
from ._tensors import caller_stream, capsules
from ._weights import Weights, weight_tensors

if TYPE_CHECKING:
    import asyncio

    import numpy
    from typing_extensions import Unpack

    from ._options import Options

Path = Union[str, "os.PathLike[str]"]
ItemOptions = Union[Mapping[str, Any], Sequence[Optional[Mapping[str, Any]]], None]

_engines: "weakref.WeakSet[_native.Engine]" = weakref.WeakSet()


@atexit.register
def _shut_down() -> None:
    """Ends the threads that call Python before the interpreter goes."""
    for native in list(_engines):
        native.shut_down()
    _native.end_calls()


class Engine:
    """A loaded vision encoder. May be used by several threads at the same time; calls let go of
    the GIL. Made by `from_pretrained` or `from_weights`."""

    def __init__(
        self,
        path: Path,
        device: str,
        threads: int,
        options: Dict[str, Any],
        weights: Optional[Weights] = None,
        download: bool = False,
        revision: Optional[str] = None,
    ) -> None:
        self._arguments = (os.fsdecode(path), device, threads, dict(options), None, download, revision)
        self._can_be_pickled = weights is None
        self._native = _native.Engine(
            model_directory(path, download, revision), {**options, "device": device, "threads": threads}, weights
        )
        self._profile: str = self.options["media_profile"]
        self._background = tuple(self.options["rgba_background_color"])
        _engines.add(self._native)

    @classmethod
    def from_pretrained(
        cls,
        path: Path,
        device: str = "auto",
        threads: int = 0,
        *,
        download: bool = False,
        revision: Optional[str] = None,
        **options: "Unpack[Options]",
    ) -> "Engine":
        """Loads the vision tower of the checkpoint in the folder `path`, or of a model of the hub,
        "<organisation>/<name>", that is in the hub cache. With `download` the model is downloaded
        first, or what is new of it, as pull_model() does; `revision` is a branch, tag or commit.

        `device` is "auto", "cpu", "cuda", "cuda:1" or several of them separated by commas; `threads`
        are those of the CPU, 0 for all. Options have the names of docs/configuration.md.
        """
        return cls(path, device, threads, dict(options), None, download, revision)

    @classmethod
    def from_weights(
        cls,
        path: Path,
        tensors: Mapping[str, Any],
        device: str = "auto",
        threads: int = 0,
        **options: "Unpack[Options]",
    ) -> "Engine":
        """As from_pretrained(), with the tensors of another loader: the folder `path` holds
        config.json and the processor's files, and needs no weights.

        `tensors` maps names to tensors of torch on any device, arrays of numpy, or tensors of DLPack;
        those on a GPU that are not of torch need it. Names are those of the checkpoint or of the
        `state_dict()` of transformers' model; tensors outside the tower are not read. One tensor at a
        time is copied to host memory, from a thread of the call, and none is kept.

        Missing and misshapen tensors are one Error; what a tensor raises when it is copied is raised
        as it is.
        """
        return cls(path, device, threads, dict(options), weight_tensors(tensors))

    def __reduce__(self) -> Any:
        """An engine is pickled as its arguments, and loaded again where it is unpickled."""
        if not self._can_be_pickled:
            raise TypeError("an engine made by from_weights() cannot be pickled: its weights are in no file")
        return type(self), self._arguments

    def __repr__(self) -> str:
        path, device = self._arguments[:2]
        return f"<fovea_encoder.Engine {self.family} of {path} on {device}>"

    @property
    def options(self) -> Dict[str, Any]:
        """All options by their names: what was given, and defaults."""
        return self._native.options

    @property
    def device(self) -> str:
        """The device in use, in words."""
        return self._native.device

    @property
    def family(self) -> str:
        """The family of the model, for example "qwen3_vl"."""
        return self._native.family

    @property
    def hidden(self) -> int:
        """Elements of the main embedding."""
        return self._native.hidden

    @property
    def item_options(self) -> Dict[str, List[str]]:
        """Names of the options that an "image" and a "video" may have of their own, by modality:
        the keys of `mm_processor_kwargs`."""
        facts = dict(self._native.facts)
        options = {name: facts[f"options of {article} {name}"] for name, article in (("image", "an"), ("video", "a"))}
        return {name: [] if listed == "none" else listed.split(", ") for name, listed in options.items()}

    @property
    def width(self) -> int:
        """Elements of a row: the main embedding, then the deepstack levels."""
        return self._native.width

    def encode(
        self,
        images: Any = None,
        videos: Any = None,
        dtype: str = "auto",
        on_error: str = "raise",
        *,
        device: Any = None,
        fps: float = 2.0,
        mm_processor_kwargs: ItemOptions = None,
        media_io_kwargs: Optional[Mapping[str, Any]] = None,
        enforce_eager: bool = False,
        use_cache: bool = True,
    ) -> List[_native.Embedding]:
        """Encodes images, then videos: one Embedding for each, in this order.

        An image is a path, an encoded image as bytes, a PIL image or a uint8 array [height, width,
        3]; a video is a path (of a container or a folder of frames), a container as bytes or a uint8
        array [frames, height, width, 3]; PixelValues are either. Both may be one item or a list. Arrays and bytes are read
        where they are and must not change during the call. `images` may be what plan_items() returned.

        `dtype` is that of the rows: "float32" ("auto"), "bfloat16" or "float16". With
        `on_error="record"` an item that cannot be read, decoded or planned is returned with its
        `error`; items of a wrong type are a TypeError in any case. `fps` is the rate at which
        containers are sampled, and frames were. Ctrl-C ends the call.

        `mm_processor_kwargs` are options of the checkpoint's processor in the place of those that its
        files say, as transformers takes them in a call: `{"max_pixels": 100352}` for all items, or
        a list of such dicts (None: no options), one for each image and video. `fovea inspect` lists
        those that a model takes; others are an Error.

        `media_io_kwargs` are vLLM's: `{"video": {"fps": 1}}` is `fps=1`. What cannot be honoured, such as
        a number of frames, which `mm_processor_kwargs` have, is an Error that names it.

        With `device`, a torch.device or its name, rows are tensors of torch there, each with memory of
        its own: `item.torch()`. On a GPU they are ordered as all that torch does on its current
        stream, and the host does not wait for them. Where an item tells its rows only when it is
        decoded, a video in a container, all rows of the call pass through host memory.
        """
        check_type(str, dtype=dtype, on_error=on_error)
        check_type(bool, enforce_eager=enforce_eager, use_cache=use_cache)
        planned = self.plan_items(
            images, videos, fps=fps, mm_processor_kwargs=mm_processor_kwargs, media_io_kwargs=media_io_kwargs
        )
        flags = (on_error, enforce_eager, use_cache)
        if device is None:
            return self._native.encode(planned, dtype, *flags)
        import torch

        rows = [count for count in planned.rows if count is not None]
        if len(rows) < len(planned):
            items = self._native.encode(planned, dtype, *flags)
            return _hold(items, [None if item.error else item.torch().to(device, copy=True) for item in items])
        kind = getattr(torch, _native.row_dtype(dtype))
        out = [torch.empty(count, self.width, dtype=kind, device=device) for count in rows]
        return self._encode_into(planned, out, None, *flags)

    def encode_into(
        self,
        images: Any = None,
        videos: Any = None,
        *,
        out: Sequence[Any],
        stream: Any = None,
        on_error: str = "raise",
        fps: float = 2.0,
        mm_processor_kwargs: ItemOptions = None,
        media_io_kwargs: Optional[Mapping[str, Any]] = None,
        enforce_eager: bool = False,
        use_cache: bool = True,
    ) -> List[_native.Embedding]:
        """As encode(), but writes the rows of item i to `out[i]`: any object of DLPack (a torch tensor
        on the host or a GPU, a numpy array) of shape [rows, width] and type float32, bfloat16 or
        float16. Elements of a row lie one after the other, rows may lie apart. There may be room for
        more rows, which is left as it is. Tensors do not overlap. The bits are those of encode().

        Returns embeddings without rows of their own: `item.torch()` is `out[i][:len(item)]`.

        Rows on the host are there when the call returns. Those on GPUs are written behind what
        `stream` holds at the time of the call and what the library of a tensor has queued for it,
        and the call returns without waiting: what the caller puts on `stream` afterwards finds them,
        and other streams and the host wait for it first. The memory of `out` has to stay until the
        stream has passed the call; torch sees to that where it allocated `out` on the same stream,
        else Tensor.record_stream() does. `stream` is a torch.cuda.Stream or a cudaStream_t as a
        number (0 or 1: the legacy default stream); None is the current stream of torch, without torch
        the legacy default one. The per-thread default stream (2) is refused.

        Bad tensors are an Error before any work, or a BufferError of their library; one with too
        little room is an error of its item. If the call raises, `out` holds anything and is the
        caller's again.
        """
        check_type(str, on_error=on_error)
        check_type(bool, enforce_eager=enforce_eager, use_cache=use_cache)
        planned = self.plan_items(
            images, videos, fps=fps, mm_processor_kwargs=mm_processor_kwargs, media_io_kwargs=media_io_kwargs
        )
        return self._encode_into(planned, list(out), stream, on_error, enforce_eager, use_cache)

    def _encode_into(
        self, planned: _native.PlannedItems, out: List[Any], stream: Any, *flags: Any
    ) -> List[_native.Embedding]:
        if len(out) != len(planned):
            raise ValueError(f"out: expected a tensor for each of {len(planned)} items, got {len(out)}")
        queue = caller_stream(out, stream)
        items = self._native.encode_into(planned, capsules(out, queue), queue, *flags)
        return _hold(items, [tensor[: len(item)] for item, tensor in zip(items, out)])

    def embed(
        self,
        images: Any,
        pooling: str = "mean",
        normalize: bool = True,
        batch_size: int = 32,
        show_progress_bar: bool = False,
        deepstack: str = "main",
    ) -> "numpy.ndarray[Any, Any]":
        """One vector per image, float32 [images, hidden]: the main embedding, pooled over the rows
        ("mean", "max", "first" or "last"), with a length of 1 if `normalize`. With `deepstack`
        "concat" it is the whole row, [images, width]. The progress bar is that of tqdm, and there
        is none where it is not installed. ValueError for a checkpoint that is an embedding model:
        its language model makes its vectors."""
        import numpy

        poolings: "Dict[str, Callable[[Any], Any]]" = {
            "mean": lambda rows: rows.mean(axis=0, dtype=numpy.float64),
            "max": lambda rows: rows.max(axis=0),
            "first": lambda rows: rows[0],
            "last": lambda rows: rows[-1],
        }
        if pooling not in poolings:
            raise ValueError(f'pooling: expected one of {", ".join(poolings)}, got "{pooling}"')
        check_type(Integral, batch_size=batch_size)
        if batch_size < 1:
            raise ValueError(f"batch_size: expected at least 1, got {batch_size}")
        columns = {"main": self.hidden, "concat": self.width}.get(deepstack)
        if columns is None:
            raise ValueError(f'deepstack: expected one of main, concat, got "{deepstack}"')
        if self._native.embedding_file:
            raise ValueError(
                f"the checkpoint is an embedding model ({self._native.embedding_file}), whose vectors its language "
                "model makes; encode() gives the rows of its vision tower"
            )
        pool = poolings[pooling]
        items = as_list(images)
        vectors = numpy.empty((len(items), columns), numpy.float32)
        with progress_bar(len(items), show_progress_bar) as advance:
            for begin in range(0, len(items), batch_size):
                batch = self.encode(items[begin : begin + batch_size], dtype="float32")
                for i, item in enumerate(batch, begin):
                    vectors[i] = pool(item.numpy()[:, :columns])
                advance(len(batch))
        if normalize:
            norms = numpy.linalg.norm(vectors, axis=1, keepdims=True)
            numpy.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors

    async def encode_async(
        self,
        images: Any = None,
        videos: Any = None,
        dtype: str = "auto",
        on_error: str = "raise",
        *,
        fps: float = 2.0,
        mm_processor_kwargs: ItemOptions = None,
        media_io_kwargs: Optional[Mapping[str, Any]] = None,
    ) -> List[_native.Embedding]:
        """As encode(), for asyncio: calls that are made at the same time share batches. Cancelling
        the task cancels its request; too many at a time are an Error "unavailable"."""
        import asyncio  # here, because it takes longer to import than the rest of the package

        check_type(str, dtype=dtype, on_error=on_error)
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[List[_native.Embedding]]" = loop.create_future()

        def settle(items: Any, error: Any) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(items)
            else:
                future.set_exception(error)

        def done(items: Any, error: Any) -> None:
            try:
                loop.call_soon_threadsafe(settle, items, error)
            except RuntimeError:  # the loop is closed: nobody waits
                pass

        media = self._prepare(images), self._prepare(videos)
        kwargs = _item_options(mm_processor_kwargs, sum(map(len, media)))
        ticket = self._native.submit(*media, self._rate(fps, media_io_kwargs), kwargs, dtype, on_error, done)
        try:
            return await future
        except asyncio.CancelledError:
            self._native.cancel(ticket)
            raise

    async def stream(
        self,
        images: Union[Iterable[Any], AsyncIterable[Any]],
        dtype: str = "auto",
        on_error: str = "raise",
        *,
        in_flight: int = 64,
    ) -> AsyncIterator[_native.Embedding]:
        """The embeddings of images, in their order, as they are done. At most `in_flight` images
        are taken from the iterable ahead of what was handed out."""
        import asyncio

        check_type(Integral, in_flight=in_flight)
        if in_flight < 1:
            raise ValueError(f"in_flight: expected at least 1, got {in_flight}")
        waiting: "List[asyncio.Task[List[_native.Embedding]]]" = []
        try:
            async for image in _each(images):
                waiting.append(
                    asyncio.ensure_future(self.encode_async([image], None, dtype, on_error))
                )
                if len(waiting) >= in_flight:
                    yield (await waiting.pop(0))[0]
            while waiting:
                yield (await waiting.pop(0))[0]
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def plan(self, sizes: Any) -> _native.PackingPlan:
        """How one call of encode() would resize and pack items of these sizes: (width, height) of
        images, (width, height, frames) of videos."""
        return self._native.plan(item_sizes(sizes))

    def plan_items(
        self,
        images: Any = None,
        videos: Any = None,
        *,
        fps: float = 2.0,
        mm_processor_kwargs: ItemOptions = None,
        media_io_kwargs: Optional[Mapping[str, Any]] = None,
    ) -> _native.PlannedItems:
        """Plans items before they are decoded: `rows` says how many each will have, None for a video
        in a container and for what cannot be read. encode() and encode_into() of this engine take
        them in place of `images`, as often as wanted, and plan nothing again. Arrays and bytes are
        read where they are and must not change until then; files are read by encode(), and may."""
        if not isinstance(images, _native.PlannedItems):
            media = self._prepare(images), self._prepare(videos)
            kwargs = _item_options(mm_processor_kwargs, sum(map(len, media)))
            return self._native.plan_items(*media, self._rate(fps, media_io_kwargs), kwargs)
        if videos is not None:
            raise TypeError("videos: expected none beside planned items")
        if fps != 2.0:
            raise TypeError("fps: expected none beside planned items, which have theirs")
        if mm_processor_kwargs is not None:
            raise TypeError("mm_processor_kwargs: expected none beside planned items, which have theirs")
        if media_io_kwargs is not None:
            raise TypeError("media_io_kwargs: expected none beside planned items, which have theirs")
        return images

    def warm_up(self) -> None:
        """Captures all graphs now instead of when they are first needed."""
        self._native.warm_up()

    def trim(self) -> int:
        """Gives back memory that only past calls needed; returns bytes of device memory."""
        return self._native.trim()

    def stats(self) -> Dict[str, int]:
        """Counters since loading."""
        return self._native.stats()

    def _rate(self, fps: float, media_io_kwargs: Optional[Mapping[str, Any]]) -> float:
        """Frames per second of videos, by both arguments together."""
        fps = frame_rate(fps)
        text = "" if media_io_kwargs is None else _json("media_io_kwargs", media_io_kwargs)
        given = self._native.media_io_fps(text) if text else None
        if given is not None and fps not in (2.0, given):
            raise ValueError(f"media_io_kwargs: video.fps is {given}, and fps {fps:g}; expected one of them")
        return fps if given is None else given

    def _prepare(self, items: Any) -> List[Any]:
        return prepare(as_list(items), self._profile, self._background)


def _item_options(kwargs: ItemOptions, num_items: int) -> List[str]:
    """The options of each item as JSON; an empty list if none has any."""
    if kwargs is None:
        return []
    if isinstance(kwargs, Mapping):
        return [_json("mm_processor_kwargs", kwargs)] * num_items
    if isinstance(kwargs, (str, bytes)) or not isinstance(kwargs, Sequence):
        raise TypeError(f"mm_processor_kwargs: expected a dict, or a list of them, got a {type(kwargs).__name__}")
    if len(kwargs) != num_items:
        raise ValueError(f"mm_processor_kwargs: expected options for each of {num_items} items, got {len(kwargs)}")
    return ["" if one is None else _json(f"mm_processor_kwargs[{i}]", one) for i, one in enumerate(kwargs)]


def _json(name: str, options: Any) -> str:
    """Options as JSON; empty: there are none. TypeError for what has no JSON, ValueError for NaN and
    infinity, for which there is none."""
    if not isinstance(options, Mapping):
        raise TypeError(f"{name}: expected a dict, got a {type(options).__name__}")
    try:
        return json.dumps(dict(options), allow_nan=False) if options else ""
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"{name}: {problem}") from None


def _hold(items: List[_native.Embedding], tensors: List[Any]) -> List[_native.Embedding]:
    """The items, with their rows in `tensors`."""
    for item, tensor in zip(items, tensors):
        if item.error is None:
            _native.set_tensor(item, tensor)
    return items


async def _each(items: Union[Iterable[Any], AsyncIterable[Any]]) -> AsyncIterator[Any]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in [items] if isinstance(items, (str, bytes, bytearray, memoryview)) else items:
            yield item
