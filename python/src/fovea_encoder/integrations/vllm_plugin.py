"""Fovea as the vision tower inside vLLM: a plugin of vLLM's own kind (`vllm.general_plugins`), which pip installs
with this package and which does nothing unless it is asked for:

    vllm serve MODEL --additional-config '{"fovea": {}}'            (options of Engine.from_pretrained)
    FOVEA_VLLM=1 vllm serve MODEL                                   (without options)

vLLM builds towers inside the context manager `_mark_tower_model` of its models, and on the meta device where a tower
is not needed. Here it is not, either: what vLLM built stays on meta, and an engine made of the tensors that
vLLM's loader read stands in its place, or in that of several modules (_vllm_seams.py).
Source: vLLM 0.32, model_executor/models/interfaces.py and utils.py.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any, ContextManager, Dict, Iterator, Optional

_logger = logging.getLogger("fovea.vllm")
_VARIABLE = "FOVEA_VLLM"
_SLEEP_BACKEND = "fovea"  # of ModelConfig.sleep_mode_backend

# Models whose tower is called as visual(patches, grid_thw) and answers [rows, hidden * (1 + levels)], with each of which
# tools/compare_text_with_vllm.py was run.
MODELS = (
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
    "Qwen2_5OmniThinkerForConditionalGeneration",
    "Qwen3OmniMoeThinkerForConditionalGeneration",
    "Glm4vForConditionalGeneration",
    "Glm4vMoeForConditionalGeneration",
    "GlmOcrForConditionalGeneration",
)


def register() -> None:
    """Called by vLLM in each of its processes, before a model is built."""
    from vllm.model_executor.models.interfaces import SupportsMultiModal

    original = getattr(SupportsMultiModal, "_mark_tower_model", None)
    if original is None:
        _logger.warning("this vLLM builds its towers in another way than 0.26 to 0.33; it keeps its own")
        return
    if getattr(original, "is_of_fovea", False):
        return

    @contextlib.contextmanager
    def marked(self: Any, vllm_config: Any, modalities: Any, **more: Any) -> Iterator[None]:
        replaced = _replacement(self, vllm_config, modalities)
        with original(self, vllm_config, modalities, **more), replaced:
            yield

    marked.is_of_fovea = True  # type: ignore[attr-defined]
    SupportsMultiModal._mark_tower_model = marked
    _register_sleep_backend()


def _register_sleep_backend() -> None:
    """Names _vllm_sleep.py, which vLLM imports when it sleeps for the first time, if a model asks for it."""
    try:
        from vllm.device_allocator.sleep_mode_backend import SleepModeBackendFactory
    except ImportError:
        return  # this vLLM calls its allocator itself
    SleepModeBackendFactory.register_backend(_SLEEP_BACKEND, "fovea_encoder.integrations._vllm_sleep", "EngineBackend")


def _join_sleep(model_config: Any) -> None:
    """Has the engine sleep when vLLM does, where vLLM has a place for that. No flag of vLLM names a backend."""
    if not getattr(model_config, "enable_sleep_mode", False):
        return
    if getattr(model_config, "sleep_mode_backend", None) != "cumem" or getattr(model_config, "sleep_mode_offload_cudagraph", False):
        _logger.warning("the engine keeps its memory while vLLM sleeps")
        return
    model_config.sleep_mode_backend = _SLEEP_BACKEND


def _options(vllm_config: Any) -> Optional[Dict[str, Any]]:
    """Those of the engine; None: the tower stays vLLM's."""
    config = getattr(vllm_config, "additional_config", None)
    options = config.get("fovea") if isinstance(config, dict) else None
    if options is None:
        return {} if os.environ.get(_VARIABLE, "0") not in ("", "0") else None
    if not isinstance(options, dict):
        raise ValueError(f'--additional-config: expected {{"fovea": {{...}}}} with options of an engine, got {options!r}')
    return dict(options)


def _refusal(model: Any, seam: Any, vllm_config: Any) -> str:
    """Why the tower stays vLLM's; empty: it does not."""
    from ._vllm_seams import SEAMS

    name = type(model).__name__
    if seam is None and name not in MODELS:
        return f"expected a model of {', '.join((*MODELS, *SEAMS))}, got {name}"
    if vllm_config.quant_config is not None:
        return f"the checkpoint is quantised ({vllm_config.model_config.quantization})"
    if vllm_config.load_config.load_format == "dummy":
        return "--load-format dummy reads no weights"
    if getattr(vllm_config, "lora_config", None) is not None:
        return "LoRA changes weights that an engine has packed"
    return "" if seam is None else seam.refusal(model, vllm_config.model_config.hf_config)


def _replacement(model: Any, vllm_config: Any, modalities: Any) -> ContextManager[None]:
    """In which an engine takes the place of what vLLM builds, on the meta device; one that does nothing if vLLM keeps its
    own tower."""
    own = contextlib.nullcontext()
    options = _options(vllm_config)
    if options is None:
        return own
    limits = vllm_config.model_config.get_multimodal_config()
    names = {modalities} if isinstance(modalities, str) else modalities
    if names == {"audio"}:
        return own  # of a model with two towers, this is the other one
    if all(limits.get_limit_per_prompt(name) == 0 for name in names):
        return own  # there is no tower at all
    from ._vllm_seams import SEAMS

    seam = SEAMS.get(type(model).__name__)
    refusal = _refusal(model, seam, vllm_config)
    if refusal:
        _logger.warning("vLLM keeps its own vision tower: %s", refusal)
        return own
    if getattr(vllm_config.compilation_config, "cudagraph_mm_encoder", False):
        _logger.warning("cudagraph_mm_encoder is off: the engine has graphs of its own")
        vllm_config.compilation_config.cudagraph_mm_encoder = False
    _join_sleep(vllm_config.model_config)
    return _replaced(model, seam, vllm_config.model_config, options)


@contextlib.contextmanager
def _replaced(model: Any, seam: Any, model_config: Any, options: Dict[str, Any]) -> Iterator[None]:
    """Every module that is given to the model becomes a part of an engine."""
    from vllm.model_executor.models.utils import no_init_weights

    from ._vllm_tower import EnginePart, EngineTower, TowerEngine, sharing_ranks

    engine = TowerEngine(
        model_config,
        options,
        sharing_ranks(model_config, are_items_divided=seam is None),
        sleeps=getattr(model_config, "sleep_mode_backend", None) == _SLEEP_BACKEND,
    )
    part = EngineTower if seam is None else EnginePart
    with no_init_weights(model, lambda built: built if isinstance(built, EnginePart) else part(built, engine)):
        yield
    prefixes = {} if seam is None else seam.prefixes
    for name, module in model.named_children():
        if isinstance(module, EnginePart):
            module.prefix = prefixes.get(name, f"{name}.")
            module.renamed = {} if seam is None else seam.renamed
    if seam is not None:
        seam.install(model, engine)
