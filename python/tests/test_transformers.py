"""Text of models of transformers from rows of Fovea, beside text from their own towers."""

import os
import pathlib

import numpy
import pytest
from text_prompts import FPS, PROMPTS, media, prompt_text, video_metadata

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.24")

import tiny_models  # noqa: E402: needs the two above

import fovea_encoder as fovea  # noqa: E402
from fovea_encoder.integrations.transformers import accelerate, encoder_outputs  # noqa: E402

# Of logits between two float32 implementations of the same tower; noise moves them by more than 0.1.
TOLERANCE = 1e-3


class Models:
    """The model with its tower, the same without one, and the engine of its checkpoint."""

    def __init__(self, folder):
        tiny_models.write(folder)
        self.processor = transformers.AutoProcessor.from_pretrained(folder)
        load = transformers.Qwen3VLForConditionalGeneration.from_pretrained
        self.whole, self.blind = load(folder, dtype=torch.float32), load(folder, dtype=torch.float32)
        del self.blind.model.visual
        self.engine = fovea.Engine.from_pretrained(folder, device="cpu", threads=2)
        self.images, self.videos = media()

    def inputs(self, images, videos):
        text, more = prompt_text(len(images), len(videos)), {}
        if videos:
            metadata = [video_metadata(video) for video in videos]
            for one in metadata:
                del one["do_sample_frames"]  # an argument here
            more = {"videos": videos, "video_metadata": metadata, "do_sample_frames": False}
        return self.processor(text=text, images=images or None, return_tensors="pt", **more)


def generate(model, inputs):
    with torch.no_grad():
        done = model.generate(
            **inputs, max_new_tokens=16, min_new_tokens=16, do_sample=False, return_dict_in_generate=True, output_logits=True
        )
    return done.sequences[0].tolist(), torch.cat(done.logits)


def with_rows(inputs, outputs):
    kept = {name: value for name, value in inputs.items() if not name.startswith("pixel_values")}
    return {**kept, "mm_encoder_outputs": outputs}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return Models(tmp_path_factory.mktemp("tiny_qwen3_vl"))


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: f"images{prompt[0]}videos{prompt[1]}")
def test_text_is_that_of_the_own_tower(models, prompt):
    images, videos = ([source[i] for i in which] for source, which in zip((models.images, models.videos), prompt))
    inputs = models.inputs(images, videos)
    items = models.engine.encode(images, videos, fps=FPS)
    own_text, own_logits = generate(models.whole, inputs)
    text, logits = generate(models.blind, with_rows(inputs, encoder_outputs(items, models.blind)))
    assert text == own_text
    assert (logits - own_logits).abs().max() < TOLERANCE


def test_other_rows_give_other_text(models):
    """Or the test above would say nothing."""
    inputs = models.inputs(models.images[:1], [])
    (other,) = models.engine.encode(numpy.ascontiguousarray(models.images[0][:, ::-1]))
    own_text, _ = generate(models.whole, inputs)
    text, _ = generate(models.blind, with_rows(inputs, encoder_outputs([other], models.blind)))
    assert text != own_text


def test_rows_have_the_dtype_of_the_model(models):
    half = transformers.Qwen3VLForConditionalGeneration(models.whole.config).to(torch.bfloat16)
    outputs = encoder_outputs(models.engine.encode(models.images[:2]), half)
    assert [rows.dtype for rows in outputs["image"].pooler_output] == [torch.bfloat16] * 2
    assert len(outputs["image"].deepstack_features) == 2
    assert set(outputs) == {"image"}


def never(*_, **__):
    raise AssertionError("the own tower was called")


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: f"images{prompt[0]}videos{prompt[1]}")
def test_an_engine_in_place_of_the_tower_gives_its_text(models, prompt, monkeypatch):
    model = models.whole
    own = model.model.visual
    inputs = models.inputs(*([source[i] for i in which] for source, which in zip((models.images, models.videos), prompt)))
    own_text, own_logits = generate(model, inputs)
    tower = accelerate(model)
    monkeypatch.setattr(own, "forward", never)
    text, logits = generate(model, inputs)
    assert text == own_text
    assert (logits - own_logits).abs().max() < TOLERANCE
    assert model.model.visual is tower
    assert not any("visual" in name for name in model.state_dict())
    monkeypatch.undo()
    tower.restore()
    assert model.model.visual is own
    assert generate(model, inputs)[0] == own_text


