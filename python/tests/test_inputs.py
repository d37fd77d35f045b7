"""Every kind of input gives the bits of the program."""

import asyncio
import ctypes
import io
import multiprocessing
import os
import pathlib
import resource

import numpy
import pytest
from conftest import FRAMES, IMAGES, MODEL
from PIL import Image

import fovea_encoder as fovea
from fovea_encoder import _native
from fovea_encoder.client import Client


class Interface:
    """An array that is none but for __array_interface__."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.keep = array


class Tensor:
    """An array that is none but for DLPack, as tensors of torch."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def pixels(path):
    return numpy.array(Image.open(path).convert("RGB"))


def read_only(array):
    array.flags.writeable = False
    return array


KINDS = {
    "str": str,
    "Path": pathlib.Path,
    "bytes": lambda path: pathlib.Path(path).read_bytes(),
    "bytearray": lambda path: bytearray(pathlib.Path(path).read_bytes()),
    "memoryview": lambda path: memoryview(pathlib.Path(path).read_bytes()),
    "encoded array": lambda path: numpy.fromfile(path, numpy.uint8),
    "PIL": Image.open,
    "array": pixels,
    "read-only array": lambda path: read_only(pixels(path)),
    "array with strides": lambda path: numpy.asfortranarray(pixels(path)),
    "reversed array": lambda path: pixels(path)[::-1, ::-1].copy()[::-1, ::-1],
    "array interface": lambda path: Interface(pixels(path)),
    "DLPack": lambda path: Tensor(pixels(path)),
    "DLPack with strides": lambda path: Tensor(numpy.asfortranarray(pixels(path))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_have_the_bits_of_the_program(engine, program_rows, kind, dtype):
    # JPEG comes as pixels of Pillow, whose decoder is the same library.
    items = engine.encode([KINDS[kind](path) for path in IMAGES], dtype=dtype)
    for item, rows in zip(items, program_rows(dtype)):
        assert item.dtype == dtype
        assert item.shape == rows.shape
        assert item._array().tobytes() == rows.tobytes()


def test_auto_is_float32(engine):
    assert engine.encode(IMAGES[0])[0].dtype == "float32"


@pytest.mark.parametrize("kind", ["folder", "array", "DLPack"])
def test_a_video_has_the_bits_of_the_program(engine, program_rows, kind):
    frames = numpy.stack([pixels(path) for path in FRAMES])
    video = {"folder": MODEL / "video_frames", "array": frames, "DLPack": Tensor(frames)}[kind]
    (item,) = engine.encode(videos=video)
    assert item.modality == "video"
    assert item.grid_thw[0] == 3
    assert len(item.timestamps) == 3
    assert item._array().tobytes() == program_rows("float32")[-1].tobytes()


def test_videos_come_after_images(engine):
    items = engine.encode(IMAGES[:2], videos=[MODEL / "video_frames"])
    assert [item.modality for item in items] == ["image", "image", "video"]
    assert items[0].name == IMAGES[0]


def test_a_torch_tensor_is_an_image(engine):
    torch = pytest.importorskip("torch")
    array = pixels(IMAGES[0])
    tensor = torch.from_numpy(array).permute(2, 0, 1).contiguous().permute(1, 2, 0)
    one, other = engine.encode([array, tensor])
    assert one._array().tobytes() == other._array().tobytes()


@pytest.mark.parametrize("items", ["one", "list", "tuple", "generator"])
def test_one_item_or_several(engine, items):
    given = {"one": IMAGES[0], "list": IMAGES, "tuple": tuple(IMAGES), "generator": iter(IMAGES)}[items]
    assert len(engine.encode(given)) == (1 if items == "one" else len(IMAGES))


def test_nothing_gives_nothing(engine):
    assert engine.encode([]) == []


def saved(image, format, **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def files_of_profiles():
    noise = numpy.random.default_rng(1).integers(0, 256, (70, 90, 4), numpy.uint8)
    image = Image.fromarray(noise[..., :3].copy())
    palette = image.quantize(8)
    for orientation in (1, 3, 6, 8):
        exif = Image.Exif()
        exif[0x0112] = orientation
        yield f"orientation {orientation}", saved(image, "PNG", exif=exif)
    yield "RGBA", saved(Image.fromarray(noise), "PNG")
    yield "LA", saved(Image.fromarray(noise).convert("LA"), "PNG")
    yield "palette with tRNS", saved(palette, "PNG", transparency=3)
    yield "grey", saved(image.convert("L"), "PNG")


FILES = dict(files_of_profiles())


@pytest.mark.parametrize("profile", ["vllm", "vllm-0.23", "transformers", "sglang"])
def test_a_pil_image_is_loaded_as_its_file_is(profile):
    from conftest import load_engine

    engine = load_engine(media_profile=profile)
    for name, file in FILES.items():
        encoded, opened = engine.encode([file, Image.open(io.BytesIO(file))])
        assert encoded.shape == opened.shape, name
        assert encoded._array().tobytes() == opened._array().tobytes(), name


def unreadable_images():
    """PIL images that open() takes, and load() does not."""
    content = pathlib.Path(IMAGES[0]).read_bytes()
    closed = Image.open(IMAGES[0])
    closed.close()
    return [Image.open(io.BytesIO(content[: len(content) // 2])), closed]


def test_a_pil_image_that_cannot_be_read_is_an_error_of_its_item(engine, server):
    with Client(server) as client:
        known = {encode: encode(IMAGES[0])[0]._array().tobytes() for encode in (engine.encode, client.encode)}
        for encode, rows in known.items():
            first, *failed, last = encode([IMAGES[0], *unreadable_images(), IMAGES[0]], on_error="record")
            for i, item in enumerate(failed, 1):
                assert (item.name, item.error.code) == (f"images[{i}]", "corrupt_data")
                assert str(item.error).startswith(f"images[{i}]: PIL cannot read it: ")
            assert first._array().tobytes() == last._array().tobytes() == rows
            with pytest.raises(fovea.Error, match=r"images\[1\]: PIL cannot read it") as raised:
                encode([IMAGES[0], *unreadable_images()])
            assert raised.value.code == "corrupt_data"


def test_a_pil_image_that_cannot_be_read_is_planned_without_rows(engine):
    (known,) = engine.encode(IMAGES[0])
    planned = engine.plan_items([IMAGES[0], *unreadable_images()])
    assert planned.rows == [len(known), None, None]
    out = [numpy.zeros(known.shape, "f4") for _ in planned.rows]
    items = engine.encode_into(planned, out=out, on_error="record")
    assert [item.error is None for item in items] == [True, False, False]
    assert out[0].tobytes() == known.numpy().tobytes() and not out[1].any()
    with pytest.raises(fovea.Error, match=r"images\[1\]: PIL cannot read it"):
        engine.encode_into(planned, out=out)


def test_a_pil_image_that_cannot_be_read_fails_an_asynchronous_call(engine):
    async def main():
        first, *failed = await engine.encode_async([IMAGES[0], *unreadable_images()], on_error="record")
        assert first.error is None
        assert [str(item.error).partition(": ")[0] for item in failed] == ["images[1]", "images[2]"]
        with pytest.raises(fovea.Error, match=r"images\[0\]: PIL cannot read it"):
            await engine.encode_async(unreadable_images())

    asyncio.run(main())


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        [1, 2],
        numpy.zeros((8, 8), numpy.uint8),
        numpy.zeros((8, 8, 4), numpy.uint8),
        numpy.zeros((2, 8, 8, 3), numpy.uint8),
        numpy.zeros((8, 8, 3), numpy.float32),
        numpy.zeros((8, 8, 3), numpy.int8),
        (bytes(192), (8, 8, 4)),
        (bytes(192), bytes(192)),
        (bytes(192), "8x8"),
        Tensor(numpy.zeros((8, 8, 3), numpy.float32)),
    ],
    ids=lambda wrong: type(wrong).__name__,
)
@pytest.mark.parametrize("on_error", ["raise", "record"])
def test_a_wrong_type_names_its_item(engine, wrong, on_error):
    with pytest.raises(TypeError, match=r"images\[1\]: expected a path"):
        engine.encode([IMAGES[0], wrong], on_error=on_error)


def ctypes_array(content, *shape):
    kind = ctypes.c_uint8
    for extent in reversed(shape or (len(content),)):
        kind *= extent
    return kind.from_buffer_copy(content)


def test_arrays_of_ctypes_are_arrays(engine, server):
    """Cameras and shared memory have them."""
    content = pathlib.Path(IMAGES[0]).read_bytes()
    image, video = pixels(IMAGES[0]), numpy.stack([pixels(path) for path in FRAMES])
    given = [
        ctypes_array(content),
        (ctypes.c_char * len(content)).from_buffer_copy(content),
        multiprocessing.RawArray("B", content),
        ctypes_array(image.tobytes(), *image.shape),
    ]
    with Client(server) as client:
        for encode in (engine.encode, client.encode):
            *images, frames = encode(given, ctypes_array(video.tobytes(), *video.shape))
            (known,), (known_video,) = encode(IMAGES[0]), encode(videos=video)
            assert {item._array().tobytes() for item in images} == {known._array().tobytes()}
            assert frames._array().tobytes() == known_video._array().tobytes()
            with pytest.raises(TypeError, match=r"images\[0\]: expected a path"):
                encode((ctypes.c_uint16 * 12)())


@pytest.mark.parametrize("on_error", ["raise", "record"])
def test_an_open_file_is_no_item(engine, server, on_error):
    """Its lines were taken for images: an error that says so little, and none where it has been read."""
    content = pathlib.Path(IMAGES[0]).read_bytes()
    with open(IMAGES[0], "rb") as file, Client(server) as client:
        for wrong in (io.BytesIO(content), io.BytesIO(), file):
            for encode in (engine.encode, client.encode):
                with pytest.raises(TypeError, match=r"images\[0\]: expected a path, .*, got a .*(BytesIO|BufferedReader)"):
                    encode(wrong, on_error=on_error)


def test_a_wrong_video_names_its_item(engine):
    with pytest.raises(TypeError, match=r"videos\[0\]: expected a path"):
        engine.encode(videos=[numpy.zeros((8, 8, 3), numpy.uint8)])


def test_pixels_beside_their_shape_may_lie_backwards(engine):
    """As those of a PIL image lie forwards."""
    image = pixels(IMAGES[0])
    backwards = memoryview(image.tobytes()[::-1])[::-1]
    (got,) = engine.encode([(backwards, image.shape)])
    (want,) = engine.encode([image])
    assert got._array().tobytes() == want._array().tobytes()


def test_an_empty_array_is_an_error_of_its_item(engine):
    (item,) = engine.encode([numpy.zeros((0, 8, 3), numpy.uint8)], on_error="record")
    assert isinstance(item.error, fovea.Error)
    assert item.error.code == "invalid_argument"


@pytest.mark.parametrize("kind", ["array", "DLPack"])
def test_an_array_that_is_too_large_is_not_copied(engine, kind):
    """Three bytes whose strides say that they are many: a copy would end this process."""

    def refuse(shape, strides, **keywords):
        array = numpy.lib.stride_tricks.as_strided(numpy.zeros(3, numpy.uint8), shape, strides)
        return engine.encode(on_error="record", **{
            name: [Tensor(array) if kind == "DLPack" else array] for name in keywords
        })[0]

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for shape, words in (
        ((30_000, 30_000, 3), "at most 178956970 pixels, got 30000 x 30000"),
        ((1 << 40, 1, 3), "sides of at most 65535 pixels"),
        ((1, 1 << 40, 3), "sides of at most 65535 pixels"),
    ):
        item = refuse(shape, (0, 0, 1), images=True)
        assert item.error.code == "invalid_argument"
        assert words in str(item.error)
    for shape, words in (
        ((4, 30_000, 30_000, 3), "at most 178956970 pixels"),
        ((1 << 40, 8, 8, 3), "at most 2048 frames"),
    ):
        item = refuse(shape, (0, 0, 0, 1), videos=True)
        assert item.error.code == "invalid_argument"
        assert words in str(item.error)
    with pytest.raises(fovea.Error, match=r"videos\[0\]: expected an array whose bytes lie"):
        refuse((2048, 10_000, 10_000, 3), (0, 0, 0, 1), videos=True)
    with pytest.raises(fovea.Error, match=r"images\[0\]: expected an array whose bytes lie"):
        refuse((1 << 40,), (0,), images=True)
    with pytest.raises(TypeError, match=r"images\[0\]: expected a path"):
        refuse((1 << 20, 1 << 20, 4), (0, 0, 0), images=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10  # KiB


def test_a_video_that_is_not_there_is_an_error_of_its_item(engine, tmp_path):
    missing, empty = tmp_path / "none.mp4", tmp_path / "empty"
    empty.mkdir()
    items = engine.encode(videos=[missing, MODEL / "video_frames", empty], on_error="record")
    assert items[0].error.code == "not_found"
    assert str(missing) in str(items[0].error)
    assert items[2].error.code == "not_found"
    assert f"{empty}: expected .jpg, .jpeg, .png" in str(items[2].error)
    assert items[1].error is None
    with pytest.raises(fovea.Error, match="none.mp4"):
        engine.encode(videos=missing)
    with pytest.raises(fovea.Error, match="expected .jpg, .jpeg, .png"):
        engine.encode(videos=empty)


def test_the_images_of_a_folder_are_those_of_the_library(tmp_path):
    for name in (b"b.PNG", b"a.jpeg", b"c.txt", b"d\xff.webp"):
        (tmp_path / os.fsdecode(name)).write_bytes(b"")
    (tmp_path / "e.jpg").mkdir()
    names = [os.fsencode(os.path.basename(path)) for path in _native.images_in(tmp_path)]
    assert names == [b"a.jpeg", b"b.PNG", b"d\xff.webp"]
    with pytest.raises(fovea.Error, match="none of this name"):
        _native.images_in(tmp_path / "none of this name")
