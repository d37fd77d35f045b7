#!/usr/bin/env python3
"""Where the difference of fp8 comes from: a tower of transformers with the layers of its blocks rounded to E4M3.

    python3 bench/peers/fp8_shares.py tests/configs/GLM-4.1V-9B-Thinking --side 168

FOLDER has a config.json; weights are random, as those of Fovea's --load-format dummy: N(0, 0.02), of norms 1 more.
Rows of x and rows of weights are rounded as `--quantization fp8` rounds them on a GPU, each by its largest magnitude;
sums are f32 and attention is as it was. Prints the relative L2 difference of the rows of a random image to those of the
same tower in f32, for all blocks, for those from a number on (Fovea leaves the first three), and from the third block
on for one layer alone and for all but that one. No GPU is needed.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

import torch
import transformers
from PIL import Image

import transformers_tower as tower

BLOCK = re.compile(r"\.(?:blocks|layers?)\.(\d+)\.(.+)$")
DEVIATION = 0.02
LARGEST = 448  # of E4M3
FIRST = 3  # blocks that Fovea leaves in bf16


def rounded(rows):
    scale = rows.abs().amax(-1, keepdim=True).clamp_min(1e-20) / LARGEST
    return (rows / scale).to(torch.float8_e4m3fn).float() * scale


def randomize(model):
    for name, parameter in model.named_parameters():
        mean = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        parameter.copy_((mean + DEVIATION * torch.randn_like(parameter)).bfloat16())


class Layers:
    """The layers of blocks that a forward runs, of which some are rounded."""

    def __init__(self, model):
        self.chosen, self.called = set(), {}
        for name, layer in model.named_modules():
            if isinstance(layer, torch.nn.Linear) and (place := BLOCK.search(name)):
                layer.register_forward_hook(self.hook(layer, int(place[1]), place[2]))

    def hook(self, layer, block, name):
        def run(_, inputs, output):
            self.called[block, name] = True
            if (block, name) not in self.chosen:
                return output
            return torch.nn.functional.linear(rounded(inputs[0]), rounded(layer.weight), layer.bias)

        return run


def shares(folder, side, firsts):
    torch.manual_seed(0)
    model = tower.make_model(folder, torch.float32, "cpu")
    randomize(model)
    layers = Layers(model)
    pixels = torch.randint(256, (side, side, 3), dtype=torch.uint8)
    image = Image.fromarray(pixels.numpy())
    call = tower.features_call(model, tower.processor_inputs(tower.image_processor(folder), folder, [image]))
    want = tower.rows(call())
    every = list(layers.called)
    names = defaultdict(list)
    for block, name in every:
        if block >= FIRST:
            names[name].append((block, name))

    def difference(chosen):
        layers.chosen = set(chosen)
        return ((tower.rows(call()) - want).norm() / want.norm()).item()

    print(f"{folder.name}: {len(want)} rows, {1 + max(block for block, _ in every)} blocks")
    for first in firsts:
        yield f"blocks from {first}", difference(key for key in every if key[0] >= first)
    for name, keys in names.items():
        yield f"{name} alone", difference(keys)
        yield f"all but {name}", difference(key for key in every if key[0] >= FIRST and key not in keys)


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--side", type=int, default=168, help="of the image, in pixels (168)")
    parser.add_argument("--firsts", default="0,3,6,9,12", help="first blocks that are rounded (0,3,6,9,12)")
    arguments = parser.parse_args()
    tower.quiet()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    for folder in arguments.folder:
        for label, value in shares(folder, arguments.side, [int(first) for first in arguments.firsts.split(",")]):
            print(f"{label:32} {value:.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
