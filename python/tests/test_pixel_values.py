"""What a processor returned gives the bits of the images that it was given."""

import gc
import pathlib
import sys

import numpy
import pytest
from conftest import IMAGES, MODEL, read_safetensors

import fovea_encoder as fovea

GOLDEN = read_safetensors(MODEL / "golden.safetensors")
NOISE = "noise_101x61"


def golden_bytes(name):
    """The patches of a golden image or video as bytes, and its grid."""
    kind = ("pixel_values_videos", "video") if name == "video" else ("pixel_values", "image")
    patches = GOLDEN[f"{name}.in.{kind[0]}_u8"]
    return patches.reshape(len(patches), -1), GOLDEN[f"{name}.in.{kind[1]}_grid_thw"].reshape(-1)


def normalised(patches):
    return ((patches / numpy.float64(255) - 0.5) / 0.5).astype(numpy.float32)


def torch_tensor(name):
    def make(patches):
        torch = pytest.importorskip("torch")
        return torch.from_numpy(patches.copy() if name == "uint8" else normalised(patches)).to(getattr(torch, name))

    return make


class Tensor:
    """An array that is none but for DLPack."""

    def __init__(self, array, device=None):
        self.array = array
        self.device = device or array.__dlpack_device__()

    def __dlpack__(self, **arguments):
        assert self.device[0] == 1, "nobody may ask for memory that is elsewhere"
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.device


