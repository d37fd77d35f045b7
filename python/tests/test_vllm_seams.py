"""Models of vLLM that call several modules, with stand-ins. tools/compare_text_with_vllm.py runs them in a whole vLLM."""

import json
import shutil
import sys
import types

import numpy
import pytest
from conftest import MODEL

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from vllm_stand_ins import ON, Built, InternVL, KimiVL, Model, Rank, config_of, not_called  # noqa: E402

from fovea_encoder import Engine  # noqa: E402
from fovea_encoder.integrations import _vllm_seams as vllm_seams  # noqa: E402

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


def test_tiles_are_not_cut_again(plugin, tiles, tmp_path):
    shutil.copytree(CHAT, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "min_dynamic_patch": 4}))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_mean": IMAGENET[0], "image_std": IMAGENET[1]}))
    pixels = normalized(tiles, IMAGENET)
    rows = [loaded_parts(InternVL, folder, CHAT_PARTS).extract_feature(pixels) for folder in (CHAT, tmp_path)]
    assert torch.equal(*rows)


def test_images_of_any_size_are_patches(plugin):
    """As Mistral 3 has them: an engine takes them as they are."""
    config = types.SimpleNamespace(vision_config=types.SimpleNamespace(patch_size=14))
    images = [torch.arange(3 * 28 * width).reshape(3, 28, width).float() for width in (42, 14)]
    read = vllm_seams.SEAMS["Mistral3ForConditionalGeneration"].read({"pixel_values": images}, types.SimpleNamespace(config=config))
    assert read.grids.tolist() == [[1, 2, 3], [1, 2, 1]]
    assert torch.equal(read.values[4], images[0][:, 14:28, 14:28])
    assert torch.equal(read.values[7], images[1][:, 14:28])


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
    pixels = {"type": "pixel_values", "pixel_values": values, "image_grid_hws": torch.tensor([[4, 6], [2, 4]])}
    rows = model._process_image_input(pixels)
    assert [len(part) for part in rows] == [6, 2]
    for part, item in zip(rows, engine.encode(images)):
        assert torch.equal(part, item.torch())


def test_rows_of_a_request_stay_with_vllm(plugin):
    kind = type("Mistral3ForConditionalGeneration", (Model,), {"_process_image_input": lambda self, image: image["data"]})
    model = kind()
    model.build(config_of(ON), ("vision_tower", "multi_modal_projector"))
    assert model._process_image_input({"type": "image_embeds", "data": "rows"}) == "rows"


def test_ranks_share_one_engine_of_several_modules(plugin, monkeypatch, tiles):
    sent, models = [], []
    for is_first in (True, False):
        monkeypatch.setattr(sys.modules["vllm.distributed"], "get_tp_group", lambda: Rank(sent, is_first))
        # vLLM divides calls of the tower, which it does not make
        models.append(loaded_parts(InternVL, CHAT, CHAT_PARTS, tp_mode="data"))
    rows = [model.extract_feature(normalized(tiles, IMAGENET)) for model in models]
    assert torch.equal(*rows)
    assert not sent


def test_crops_of_an_image_are_one_item():
    rows = torch.arange(24).reshape(12, 2)
    pictures = vllm_seams.Pictures(torch.zeros(3, 3, 8, 8), [2, 1])
    parts = pictures.split(rows, [4, 4, 4])
    assert [len(part) for part in parts] == [8, 4]
    assert torch.equal(torch.cat(parts), rows)


def test_modules_have_the_names_of_the_checkpoint(plugin):
    model = type("LightOnOCRForConditionalGeneration", (Model,), {"_process_image_input": not_called})()
    model.build(config_of(ON), ("vision_tower", "multi_modal_projector"))
    assert model.vision_tower.prefix == "model.vision_encoder."
    assert model.multi_modal_projector.prefix == "model.vision_projection."


def test_tensors_have_the_names_of_the_checkpoint(plugin, monkeypatch):
    model, names = type("KimiK25ForConditionalGeneration", (Model,), {"_process_media_input": not_called})(), []
    model.build(config_of(ON), ("vision_tower", "mm_projector"))
    for part, own in (("mm_projector", ("pre_norm.weight", "linear_1.bias", "linear_2.weight")), ("vision_tower", ("linear_1.bias",))):
        monkeypatch.setattr(getattr(model, part).engine, "load", lambda weights: names.extend(name for name, _ in weights))
        getattr(model, part).load_weights((name, None) for name in own)
    assert names == [
        "mm_projector.pre_norm.weight", "mm_projector.proj.0.bias", "mm_projector.proj.2.weight", "vision_tower.linear_1.bias",
    ]  # fmt: skip


def test_images_and_pieces_of_videos_are_items_of_one_kind(plugin):
    grids = torch.tensor([[1, 2, 4], [3, 2, 2]])
    media = {"type": "pixel_values", "pixel_values": torch.zeros(20, 3, 14, 14), "grid_thws": grids}
    read = vllm_seams.SEAMS["KimiK25ForConditionalGeneration"].read(media, None)
    items = read.items(types.SimpleNamespace(device="cpu"), not_called)
    assert (len(items.images), len(items.videos)) == (0, 2)


def test_a_part_that_is_given_again_is_the_same(plugin):
    model = KimiVL()
    with model._mark_tower_model(config_of(ON), "image"):
        model.vision_tower = Built()
        part = model.vision_tower
        model.vision_tower = model.vision_tower.to(torch.float32)
    assert model.vision_tower is part


@pytest.mark.parametrize("scaling", [IMAGENET, ((0.5,) * 3, (0.5,) * 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_byte_comes_back(scaling, dtype):
    bytes_of = numpy.arange(256, dtype=numpy.uint8).repeat(3).reshape(16, 16, 3)
    assert numpy.array_equal(vllm_seams.picture_bytes(normalized(bytes_of, scaling).to(dtype), scaling), bytes_of)
    assert numpy.array_equal(vllm_seams.picture_bytes(torch.from_numpy(bytes_of).movedim(-1, 0), scaling), bytes_of)
