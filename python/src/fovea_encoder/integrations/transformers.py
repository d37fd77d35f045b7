"""Rows as models of transformers take them in place of pixels (`mm_encoder_outputs`, 5.24 and newer), and an engine in the place
of their tower."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Dict, Iterable, List

from .._native import Embedding

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import Options
    from ._transformers_tower import EngineTower

__all__ = ["accelerate", "encoder_outputs"]

# Models that read the rows of all items as one tensor; the others read a tensor of each item.
# Source: what get_image_features() of each model returns, transformers 5.24.
_ONE_TENSOR = {"aya_vision", "cohere2_vision", "deepseek_vl", "gemma3", "internvl", "paligemma"}


def encoder_outputs(items: Iterable[Embedding], model: Any) -> Dict[str, Any]:
    """What `model.generate(..., mm_encoder_outputs=...)` and `model.forward` take in place of
    `pixel_values`: the rows of the items in their order, on the device and in the dtype of the
    model. The prompt has as many placeholder tokens as the items have rows, and all that the
    processor returned but pixel values goes to the model as before.

        inputs = processor(text=prompt, images=images, return_tensors="pt")
        del inputs["pixel_values"]
        model.generate(**inputs, mm_encoder_outputs=encoder_outputs(engine.encode(images), model))

    Raises the error of an item that failed; ValueError for pruned videos and for rows of another
    model; TypeError for a model that takes no rows, or takes them before its projector.
    """
    kind = model.config.model_type
    if "mm_encoder_outputs" not in inspect.signature(model.forward).parameters:
        raise TypeError(f"{type(model).__name__} takes no mm_encoder_outputs: transformers 5.24 or newer has models that do")
    if kind == "llama4":
        raise TypeError(f"{type(model).__name__} projects what it takes as mm_encoder_outputs, and Fovea's rows are projected")
    groups: Dict[str, List[Any]] = {}
    for item in items:
        groups.setdefault(item.modality, []).append(_levels(item, model))
    return {modality: _output(group, kind) for modality, group in groups.items()}


def accelerate(model: Any, path: Any = None, **options: "Unpack[Options]") -> "EngineTower":
    """Replaces the vision tower of a loaded model by an engine that is made of its weights, so that
    nothing is loaded twice: `model(...)` and `model.generate(...)` stay as they are. Returns what
    stands in its place; its `restore()` gives the tower back.

        tower = accelerate(model)
        model.generate(**inputs)
        tower.restore()

    For Qwen2-VL, Qwen2.5-VL, Qwen3-VL, Qwen3.5 and GLM-4V. `path` is the folder of the checkpoint's
    JSON files, by default the one that the model was loaded from. The engine is on the tower's
    device, and has `options` of Engine.from_pretrained(). Rows have the tower's dtype and no
    gradients, and are ordered as all that torch does on its current stream; pixel values pass
    through host memory. The tower waits in host memory meanwhile, and `state_dict()` and
    `save_pretrained()` of the model lack it.

    TypeError for other models; ValueError for a model that is being trained, one that has an engine
    already, and a quantised tower.
    """
    from ._transformers_tower import EngineTower

    return EngineTower(model, path, dict(options))


def _levels(item: Embedding, model: Any) -> List[Any]:
    """The main embedding of an item, then its deepstack levels, [rows, hidden] each."""
    if item.error is not None:
        raise item.error
    if item.retained is not None:
        raise ValueError(f"{item.name}: transformers takes no pruned videos")
    hidden = model.config.get_text_config().hidden_size
    rows, width = item.shape
    if width % hidden != 0:
        raise ValueError(f"{item.name}: rows are {width} wide, and the language model of {type(model).__name__} {hidden}")
    placed = item.torch().to(model.device, model.dtype)
    return list(placed.split(hidden, dim=1))


def _output(group: List[List[Any]], kind: str) -> Any:
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    main, *deepstack = ([levels[i] for levels in group] for i in range(len(group[0])))
    output = BaseModelOutputWithPooling(pooler_output=torch.cat(main) if kind in _ONE_TENSOR else main)
    if deepstack:
        output["deepstack_features"] = deepstack
    return output
