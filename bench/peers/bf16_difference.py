#!/usr/bin/env python3
"""How far bf16 takes towers from their f32 rows: in transformers, and in Fovea beside it.

    python3 bench/peers/bf16_difference.py tests/golden/qwen3_vl tests/golden/qwen2_vl --fovea build/release/apps/cli/fovea

GOLDEN is a directory with a checkpoint, golden.safetensors and images/. Prints the relative L2 difference of the rows
of all images, deepstack levels included, to the stored f32 rows, and the largest of an image. Both read the image
files and run on --device; on a CPU Fovea computes in f32.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from PIL import Image
from safetensors.torch import load_file

import transformers_tower as tower


def reference_rows(golden, stem):
    """[rows, width] of the stored rows as Fovea writes them: deepstack levels beside the main embedding."""
    def level(*names):
        found = [golden[key] for name in names for key in (f"{stem}.{name}", f"{stem}.{name}.0") if key in golden]
        return found[0].reshape(-1, found[0].shape[-1])

    levels = [level("out.pooler_output", "out.projected", "e2e.pooler_output")]
    while f"{stem}.out.deepstack_features.{len(levels) - 1}" in golden:
        levels.append(level(f"out.deepstack_features.{len(levels) - 1}"))
    return torch.cat(levels, dim=1)


def peer_rows(folder, images, device):
    model, processor = tower.load_model(folder, torch.bfloat16, device), tower.image_processor(folder)
    results = []
    for image in images:
        inputs = tower.processor_inputs(processor, folder, [Image.open(image).convert("RGB")])
        results.append(tower.rows(tower.features_call(model, inputs)()).float().cpu())
    return results


def fovea_rows(program, folder, images, device):
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "rows.safetensors"
        subprocess.run([program, "encode", folder, *images, "--device", device, "--dtype", "float32", "--output", out],
                       check=True, stdout=subprocess.DEVNULL)
        rows = load_file(out)
    return [rows[f"item_{index}"] for index in range(len(images))]


def differences(got, want):
    """Relative L2 difference over all images, and the largest of one."""
    squares = [((a - b).double().square().sum(), b.double().square().sum()) for a, b in zip(got, want, strict=True)]
    each = [(error / norm).sqrt().item() for error, norm in squares]
    error, norm = (sum(column) for column in zip(*squares))
    return (error / norm).sqrt().item(), max(each)


def compare(folder, arguments):
    """The columns of one family; those of transformers say why there are none."""
    golden = load_file(folder / "golden.safetensors")
    images = sorted((folder / "images").iterdir())
    want = [reference_rows(golden, image.stem) for image in images]
    own = peer = None
    if arguments.fovea:
        own = differences(fovea_rows(arguments.fovea, folder, images, arguments.device), want)
    try:
        peer = differences(peer_rows(folder, images, arguments.device), want)
        reason = ""
    except Exception as error:  # transformers does not have it
        reason = f"  {type(error).__name__}: {str(error).splitlines()[0][:80]}"
    cells = [f"{value:.2e}" for value in (peer or ())] or ["-", "-"]
    if own:
        cells += [*(f"{value:.2e}" for value in own), f"{own[0] / peer[0]:.2f}" if peer else "-"]
    return "".join(f"  {cell:>12}" for cell in cells) + reason


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden", type=Path, nargs="+")
    parser.add_argument("--fovea", type=Path, metavar="PROGRAM", help="also encode the images with it")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_args()
    tower.quiet()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, bf16, {arguments.device}")
    width = max(len(folder.name) for folder in arguments.golden)
    names = ["transformers", "largest", *(["fovea", "largest", "ratio"] if arguments.fovea else [])]
    print(" " * width + "".join(f"  {name:>12}" for name in names))
    for folder in arguments.golden:
        print(f"{folder.name:<{width}}{compare(folder, arguments)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
