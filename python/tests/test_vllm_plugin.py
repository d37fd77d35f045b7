"""The tower inside vLLM, with a stand-in for vLLM's models. tools/compare_text_with_vllm.py runs it in a whole vLLM."""

import contextlib
import sys
import types

import numpy
import pytest
import tiny_models
from conftest import MODEL

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from fovea_encoder import Engine  # noqa: E402
from fovea_encoder.integrations import _vllm_seams as vllm_seams  # noqa: E402
from fovea_encoder.integrations import vllm_plugin  # noqa: E402


class Built(torch.nn.Module):
    """What vLLM builds."""

    spatial_merge_size = 2


class Model(torch.nn.Module):
    @contextlib.contextmanager
    def _mark_tower_model(self, vllm_config, modalities, *, targets=None):
        self.marked = modalities
        yield

    def build(self, config, names=("visual",)):
        with self._mark_tower_model(config, {"image", "video"}):
            for name in names:
                setattr(self, name, Built())


Qwen3VL = type("Qwen3VLForConditionalGeneration", (Model,), {})


def not_called(*values):
    raise AssertionError("vLLM's method is called")


InternVL = type("InternVLChatModel", (Model,), {"extract_feature": not_called})
KimiVL = type("KimiVLForConditionalGeneration", (Model,), {"_process_image_input": not_called})


@contextlib.contextmanager
def no_init_weights(module, placeholder, *, targets=None):
    def hook(owner, name, child):
        return placeholder(child) if owner is module else child

    handle = torch.nn.modules.module.register_module_module_registration_hook(hook)
    try:
        yield
    finally:
        handle.remove()


class CuMemBackend:
    """vLLM's own way to sleep."""

    def __init__(self):
        self.calls = []

    def suspend(self, level=1):
        self.calls.append(level)

    def resume(self, tags=None):
        self.calls.append(tags)


class Backends:
    """SleepModeBackendFactory."""

    named = {}

    @classmethod
    def register_backend(cls, name, module, kind):
        assert name not in cls.named
        cls.named[name] = (module, kind)


@pytest.fixture
def plugin(monkeypatch):
    monkeypatch.delenv("FOVEA_VLLM", raising=False)
    monkeypatch.setattr(Backends, "named", {})
    parts = {
        "vllm.model_executor.models.interfaces": {"SupportsMultiModal": Model},
        "vllm.model_executor.models.utils": {"no_init_weights": no_init_weights},
        "vllm.platforms": {"current_platform": types.SimpleNamespace(is_cuda=lambda: False)},
        "vllm.device_allocator.sleep_mode_backend": {"CuMemBackend": CuMemBackend, "SleepModeBackendFactory": Backends},
        "vllm.distributed": {"get_tp_group": lambda: types.SimpleNamespace(world_size=1)},
    }
    names = {".".join(name.split(".")[:i]) for name in parts for i in range(1, 5)}
    for name in names:
        module = types.ModuleType(name)
        for key, value in parts.get(name, {}).items():
            setattr(module, key, value)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(Model, "_mark_tower_model", Model._mark_tower_model)
    vllm_plugin.register()
    vllm_plugin.register()  # as in every process: once is enough
    return vllm_plugin


def config_of(additional=None, limit=4, quantized=False, load_format="auto", tp_mode="weights", folder=MODEL, sleep=None, **more):
    limits = types.SimpleNamespace(get_limit_per_prompt=lambda _: limit, mm_encoder_tp_mode=tp_mode)
    model = types.SimpleNamespace(
        model=str(folder), revision=None, dtype=torch.float32, quantization="fp8", get_multimodal_config=lambda: limits
    )
    if sleep is not None:
        model.enable_sleep_mode, model.sleep_mode_backend, model.sleep_mode_offload_cudagraph = True, "cumem", sleep == "graphs too"
    values = {
        "additional_config": additional or {},
        "compilation_config": types.SimpleNamespace(cudagraph_mm_encoder=True),
        "load_config": types.SimpleNamespace(load_format=load_format),
        "model_config": model,
        "quant_config": object() if quantized else None,
        "lora_config": None,
    }
    return types.SimpleNamespace(**{**values, **more})


def built(config, kind=Qwen3VL):
    model = kind()
    model.build(config)
    return model


def tensors():
    """The tower's tensors as vLLM's loader names them, below `visual.`."""
    safetensors = pytest.importorskip("safetensors.torch")
    stored = safetensors.load_file(MODEL / "model.safetensors")
    return {name.partition("visual.")[2]: tensor for name, tensor in stored.items() if "visual." in name}


ON = {"fovea": {"threads": 2}}


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


class Rank:
    """One of two ranks of tensor parallelism in one process: what the first one sends waits for the other."""

    world_size = 2

    def __init__(self, sent, is_first_rank):
        self.sent, self.is_first_rank = sent, is_first_rank

    def broadcast_object(self, value=None):
        if self.is_first_rank:
            self.sent.append(value)
        return value if self.is_first_rank else self.sent.pop(0)

    def broadcast(self, tensor):
        if self.is_first_rank:
            self.sent.append(tensor)
            return tensor
        sent = self.sent.pop(0)
        assert (tensor.shape, tensor.dtype) == (sent.shape, sent.dtype)
        return tensor.copy_(sent)


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


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def normalized(pictures, scaling):
    """float32 [..., 3, height, width] of bytes [..., height, width, 3]."""
    mean, deviation = (torch.tensor(part) for part in scaling)
    return ((torch.from_numpy(pictures) / 255 - mean) / deviation).movedim(-1, -3).contiguous()


