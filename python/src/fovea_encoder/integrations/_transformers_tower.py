"""The tower of a model of transformers, computed by an engine."""

from __future__ import annotations

import os
from typing import Any, Dict

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from .._engine import Engine
from ._patches import checkpoint_folder, items_of_patches, rows_of_items

# Models whose tower is `model.visual`, called as visual(patches, grid_thw). Source: get_image_features()
# and get_video_features() of each, transformers 5.24.
FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "glm4v", "glm4v_moe")
_TYPES = (torch.float32, torch.float16, torch.bfloat16)


class EngineTower(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """Stands where the tower stood, and answers as it does. The tower itself waits in host memory
    until restore()."""

    def __init__(self, model: Any, path: Any, options: Dict[str, Any]) -> None:
        super().__init__()
        inner = _checked(model)
        own = inner.visual
        parameter = next(own.parameters())
        self.dtype: torch.dtype = parameter.dtype
        self.config = own.config
        self.spatial_merge_size: int = own.spatial_merge_size
        tensors = {f"visual.{name}": tensor for name, tensor in own.state_dict().items()}
        self.engine = Engine.from_weights(_folder(model, path), tensors, **{**_device(parameter.device), **options})
        # No modules of this one: their weights are not the model's while it is here.
        self._replaced = (inner, own, parameter.device)
        inner.visual = self.eval()
        own.to("cpu")

    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor, **_: Any) -> BaseModelOutputWithPooling:
        """@param hidden_states patches of all items, one after the other."""
        if self.training:
            raise RuntimeError("Fovea's tower has no gradients: call restore() before the model is trained")
        items = items_of_patches(self.engine, hidden_states, grid_thw)
        rows = rows_of_items(self.engine, items, self.dtype, hidden_states.device)[0]
        hidden = self.engine.hidden
        main, *deepstack = (rows[:, begin : begin + hidden] for begin in range(0, self.engine.width, hidden))
        output = BaseModelOutputWithPooling(pooler_output=main)
        if deepstack:
            output["deepstack_features"] = deepstack
        return output

    def restore(self) -> None:
        """Puts the tower back, on the device where it was, and lets go of the engine. ValueError if
        the model has another tower by now."""
        inner, own, device = self._replaced
        if inner.visual is not self:
            raise ValueError("the model has another tower by now")
        inner.visual = own.to(device)
        del self.engine


def _checked(model: Any) -> Any:
    """The part of the model that has the tower."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind not in FAMILIES:
        raise TypeError(f"{type(model).__name__}: expected a model of {', '.join(FAMILIES)}, got {kind}")
    if model.training:
        raise ValueError(f"{type(model).__name__} is being trained, and Fovea's tower has no gradients: call model.eval() first")
    inner = getattr(model, "model", model)
    if isinstance(inner.visual, EngineTower):
        raise ValueError(f"{type(model).__name__} has Fovea's tower already: restore() gives its own back")
    for name, parameter in inner.visual.named_parameters():
        if parameter.dtype not in _TYPES:
            raise ValueError(f"the tower is quantised, expected float32, float16 or bfloat16: {name} is {parameter.dtype}")
    return inner


def _folder(model: Any, path: Any) -> str:
    """The folder of the checkpoint's JSON files."""
    name = os.fspath(path) if path is not None else model.config._name_or_path
    if path is not None or os.path.isdir(name):
        return str(name)
    if not name:
        raise ValueError("the model was made of no checkpoint: expected the folder with its config.json and preprocessor_config.json as `path`")
    return checkpoint_folder(name, getattr(model.config, "_commit_hash", None))


def _device(device: torch.device) -> Dict[str, Any]:
    if device.type == "cuda":
        return {"device": f"cuda:{device.index or 0}"}
    return {"device": "cpu", "threads": torch.get_num_threads()}
