"""Rows as models of transformers take them in place of pixels (`mm_encoder_outputs`, 5.24 and newer)."""

from __future__ import annotations

import inspect
from typing import Any, Dict, Iterable, List

from .._native import Embedding

__all__ = ["encoder_outputs"]

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
