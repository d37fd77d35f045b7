#!/usr/bin/env python3
"""Times a Qwen3-VL vision tower in PyTorch on a GPU: the peer of `fovea bench latency --device cuda`.

The tower is written as a serving engine would run it: bf16, fused qkv, variable-length FlashAttention over packed
sequences, positions and angles computed beforehand. It is timed eagerly, as a captured CUDA graph, compiled and
captured, and as the transformers module where that is installed. Weights and pixels are random. Medians of wall time
per forward, synchronised, in milliseconds.

    python3 bench/peers/qwen3_vl_gpu.py bench/configs/qwen3_vl_30b_a3b/config.json --cases 1x64,20x440 --json out.json
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

DEVICE, DTYPE = "cuda", torch.bfloat16


class Merger(nn.Module):
    """Joins `area` rows into one: norm before (main) or after (deepstack) the join, two products, exact GELU."""

    def __init__(self, config, norm_after_join):
        super().__init__()
        joined = config["hidden_size"] * config["spatial_merge_size"] ** 2
        self.joined = joined
        self.norm = nn.LayerNorm(joined if norm_after_join else config["hidden_size"], eps=1e-6)
        self.norm_after_join = norm_after_join
        self.fc1 = nn.Linear(joined, joined)
        self.fc2 = nn.Linear(joined, config["out_hidden_size"])

    def forward(self, x):
        rows = self.norm(x.view(-1, self.joined)) if self.norm_after_join else self.norm(x).view(-1, self.joined)
        return self.fc2(F.gelu(self.fc1(rows)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, mlp = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_heads"]
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, mlp), nn.Linear(mlp, width)

    def rotate(self, x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def forward(self, x, cos, sin, offsets, longest):
        q, k, v = self.qkv(self.norm1(x)).view(len(x), 3, self.heads, -1).unbind(1)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        mixed = torch.ops.aten._flash_attention_forward(q, k, v, offsets, offsets, longest, longest, 0.0, False, False)[0]
        x = x + self.proj(mixed.flatten(1))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Tower(nn.Module):
    def __init__(self, config):
        super().__init__()
        patch = 3 * config["temporal_patch_size"] * config["patch_size"] ** 2
        self.taps = config["deepstack_visual_indexes"]
        self.patch_embed = nn.Linear(patch, config["hidden_size"])
        self.blocks = nn.ModuleList(Block(config) for _ in range(config["depth"]))
        self.merger = Merger(config, norm_after_join=False)
        self.deepstack = nn.ModuleList(Merger(config, norm_after_join=True) for _ in self.taps)

    def forward(self, pixels, positions, cos, sin, offsets, longest):
        x = self.patch_embed(pixels) + positions
        levels = []
        for index, block in enumerate(self.blocks):
            x = block(x, cos, sin, offsets, longest)
            if index in self.taps:
                levels.append(self.deepstack[self.taps.index(index)](x))
        return torch.cat([self.merger(x), *levels], dim=1)


def random_inputs(config, count, patches):
    rows = count * patches
    head_dim = config["hidden_size"] // config["num_heads"]
    angles = torch.randn(rows, 1, head_dim // 2, device=DEVICE)
    pixels = torch.randn(rows, 3 * config["temporal_patch_size"] * config["patch_size"] ** 2, device=DEVICE, dtype=DTYPE)
    positions = torch.randn(rows, config["hidden_size"], device=DEVICE, dtype=DTYPE)
    offsets = torch.arange(0, rows + 1, patches, dtype=torch.int32, device=DEVICE)
    return pixels, positions, angles.cos().to(DTYPE), angles.sin().to(DTYPE), offsets, patches


def median_ms(run, repetitions, warmups=5):
    times = []
    for index in range(warmups + repetitions):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        if index >= warmups:
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def captured(module, inputs):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            module(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(*inputs)
    return graph


def time_transformers(config, cases, repetitions):
    """Medians of the transformers module, or nothing where it is not installed."""
    try:
        from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
        from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel
    except ImportError:
        return {}
    keys = ("depth", "hidden_size", "intermediate_size", "num_heads", "out_hidden_size", "deepstack_visual_indexes")
    reference = Qwen3VLVisionConfig(**{key: config[key] for key in keys})
    reference._attn_implementation = "sdpa"
    module = Qwen3VLVisionModel(reference).to(DEVICE, DTYPE).eval()
    results = {}
    for count, patches in cases:
        height = max(h for h in range(2, int(patches**0.5) + 1, 2) if patches % h == 0 and patches // h % 2 == 0)
        grid = torch.tensor([[1, height, patches // height]] * count, device=DEVICE)
        pixels = torch.randn(count * patches, 1536, device=DEVICE, dtype=DTYPE)
        results[f"{count}x{patches}"] = median_ms(lambda: module(pixels, grid), repetitions)
    return results


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--cases", default="1x64,1x256,1x1024,1x4096,1x16384,8x256,20x440,8x1024")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--compile", action="store_true", help="also torch.compile, captured (slow to start)")
    parser.add_argument("--json")
    args = parser.parse_args()
    with open(args.config, encoding="utf-8") as file:
        config = json.load(file)["vision_config"]
    cases = [tuple(int(n) for n in case.split("x")) for case in args.cases.split(",")]

    torch.manual_seed(0)
    tower = Tower(config).to(DEVICE, DTYPE).eval()
    report = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "cases": {}}
    transformers_ms = time_transformers(config, cases, args.repetitions)
    for count, patches in cases:
        name = f"{count}x{patches}"
        inputs = random_inputs(config, count, patches)
        times = {"eager": median_ms(lambda: tower(*inputs), args.repetitions)}
        graph = captured(tower, inputs)
        times["graph"] = median_ms(graph.replay, args.repetitions)
        del graph
        if args.compile:
            compiled = torch.compile(tower, dynamic=False)
            graph = captured(compiled, inputs)
            times["compile_graph"] = median_ms(graph.replay, args.repetitions)
            del graph, compiled
            torch._dynamo.reset()
        if name in transformers_ms:
            times["transformers"] = transformers_ms[name]
        report["cases"][name] = times
        print(f"{name:>10}", "  ".join(f"{key} {value:8.3f}" for key, value in times.items()), flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
