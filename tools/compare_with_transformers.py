#!/usr/bin/env python3
"""Compares the rows of the Python package with those of transformers, for any checkpoint that both load.

    python3 tools/compare_with_transformers.py ./Qwen3-VL-2B-Instruct photo.jpg scan.png
    python3 tools/compare_with_transformers.py tests/golden/qwen3_vl
    python3 tools/compare_with_transformers.py tests/golden/* --random-options 20

Of several checkpoints, those that the two do not load are named. With --random-options, each is
compared that many times, with an image of random size and random options of the item
(mm_processor_kwargs), those that `fovea inspect` lists; values that Fovea refuses by name are no failure. --random-videos does so with short lossless videos, which needs PyAV. Without images it makes three. Both read the files, resize them, and run the tower on the CPU in f32. Prints the
relative L2 difference per image, and fails if one is above --tolerance. Needs the package fovea-encoder (python/README.md),
torch, transformers and pillow; fits towers whose transformers model has get_image_features.
"""

import argparse
import inspect
import json
import pathlib
import random
import sys
import tempfile

import torch
import transformers
from PIL import Image

import fovea_encoder as fovea

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


class NotComparable(Exception):
    """Transformers has no tower for a checkpoint."""


def load_model(folder):
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
    except ValueError as unknown:
        raise NotComparable(str(unknown).splitlines()[0]) from unknown
    family = getattr(transformers, config.architectures[0], None)
    if family is None or not hasattr(family, "get_image_features"):
        raise NotComparable(f"transformers {transformers.__version__} has no vision tower for {config.architectures[0]}")
    return family.from_pretrained(folder, dtype=torch.float32).eval()


def joined(features):
    """[rows, width] of features that releases of transformers return whole, or cut by image."""
    return torch.cat(list(features)) if isinstance(features, (list, tuple)) else features.flatten(0, -2)


def arguments_of_whole(config):
    """What the processor of a whole model gives that of its images."""
    if config.model_type == "internvl":
        return {"crop_to_patches": True}
    if config.model_type == "mistral3":
        side = config.vision_config.patch_size * config.spatial_merge_size
        return {"patch_size": {"height": side, "width": side}}
    return {}


def reference_rows(model, processor, path, options):
    """Rows of one image, deepstack levels beside the main embedding, as Fovea writes them."""
    inputs = processor(
        images=[Image.open(path).convert("RGB")], return_tensors="pt", **arguments_of_whole(model.config), **options
    )
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


def pixel_range(rng):
    least = rng.randrange(1, 200) * 1024
    return least, least + rng.randrange(1, 400) * 1024


def random_size(rng, own):
    """A value for `size`, of the keys that the checkpoint's own has."""
    if "shortest_edge" in own:
        return dict(zip(("shortest_edge", "longest_edge"), pixel_range(rng)))
    if "longest_edge" in own:
        return {"longest_edge": rng.randrange(64, 900)}
    return {"height": rng.randrange(64, 900), "width": rng.randrange(64, 900)}


# Values of options by their names, and of options that go together. Each takes the generator and
# the processor of the checkpoint.
OPTIONS = {
    ("min_pixels", "max_pixels"): lambda rng, _: pixel_range(rng),
    ("size",): lambda rng, processor: (random_size(rng, dict(processor.size)),),
    ("max_num_patches",): lambda rng, _: (rng.choice([64, 100, 256, 400]),),
    ("min_patches", "max_patches"): lambda rng, _: (rng.randint(1, 2), rng.randint(2, 9)),
    ("max_patches", "resize_to_max_canvas"): lambda rng, _: (rng.randint(1, 9), rng.random() < 0.5),
    ("min_image_tokens", "max_image_tokens"): lambda rng, _: (rng.randint(1, 40), rng.randint(41, 400)),
    ("in_token_limit",): lambda rng, _: (rng.randrange(64, 2000),),
    ("do_pan_and_scan", "pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops", "pan_and_scan_min_ratio_to_activate"):
        lambda rng, _: (rng.random() < 0.8, rng.randrange(16, 200), rng.randint(2, 5), 1 + rng.random()),
    ("max_soft_tokens",): lambda rng, _: (rng.choice([70, 140, 280, 560]),),
    ("do_image_splitting",): lambda rng, _: (rng.random() < 0.5,),
    ("max_slice_nums",): lambda rng, _: (rng.randint(1, 9),),
    ("max_crops",): lambda rng, _: (rng.randint(1, 8),),
    ("dynamic_hd",): lambda rng, _: (rng.randint(1, 12),),
}


