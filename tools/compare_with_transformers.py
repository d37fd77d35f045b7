#!/usr/bin/env python3
"""Compares the rows of the Python package with those of transformers, for any checkpoint that both load.

    python3 tools/compare_with_transformers.py ./Qwen3-VL-2B-Instruct photo.jpg scan.png
    python3 tools/compare_with_transformers.py tests/golden/qwen3_vl

Without images it makes three. Both read the files, resize them, and run the tower on the CPU in f32. Prints the
relative L2 difference per image, and fails if one is above --tolerance. Needs the package fovea (python/README.md),
torch, transformers and pillow; fits towers whose transformers model has get_image_features.
"""

import argparse
import inspect
import pathlib
import sys
import tempfile

import torch
import transformers
from PIL import Image

import fovea

# Accumulated rounding of two f32 implementations through some 30 blocks; a wrong activation shows at 3e-4.
TOLERANCE = 1e-4


def made_images(folder):
    """Images with structure at several scales: small, wide and tall."""
    paths = []
    for width, height in [(120, 90), (640, 200), (333, 500)]:
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        waves = torch.stack([x * 255 / width, y * 255 / height, 127 + 120 * torch.sin(x / 7 + y / 5)], dim=-1)
        paths.append(folder / f"made_{width}x{height}.png")
        Image.fromarray(waves.to(torch.uint8).numpy()).save(paths[-1])
    return paths


def load_model(folder):
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
    except ValueError as unknown:
        sys.exit(f"{folder}: {str(unknown).splitlines()[0]}")
    family = getattr(transformers, config.architectures[0], None)
    if family is None or not hasattr(family, "get_image_features"):
        sys.exit(f"{folder}: transformers {transformers.__version__} has no vision tower for {config.architectures[0]}")
    return family.from_pretrained(folder, dtype=torch.float32).eval()


def joined(features):
    """[rows, width] of features that releases of transformers return whole, or cut by image."""
    return torch.cat(list(features)) if isinstance(features, (list, tuple)) else features.flatten(0, -2)


def reference_rows(model, processor, path):
    """Rows of one image, deepstack levels beside the main embedding, as Fovea writes them."""
    tiles = {"crop_to_patches": True} if model.config.model_type == "internvl" else {}  # as InternVLProcessor does
    inputs = processor(images=[Image.open(path).convert("RGB")], return_tensors="pt", **tiles)
    known = inspect.signature(model.get_image_features).parameters
    arguments = {
        name: value.float() if value.is_floating_point() else value for name, value in inputs.items() if name in known
    }
    if "vision_feature_select_strategy" in known:
        arguments["vision_feature_select_strategy"] = getattr(
            model.config, "vision_feature_select_strategy", "default"
        )
    with torch.no_grad():
        out = model.get_image_features(**arguments)
        if model.config.model_type == "llama4":  # the projector stands behind the features
            return model.multi_modal_projector(out.last_hidden_state.flatten(0, -2))
    levels = [out.pooler_output, *(getattr(out, "deepstack_features", None) or ())]
    return torch.cat([joined(level) for level in levels], dim=1)


def fovea_rows(folder, paths):
    """Rows of all images, in their order."""
    engine = fovea.Engine.from_pretrained(folder, device="cpu")
    return [item.torch() for item in engine.encode(paths, dtype="float32")]


def difference(rows, reference):
    if rows.shape != reference.shape:
        return f"rows {tuple(rows.shape)}, transformers {tuple(reference.shape)}", float("inf")
    relative = float((rows.double() - reference.double()).norm() / reference.double().norm())
    return f"{relative:.2e}", relative


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="directory of a checkpoint")
    parser.add_argument("images", nargs="*", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    args = parser.parse_args()

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as scratch:
        paths = args.images or made_images(pathlib.Path(scratch))
        try:
            rows = fovea_rows(args.model, paths)
        except fovea.Error as error:
            sys.exit(str(error))
        model = load_model(args.model)
        processor = transformers.AutoImageProcessor.from_pretrained(args.model)
        print(f"transformers {transformers.__version__}, {type(model).__name__}, {type(processor).__name__}")
        width = max(len(path.name) for path in paths)
        worst = 0.0
        for path, own in zip(paths, rows):
            text, relative = difference(own, reference_rows(model, processor, path))
            worst = max(worst, relative)
            print(f"{path.name:<{width}}  {own.shape[0]:>6} rows  {text}")
    print("passed" if worst <= args.tolerance else f"failed: above {args.tolerance:g}")
    return 0 if worst <= args.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