KINDS = {
    "float32": normalised,
    "float16": lambda patches: normalised(patches).astype(numpy.float16),
    "memoryview": lambda patches: memoryview(normalised(patches)),
    "DLPack": lambda patches: Tensor(normalised(patches)),
    "uint8": lambda patches: patches.copy(),
    **{f"torch {name}": torch_tensor(name) for name in ("float32", "float16", "bfloat16", "uint8")},
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_bits_of_the_image(engine, program_rows, kind):
    images = [pathlib.Path(path).stem for path in IMAGES]
    given = []
    for name in [*images, "video"]:
        patches, grid = golden_bytes(name)
        given.append(fovea.PixelValues(KINDS[kind](patches), grid))
    items = engine.encode(given[:-1], videos=given[-1])
    assert [item.modality for item in items] == ["image"] * len(images) + ["video"]
    assert items[0].name == "images[0]"
    for item, one, rows in zip(items, given, program_rows("float32")):
        assert item.grid_thw == one.grid_thw
        assert item._array().tobytes() == rows.tobytes()


def test_they_stand_among_images(engine):
    patches, grid = golden_bytes(NOISE)
    (image,) = (path for path in IMAGES if NOISE in path)
    first, second, third = engine.encode([image, fovea.PixelValues(patches, tuple(grid)), image])
    assert first._array().tobytes() == second._array().tobytes() == third._array().tobytes()


def test_values_are_read_where_they_are(engine):
    """Not copied: what is written after PixelValues was made is what is encoded."""
    patches, grid = golden_bytes(NOISE)
    values = numpy.zeros_like(patches)
    item = fovea.PixelValues(values, grid)
    values[:] = patches
    references = sys.getrefcount(values)
    assert engine.encode(item)[0]._array().tobytes() == engine.encode(fovea.PixelValues(patches, grid))[0]._array().tobytes()
    del item
    gc.collect()
    assert sys.getrefcount(values) < references, "the array is given back"


@pytest.mark.parametrize("kind", ["numpy", "torch", "lists"])
def test_the_dictionary_of_a_processor_is_cut_into_items(engine, kind):
    if kind == "torch":
        convert = pytest.importorskip("torch").from_numpy
    else:
        convert = numpy.asarray
    names = ["gradient_64x200", NOISE]
    parts = [golden_bytes(name) for name in [*names, "video"]]
    grids = numpy.stack([grid for _, grid in parts[:-1]])
    inputs = {
        "input_ids": [1, 2],
        "pixel_values": convert(normalised(numpy.concatenate([patches for patches, _ in parts[:-1]]))),
        "image_grid_thw": grids.tolist() if kind == "lists" else convert(grids),
        "pixel_values_videos": convert(normalised(parts[-1][0])),
        "video_grid_thw": convert(parts[-1][1][None].copy()),
    }
    images, videos = fovea.pixel_values(inputs)
    assert [len(images), len(videos)] == [2, 1]
    whole = engine.encode(images, videos)
    alone = engine.encode([fovea.PixelValues(patches, grid) for patches, grid in parts[:-1]]) + engine.encode(
        videos=[fovea.PixelValues(*parts[-1])]
    )
    for item, other in zip(whole, alone, strict=True):
        assert item._array().tobytes() == other._array().tobytes()
    assert fovea.pixel_values({"input_ids": [1]}) == ([], [])


def test_a_dictionary_that_does_not_fit_is_refused():
    patches, grid = golden_bytes(NOISE)
    with pytest.raises(ValueError, match="pixel_values comes without image_grid_thw"):
        fovea.pixel_values({"pixel_values": patches})
    for many in ([grid, grid], []):
        with pytest.raises(ValueError, match=r"the grids of image_grid_thw have \d+ patches, got 24"):
            fovea.pixel_values({"pixel_values": patches, "image_grid_thw": many})


@pytest.mark.parametrize(
    "values, words",
    [
        (numpy.zeros((4, 12)), "expected float32, bfloat16, float16 or uint8"),
        (numpy.zeros((4, 12), numpy.int32), "expected float32, bfloat16, float16 or uint8"),
        (numpy.zeros((2, 2, 12), numpy.uint8), r"expected \[patches, values of a patch\], got \[2, 2, 12\]"),
        (numpy.zeros((12, 4), numpy.uint8).T, "lie one after the other, got an array with strides"),
        (numpy.zeros((8, 12), numpy.uint8)[::2], "lie one after the other, got an array with strides"),
        (Tensor(numpy.zeros((4, 12), numpy.uint8), (8, 0)), "in host memory or on a GPU, got a tensor on another"),
        (7, "got a int"),
        ([1, 2], "got a list"),
        (None, "got a NoneType"),
    ],
)
def test_values_of_another_kind_are_a_type_error(values, words):
    with pytest.raises(TypeError, match="values: .*" + words):
        fovea.PixelValues(values, (1, 2, 2))


def test_a_grid_is_three_whole_numbers():
    values = numpy.zeros((4, 12), numpy.uint8)
    for grid in ((1, 2), (1, 2, 2, 1), ()):
        with pytest.raises(ValueError, match="grid_thw: expected 3 sizes in patches"):
            fovea.PixelValues(values, grid)
    for grid in (None, 4, (1, 2, 2.5), (1, 2, "2")):
        with pytest.raises(TypeError):
            fovea.PixelValues(values, grid)
    with pytest.raises(OverflowError):
        fovea.PixelValues(values, (1, 2, 1 << 70))


def test_what_does_not_fit_the_grid_or_the_model_is_an_error_of_its_item(engine):
    patches, grid = golden_bytes(NOISE)
    wrong = numpy.array(normalised(patches))
    wrong[5, 9] += 1 / 255
    other = patches.copy()
    other[0, 300] ^= 1  # of the second frame, which an image repeats
    items = engine.encode(
        [
            fovea.PixelValues(patches, (1, 4, 8)),
            fovea.PixelValues(patches, (1, 3, 8)),
            fovea.PixelValues(patches, (-1, 4, 6)),
            fovea.PixelValues(patches[:, :768].copy(), grid),
            fovea.PixelValues(wrong, grid),
            fovea.PixelValues(other, grid),
            fovea.PixelValues(patches, grid),
        ],
        on_error="record",
    )
    words = [
        "grid_thw 1x4x8 has 32 patches, got pixel values of 24",
        "sides that are multiples of 2, got 1x3x8",
        "grid_thw must be positive",
        "pixel_values must be [24, 1536] for this grid, got [24, 768]",
        "pixel_values[5, 9] is",
        "an image repeats its frame",
    ]
    for i, (item, part) in enumerate(zip(items, words)):
        assert item.error.code == "invalid_argument"
        assert f"images[{i}]" in str(item.error)
        assert part in str(item.error)
    assert items[-1].error is None


def test_families_without_a_grid_take_none():
    engine = fovea.Engine.from_pretrained(MODEL.parent / "internvl", device="cpu", threads=2)
    with pytest.raises(fovea.Error, match="the model takes images, no pixel values") as caught:
        engine.encode(fovea.PixelValues(numpy.zeros((4, 4), numpy.uint8), (1, 2, 2)))
    assert caught.value.code == "unsupported"
