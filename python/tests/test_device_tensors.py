"""Rows in tensors of torch on a GPU, ordered on its streams. Skipped without a GPU."""

import pytest
from conftest import IMAGES, MODEL, read_safetensors

import fovea_encoder as fovea

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

DTYPES = ["float32", "bfloat16", "float16"]
MANY = (IMAGES * 16)[:64]
LONG = 200_000_000  # cycles: some 100 ms
GOLDEN = read_safetensors(MODEL / "golden.safetensors")


@pytest.fixture(scope="module")
def engine():
    engine = fovea.Engine.from_pretrained(MODEL, device="cuda")
    engine.warm_up()  # before it, graphs take over in the background, which changes bits
    return engine


def rooms_for(items, dtype, gap=0):
    """A tensor on the GPU for each item, its rows `gap` elements apart."""
    kind = getattr(torch, dtype)
    return [
        torch.full((len(item), item.shape[1] + gap), 7.0, dtype=kind, device="cuda")[:, : item.shape[1]]
        for item in items
    ]


def equal(tensors, items):
    """Whether tensors, read on the current stream, have the bits of rows on the host."""
    return all(
        torch.equal(tensor.contiguous().view(torch.uint8).cpu(), item.torch().view(torch.uint8))
        for tensor, item in zip(tensors, items)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gap", [0, 8])
def test_rows_have_the_bits_of_those_on_the_host(engine, dtype, gap):
    expected = engine.encode(MANY, MODEL / "video_frames", dtype=dtype)
    out = rooms_for(expected, dtype, gap)
    items = engine.encode_into(MANY, MODEL / "video_frames", out=out)
    assert equal(out, expected)
    assert [item.torch().data_ptr() for item in items] == [tensor.data_ptr() for tensor in out]
    assert [item.grid_thw for item in items] == [item.grid_thw for item in expected]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_device_gives_tensors_there(engine, dtype):
    expected = engine.encode(MANY, dtype=dtype)
    items = engine.encode(MANY, dtype=dtype, device="cuda")
    assert all(item.torch().device == torch.device("cuda", 0) for item in items)
    assert all(item.__dlpack_device__() == (2, 0) for item in items)
    assert equal([item.torch() for item in items], expected)
    assert equal([torch.from_dlpack(item) for item in items], expected)


def test_a_device_takes_items_whose_rows_are_not_known_ahead(engine):
    items = engine.encode([IMAGES[0], b"no image"], on_error="record", device="cuda")
    assert items[1].error is not None
    assert equal([items[0].torch()], engine.encode(IMAGES[0]))


@pytest.mark.parametrize("as_number", [False, True])
def test_rows_are_ordered_on_a_stream_without_a_wait_of_the_host(engine, as_number):
    expected = engine.encode(MANY)
    stream = torch.cuda.Stream()
    out = rooms_for(expected, "float32")
    torch.cuda.synchronize()

    def call():
        with torch.cuda.stream(stream):
            torch.cuda._sleep(LONG)
            for tensor in out:
                tensor.zero_()  # must come before the rows
            engine.encode_into(MANY, out=out, stream=stream.cuda_stream if as_number else stream)
            waited = stream.query()
            copies = [tensor.clone() for tensor in out]  # must come after them
            for tensor in out:
                tensor.zero_()  # must not reach the copies
        return waited, copies

    for _ in range(4):  # what grows at first is waited for
        _, copies = call()
        torch.cuda.synchronize()
    waited, copies = call()
    assert not waited, "the call waited for the stream"
    with torch.cuda.stream(stream):
        assert equal(copies, expected)


def test_the_current_stream_is_the_default(engine):
    expected = engine.encode(IMAGES)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        out = rooms_for(expected, "float32")
        torch.cuda._sleep(LONG)
        for tensor in out:
            tensor.zero_()
        engine.encode_into(IMAGES, out=out)
        assert equal(out, expected)
        torch.cuda._sleep(LONG)
        assert equal([item.torch() for item in engine.encode(IMAGES, device="cuda")], expected)


def test_work_on_other_streams_comes_first(engine):
    """DLPack lets the stream of a call wait for what the library has queued for a tensor."""
    expected = engine.encode(IMAGES)
    stream = torch.cuda.Stream()
    out = rooms_for(expected, "float32")
    torch.cuda.synchronize()
    torch.cuda._sleep(LONG)
    for tensor in out:
        tensor.zero_()  # on the current stream
    engine.encode_into(IMAGES, out=out, stream=stream)
    torch.cuda.current_stream().wait_stream(stream)
    assert equal(out, expected)


def test_tensors_let_go_early_are_not_written_to_later(engine):
    """Memory of torch is used again in the order of its stream."""
    (known,) = engine.encode(IMAGES[0])
    for _ in range(20):
        torch.cuda._sleep(LONG // 100)
        items = engine.encode(IMAGES[0], device="cuda")
        del items
        again = torch.full(known.shape, 3.0, device="cuda")
        assert (again == 3).all()


def test_host_and_gpu_may_share_a_call(engine):
    expected = engine.encode(IMAGES)
    out = rooms_for(expected, "float32")
    out[1] = torch.empty(expected[1].shape)
    out[2] = torch.empty(expected[2].shape).pin_memory()
    engine.encode_into(IMAGES, out=out)
    torch.cuda.synchronize()
    assert equal(out, expected)


def test_errors_leave_tensors_and_engine_usable(engine):
    expected = engine.encode(IMAGES)
    out = rooms_for(expected, "float32")
    with pytest.raises(fovea.Error, match=r"images\[1\]"):
        engine.encode_into([IMAGES[0], b"no image"], out=out[:2])
    with pytest.raises(fovea.Error, match=r"out\[0\]: .*float32, float16 or bfloat16"):
        engine.encode_into(IMAGES[0], out=[out[0].double()])
    with pytest.raises(fovea.Error) as small:
        engine.encode_into(IMAGES[0], out=[out[0][:-1]])
    assert small.value.code == "invalid_argument"
    with pytest.raises(ValueError, match="per-thread default stream"):
        engine.encode_into(IMAGES[0], out=out[:1], stream=2)
    out[0].fill_(1)
    engine.encode_into(IMAGES, out=out)
    assert equal(out, expected)


def patches_of(name):
    kind = "pixel_values_videos" if name == "video" else "pixel_values"
    patches = torch.from_numpy(GOLDEN[f"{name}.in.{kind}_u8"].copy()).flatten(1)
    grid = GOLDEN[f"{name}.in.{'video' if name == 'video' else 'image'}_grid_thw"].reshape(-1)
    return patches, grid


def test_bytes_on_a_gpu_give_the_rows_of_those_on_the_host(engine):
    names = ["noise_101x61", "gradient_64x200", "video"]
    host = [fovea.PixelValues(*patches_of(name)) for name in names]
    expected = engine.encode(host[:2], host[2])
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG)
        there = [(patches.cuda(non_blocking=True), grid) for patches, grid in map(patches_of, names)]
        items = [fovea.PixelValues(*one) for one in there]
        assert equal([item.torch() for item in engine.encode(items[:2], items[2], device="cuda")], expected)
        assert [item._array().tobytes() for item in engine.encode(items[:2], items[2])] == [
            item._array().tobytes() for item in expected
        ]
    with pytest.raises(TypeError, match="uint8 of a tensor on a GPU"):
        fovea.PixelValues(there[0][0].float(), there[0][1])


def test_an_engine_on_a_cpu_refuses_tensors_on_a_gpu(engine):
    (known,) = engine.encode(IMAGES[0])
    host = fovea.Engine.from_pretrained(MODEL, device="cpu", threads=2)
    with pytest.raises(fovea.Error) as refused:
        host.encode_into(IMAGES[0], out=rooms_for([known], "float32"))
    assert refused.value.code == "invalid_argument"
