"""Options of an engine are those of the library: each can be set, and is shown."""

import pytest
from conftest import load_engine

import fovea_encoder as fovea
from fovea_encoder._images import PROFILES
from fovea_encoder._options import Options

DEFAULTS = load_engine().options

# Values that an engine on a CPU takes, where the one that another() thinks of is none.
OWN_VALUES = {
    "data_parallel_size": 2,
    "attention": "portable",
    "dtype_compute": "bfloat16",
    "encoder_cudagraph_token_budgets": [64, 128],
    "encoder_cudagraph_path_token_budgets": {"default": [64, 128]},
    "encoder_cudagraph_max_vision_items_per_batch": 2,
    "gpu_wait": "sleep",
    "image_backend": "pil",
    "max_decode_bytes": 1 << 30,
    "media_profile": "sglang",
    "min_pixels": 64 * 64,
    "max_pixels": 512 * 512,
    "packing": "cost",
    "damaged_frames": "refuse",
    "quantization": "int8",
    "video_pruning_rate": 0.25,
    "video_pruning_method": "vidcom2",
}

# Options that one is refused without.
WITH = {"normalize_vectors": {"vectors": True}, "shared_rows": {"encoder_cache_bytes": 1 << 20}}


def another(name):
    """Another value than the default."""
    if name in OWN_VALUES:
        return OWN_VALUES[name]
    value = DEFAULTS[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return {list: [1, 2, 3], str: "folder", type(None): 4096}[type(value)]


@pytest.mark.parametrize("name", sorted(Options.__annotations__))
def test_every_option_reaches_the_engine(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = another(name)
    assert value != DEFAULTS[name]
    try:
        options = load_engine(**{name: value}, **WITH.get(name, {})).options
    except fovea.Error as error:  # of what this machine or this build does not have
        assert error.code in ("unsupported", "not_found"), error
        pytest.skip(str(error))
    assert options == {**DEFAULTS, name: value, **WITH.get(name, {})}


def test_the_types_list_every_option():
    assert set(Options.__annotations__) | {"device", "threads"} == set(DEFAULTS)
    assert (DEFAULTS["device"], DEFAULTS["threads"]) == ("cpu", 2)


def test_enums_take_their_names_alone():
    assert PROFILES == ("vllm", "vllm-0.23", "transformers", "sglang")  # what clients take
    with pytest.raises(ValueError, match=f'media_profile: expected one of {", ".join(PROFILES)}, got "x"'):
        load_engine(media_profile="x")
