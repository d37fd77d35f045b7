"""Rows go to other libraries without a copy."""

import ctypes
import gc
import pickle
import subprocess
import sys

import numpy
import pytest
from conftest import IMAGES, MODEL

import fovea_encoder as fovea


def address(item):
    return item._array().__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_numpy_shares_the_memory(engine, dtype):
    (item,) = engine.encode(IMAGES[0], dtype=dtype)
    array = item.numpy()
    assert array.dtype == dtype
    assert array.shape == item.shape
    for other in (item.numpy(), numpy.asarray(item), numpy.from_dlpack(item), numpy.array(item, copy=False)):
        assert other.__array_interface__["data"][0] == address(item)
        assert other.dtype == dtype


def test_the_buffer_has_type_and_shape(engine):
    (item,) = engine.encode(IMAGES[0])
    with memoryview(item) as view:
        assert (view.format, view.shape, view.itemsize) == ("f", item.shape, 4)
        assert view.tobytes() == item.numpy().tobytes()


class Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def test_the_buffer_has_no_columns_side_by_side(engine):
    """Who asks for them reads them without a look at the strides."""
    (item,) = engine.encode(IMAGES[0])
    by_rows, by_columns, either = 0x38, 0x58, 0x98  # PyBUF_C_CONTIGUOUS and so on
    buffer = Buffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    for flags in (by_rows, either):
        assert get(ctypes.py_object(item), ctypes.byref(buffer), flags) == 0
        assert buffer.strides[:2] == [4 * item.shape[1], 4]
        release(ctypes.byref(buffer))
    with pytest.raises(BufferError, match="not the columns"):
        get(ctypes.py_object(item), ctypes.byref(buffer), by_columns)


def test_bfloat16_in_numpy_takes_ml_dtypes(engine):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    (item,) = engine.encode(IMAGES[0], dtype="bfloat16")
    assert item.numpy().dtype == ml_dtypes.bfloat16
    assert item.numpy().__array_interface__["data"][0] == address(item)
    assert item._array().dtype == numpy.uint16


def test_without_numpy_rows_are_a_buffer(engine, monkeypatch):
    (item,) = engine.encode(IMAGES[0])
    expected = item.numpy().tobytes()
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert memoryview(item).tobytes() == expected
    with pytest.raises(ImportError, match=r"pip install 'fovea-encoder\[numpy\]'"):
        item.numpy()


def test_without_ml_dtypes_bfloat16_says_what_to_do(engine, monkeypatch):
    (item,) = engine.encode(IMAGES[0], dtype="bfloat16")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match="install ml_dtypes"):
        item.numpy()
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(item)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_torch_shares_the_memory(engine, dtype):
    torch = pytest.importorskip("torch")
    (item,) = engine.encode(IMAGES[0], dtype=dtype)
    assert item.__dlpack_device__() == (1, 0)
    for tensor in (item.torch(), torch.from_dlpack(item), torch.utils.dlpack.from_dlpack(item)):
        assert tensor.dtype == getattr(torch, dtype)
        assert tensor.shape == item.shape
        assert tensor.data_ptr() == address(item)
    bits = item.torch().view(torch.int32 if dtype == "float32" else torch.int16).numpy()
    assert bits.tobytes() == item._array().tobytes()


def test_torch_reads_the_file(engine):
    torch = pytest.importorskip("torch")
    import io

    (item,) = engine.encode(IMAGES[0], dtype="bfloat16")
    tensor = torch.load(io.BytesIO(item.torch_file()), weights_only=True)
    assert torch.equal(tensor, item.torch())


@pytest.mark.parametrize("kind", ["numpy", "dlpack", "buffer"])
def test_arrays_keep_the_rows(engine, kind):
    (item,) = engine.encode(IMAGES[0])
    expected = item.numpy().tobytes()
    array = {"numpy": item.numpy, "dlpack": lambda: numpy.from_dlpack(item), "buffer": lambda: memoryview(item)}[kind]()
    del item
    gc.collect()
    engine.encode(IMAGES)  # would take the memory if it were free
    assert array.tobytes() == expected


def test_an_embedding_can_be_pickled(engine):
    (item,) = engine.encode(IMAGES[0], dtype="bfloat16")
    copy = pickle.loads(pickle.dumps(item))
    for name in ("name", "modality", "shape", "dtype", "grid_thw", "timestamps", "source_size", "key", "error"):
        assert getattr(copy, name) == getattr(item, name), name
    assert copy._array().tobytes() == item._array().tobytes()
    failed = engine.encode(b"no image", on_error="record")[0]
    copy = pickle.loads(pickle.dumps(failed))
    assert (str(copy.error), copy.error.code) == (str(failed.error), failed.error.code)


