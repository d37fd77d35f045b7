#!/usr/bin/env python3
"""Times a Qwen3-VL vision tower in PyTorch on a GPU: the peer of `fovea bench latency --device cuda`.

The tower of torch_cpu.py in bf16 with an attention kernel for all sequences at once, run eagerly, as a CUDA graph,
and compiled inside a CUDA graph; beside it the tower of transformers. Weights and pixels are random; position weights
and rotary angles are computed beforehand, except by transformers, which does it in every forward pass.

    python3 bench/peers/qwen3_vl_gpu.py bench/configs/qwen3_vl_30b_a3b/config.json --compile --json peers.json

Prints the median milliseconds of one forward pass, from the call until the GPU has finished. Every mode runs for
--seconds, because a GPU slows down at its power limit. A mode that fails shows as "-" and says why on stderr. With
--device cpu only eager and compiled forwards are timed, to try the script.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch_cpu

CASES = "1x64,1x256,1x1024,1x4096,1x16384,8x256,20x440,8x1024"


class Sequences:
    """Rows of `count` images of `patches` patches each."""

    def __init__(self, count, patches, device):
        self.count = count
        self.longest = patches
        self.offsets = torch.arange(0, (count + 1) * patches, patches, dtype=torch.int32, device=device)


def flash_attention(q, k, v, sequences):
    """FlashAttention-2, which takes sequences of any length; q, k, v are [rows, heads, head_dim]."""
    offsets, longest = sequences.offsets, sequences.longest
    return torch.ops.aten._flash_attention_forward(
        q, k, v, offsets, offsets, longest, longest, 0.0, False, False)[0]


def equal_attention(q, k, v, sequences):
    """scaled_dot_product_attention as PyTorch chooses it; sequences have to be of one length."""
    batch = [x.unflatten(0, (sequences.count, -1)).transpose(1, 2) for x in (q, k, v)]
    return F.scaled_dot_product_attention(*batch).transpose(1, 2)


def cudnn_attention(q, k, v, sequences):
    """The same by cuDNN, which is faster than FlashAttention-2 on large images."""
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return equal_attention(q, k, v, sequences)


ATTENTION = {"flash": flash_attention, "cudnn": cudnn_attention, "sdpa": equal_attention}


class Block(torch_cpu.Block):
    def __init__(self, sizes, attend):
        super().__init__(sizes)
        self.attend = attend

    def attention(self, x, cos, sin, sequences):
        q, k, v = self.qkv(x).view(-1, 3, self.sizes.heads, self.sizes.head_dim).unbind(1)
        q, k = torch_cpu.rotate(q, cos, sin), torch_cpu.rotate(k, cos, sin)
        return self.proj(self.attend(q, k, v, sequences).reshape(-1, self.sizes.hidden))


def make_tower(sizes, attention, device):
    tower = torch_cpu.Tower(sizes)
    tower.blocks = nn.ModuleList(Block(sizes, ATTENTION[attention]) for _ in range(sizes.depth))
    return tower.to(device, torch.bfloat16).eval()


def make_inputs(sizes, count, patches, device):
    *tensors, _ = torch_cpu.random_inputs(sizes, patches, count)
    return [x.to(device, torch.bfloat16) for x in tensors] + [Sequences(count, patches, device)]


def graphed(call):
    """`call` captured once; calling the result replays it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def grid_of(patches, merge):
    """Height and width in patches of the most nearly square image with that many."""
    side = max(h for h in range(merge, int(patches**0.5) + 1, merge) if patches % (h * merge) == 0)
    return side, patches // side


def transformers_tower(config_path, device):
    from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

    config = json.loads(Path(config_path).read_text(encoding="utf-8"))
    vision = {key: value for key, value in config.get("vision_config", config).items() if key != "model_type"}
    settings = Qwen3VLVisionConfig(**vision)
    settings._attn_implementation = "sdpa"
    return Qwen3VLVisionModel(settings).to(device, torch.bfloat16).eval()


