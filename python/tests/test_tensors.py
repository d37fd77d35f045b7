"""Rows in memory of the caller: tensors of torch and numpy arrays."""

import gc
import pickle

import numpy
import pytest
from conftest import IMAGES, MODEL, load_engine

import fovea_encoder as fovea

DTYPES = ["float32", "bfloat16", "float16"]


def torch_rooms(torch, items, dtype, gap=0, spare=0):
    """A tensor for each item, its rows `gap` elements apart, with room for `spare` more."""
    rooms = [torch.full((len(item) + spare, item.shape[1] + gap), 7.0, dtype=dtype) for item in items]
    return [room[:, : room.shape[1] - gap] for room in rooms], rooms


def bits(torch, tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gap", [0, 6])
def test_rows_in_tensors_have_the_bits_of_encode(engine, dtype, gap):
    torch = pytest.importorskip("torch")
    expected = engine.encode(IMAGES, MODEL / "video_frames", dtype=dtype)
    out, rooms = torch_rooms(torch, expected, getattr(torch, dtype), gap, spare=2)
    items = engine.encode_into(IMAGES, MODEL / "video_frames", out=out)
    for item, known, tensor, room in zip(items, expected, out, rooms):
        assert (item.shape, item.dtype, item.grid_thw) == (known.shape, known.dtype, known.grid_thw)
        assert bits(torch, tensor[: len(known)]) == known._array().tobytes()
        assert item.torch().data_ptr() == tensor.data_ptr()
        assert (room[len(known) :] == 7).all() and (room[:, tensor.shape[1] :] == 7).all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_in_numpy_arrays_have_the_bits_of_encode(engine, dtype):
    expected = engine.encode(IMAGES, dtype=dtype)
    whole = numpy.zeros((sum(map(len, expected)), engine.width), dtype)
    ends = numpy.cumsum([len(item) for item in expected])
    engine.encode_into(IMAGES, out=numpy.split(whole, ends[:-1]))
    assert whole.tobytes() == b"".join(item.numpy().tobytes() for item in expected)


def test_a_call_may_mix_types(engine):
    torch = pytest.importorskip("torch")
    expected = engine.encode(IMAGES[:2])
    out = [numpy.empty(expected[0].shape, "f4"), torch.empty(expected[1].shape, dtype=torch.bfloat16)]
    items = engine.encode_into(IMAGES[:2], out=out)
    assert [item.dtype for item in items] == ["float32", "bfloat16"]
    assert out[0].tobytes() == expected[0].numpy().tobytes()
    assert torch.equal(out[1], expected[1].torch().to(torch.bfloat16))


@pytest.mark.parametrize("dtype", ["auto", *DTYPES])
def test_a_device_gives_tensors_of_torch(engine, dtype):
    torch = pytest.importorskip("torch")
    expected = engine.encode(IMAGES, MODEL / "video_frames", dtype=dtype)
    items = engine.encode(IMAGES, MODEL / "video_frames", dtype=dtype, device="cpu")
    for item, known in zip(items, expected):
        assert type(item.torch()) is torch.Tensor
        assert torch.equal(item.torch(), known.torch())
        assert torch.equal(torch.from_dlpack(item), known.torch())
        assert (item.name, item.grid_thw, item.timestamps) == (known.name, known.grid_thw, known.timestamps)
    with pytest.raises(ValueError, match="dtype: expected one of"):
        engine.encode(IMAGES[0], dtype="int8", device="cpu")


def test_a_device_takes_items_whose_rows_are_not_known_ahead(engine):
    torch = pytest.importorskip("torch")
    items = engine.encode([IMAGES[0], b"no image", IMAGES[1]], on_error="record", device="cpu")
    assert isinstance(items[1].error, fovea.Error)
    for item, known in zip([items[0], items[2]], engine.encode(IMAGES[:2])):
        assert torch.equal(item.torch(), known.torch())
    with pytest.raises(fovea.Error, match=r"images\[1\]"):
        engine.encode([IMAGES[0], b"no image"], device="cpu")


def test_rows_come_from_the_cache_too():
    torch = pytest.importorskip("torch")
    cached = load_engine(encoder_cache_bytes=8 << 20)
    (first,) = cached.encode(IMAGES[0], device="cpu")
    (again,) = cached.encode(IMAGES[0], device="cpu")
    assert (first.cache, again.cache) == ("miss", "hit")
    assert torch.equal(first.torch(), again.torch())


def test_embeddings_keep_their_tensors(engine):
    torch = pytest.importorskip("torch")
    (known,) = engine.encode(IMAGES[0])
    (item,) = engine.encode(IMAGES[0], device="cpu")
    gc.collect()
    engine.encode(IMAGES, device="cpu")  # would take the memory if it were free
    assert torch.equal(item.torch(), known.torch())


def test_what_a_tensor_holds_is_not_seen_otherwise(engine):
    (item,) = engine.encode_into(IMAGES[0], out=[numpy.empty(engine.encode(IMAGES[0])[0].shape, "f4")])
    for view in (item.numpy, item._array, lambda: pickle.dumps(item)):
        with pytest.raises(fovea.Error, match="its rows are in a tensor"):
            view()
    with pytest.raises(BufferError):
        memoryview(item)
    assert item.__dlpack_device__() == (1, 0)
    assert numpy.from_dlpack(item).shape == item.shape


def read_only(shape):
    array = numpy.empty(shape, "f4")
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "make, kind, message",
    [
        (lambda rows, width: numpy.empty((rows, width), "f8"), fovea.Error, r"out\[0\]: .*float32, float16 or bfloat16"),
        (lambda rows, width: numpy.empty((rows, width + 1), "f4"), fovea.Error, r"out\[0\]: .*wide"),
        (lambda rows, width: numpy.empty(rows * width, "f4"), fovea.Error, r"out\[0\]: .*\[rows, width\]"),
        (lambda rows, width: numpy.empty((width, rows), "f4").T, fovea.Error, r"out\[0\]: .*one after the other|apart"),
        (lambda rows, width: read_only((rows, width)), BufferError, r"out\[0\]: "),
        (lambda rows, width: [0.0] * width, TypeError, r"out\[0\]: expected a tensor with __dlpack__, got a list"),
    ],
    ids=["type", "width", "shape", "columns", "read-only", "list"],
)
def test_bad_tensors_are_refused(engine, make, kind, message):
    rows, width = engine.encode(IMAGES[0])[0].shape
    with pytest.raises(kind, match=message):
        engine.encode_into(IMAGES[0], out=[make(rows, width)])