@pytest.mark.parametrize(
    "change",
    [
        {11: b""},
        {11: b"123"},
        {3: 0},
        {3: -1},
        {3: 1 << 62},
        {4: 1 << 62},
        {3: 0, 4: 1 << 62, 11: b""},
        {3: 1 << 62, 4: 4, 11: b""},
        {2: "float16"},
        {2: "int8"},
        {0: None},
        {5: [1 << 62]},
    ],
    ids=str,
)
def test_a_state_that_is_none_is_an_error(engine, change):
    (item,) = engine.encode(IMAGES[0], dtype="float32")
    state = list(item.__getstate__())
    for place, value in change.items():
        state[place] = value
    copy = fovea.Embedding.__new__(fovea.Embedding)
    with pytest.raises((TypeError, ValueError)):
        copy.__setstate__(tuple(state))
    with pytest.raises(BufferError, match="never made"):
        memoryview(copy)


def test_a_process_ends_with_rows_in_use():
    script = f"""
import fovea_encoder as fovea
engine = fovea.Engine.from_pretrained({str(MODEL)!r}, device="cpu", threads=1)
items = engine.encode({IMAGES!r})
arrays = [item.numpy() for item in items]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_embed_pools_the_main_embedding(engine):
    vectors = engine.embed(IMAGES, batch_size=3)
    assert vectors.dtype == numpy.float32
    assert vectors.shape == (len(IMAGES), engine.hidden)
    for vector, item in zip(vectors, engine.encode(IMAGES)):
        mean = item.numpy()[:, : engine.hidden].astype(numpy.float64).mean(axis=0)
        assert numpy.allclose(vector, mean / numpy.linalg.norm(mean), atol=1e-6)
    first = engine.embed(IMAGES[0], pooling="first", normalize=False)
    assert numpy.array_equal(first[0], engine.encode(IMAGES[0])[0].numpy()[0, : engine.hidden])
    with pytest.raises(ValueError, match="pooling"):
        engine.embed(IMAGES, pooling="median")


def test_embed_pools_whole_rows_on_request(engine):
    (vector,) = engine.embed(IMAGES[0], pooling="first", normalize=False, deepstack="concat")
    assert numpy.array_equal(vector, engine.encode(IMAGES[0])[0].numpy()[0])
    with pytest.raises(ValueError, match='deepstack: expected one of main, concat, got "split"'):
        engine.embed(IMAGES[0], deepstack="split")


def test_vectors_of_an_embedding_model_are_refused(tmp_path):
    for name in ("config.json", "preprocessor_config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(MODEL / name)
    (tmp_path / "modules.json").write_text("[]")
    engine = fovea.Engine.from_pretrained(tmp_path, device="cpu", threads=1)
    with pytest.raises(ValueError, match="embedding model .modules.json."):
        engine.embed(IMAGES[0])
    assert len(engine.encode(IMAGES[0])) == 1


def test_embed_shows_its_progress(engine, capsys):
    pytest.importorskip("tqdm")
    quiet = engine.embed(IMAGES, batch_size=3)
    assert capsys.readouterr().err == ""
    shown = engine.embed(IMAGES, batch_size=3, show_progress_bar=True)
    assert f"{len(IMAGES)}/{len(IMAGES)}" in capsys.readouterr().err
    assert numpy.array_equal(shown, quiet)


def test_without_tqdm_there_is_no_progress(engine, capsys, monkeypatch):
    for module in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, module, None)
    engine.embed(IMAGES, show_progress_bar=True)
    assert capsys.readouterr().err == ""


def test_rows_of_a_plan_are_those_that_come(engine):
    items = engine.encode(IMAGES)
    plan = engine.plan([item.source_size for item in items])
    assert [item.rows for item in plan.items] == [item.shape[0] for item in items]
    assert [item.grid_thw for item in plan.items] == [item.grid_thw for item in items]
    assert sorted(i for batch in plan.batches for i in batch.items) == list(range(len(items)))


def test_planned_items_have_the_rows_that_come(engine):
    planned = engine.plan_items([*IMAGES, b"no image"])
    assert isinstance(planned, fovea.PlannedItems)
    items = engine.encode(planned, on_error="record")
    assert len(items) == len(planned) == len(IMAGES) + 1
    assert planned.rows == [item.shape[0] for item in items[:-1]] + [None]
    for item, other in zip(items, engine.encode(IMAGES)):
        assert numpy.array_equal(item.numpy(), other.numpy())
    out = [numpy.empty((rows, engine.width), "float32") for rows in planned.rows[:-1]]
    planned = engine.plan_items(IMAGES)
    engine.encode_into(planned, out=out)
    assert all(numpy.array_equal(rows, item.numpy()) for rows, item in zip(out, items))
    with pytest.raises(TypeError):
        engine.encode(planned, IMAGES)


def test_an_error_has_no_rows(engine):
    (item,) = engine.encode(b"no image", on_error="record")
    assert item.shape[0] == 0
    for view in (item.numpy, item.__dlpack__):
        with pytest.raises(fovea.Error):
            view()
