#!/usr/bin/env python3
"""How far bf16 takes a Qwen3-VL or Qwen3.5 tower from its f32 rows: in transformers, and in Fovea beside it.

    python3 bench/peers/bf16_difference.py tests/golden/qwen3_vl --fovea build/release/apps/cli/fovea

GOLDEN is a directory with a checkpoint, golden.safetensors and images/. Prints the relative L2 difference of the rows
of every image, deepstack levels included, to the stored f32 rows, and over all images. Both run on --device.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file


def reference_rows(golden, stem):
    """Stored rows as Fovea writes them: deepstack levels beside the main embedding."""
    levels = [golden[f"{stem}.out.pooler_output.0"]]
    while f"{stem}.out.deepstack_features.{len(levels) - 1}" in golden:
        levels.append(golden[f"{stem}.out.deepstack_features.{len(levels) - 1}"])
    return torch.cat(levels, dim=1)


def load_model(folder, device):
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype=torch.bfloat16)
    return model.to(device).eval()


def peer_rows(model, golden, stem, device):
    """The model on the stored resized pixels, which Fovea's preprocessing reproduces to the byte."""
    resized = golden[f"{stem}.in.pixel_values_u8"].flatten(1).float()
    pixels = ((resized / 255 - 0.5) / 0.5).to(device, torch.bfloat16)
    out = model.get_image_features(pixels, golden[f"{stem}.in.image_grid_thw"].to(device))
    levels = [out.pooler_output, *(getattr(out, "deepstack_features", None) or ())]
    # One tensor per image, or of all images, depending on the version; there is one image.
    levels = [level if torch.is_tensor(level) else level[0] for level in levels]
    return torch.cat([level.float().cpu() for level in levels], dim=1)


def fovea_rows(program, folder, images, device):
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "rows.safetensors"
        subprocess.run([program, "encode", folder, *images, "--device", device, "--dtype", "float32", "--output", out],
                       check=True, stdout=sys.stderr)
        rows = load_file(out)
    return [rows[f"item_{index}"] for index in range(len(images))]


def squares(got, want):
    return torch.stack([(got - want).double().square().sum(), want.double().square().sum()])


def difference(sums):
    return (sums[0] / sums[1]).sqrt().item()


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden", type=Path)
    parser.add_argument("--fovea", type=Path, metavar="PROGRAM", help="also encode the images with it")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_args()
    golden = load_file(arguments.golden / "golden.safetensors")
    images = sorted((arguments.golden / "images").iterdir())
    model = load_model(arguments.golden, arguments.device)
    got = {"transformers": [peer_rows(model, golden, image.stem, arguments.device) for image in images]}
    if arguments.fovea:
        got["fovea"] = fovea_rows(arguments.fovea, arguments.golden, images, arguments.device)

    print(f"torch {torch.__version__}, transformers {transformers.__version__}, bf16, {arguments.device}")
    width = max(len(image.stem) for image in images)
    print(" " * width + "".join(f"  {name:>12}" for name in got))
    totals = {name: torch.zeros(2, dtype=torch.float64) for name in got}
    for index, image in enumerate(images):
        want = reference_rows(golden, image.stem)
        line = f"{image.stem:<{width}}"
        for name, rows in got.items():
            sums = squares(rows[index], want)
            totals[name] += sums
            line += f"  {difference(sums):>12.2e}"
        print(line)
    print(f"{'all':<{width}}" + "".join(f"  {difference(sums):>12.2e}" for sums in totals.values()))
    if arguments.fovea:
        print(f"fovea / transformers: {difference(totals['fovea']) / difference(totals['transformers']):.2f}")


if __name__ == "__main__":
    main()
