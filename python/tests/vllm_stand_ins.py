"""Stand-ins for what Fovea's plugin uses of vLLM, for tests without it. Needs torch."""

import contextlib
import sys
import types

import pytest
import torch
from conftest import MODEL


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
Llava = type("LlavaForConditionalGeneration", (Model,), {"_process_image_input": not_called})
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


def install(monkeypatch):
    """Puts them in vLLM's places, and @returns the plugin, registered."""
    from fovea_encoder.integrations import vllm_plugin

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


def config_of(additional=None, limit=4, quantized=False, load_format="auto", tp_mode="weights", folder=MODEL, sleep=None, vision="clip", **more):
    hf_config = types.SimpleNamespace(vision_config=types.SimpleNamespace(model_type=vision))
    limits = types.SimpleNamespace(get_limit_per_prompt=lambda _: limit, mm_encoder_tp_mode=tp_mode)
    model = types.SimpleNamespace(
        model=str(folder), hf_config=hf_config, revision=None, dtype=torch.float32, quantization="fp8", get_multimodal_config=lambda: limits
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
