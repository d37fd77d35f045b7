"""Engines made of tensors that are handed over have the rows of the checkpoint."""

import collections.abc
import pickle
import shutil

import numpy
import pytest
from conftest import IMAGES, MODEL, load_engine, read_safetensors

import fovea_encoder as fovea


class BFloat16:
    """Bits of bfloat16 as an array of a library that numpy does not know: a name of its type, and
    bytes."""

    class Type:
        def __str__(self):
            return "bfloat16"

    def __init__(self, bits):
        self.bits = bits
        self.shape = bits.shape
        self.dtype = self.Type()

    def __array__(self, dtype=None, copy=None):
        return self.bits


def bits_of_checkpoint():
    return read_safetensors(MODEL / "model.safetensors")


def numpy_tensors():
    return {name: BFloat16(bits) if bits.dtype == numpy.uint16 else bits for name, bits in bits_of_checkpoint().items()}


def torch_tensors():
    torch = pytest.importorskip("torch")
    tensors = {}
    for name, bits in bits_of_checkpoint().items():
        tensor = torch.from_numpy(bits.copy())
        tensors[name] = tensor.view(torch.bfloat16) if bits.dtype == numpy.uint16 else tensor
    return tensors


def strided_parameters():
    """As a module holds them, not contiguous in memory."""
    torch = pytest.importorskip("torch")
    return {
        name: torch.nn.Parameter(tensor.transpose(0, -1).contiguous().transpose(0, -1))
        for name, tensor in torch_tensors().items()
    }


class OnDemand(collections.abc.Mapping):
    def __init__(self, tensors):
        self.tensors = tensors

    def __getitem__(self, name):
        return self.tensors[name]

    def __iter__(self):
        return iter(self.tensors)

    def __len__(self):
        return len(self.tensors)


@pytest.fixture
def folder(tmp_path):
    """The files of the checkpoint without its weights."""
    for path in MODEL.glob("*.json"):
        shutil.copy(path, tmp_path)
    return tmp_path


def made_of(tensors, folder, **options):
    return fovea.Engine.from_weights(folder, tensors, device="cpu", threads=2, **options)