def loaded_parts(kind, folder, parts, **more):
    """A model whose modules got the tensors of the checkpoint in the folder, a module after the other."""
    safetensors = pytest.importorskip("safetensors.torch")
    model = kind()
    model.build(config_of(ON, folder=folder, **more), parts)
    stored = safetensors.load_file(folder / "model.safetensors")
    for part in parts:
        own = {name.removeprefix(f"{part}."): tensor for name, tensor in stored.items() if name.startswith(f"{part}.")}
        assert getattr(model, part).load_weights(own.items()) == {"marker"}
    return model


@pytest.fixture(scope="module")
def tiles():
    return numpy.random.default_rng(2).integers(0, 256, (3, 56, 56, 3), dtype=numpy.uint8)


CHAT = MODEL.parent / "internvl_chat"
CHAT_PARTS = ("vision_model", "mlp1")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_an_engine_answers_for_a_tower_and_a_projector_of_tiles(plugin, tiles, dtype):
    model = loaded_parts(InternVL, CHAT, CHAT_PARTS)
    expected = torch.stack([item.torch() for item in Engine.from_pretrained(CHAT, device="cpu").encode(list(tiles))])
    rows = model.extract_feature(normalized(tiles, IMAGENET).to(dtype))
    assert rows.shape == (3, 4, 48)
    assert torch.equal(rows, expected)
    with pytest.raises(RuntimeError, match="vLLM calls mlp1 in a way that is not known"):
        model.mlp1(rows)


def test_pixels_that_were_no_bytes_are_refused(plugin, tiles):
    model = loaded_parts(InternVL, CHAT, CHAT_PARTS)
    pixels = normalized(tiles, IMAGENET)
    for wrong in (pixels + 0.005, pixels * 2, torch.full_like(pixels, 3.0)):
        with pytest.raises(ValueError, match="expected pixels that were bytes"):
            model.extract_feature(wrong)


def test_it_has_no_rows_before_both_modules_have_come(plugin, tiles):
    model = InternVL()
    model.build(config_of(ON, folder=CHAT), CHAT_PARTS)
    with pytest.raises(RuntimeError, match="no weights have been loaded"):
        model.extract_feature(normalized(tiles, IMAGENET))
    model.mlp1.load_weights([("0.weight", torch.ones(512))])
    with pytest.raises(RuntimeError, match="holds no vision tower"):
        model.extract_feature(normalized(tiles, IMAGENET))


def test_an_engine_answers_for_a_tower_and_a_projector_of_patches(plugin):
    folder = MODEL.parent / "kimi_vl_table"
    model = loaded_parts(KimiVL, folder, ("vision_tower", "multi_modal_projector"))
    random = numpy.random.default_rng(4)
    images = [random.integers(0, 256, (*size, 3), dtype=numpy.uint8) for size in ((56, 84), (28, 56))]
    engine = Engine.from_pretrained(folder, device="cpu")
    patches = [normalized(image, vllm_seams.read_scaling(str(folder))).unfold(1, 14, 14).unfold(2, 14, 14) for image in images]
    values = torch.cat([patch.permute(1, 2, 0, 3, 4).reshape(-1, 3, 14, 14) for patch in patches])
    rows = model._process_image_input({"pixel_values": values, "image_grid_hws": torch.tensor([[4, 6], [2, 4]])})
    assert [len(part) for part in rows] == [6, 2]
    for part, item in zip(rows, engine.encode(images)):
        assert torch.equal(part, item.torch())


def test_ranks_share_one_engine_of_several_modules(plugin, monkeypatch, tiles):
    sent, models = [], []
    for is_first in (True, False):
        monkeypatch.setattr(sys.modules["vllm.distributed"], "get_tp_group", lambda: Rank(sent, is_first))
        # vLLM divides calls of the tower, which it does not make
        models.append(loaded_parts(InternVL, CHAT, CHAT_PARTS, tp_mode="data"))
    rows = [model.extract_feature(normalized(tiles, IMAGENET)) for model in models]
    assert torch.equal(*rows)
    assert not sent


@pytest.mark.parametrize("scaling", [IMAGENET, ((0.5,) * 3, (0.5,) * 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_byte_comes_back(scaling, dtype):
    bytes_of = numpy.arange(256, dtype=numpy.uint8).repeat(3).reshape(16, 16, 3)
    assert numpy.array_equal(vllm_seams.picture_bytes(normalized(bytes_of, scaling).to(dtype), scaling), bytes_of)
    assert numpy.array_equal(vllm_seams.picture_bytes(torch.from_numpy(bytes_of).movedim(-1, 0), scaling), bytes_of)


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