def test_the_engine_has_the_weights_of_the_model_and_not_those_of_the_folder(models):
    inputs = models.inputs(models.images[:1], [])
    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(models.whole.config._name_or_path, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.model.visual.parameters():
            parameter.mul_(1.25)
    _, own_logits = generate(model, inputs)
    assert (own_logits - generate(models.whole, inputs)[1]).abs().max() > 10 * TOLERANCE
    accelerate(model)
    assert (generate(model, inputs)[1] - own_logits).abs().max() < TOLERANCE


def test_rows_of_the_engine_are_in_the_dtype_of_the_tower(models):
    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(models.whole.config._name_or_path, dtype=torch.bfloat16)
    inputs = models.inputs(models.images[:2], [])
    same = fovea.Engine.from_weights(model.config._name_or_path, model.state_dict(), device="cpu", threads=2)
    items = same.encode(models.images[:2], dtype="bfloat16")
    accelerate(model)
    output = model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"])
    for rows, deepstack, item in zip(output.pooler_output, output.deepstack_features[0], items, strict=True):
        assert rows.dtype == torch.bfloat16
        expected = item.torch().split(models.engine.hidden, dim=1)
        assert torch.equal(rows, expected[0]) and torch.equal(deepstack, expected[1])


def test_a_tower_that_cannot_be_replaced_is_left(models):
    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(models.whole.config._name_or_path)
    own = model.model.visual
    with pytest.raises(TypeError, match="BertModel: expected a model of qwen2_vl, .*, got bert"):
        accelerate(transformers.BertModel(transformers.BertConfig(num_hidden_layers=1)))
    with pytest.raises(ValueError, match="is being trained"):
        accelerate(model.train())
    model.eval()
    with pytest.raises(fovea.Error, match="/nowhere: expected the directory of a model"):
        accelerate(model, "/nowhere")
    own.merger.linear_fc1.weight = torch.nn.Parameter(torch.zeros(4, dtype=torch.int8), requires_grad=False)
    with pytest.raises(ValueError, match="the tower is quantised.*merger.linear_fc1.weight is torch.int8"):
        accelerate(model)
    own.merger.linear_fc1.weight = torch.nn.Parameter(torch.zeros(4))
    with pytest.raises(fovea.Error, match=r"merger.linear_fc1.weight has shape \[4\] in tensors handed over"):
        accelerate(model)
    assert model.model.visual is own


def test_an_engine_in_place_of_the_tower_is_no_part_of_training(models):
    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(models.whole.config._name_or_path)
    inputs = models.inputs(models.images[:1], [])
    tower = accelerate(model)
    with pytest.raises(ValueError, match="has Fovea's tower already"):
        accelerate(model)
    model.train()
    with pytest.raises(RuntimeError, match="has no gradients"):
        model(**inputs)
    tower.restore()
    with pytest.raises(ValueError, match="has another tower by now"):
        tower.restore()
    model(**inputs).logits.sum().backward()


def test_what_cannot_be_given_is_refused(models):
    with pytest.raises(fovea.Error, match="images"):
        encoder_outputs(models.engine.encode(b"no image", on_error="record"), models.whole)
    items = models.engine.encode(models.images[0])
    other = transformers.Qwen3VLConfig()
    other.text_config.hidden_size = 80
    model = transformers.Qwen3VLForConditionalGeneration.__new__(transformers.Qwen3VLForConditionalGeneration)
    torch.nn.Module.__init__(model)
    model.config = other
    with pytest.raises(ValueError, match="192 wide.*80"):
        encoder_outputs(items, model)
    with pytest.raises(TypeError, match="BertModel takes no mm_encoder_outputs"):
        encoder_outputs(items, transformers.BertModel(transformers.BertConfig(num_hidden_layers=1)))


# ---- every family of the reference data ---------------------------------------------------------

ROOT = pathlib.Path(__file__).resolve().parents[2]
# That of the repository, and what may lie beside it.
GOLDEN = [ROOT / "tests" / "golden", pathlib.Path(os.environ.get("FOVEA_GOLDEN_DIR") or ROOT / "build" / "ci" / "golden")]
# What stands between a test and the family, in transformers 5.24.
NOT_GENERATED = {
    "deepseek_ocr": "no model of its checkpoint",
    "internvl_chat": "no model of its checkpoint",
    "kimi_vl": "no model of its checkpoint",
    "kimi_vl_table": "no model of its checkpoint",
    "step3_vl": "no model of its checkpoint",
    "kimi_k25": "its language model of random weights fails with pixels, too",
    "llama4": "projects what it takes",
    "phi4_multimodal": "takes no rows",
    "qwen2_5_omni": "takes no rows without audio",
    "qwen3_omni_moe": "takes no rows without audio",
    "qwen4_exp": "generate() fails with pixels, too",
    "step3p7": "generate() fails with pixels, too",
}


def families():
    files = [file for root in GOLDEN for file in sorted(root.glob("*/model.safetensors"))]
    return list({file.parent.name: file.parent for file in files}.values())


def load_family(folder):
    """The model of reference data. Those of the tower alone get a language model of random weights, and a vocabulary of a few
    hundred tokens gets the placeholder tokens of published ones."""
    config = transformers.AutoConfig.from_pretrained(folder)
    words = config.get_text_config().vocab_size
    names = ["vision_start_token_id", "vision_end_token_id", "image_start_token_id", "image_end_token_id", "image_token_id"]
    for place, name in enumerate([*names, "video_token_id"], 20):
        if isinstance(getattr(config, name, None), int) and getattr(config, name) >= words:
            setattr(config, name, place)
    torch.manual_seed(0)
    return transformers.AutoModelForImageTextToText.from_pretrained(folder, config=config, dtype=torch.float32).eval()


def family_inputs(model, folder, images, items):
    """Inputs with pixels, whose prompt has a placeholder for every row."""
    import sys

    sys.path.insert(0, str(ROOT / "bench" / "peers"))
    import transformers_tower as tower

    config = model.config
    start = getattr(config, "vision_start_token_id", None)
    token = getattr(config, "image_token_id", None) or config.image_token_index
    ids = [5, 6]
    for item in items:
        ids += ([] if start is None else [start]) + [token] * len(item) + [7]
    inputs = {"input_ids": torch.tensor([[*ids, 8, 9]])}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    takes = set(tower.inspect.signature(model.forward).parameters)
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in takes:
            inputs[name] = (inputs["input_ids"] == token).int()
    takes |= set(tower.inspect.signature(tower.inner(model).get_image_features).parameters)
    made = tower.processor_inputs(tower.image_processor(folder), folder, images)
    return {**inputs, **{name: torch.as_tensor(value) for name, value in made.items() if name in takes}}


def noise_like(rows):
    if not isinstance(rows, torch.Tensor):
        return [noise_like(part) for part in rows]
    return torch.randn(rows.shape, generator=torch.Generator().manual_seed(1)) * rows.std()


@pytest.mark.parametrize("folder", families(), ids=lambda folder: folder.name)
def test_families_continue_rows_as_pixels(folder):
    image = pytest.importorskip("PIL.Image")
    if folder.name in NOT_GENERATED:
        pytest.skip(NOT_GENERATED[folder.name])
    model = load_family(folder)
    images = [image.open(path).convert("RGB") for path in sorted((folder / "images").iterdir())[:2]]
    items = fovea.Engine.from_pretrained(folder, device="cpu", threads=2).encode(images)
    inputs = family_inputs(model, folder, images, items)
    own_text, own_logits = generate(model, inputs)
    outputs = encoder_outputs(items, model)
    text, logits = generate(model, with_rows(inputs, outputs))
    assert text == own_text
    assert (logits - own_logits).abs().max() < TOLERANCE
    outputs["image"]["pooler_output"] = noise_like(outputs["image"]["pooler_output"])
    _, other = generate(model, with_rows(inputs, outputs))
    assert (other[0] - own_logits[0]).abs().max() > 100 * TOLERANCE


@pytest.mark.parametrize("folder", [folder for folder in families() if folder.name in ("glm4v", "qwen2_vl", "qwen2_5_vl", "qwen3_5", "qwen3_vl")], ids=lambda folder: folder.name)
def test_families_continue_rows_of_an_engine_in_place_of_their_tower(folder):
    image = pytest.importorskip("PIL.Image")
    model = load_family(folder)
    images = [image.open(path).convert("RGB") for path in sorted((folder / "images").iterdir())[:2]]
    items = fovea.Engine.from_pretrained(folder, device="cpu", threads=2).encode(images)
    inputs = family_inputs(model, folder, images, items)
    own_text, own_logits = generate(model, inputs)
    model.model.visual.forward = never
    accelerate(model, folder)
    text, logits = generate(model, inputs)
    assert text == own_text
    assert (logits - own_logits).abs().max() < TOLERANCE
