"""The tower inside vLLM, with a stand-in for vLLM's models. tools/compare_text_with_vllm.py runs it in a whole vLLM."""

import sys

import numpy
import pytest
import tiny_models

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from vllm_stand_ins import ON, Backends, Built, Llava, Model, Qwen3VL, Rank, built, config_of, tensors  # noqa: E402

from fovea_encoder.integrations import _vllm_seams as vllm_seams  # noqa: E402
from fovea_encoder.integrations import vllm_plugin  # noqa: E402


def test_it_does_nothing_unless_it_is_asked_for(plugin):
    config = config_of()
    model = built(config)
    assert type(model.visual) is Built
    assert model.marked == {"image", "video"}
    assert config.compilation_config.cudagraph_mm_encoder


def test_the_environment_asks_for_it_too(plugin, monkeypatch):
    monkeypatch.setenv("FOVEA_VLLM", "1")
    assert type(built(config_of()).visual).__name__ == "EngineTower"
    monkeypatch.setenv("FOVEA_VLLM", "0")
    assert type(built(config_of()).visual) is Built


@pytest.mark.parametrize(
    ("kind", "more", "why"),
    [
        (Model, {}, "expected a model of .*Qwen3VLForConditionalGeneration.*got Model"),
        (Qwen3VL, {"quantized": True}, "quantised .fp8."),
        (Qwen3VL, {"load_format": "dummy"}, "dummy"),
        (Qwen3VL, {"lora_config": object()}, "LoRA"),
        (type("InternVLChatModel", (Model,), {}), {}, "this vLLM has no InternVLChatModel.extract_feature"),
        (Llava, {"vision": "clip"}, "expected a LlavaForConditionalGeneration with a tower of pixtral, got clip"),
    ],
)
def test_what_it_cannot_replace_stays_with_a_line_in_the_log(plugin, caplog, kind, more, why):
    import re

    assert type(built(config_of(ON, **more), kind).visual) is Built
    (line,) = (record.getMessage() for record in caplog.records)
    assert re.search(f"vLLM keeps its own vision tower: .*{why}", line)


def test_every_model_that_it_takes_has_a_family_to_compare():
    def name(family):
        return family.architecture or f"{family.classes}{'Thinker' if family.audio else ''}ForConditionalGeneration"

    assert {*vllm_plugin.MODELS, *vllm_seams.SEAMS} <= set(map(name, tiny_models.FAMILIES.values()))


def test_a_tower_that_hears_is_left_to_vllm(plugin, caplog):
    model = Qwen3VL()
    with model._mark_tower_model(config_of(ON), "audio"):
        model.audio_tower = Built()
    assert type(model.audio_tower) is Built
    assert not caplog.records


def test_a_tower_that_no_request_can_use_is_left_to_vllm(plugin, caplog):
    assert type(built(config_of(ON, limit=0)).visual) is Built
    assert not caplog.records


def test_options_that_are_none_are_refused(plugin):
    with pytest.raises(ValueError, match="expected .*options of an engine, got True"):
        built(config_of({"fovea": True}))
    tower = built(config_of({"fovea": {"threds": 2}})).visual
    with pytest.raises(TypeError, match="threds"):
        tower.load_weights(tensors().items())


def test_it_answers_as_the_tower(plugin, engine):
    config = config_of(ON)
    tower = built(config).visual
    assert not config.compilation_config.cudagraph_mm_encoder
    assert tower.spatial_merge_size == 2
    assert [parameter.dtype for parameter in tower.parameters()] == [torch.float32]
    with pytest.raises(RuntimeError, match="no weights have been loaded"):
        tower(torch.zeros(4, 1536), [[1, 2, 2]])
    named = sorted(tensors().items(), key=lambda tensor: "patch_embed" not in tensor[0])
    assert tower.load_weights(named[:5]) == {"marker"}  # of the first file
    with pytest.raises(RuntimeError, match="missing"):
        tower(torch.zeros(4, 1536), [[1, 2, 2]])
    assert tower.load_weights(named[5:]) == {"marker"}

    patches, grids, expected = patches_and_grids(engine)
    assert torch.equal(tower(patches, grids), expected)
    assert torch.equal(tower((patches.float() / 255 - 0.5) / 0.5, grid_thw=grids.tolist()), expected)
    with pytest.raises(TypeError, match="got encoder_metadata too"):
        tower(patches, grids, encoder_metadata={})


