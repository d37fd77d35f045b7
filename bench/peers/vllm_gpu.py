#!/usr/bin/env python3
"""Times vLLM's own Qwen3-VL vision tower on a GPU: the peer of Fovea's graphs.

vLLM's model class with nothing but its vision tower: random weights in bf16, and the attention kernel that vLLM itself
chooses, FlashAttention-3 on Hopper. The tower runs in three ways:

    vllm eager        embed_multimodal, vLLM's default
    vllm graph        EncoderCudaGraphManager.execute with one token budget, exactly that of the case
    vllm own budgets  the same with the budgets that vLLM infers: powers of two, and a case is padded to the next

    pip install vllm==0.26.0
    python3 bench/peers/vllm_gpu.py bench/configs/qwen3_vl_30b_a3b/config.json --json vllm.json

With --fovea there is a fourth, where Fovea's Python package is installed:

    fovea inside      Fovea's engine in the place of the tower, as its plugin puts it there, with the same weights

Each way starts with pixels on the GPU and ends with the rows of every image; position weights, rotary angles and copies
into a graph's buffers are part of it. vLLM's tower has pixels in bf16; the engine has bytes, as vLLM 0.29 and newer hand
them over, which are these pixels before they were normalised. Prints median milliseconds as qwen3_vl_gpu.py does. A way
that fails shows as "-" and says why on stderr.
"""

import argparse
import functools
import gc
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch

from qwen3_vl_gpu import CASES, attempt, grid_of, print_table

try:
    import vllm
    from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
    from vllm.config import CompilationConfig, VllmConfig, set_current_vllm_config
    from vllm.config.multimodal import MultiModalConfig
    from vllm.distributed import parallel_state
    from vllm.model_executor.models.qwen3_vl import Qwen3_VisionTransformer, Qwen3VLForConditionalGeneration
    from vllm.platforms import current_platform
    from vllm.utils.network_utils import get_open_port
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.worker.encoder_cudagraph import EncoderCudaGraphManager
except ImportError as error:
    sys.exit(f"vllm_gpu.py needs vLLM ({error}): pip install vllm==0.26.0")

# What `vllm serve` takes by default on a GPU of 70 GB or more; its largest token budget.
MAX_NUM_BATCHED_TOKENS = 8192


class TowerAlone(Qwen3VLForConditionalGeneration):
    """vLLM's model without the language model; every method of the encoder is vLLM's."""

    def __init__(self, vision_config, vllm_config):
        torch.nn.Module.__init__(self)
        self.model_config = vllm_config.model_config
        self.multimodal_config = self.model_config.multimodal_config
        self.use_data_parallel = False
        self.is_multimodal_pruning_enabled = False
        self.visual = Qwen3_VisionTransformer(vision_config, norm_eps=1e-6, prefix="visual")

    def get_max_frames_per_video(self):
        return 1  # vLLM's own asks a processor, which a config.json alone does not give; there are no videos


def make_vllm_config():
    """vLLM's defaults with encoder graphs, for images only; of the model it knows what the tower reads."""
    config = VllmConfig(compilation_config=CompilationConfig(cudagraph_mm_encoder=True))
    config.scheduler_config.max_num_batched_tokens = MAX_NUM_BATCHED_TOKENS
    config.model_config = SimpleNamespace(
        multimodal_config=MultiModalConfig(limit_per_prompt={"video": 0}),
        dtype=torch.bfloat16,
        max_model_len=262144,
        is_moe=False,
        is_diffusion=False,
    )
    return config


def read_vision_config(path):
    config = json.loads(Path(path).read_text(encoding="utf-8"))
    vision = config.get("vision_config", config)
    return Qwen3VLVisionConfig(**{key: value for key, value in vision.items() if key != "model_type"})


def join_group_of_one():
    """vLLM's layers ask for their rank. One rank sends nothing, so the backend does not matter."""
    parallel_state.init_distributed_environment(
        world_size=1, rank=0, local_rank=0, backend="gloo",
        distributed_init_method=f"tcp://127.0.0.1:{get_open_port()}")
    parallel_state.initialize_model_parallel()


def fill_randomly(model):
    for name, weights in model.named_parameters():
        if "norm" in name:
            weights.fill_(float(name.endswith("weight")))
        else:
            weights.normal_(std=0.02)


def make_tower(arguments, vllm_config):
    with set_current_vllm_config(vllm_config):
        join_group_of_one()
        with set_default_torch_dtype(torch.bfloat16), torch.device(arguments.device):
            model = TowerAlone(arguments.vision_config, vllm_config)
    fill_randomly(model)
    return model.eval()


def engine_in_place(model, arguments):
    """The module that Fovea's plugin would put in the place of model.visual, with its weights."""
    from fovea_encoder.integrations._vllm_tower import EngineTower, TowerEngine

    config = SimpleNamespace(model=str(Path(arguments.config).parent), revision=None, dtype=torch.bfloat16)
    tower = EngineTower(model.visual, TowerEngine(config, {}, None))
    tower.prefix = "visual."
    tower.load_weights(model.visual.state_dict().items())
    return tower


def attention_of(model):
    attention = model.visual.blocks[0].attn.attn
    version = f" {attention._fa_version}" if attention.is_flash_attn_backend else ""
    return f"{attention.attn_backend.name}{version}"