KINDS = {
    "arrays": numpy_tensors,
    "torch": torch_tensors,
    "parameters with strides": strided_parameters,
    "a mapping": lambda: OnDemand(numpy_tensors()),
    "another prefix": lambda: {f"model.{name}": tensor for name, tensor in numpy_tensors().items()},
    "beside others": lambda: {"lm_head.weight": numpy.zeros((2, 2), numpy.int8), "extra": None, **numpy_tensors()},
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_bits_of_the_checkpoint(engine, folder, kind):
    other = made_of(KINDS[kind](), folder)
    assert (other.family, other.width) == (engine.family, engine.width)
    for item, expected in zip(other.encode(IMAGES), engine.encode(IMAGES), strict=True):
        assert item._array().tobytes() == expected._array().tobytes()


def test_matrices_of_float8_are_multiplied_by_their_scales(folder):
    torch = pytest.importorskip("torch")
    scaled, multiplied = {}, {}
    for name, tensor in torch_tensors().items():
        scaled[name] = multiplied[name] = tensor
        if "blocks." not in name or tensor.dim() != 2:
            continue
        scale = tensor.float().abs().amax(1, keepdim=True) / 448
        scaled[name] = (tensor.float() / scale).to(torch.float8_e4m3fn)
        scaled[name + "_scale"] = scale
        multiplied[name] = scaled[name].float() * scale
    assert len(scaled) > len(multiplied)
    (item,) = made_of(scaled, folder).encode(IMAGES[0])
    (expected,) = made_of(multiplied, folder).encode(IMAGES[0])
    assert item._array().tobytes() == expected._array().tobytes()


def test_keys_of_the_cache_have_the_bits_of_the_weights(folder):
    (expected,) = load_engine(encoder_cache_bytes=1 << 20).encode(IMAGES[0])
    tensors = numpy_tensors()
    (item,) = made_of(tensors, folder, encoder_cache_bytes=1 << 20).encode(IMAGES[0])
    assert item.key == expected.key != ""
    name = next(name for name in tensors if name.endswith("patch_embed.proj.weight"))
    bits = tensors[name].bits.copy()
    bits.flat[0] ^= 1
    (item,) = made_of({**tensors, name: BFloat16(bits)}, folder, encoder_cache_bytes=1 << 20).encode(IMAGES[0])
    assert item.key != expected.key


@pytest.mark.parametrize("wrong", [None, 5, [], [1], "weights", {1: numpy.zeros(1)}, {None: None}], ids=str)
def test_what_is_no_dict_of_tensors_is_refused(wrong):
    """Also where the folder has weights, which None would be taken for."""
    with pytest.raises(TypeError, match="tensors: expected"):
        fovea.Engine.from_weights(MODEL, wrong, device="cpu", threads=1)


def test_missing_and_misshapen_tensors_are_one_error(folder):
    tensors = numpy_tensors()
    names = sorted(name for name in tensors if "visual.blocks.0" in name)
    missing, misshapen, wrong = names[:3]
    del tensors[missing]
    tensors[misshapen] = numpy.zeros((3, 5, 7), numpy.float32)
    tensors[wrong] = tensors[wrong].bits.view(numpy.int16)
    with pytest.raises(fovea.Error) as caught:
        made_of(tensors, folder)
    assert caught.value.code == "not_found"
    for words in (
        "3 of ",
        f"{missing} missing, expected [",
        f"{misshapen} has shape [3, 5, 7] in tensors handed over, expected [",
        f"{wrong} has dtype int16 in tensors handed over, supported are BF16, F16 and F32",
    ):
        assert words in str(caught.value)
    with pytest.raises(fovea.Error, match="checkpoint holds no vision tower: none of the 0 tensors"):
        made_of({}, folder)


class Broken(BFloat16):
    def __array__(self, dtype=None, copy=None):
        raise LookupError("the bytes are gone")


@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_what_a_tensor_raises_is_raised(folder, cache):
    tensors = numpy_tensors()
    name = next(name for name in tensors if "visual.blocks.0" in name)
    with pytest.raises(LookupError, match="the bytes are gone"):
        made_of({**tensors, name: Broken(tensors[name].bits)}, folder, encoder_cache_bytes=cache)
    # Only the key of the cache reads a tensor again.
    reads = []

    class Once(BFloat16):
        def __array__(self, dtype=None, copy=None):
            reads.append(1)
            if len(reads) > 1:
                raise LookupError("the bytes are gone")
            return self.bits

    once = {**tensors, name: Once(tensors[name].bits)}
    if cache:
        with pytest.raises(LookupError, match="the bytes are gone"):
            made_of(once, folder, encoder_cache_bytes=cache)
    else:
        assert made_of(once, folder).encode(IMAGES[0])[0].error is None


def test_a_tensor_without_data_is_an_error_of_its_library(folder):
    torch = pytest.importorskip("torch")
    tensors = torch_tensors()
    name = next(name for name in tensors if "visual.blocks.0" in name)
    tensors[name] = torch.empty_like(tensors[name], device="meta")
    with pytest.raises(NotImplementedError, match="meta"):
        made_of(tensors, folder)


def test_an_array_of_another_size_than_it_says_is_refused(folder):
    tensors = numpy_tensors()
    name = next(name for name in tensors if "visual.blocks.0" in name)
    tensors[name].bits = tensors[name].bits.ravel()[1:]
    with pytest.raises(ValueError, match="broadcast"):
        made_of(tensors, folder)


def test_such_an_engine_cannot_be_pickled(folder):
    with pytest.raises(TypeError, match="its weights are in no file"):
        pickle.dumps(made_of(numpy_tensors(), folder))


def test_dummy_weights_contradict_tensors(folder):
    with pytest.raises(fovea.Error, match="expected either tensors or dummy weights"):
        made_of(numpy_tensors(), folder, dummy_weights=True)