def patches_of(image, patch=16, merge=2):
    """uint8 [patches, 3 * 2 * patch * patch], squares of merge x merge patches one after the other, as the processor
    orders them."""
    height, width = (side // patch // merge for side in image.shape[:2])
    blocks = image.reshape(height, merge, patch, width, merge, patch, 3).transpose(0, 3, 1, 4, 6, 2, 5)
    frames = numpy.repeat(blocks[..., None, :, :], 2, axis=-3)
    return torch.from_numpy(numpy.ascontiguousarray(frames).reshape(-1, 3 * 2 * patch * patch))


@pytest.fixture
def rank_towers(plugin, monkeypatch):
    """Loaded towers of two ranks."""

    def load(tp_mode):
        sent, towers = [], []
        for is_first in (True, False):
            monkeypatch.setattr(sys.modules["vllm.distributed"], "get_tp_group", lambda: Rank(sent, is_first))
            tower = built(config_of(ON, tp_mode=tp_mode)).visual
            assert tower.load_weights(iter(tensors().items())) == {"marker"}
            towers.append(tower)
        return towers, sent

    return load


def patches_and_grids(engine):
    pixels = numpy.random.default_rng(1).integers(0, 256, (2, 64, 96, 3), dtype=numpy.uint8)
    items = engine.encode(list(pixels))
    grids = torch.tensor([item.grid_thw for item in items])
    return torch.cat([patches_of(image) for image in pixels]), grids, torch.cat([item.torch() for item in items])


def test_ranks_that_share_the_weights_share_one_engine(rank_towers, engine):
    (first, other), sent = rank_towers("weights")
    patches, grids, expected = patches_and_grids(engine)
    assert torch.equal(first(patches, grids), expected)
    assert torch.equal(other(patches, grids.tolist()), expected)
    assert not sent
    with pytest.raises(RuntimeError, match="no weights have been loaded"):
        other.engine._loaded()


def test_ranks_that_share_the_items_have_an_engine_each(rank_towers, engine):
    towers, sent = rank_towers("data")
    patches, grids, expected = patches_and_grids(engine)
    half = len(patches) // 2
    assert torch.equal(torch.cat([towers[i](patches[i * half : (i + 1) * half], grids[i : i + 1]) for i in (0, 1)]), expected)
    assert not sent


def test_new_weights_take_the_place_of_old_ones_when_all_have_come(plugin, engine):
    tower = built(config_of(ON)).visual
    stored = list(tensors().items())
    tower.load_weights(stored)
    patches, grids, expected = patches_and_grids(engine)
    doubled = [(name, 2 * tensor if name == "merger.linear_fc2.weight" else tensor) for name, tensor in stored]
    tower.load_weights(doubled[:5])
    assert torch.equal(tower(patches, grids), expected)
    tower.load_weights(doubled[5:])
    hidden = engine.hidden
    bias = dict(stored)["merger.linear_fc2.bias"].float()
    rows = tower(patches, grids)
    assert torch.allclose(rows[:, :hidden], 2 * expected[:, :hidden] - bias, atol=1e-5)
    assert torch.equal(rows[:, hidden:], expected[:, hidden:])


@pytest.fixture
def backend(plugin, monkeypatch):
    """As vLLM makes it when it sleeps for the first time."""
    import importlib

    path, name = Backends.named["fovea"]
    monkeypatch.delitem(sys.modules, path, raising=False)
    kind = getattr(importlib.import_module(path), name)
    monkeypatch.delitem(sys.modules, path)
    return kind()


def test_the_engine_sleeps_with_vllm(plugin, backend, engine):
    config = config_of(ON, sleep="weights")
    tower = built(config).visual
    assert config.model_config.sleep_mode_backend == "fovea"
    tower.load_weights(tensors().items())
    patches, grids, expected = patches_and_grids(engine)
    assert torch.equal(tower(patches, grids), expected)

    backend.suspend(1)
    backend.resume(["kv_cache"])
    with pytest.raises(RuntimeError, match="it sleeps"):
        tower(patches, grids)
    backend.resume(["weights"])
    assert torch.equal(tower(patches, grids), expected)

    backend.suspend(2)  # the weights come again
    backend.resume()
    with pytest.raises(RuntimeError, match="it sleeps"):
        tower(patches, grids)
    tower.load_weights(tensors().items())
    assert torch.equal(tower(patches, grids), expected)
    assert backend.calls == [1, ["kv_cache"], ["weights"], 2, None]


def test_where_vllm_has_no_place_for_it_the_engine_stays_awake(plugin, caplog):
    config = config_of(ON, sleep="graphs too")
    tower = built(config).visual
    assert config.model_config.sleep_mode_backend == "cumem"
    assert "the engine keeps its memory while vLLM sleeps" in caplog.text
    tower.load_weights(tensors().items())
    assert not tower.engine._kept


def test_a_vllm_that_does_not_sleep_leaves_no_tensors(plugin):
    config = config_of(ON)
    tower = built(config).visual
    tower.load_weights(tensors().items())
    assert not tower.engine._kept
    assert not hasattr(config.model_config, "sleep_mode_backend")