def random_options(rng, taken, processor):
    """One group of options that the model takes; {} if there is none."""
    groups = [names for names in OPTIONS if set(names) <= set(taken)]
    if not groups:
        return {}
    names = rng.choice(groups)
    return dict(zip(names, OPTIONS[names](rng, processor)))


def random_image(rng, folder, number):
    """Noise and structure in a random size."""
    width, height = (rng.randrange(40, 700) for _ in range(2))
    generator = torch.Generator().manual_seed(number)
    coarse = torch.rand(1, 3, max(2, height // 16), max(2, width // 16), generator=generator)
    image = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear")[0]
    path = folder / f"random_{number}_{width}x{height}.png"
    Image.fromarray((image * 255).to(torch.uint8).permute(1, 2, 0).numpy()).save(path)
    return path


def cases_of(engine, processor, args, scratch):
    """Paths with the options of each."""
    if args.random_options == 0:
        return [(path, {}) for path in args.images or made_images(scratch)]
    rng = random.Random(args.seed)
    taken = engine.item_options["image"]
    return [
        (random_image(rng, scratch, number), random_options(rng, taken, processor)) for number in range(args.random_options)
    ]


def video_options(rng, taken):
    """Options of a video, each alone: where to take frames, or how large they become."""
    least, most = pixel_range(rng)
    values = {
        "num_frames": {"num_frames": rng.randrange(2, 9)},
        "fps": {"fps": rng.choice([1, 3, 5])},
        "size": {"size": {"shortest_edge": least, "longest_edge": most * rng.randint(1, 8)}},
        "min_pixels": {"min_pixels": least, "max_pixels": most},
        "max_frames": {"min_frames": 2, "max_frames": rng.choice([4, 6])},
    }
    return rng.choice([value for name, value in values.items() if name in taken] or [{}])


VIDEO_FPS = 10


def random_video(rng, folder, number):
    """A container whose frames every decoder reads alike, and these frames."""
    import av
    import numpy

    count, width, height = rng.randrange(8, 40), rng.randrange(4, 16) * 16, rng.randrange(4, 16) * 16
    coarse = numpy.random.default_rng(number).integers(0, 255, (height // 8, width // 8, 3), dtype=numpy.uint8)
    image = coarse.repeat(8, 0).repeat(8, 1)
    frames = numpy.stack([numpy.roll(image, 3 * i, 1) for i in range(count)])
    path = folder / f"random_{number}_{count}x{width}x{height}.mkv"
    with av.open(path, "w") as container:
        stream = container.add_stream("ffv1", rate=VIDEO_FPS)
        stream.width, stream.height, stream.pix_fmt = width, height, "bgr0"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(numpy.ascontiguousarray(frame), format="rgb24")))
        container.mux(stream.encode(None))
    return path, torch.from_numpy(frames)


def reference_video_rows(model, processor, frames, options):
    count, height, width, _ = frames.shape
    metadata = transformers.video_utils.VideoMetadata(
        total_num_frames=count, fps=float(VIDEO_FPS), width=width, height=height, duration=count / VIDEO_FPS
    )
    rate = {"fps": None if "num_frames" in options else options.get("fps", 2.0)}
    inputs = processor(
        videos=[frames.permute(0, 3, 1, 2)], video_metadata=[metadata], do_sample_frames=True, return_tensors="pt",
        **{**options, **rate},
    )
    with torch.no_grad():
        out = model.get_video_features(inputs["pixel_values_videos"], inputs["video_grid_thw"])
    levels = [out.pooler_output, *(getattr(out, "deepstack_features", None) or ())]
    return torch.cat([joined(level) for level in levels], dim=1)


def compare_videos(folder, args, scratch):
    """As compare(), for random videos."""
    engine = fovea.Engine.from_pretrained(folder, device="cpu")
    model = load_model(folder)
    if not engine.item_options["video"]:
        raise NotComparable("videos of this model have no options")
    processor = transformers.AutoVideoProcessor.from_pretrained(folder)
    rng = random.Random(args.seed)
    worst = 0.0
    for number in range(args.random_videos):
        path, frames = random_video(rng, scratch, number)
        options = video_options(rng, engine.item_options["video"])
        (item,) = engine.encode(None, str(path), dtype="float32", mm_processor_kwargs=options)
        text, relative = difference(item.torch(), reference_video_rows(model, processor, frames, options))
        worst = max(worst, relative)
        print(f"{path.name:<26}  {len(item):>6} rows  {text}  {json.dumps(options)}")
    return worst


def difference(rows, reference):
    if rows.shape != reference.shape:
        return f"rows {tuple(rows.shape)}, transformers {tuple(reference.shape)}", float("inf")
    relative = float((rows.double() - reference.double()).norm() / reference.double().norm())
    return f"{relative:.2e}", relative


def compare(folder, args, scratch):
    """Prints a line for each case. Returns the largest difference."""
    engine = fovea.Engine.from_pretrained(folder, device="cpu")
    model = load_model(folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    print(f"{folder}: transformers {transformers.__version__}, {type(model).__name__}, {type(processor).__name__}")
    cases = cases_of(engine, processor, args, scratch)
    width = max(len(path.name) for path, _ in cases)
    worst = 0.0
    for path, options in cases:
        (item,) = engine.encode(path, dtype="float32", mm_processor_kwargs=options, on_error="record")
        try:
            reference = reference_rows(model, processor, path, options)
        except Exception as error:  # whatever the reference raises for an image that it does not take
            print(f"{path.name:<{width}}  transformers: {str(error).splitlines()[0][:80]}; fovea: {item.error}  {options}")
            continue
        if item.error is not None and options and "supported" in str(item.error):
            text, relative = f"refused: {item.error}", 0.0
        elif item.error is not None:
            text, relative = str(item.error), float("inf")
        else:
            text, relative = difference(item.torch(), reference)
        worst = max(worst, relative)
        print(f"{path.name:<{width}}  {len(item):>6} rows  {text}  {json.dumps(options) if options else ''}")
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=pathlib.Path, help="directories of checkpoints, and images")
    parser.add_argument("--random-options", type=int, default=0, metavar="N", help="random cases of each checkpoint")
    parser.add_argument("--random-videos", type=int, default=0, metavar="N", help="random videos of each checkpoint, instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    args = parser.parse_args()
    folders = [path for path in args.inputs if path.is_dir()]
    args.images = [path for path in args.inputs if not path.is_dir()]

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    worst, left_out = {}, {}
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                run = compare_videos if args.random_videos else compare
                worst[folder] = run(folder, args, pathlib.Path(scratch))
            except (fovea.Error, NotComparable, OSError) as error:
                left_out[folder] = str(error).splitlines()[0]
    for folder, why in left_out.items():
        print(f"not compared: {folder}: {why}")
    failed = [str(folder) for folder, difference in worst.items() if difference > args.tolerance]
    print(f"failed: above {args.tolerance:g}: {', '.join(failed)}" if failed else f"passed: {len(worst)} checkpoints")
    return 1 if failed or not worst else 0


if __name__ == "__main__":
    sys.exit(main())
