"""The vision towers of transformers, by one interface for all of its families: what bf16_difference.py and
families_gpu.py run beside Fovea.

A model is loaded from a checkpoint, or made from a configuration with random weights and a language model of one layer,
which no image passes through. `features` gives the rows that the language model would read.
"""

import inspect
import json
from pathlib import Path

import torch
import transformers
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, MODEL_MAPPING

# Lists with an entry per layer of a language model, and sizes that only its layers have.
LAYER_LISTS = ("layer_types", "mlp_layer_types", "layers_block_type", "full_attn_idxs", "no_rope_layers")
SMALL_TEXT = {"num_hidden_layers": 1, "vocab_size": 4096, "vocab_size_per_layer_input": 4096, "num_experts": 2,
              "num_local_experts": 2, "n_routed_experts": 8, "moe_num_experts": 2, "first_k_dense_replace": 1,
              "hidden_size_per_layer_input": 0}


def quiet():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def model_class(config, folder):
    """That of reference.json beside golden data, that of `architectures`, or the one that belongs to the config."""
    reference = Path(folder) / "reference.json"
    names = [json.loads(reference.read_text(encoding="utf-8"))["model_class"]] if reference.exists() else []
    for name in [*names, *(config.architectures or ())]:
        if hasattr(transformers, name):
            return getattr(transformers, name)
    for mapping in (MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, MODEL_MAPPING):
        if type(config) in mapping:
            return mapping[type(config)]
    raise LookupError(f"transformers {transformers.__version__} has no model for {folder}")


def load_model(folder, dtype, device):
    """The whole model of a checkpoint, with SDPA."""
    config = transformers.AutoConfig.from_pretrained(folder)
    cls = model_class(config, folder)
    return cls.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").to(device).eval()


def shrink_text(config):
    """Leaves one layer of the language model, which no image passes through."""
    text = config.get_text_config()
    if text is config:  # Phi-4 keeps the keys of its language model at the top
        config.num_hidden_layers, config.vocab_size, config.pad_token_id = 1, 4096, 0
        return
    for name, value in SMALL_TEXT.items():
        if isinstance(getattr(text, name, None), int):
            setattr(text, name, min(value, getattr(text, name)))
    for name in LAYER_LISTS:
        if getattr(text, name, None):
            setattr(text, name, list(getattr(text, name))[:1])
    text.pad_token_id = text.bos_token_id = text.eos_token_id = 0


def make_model(folder, dtype, device):
    """A model of the sizes in config.json with random weights, with SDPA."""
    config = transformers.AutoConfig.from_pretrained(folder)
    cls = model_class(config, folder)
    shrink_text(config)
    with torch.device(device):
        model = cls._from_config(config, dtype=dtype, attn_implementation="sdpa")
    return model.eval()


def image_processor(folder):
    """The processor of the folder, or that of the family with its own values."""
    reference = Path(folder) / "reference.json"
    if reference.exists():
        name = json.loads(reference.read_text(encoding="utf-8"))["image_processor"]
        return getattr(transformers, name).from_pretrained(folder)
    if (Path(folder) / "preprocessor_config.json").exists():
        return transformers.AutoImageProcessor.from_pretrained(folder)
    classes = IMAGE_PROCESSOR_MAPPING[type(transformers.AutoConfig.from_pretrained(folder))]
    if isinstance(classes, dict):
        classes = tuple(classes.values())
    candidates = [cls for cls in (classes if isinstance(classes, tuple) else (classes,)) if cls is not None]
    return candidates[-1]()


def processor_inputs(processor, folder, images):
    """What the processor makes of the images, as the family's processor of text and images calls it."""
    path = Path(folder) / "processor_config.json"
    whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    more = {}
    if "spatial_merge_size" in whole:  # as PixtralProcessor does
        more["patch_size"] = whole["patch_size"] * whole["spatial_merge_size"]
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") == "internvl":  # as InternVLProcessor does
        more["crop_to_patches"] = True
    return dict(processor(images=images, return_tensors="pt", **more))


def inner(model):
    """The part of the model that has get_image_features."""
    for path in ("thinker.model", "thinker", "model"):
        part = model
        for name in path.split("."):
            part = getattr(part, name, None)
        if hasattr(part, "get_image_features"):
            return part
    return model


def phi4_features(model, inputs):
    """What the image embedding of Phi-4 writes over the placeholder tokens of one image."""
    embed, mask = model.model.embed_tokens_extend.image_embed, inputs["image_attention_mask"][0]
    base = int(embed.num_img_tokens**0.5)
    height, width = (inputs["image_sizes"][0] // embed.crop_size).tolist()
    useful = mask[1 : 1 + height * width, ::2, ::2].reshape(height, width, base, base).transpose(1, 2)
    useful = useful.reshape(height * base, width * base)
    count = base * (base + 1) + 1 + int(useful[:, 0].sum()) * (int(useful[0].sum()) + 1)
    ids = torch.full((1, count), model.config.vision_config.image_token_id, device=mask.device)
    hidden = torch.zeros(1, count, model.config.hidden_size, device=mask.device, dtype=model.dtype)
    return embed(ids, hidden, inputs["image_pixel_values"], inputs["image_sizes"], mask[None])[0]


def features_call(model, inputs):
    """A function without arguments that runs the tower on the inputs: (compile) -> rows by level."""
    device = next(model.parameters()).device
    placed = {
        name: torch.as_tensor(value).to(device, model.dtype) if torch.as_tensor(value).is_floating_point()
        else torch.as_tensor(value).to(device)
        for name, value in inputs.items()
    }
    if "image_pixel_values" in placed:
        return lambda: {"pooler_output": phi4_features(model, placed)}
    part = inner(model)
    names = inspect.signature(part.get_image_features).parameters
    arguments = {name: value for name, value in placed.items() if name in names}
    if model.config.model_type == "llama4":  # the projector stands behind the features
        return lambda: {"pooler_output": model.multi_modal_projector(
            part.get_image_features(**arguments).last_hidden_state.flatten(0, -2))}
    return lambda: part.get_image_features(**arguments, return_dict=True)


def joined(level):
    """[rows, width] of features that releases of transformers return whole, or cut by image."""
    parts = level if isinstance(level, (list, tuple)) else [level]
    return torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])


def rows(features):
    """[rows, width] with deepstack levels beside the main embedding, as Fovea writes them."""
    levels = [features["pooler_output"], *(features.get("deepstack_features") or ())]
    return torch.cat([joined(level) for level in levels], dim=1)
