#!/usr/bin/env python3
"""Times a Qwen3-VL vision tower in PyTorch on the CPU: the peer of `fovea bench latency`.

The tower is written out here as one would write it for speed: f32, fused qkv, scaled_dot_product_attention
per sequence, LayerNorm, tanh GELU, merger and deepstack mergers. Weights and pixels are random: only time is
of interest. Sizes come from a config.json; position weights and rotary angles are computed beforehand.

    python3 bench/peers/torch_cpu.py bench/configs/qwen3_vl_2b/config.json --threads 4 --linear onednn

PyTorch multiplies f32 with MKL, which is slow on processors of other makers; `--linear onednn` packs the weights
for oneDNN instead, which is the fastest way PyTorch has on any processor.
Prints the median milliseconds of one forward pass per number of patches, as a table or, with --json, as JSON.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Sizes:
    """The fields of vision_config that the tower needs."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        vision = config.get("vision_config", config)
        self.hidden = vision["hidden_size"]
        self.depth = vision["depth"]
        self.heads = vision["num_heads"]
        self.mlp = vision["intermediate_size"]
        self.out = vision["out_hidden_size"]
        self.deepstack = vision["deepstack_visual_indexes"]
        self.merge = vision["spatial_merge_size"] ** 2
        self.head_dim = self.hidden // self.heads
        self.patch_side = vision["patch_size"]
        self.patch = vision.get("in_channels", 3) * vision["temporal_patch_size"] * self.patch_side**2

    def flops(self, patches, count):
        """Multiply-adds of GEMMs and attention, two each, for `count` sequences."""
        per_row = self.patch * self.hidden + self.depth * (4 * self.hidden**2 + 2 * self.hidden * self.mlp)
        merged = self.merge * self.hidden
        per_token = (1 + len(self.deepstack)) * (merged**2 + merged * self.out)
        attention = 4 * patches**2 * self.hidden * self.depth
        return count * (2 * patches * per_row + 2 * patches // self.merge * per_token + attention)


def rotate(x, cos, sin):
    """Rotary embedding with halves paired; x is [rows, heads, head_dim]."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        self.norm1 = nn.LayerNorm(sizes.hidden, eps=1e-6)
        self.norm2 = nn.LayerNorm(sizes.hidden, eps=1e-6)
        self.qkv = nn.Linear(sizes.hidden, 3 * sizes.hidden)
        self.proj = nn.Linear(sizes.hidden, sizes.hidden)
        self.fc1 = nn.Linear(sizes.hidden, sizes.mlp)
        self.fc2 = nn.Linear(sizes.mlp, sizes.hidden)

    def attention(self, x, cos, sin, lengths):
        q, k, v = self.qkv(x).view(-1, 3, self.sizes.heads, self.sizes.head_dim).unbind(1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        outputs = []
        for parts in zip(q.split(lengths), k.split(lengths), v.split(lengths)):
            heads_first = [part.transpose(0, 1).unsqueeze(0) for part in parts]  # [1, heads, length, head_dim]
            outputs.append(F.scaled_dot_product_attention(*heads_first)[0].transpose(0, 1))
        return self.proj(torch.cat(outputs).reshape(-1, self.sizes.hidden))

    def forward(self, x, cos, sin, lengths):
        x = x + self.attention(self.norm1(x), cos, sin, lengths)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class PackedLinear(nn.Module):
    """A linear layer on oneDNN with weights in the layout it asks for, as torch.compile does for bf16."""

    def __init__(self, linear):
        super().__init__()
        self.weight, self.bias = linear.weight.detach(), linear.bias.detach()
        self.packed = {}  # by rows

    def forward(self, x):
        rows = x.shape[0]
        if rows not in self.packed:
            self.packed = {rows: torch.ops.mkldnn._reorder_linear_weight(self.weight, rows)}
        return torch.ops.mkldnn._linear_pointwise(x, self.packed[rows], self.bias, "none", [], "")


def pack_linears(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, PackedLinear(child))
        else:
            pack_linears(child)


class Merger(nn.Module):
    def __init__(self, sizes, norm_after_merge):
        super().__init__()
        self.width = sizes.merge * sizes.hidden
        self.norm_after_merge = norm_after_merge
        self.norm = nn.LayerNorm(self.width if norm_after_merge else sizes.hidden, eps=1e-6)
        self.fc1 = nn.Linear(self.width, self.width)
        self.fc2 = nn.Linear(self.width, sizes.out)

    def forward(self, x):
        x = self.norm(x.view(-1, self.width)) if self.norm_after_merge else self.norm(x).view(-1, self.width)
        return self.fc2(F.gelu(self.fc1(x)))


class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.deepstack = sizes.deepstack
        self.embed = nn.Linear(sizes.patch, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.depth))
        self.merger = Merger(sizes, norm_after_merge=False)
        self.deepstack_mergers = nn.ModuleList(Merger(sizes, norm_after_merge=True) for _ in sizes.deepstack)

    def forward(self, pixels, positions, cos, sin, lengths):
        x = self.embed(pixels) + positions
        levels = []
        for index, block in enumerate(self.blocks):
            x = block(x, cos, sin, lengths)
            if index in self.deepstack:
                levels.append(self.deepstack_mergers[self.deepstack.index(index)](x))
        return torch.cat([self.merger(x), *levels], 1)


def random_inputs(sizes, patches, count):
    rows = patches * count
    angles = torch.randn(rows, 1, sizes.head_dim // 2)
    return (torch.randn(rows, sizes.patch), torch.randn(rows, sizes.hidden), angles.cos(), angles.sin(),
            [patches] * count)


def milliseconds(call, warmups, repetitions):
    for _ in range(warmups):
        call()
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config.json of a Qwen3-VL checkpoint")
    parser.add_argument("--patches", default="64,256,1024", help="patches per sequence, comma-separated")
    parser.add_argument("--count", type=int, default=1, help="equal sequences per forward pass")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--warmups", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--linear", choices=("default", "onednn"), default="default")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


@torch.inference_mode()
def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    sizes = Sizes(arguments.config)
    tower = Tower(sizes).eval()
    if arguments.linear == "onednn":
        pack_linears(tower)
    if arguments.compile:
        tower = torch.compile(tower, dynamic=False)

    results = []
    for patches in map(int, arguments.patches.split(",")):
        inputs = random_inputs(sizes, patches, arguments.count)
        times = milliseconds(lambda: tower(*inputs), arguments.warmups, arguments.repetitions)
        median = statistics.median(times)
        gflops = sizes.flops(patches, arguments.count) / median * 1e-6
        results.append({"patches": patches, "count": arguments.count, "median_ms": median, "min_ms": min(times),
                        "gflops": gflops, "times_ms": times})

    if arguments.json:
        print(json.dumps({"torch": torch.__version__, "threads": arguments.threads, "linear": arguments.linear,
                          "compiled": arguments.compile, "results": results}, indent=2))
        return
    how = f"{arguments.linear} linear layers{', compiled' if arguments.compile else ''}"
    print(f"torch {torch.__version__}, {arguments.threads} threads, {how}")
    print(f"{'patches':>12} {'median ms':>10} {'min ms':>10} {'GFLOP/s':>9}")
    for result in results:
        name = f"{result['count']} x {result['patches']}"
        print(f"{name:>12} {result['median_ms']:10.2f} {result['min_ms']:10.2f} {result['gflops']:9.1f}")


if __name__ == "__main__":
    main()