def make_inputs(vision_config, count, patches, device):
    """As vLLM's model runner hands them over: pixels in bf16 on the GPU, grids in host memory. And the bytes that these
    pixels were, of pictures: both frames of a patch are equal."""
    height, width = grid_of(patches, vision_config.spatial_merge_size)
    channels, frames = vision_config.in_channels, vision_config.temporal_patch_size
    pixels = torch.randint(
        0, 256, (count * patches, channels, 1, vision_config.patch_size**2), device=device, dtype=torch.uint8)
    patched = pixels.expand(-1, -1, frames, -1).reshape(count * patches, -1).contiguous()
    return {
        "pixel_values": (patched / 127.5 - 1).to(torch.bfloat16),
        "image_grid_thw": torch.tensor([[1, height, width]] * count),
    }, patched


def make_manager(model, vllm_config, device, budgets=(), items=0):
    """vLLM's manager with graphs of these token budgets and at most `items` images; by default it infers both."""
    vllm_config.compilation_config.encoder_cudagraph_token_budgets = list(budgets)
    vllm_config.compilation_config.encoder_cudagraph_max_vision_items_per_batch = items
    manager = EncoderCudaGraphManager(vllm_config, device, torch.bfloat16, model)
    with parallel_state.graph_capture(device=device):
        manager.capture(graph_pool=current_platform.graph_pool_handle())
    return manager


def checked_replay(manager, model, inputs):
    """`execute` of a manager, once it has replayed one graph and given the rows of an eager run."""
    rows, expected = torch.cat(manager.execute(inputs)), torch.cat(model.embed_multimodal(**inputs))
    if manager.graph_misses:
        raise RuntimeError("vLLM has no graph for this case")
    difference = ((rows - expected).float().norm() / expected.float().norm()).item()
    if not difference < 0.05:
        raise RuntimeError(f"rows of the graph differ from those of an eager run by {difference:.3g}")
    return lambda: manager.execute(inputs)


def checked_engine(tower, model, inputs, patched, merged):
    """The engine's rows of every image, once they were like those of vLLM's tower."""
    grids = inputs["image_grid_thw"]
    counts = (grids.prod(-1) // merged).tolist()

    def embed():
        return tower(patched, grids).split(counts)

    rows, expected = torch.cat(embed()).float(), torch.cat(model.embed_multimodal(**inputs)).float()
    difference = ((rows - expected).norm() / expected.norm()).item()
    print(f"fovea inside, {len(grids)} x {len(patched) // len(grids)}: rows differ by {difference:.2g}", file=sys.stderr)
    if not difference < 0.05:
        raise RuntimeError(f"rows of the engine differ from those of vLLM's tower by {difference:.3g}")
    return embed


def ways_of(model, vllm_config, infer_budgets, inputs, patched, arguments):
    """Names of the ways to run the tower, each with a function that gets it ready."""
    count = len(inputs["image_grid_thw"])
    tokens = len(inputs["pixel_values"]) // arguments.vision_config.spatial_merge_size**2

    def exact_graph():
        manager = make_manager(model, vllm_config, arguments.device, [tokens], count)
        return checked_replay(manager, model, inputs)

    def own_budgets():
        manager = infer_budgets()
        return lambda: manager.execute(inputs)

    ways = {
        "vllm eager": lambda: lambda: model.embed_multimodal(**inputs),
        "vllm graph": exact_graph,
        "vllm own budgets": own_budgets,
    }
    if arguments.engine is not None:
        merged = arguments.vision_config.spatial_merge_size**2
        ways["fovea inside"] = lambda: checked_engine(arguments.engine, model, inputs, patched, merged)
    return {way: prepare for way, prepare in ways.items() if way not in arguments.without}


def time_cases(model, vllm_config, arguments):
    infer_budgets = functools.cache(lambda: make_manager(model, vllm_config, arguments.device))
    gc.collect()
    gc.freeze()  # as vLLM's engine does once it has started
    results = {}
    for case in arguments.cases.split(","):
        count, patches = map(int, case.split("x"))
        inputs, patched = make_inputs(arguments.vision_config, count, patches, arguments.device)
        results[case] = {}
        for way, prepare in ways_of(model, vllm_config, infer_budgets, inputs, patched, arguments).items():
            attempt(way, case, results[case], prepare, arguments)
    return results


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config.json of a Qwen3-VL checkpoint")
    parser.add_argument("--cases", default=CASES, help="images x patches of each, comma-separated")
    parser.add_argument("--device", choices=("cuda",), default="cuda")
    parser.add_argument("--warmups", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=20, help="of each way, at least")
    parser.add_argument("--seconds", type=float, default=2, help="that each way runs for, at least")
    parser.add_argument("--fovea", action="store_true", help="also Fovea's engine in the place of the tower")
    parser.add_argument("--without", metavar="WAY", action="append", default=[], help="leave out this way")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    arguments = parser.parse_args()
    arguments.vision_config = read_vision_config(arguments.config)
    return arguments


@torch.inference_mode()
def main():
    arguments = parse_arguments()
    if not current_platform.is_cuda():
        sys.exit("vLLM finds no NVIDIA GPU")
    torch.manual_seed(0)
    vllm_config = make_vllm_config()
    model = make_tower(arguments, vllm_config)
    arguments.engine = engine_in_place(model, arguments) if arguments.fovea else None
    name, attention = torch.cuda.get_device_name(), attention_of(model)
    print(f"vLLM {vllm.__version__}, torch {torch.__version__}, {name}, {attention}, bf16")
    results = time_cases(model, vllm_config, arguments)
    print_table(results)
    if arguments.json:
        report = {"vllm": vllm.__version__, "torch": torch.__version__, "device": name, "attention": attention,
                  "cases": results}
        Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    parallel_state.destroy_model_parallel()
    parallel_state.destroy_distributed_environment()


if __name__ == "__main__":
    main()
