#!/usr/bin/env python3
"""Compares encoders for retrieval with transformers: rows and vectors of tiny random checkpoints of every class.

    python3 tools/compare_retrieval_with_transformers.py build/ci/apps/cli/fovea
    python3 tools/compare_retrieval_with_transformers.py build/ci/apps/cli/fovea --keep DIR --only clip

Makes the checkpoints and some images, runs both on the CPU in f32, and prints for each checkpoint the largest relative
L2 difference of rows, that of vectors, and the smallest cosine of vectors; fails above the tolerances. With --keep the
folders stay, each with the reference's rows as `fovea verify --golden` reads them, and `NAME_vectors` with its vectors.
Needs torch, torchvision, transformers, pillow and safetensors.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

# Accumulated rounding of two f32 implementations; a wrong activation shows at 3e-4.
ROWS_TOLERANCE = 1e-4
COSINE_TOLERANCE = 1e-5

TEXT = dict(vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
BLOCKS = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4)
WIDE = dict(hidden_size=96, intermediate_size=160, num_hidden_layers=2, num_attention_heads=3)
DINO = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4)


def crop(kind, edge, side, **more):
    return kind(size={"shortest_edge": edge}, crop_size={"height": side, "width": side}, **more)


def square(kind, side, **more):
    return kind(size={"height": side, "width": side}, **more)


def of_vision(architecture, kind, vision, **root):
    """A whole model: a text part, which is not read, and a vision part."""
    text = dict(TEXT, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    return getattr(transformers, architecture)(kind(text_config=text, vision_config=vision, **root))


def checkpoints():
    """Name, a function that makes the model, and its image processor."""
    t = transformers
    clip = dict(BLOCKS, image_size=64, patch_size=16)
    siglip = dict(BLOCKS, image_size=64, patch_size=16)
    naflex = dict(BLOCKS, num_patches=64, patch_size=16)
    bit = t.BitImageProcessor
    return [
        ("clip", lambda: of_vision("CLIPModel", t.CLIPConfig, clip, projection_dim=48), crop(t.CLIPImageProcessor, 64, 64)),
        (
            "clip_projection",
            lambda: t.CLIPVisionModelWithProjection(
                t.CLIPVisionConfig(**WIDE, image_size=70, patch_size=14, hidden_act="gelu", projection_dim=40)
            ),
            crop(t.CLIPImageProcessor, 80, 70),
        ),
        (
            "clip_vision",
            lambda: t.CLIPVisionModel(t.CLIPVisionConfig(**BLOCKS, image_size=96, patch_size=32)),
            crop(t.CLIPImageProcessor, 64, 96),
        ),
        (
            "siglip",
            lambda: of_vision("SiglipModel", t.SiglipConfig, siglip),
            square(t.SiglipImageProcessor, 64),
        ),
        (
            "siglip_vision",  # patches do not divide the image
            lambda: t.SiglipVisionModel(t.SiglipVisionConfig(**WIDE, image_size=60, patch_size=14)),
            square(t.SiglipImageProcessor, 60, resample=2),
        ),
        (
            "siglip2",
            lambda: of_vision("Siglip2Model", t.Siglip2Config, naflex),
            t.Siglip2ImageProcessor(patch_size=16, max_num_patches=36),
        ),
        (
            "siglip2_vision",
            lambda: t.Siglip2VisionModel(t.Siglip2VisionConfig(**WIDE, num_patches=16, patch_size=14)),
            t.Siglip2ImageProcessor(patch_size=14, max_num_patches=100),
        ),
        ("dinov2", lambda: t.Dinov2Model(t.Dinov2Config(**DINO, image_size=112, patch_size=14)), crop(bit, 64, 56)),
        (
            "dinov2_swiglu",
            lambda: t.Dinov2Model(t.Dinov2Config(**DINO, image_size=56, patch_size=14, use_swiglu_ffn=True)),
            crop(bit, 72, 56),
        ),
        (
            "dinov2_with_registers",
            lambda: t.Dinov2WithRegistersModel(
                t.Dinov2WithRegistersConfig(**DINO, image_size=112, patch_size=14, num_register_tokens=3)
            ),
            crop(bit, 64, 60),
        ),
        (
            "dinov3",
            lambda: t.DINOv3ViTModel(t.DINOv3ViTConfig(**BLOCKS, patch_size=16, num_register_tokens=4)),
            square(t.DINOv3ViTImageProcessor, 80),
        ),
        (
            "dinov3_gated",
            lambda: t.DINOv3ViTModel(
                t.DINOv3ViTConfig(
                    **WIDE, patch_size=16, use_gated_mlp=True, hidden_act="silu", key_bias=True, rope_theta=50.0
                )
            ),
            square(t.DINOv3ViTImageProcessor, 64),
        ),
    ]


def randomize(model, seed):
    """Weights at a scale at which every part of the model shows in its output."""
    random = torch.Generator().manual_seed(seed)
    for name, value in model.named_parameters():
        noise = torch.randn(value.shape, generator=random)
        is_norm = "norm" in name and name.endswith("weight") or "lambda1" in name
        value.data = 1 + 0.2 * noise if is_norm else noise * (1.5 / max((16, *value.shape[-1:])) ** 0.5)


def make_images(folder):
    """Noise and structure in several sizes and ratios."""
    random = torch.Generator().manual_seed(7)
    for width, height in [(61, 47), (180, 150), (333, 40), (64, 200), (97, 97), (17, 9)]:
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        waves = torch.stack([x * 255 / width, y * 255 / height, 127 + 120 * torch.sin(x / 7 + y / 5)], dim=-1)
        noise = torch.randint(0, 60, waves.shape, generator=random)
        pixels = (waves * 0.8 + noise).clamp(0, 255).to(torch.uint8)
        Image.fromarray(pixels.numpy()).save(folder / f"image_{width}x{height}.png")


def reference(model, processor, path):
    """Rows without padding, and the vector, of one image."""
    inputs = processor(images=[Image.open(path).convert("RGB")], return_tensors="pt")
    with torch.no_grad():
        if hasattr(model, "get_image_features"):
            out = model.get_image_features(**inputs)
        else:
            out = model(**inputs)
    rows = out.last_hidden_state[0]
    if "pixel_attention_mask" in inputs:
        rows = rows[inputs["pixel_attention_mask"][0].bool()]
    vector = out.image_embeds if getattr(out, "image_embeds", None) is not None else out.pooler_output
    return rows, vector[:1]


def write_reference(folder, images, tensors):
    folder.mkdir(exist_ok=True)
    if folder != images.parent and not (folder / "images").exists():
        shutil.copytree(images, folder / "images")
    stored = {f"{path.stem}.out.pooler_output": tensor.contiguous() for path, tensor in tensors.items()}
    save_file(stored, folder / "golden.safetensors")


def encode(fovea, folder, paths, *flags):
    """What the program makes of the images, in their order."""
    out = folder / "rows.safetensors"
    command = [fovea, "encode", str(folder), *map(str, paths), "--output", str(out), "--device", "cpu", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    stored = load_file(out)
    out.unlink()
    return [stored[f"item_{i}"] for i in range(len(paths))]


def difference(own, wanted):
    if own.shape != wanted.shape:
        sys.exit(f"rows {tuple(own.shape)}, transformers {tuple(wanted.shape)}")
    return float((own.double() - wanted.double()).norm() / wanted.double().norm())


def compare(name, make, processor, seed, args, root):
    folder = root / name
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    make_images(images)
    model = make().eval()
    randomize(model, seed)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    model = type(model).from_pretrained(folder).eval()
    paths = sorted(images.iterdir())
    wanted = {path: reference(model, processor, path) for path in paths}
    write_reference(folder, images, {path: rows for path, (rows, _) in wanted.items()})
    write_reference(root / f"{name}_vectors", images, {path: vector for path, (_, vector) in wanted.items()})

    rows = encode(args.fovea, folder, paths)
    vectors = encode(args.fovea, folder, paths, "--vectors")
    units = encode(args.fovea, folder, paths, "--vectors", "--normalize-vectors")
    worst = {"rows": 0.0, "vectors": 0.0, "unit": 0.0, "cosine": 0.0}
    for path, row, vector, unit in zip(paths, rows, vectors, units):
        of_rows, of_vector = wanted[path]
        of_unit = torch.nn.functional.normalize(of_vector)
        cosine = torch.nn.functional.cosine_similarity(vector.double(), of_vector.double())
        worst["rows"] = max(worst["rows"], difference(row, of_rows))
        worst["vectors"] = max(worst["vectors"], difference(vector, of_vector))
        worst["unit"] = max(worst["unit"], difference(unit, of_unit))
        worst["cosine"] = max(worst["cosine"], float(1 - cosine))
    print(f"{name:<22} {type(model).__name__:<30} " + "  ".join(f"{k} {v:.1e}" for k, v in worst.items()), flush=True)
    good = max(worst["rows"], worst["vectors"], worst["unit"]) <= ROWS_TOLERANCE
    return good and worst["cosine"] <= COSINE_TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fovea", help="the program")
    parser.add_argument("--keep", type=pathlib.Path, help="where the checkpoints and reference rows stay")
    parser.add_argument("--only", help="checkpoints whose name begins with this")
    args = parser.parse_args()

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}; cosine is its distance from 1")
    with tempfile.TemporaryDirectory() as scratch:
        root = args.keep or pathlib.Path(scratch)
        chosen = [(i, entry) for i, entry in enumerate(checkpoints()) if entry[0].startswith(args.only or "")]
        good = [compare(*entry, seed=i + 1, args=args, root=root) for i, entry in chosen]
    print("passed" if all(good) and good else f"failed: above {ROWS_TOLERANCE:g}, or cosine {COSINE_TOLERANCE:g}")
    return 0 if all(good) and good else 1


if __name__ == "__main__":
    sys.exit(main())