def transformers_call(tower, sizes, count, patches, device):
    height, width = grid_of(patches, round(sizes.merge**0.5))
    pixels = torch.randn(count * patches, sizes.patch, device=device, dtype=torch.bfloat16)
    grids = torch.tensor([[1, height, width]] * count, device=device)
    return lambda: tower(pixels, grids)


def median_ms(call, arguments):
    """Median of at least --repetitions calls in at least --seconds; a call ends when the GPU has finished."""

    def finished():
        call()
        if arguments.device == "cuda":
            torch.cuda.synchronize()

    first, = torch_cpu.milliseconds(finished, arguments.warmups, 1)
    repetitions = max(arguments.repetitions, round(1e3 * arguments.seconds / first))
    return statistics.median(torch_cpu.milliseconds(finished, 0, repetitions))


def ways_of(tower, inputs, arguments):
    """Names of the ways to run one tower, each with a function that gets it ready."""
    def call():
        return tower(*inputs)

    def compiled():
        torch._dynamo.reset()
        fast = torch.compile(tower, dynamic=False)
        return lambda: fast(*inputs)

    ways = {"eager": lambda: call}
    if arguments.device == "cuda":
        ways["graph"] = lambda: graphed(call)
        ways["compiled graph"] = lambda: graphed(compiled())
    else:
        ways["compiled"] = compiled
    return {name: way for name, way in ways.items() if arguments.compile or "compiled" not in name}


def attempt(name, case, results, prepare, arguments):
    """Adds the time of one way, or says on stderr why there is none."""
    try:
        results[name] = median_ms(prepare(), arguments)
    except Exception as error:  # out of memory, no such kernel, not installed: the others still count
        reason = str(error).partition("\n")[0]
        print(f"{name}, {case}: {type(error).__name__}: {reason}", file=sys.stderr)
    if arguments.device == "cuda":
        torch.cuda.empty_cache()


def time_case(towers, reference, count, patches, arguments):
    sizes, case, results = arguments.sizes, f"{count}x{patches}", {}
    for attention, tower in towers.items():
        inputs = make_inputs(sizes, count, patches, arguments.device)
        for way, prepare in ways_of(tower, inputs, arguments).items():
            attempt(f"{way}, {attention}", case, results, prepare, arguments)
    if reference is not None:
        attempt("transformers", case, results,
                lambda: transformers_call(reference, sizes, count, patches, arguments.device), arguments)
    return results


def load_transformers(arguments):
    try:
        return transformers_tower(arguments.config, arguments.device)
    except ImportError as error:
        print(f"transformers: {error}", file=sys.stderr)
        return None


def print_table(results):
    names = list(dict.fromkeys(name for times in results.values() for name in times))
    print(f"{'case':>8}" + "".join(f"  {name:>9}" for name in names))
    for case, times in results.items():
        cells = [f"{times[name]:.3f}" if name in times else "-" for name in names]
        print(f"{case:>8}" + "".join(f"  {cell:>{max(9, len(name))}}" for cell, name in zip(cells, names)))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config.json of a Qwen3-VL checkpoint")
    parser.add_argument("--cases", default=CASES, help="images x patches of each, comma-separated")
    parser.add_argument("--attention", default="", help="flash, cudnn, sdpa; comma-separated (default: all that fit)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--compile", action="store_true", help="also torch.compile, which is slow to start")
    parser.add_argument("--warmups", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=20, help="of each mode, at least")
    parser.add_argument("--seconds", type=float, default=2, help="that each mode runs for, at least")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    arguments = parser.parse_args()
    arguments.attention = arguments.attention or ("flash,cudnn" if arguments.device == "cuda" else "sdpa")
    arguments.sizes = torch_cpu.Sizes(arguments.config)
    return arguments


@torch.inference_mode()
def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    print(f"torch {torch.__version__}, {name}, bf16")
    towers = {attention: make_tower(arguments.sizes, attention, arguments.device)
              for attention in arguments.attention.split(",")}
    reference = load_transformers(arguments)
    results = {}
    for case in arguments.cases.split(","):
        count, patches = map(int, case.split("x"))
        results[case] = time_case(towers, reference, count, patches, arguments)
    print_table(results)
    if arguments.json:
        report = {"torch": torch.__version__, "device": name, "cases": results}
        Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