def test_too_few_rows_are_an_error_of_the_item(engine):
    expected = engine.encode(IMAGES[:2])
    out = [numpy.full((len(expected[0]) - 1, engine.width), 7, "f4"), numpy.empty(expected[1].shape, "f4")]
    with pytest.raises(fovea.Error) as small:
        engine.encode_into(IMAGES[:2], out=out)
    assert small.value.code == "invalid_argument" and IMAGES[0] in str(small.value)
    items = engine.encode_into(IMAGES[:2], out=out, on_error="record")
    assert items[0].error is not None and (out[0] == 7).all()
    assert out[1].tobytes() == expected[1].numpy().tobytes()


def test_a_call_that_fails_gives_its_tensors_back(engine):
    (known,) = engine.encode(IMAGES[0])
    out = [numpy.empty(known.shape, "f4"), numpy.empty((1, engine.width), "f4")]
    with pytest.raises(fovea.Error):
        engine.encode_into([IMAGES[0], b"no image"], out=out)
    engine.encode_into(IMAGES[0], out=out[:1])
    assert out[0].tobytes() == known.numpy().tobytes()


def test_every_item_needs_a_tensor_of_its_own(engine):
    room = numpy.empty(engine.encode(IMAGES[0])[0].shape, "f4")
    with pytest.raises(ValueError, match="out: expected a tensor for each of 2 items, got 1"):
        engine.encode_into(IMAGES[:2], out=[room])
    with pytest.raises(fovea.Error, match="overlaps"):
        engine.encode_into([IMAGES[0]] * 2, out=[room, room])


def test_streams_need_an_engine_on_a_gpu(engine):
    room = numpy.empty(engine.encode(IMAGES[0])[0].shape, "f4")
    with pytest.raises(fovea.Error, match="stream"):
        engine.encode_into(IMAGES[0], out=[room], stream=1)
    with pytest.raises(ValueError, match="per-thread default stream"):
        engine.encode_into(IMAGES[0], out=[room], stream=2)
