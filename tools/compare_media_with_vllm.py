#!/usr/bin/env python3
"""Compares what Fovea makes of image files with what the loaders of vLLM and transformers make of them.

    python3 tools/compare_media_with_vllm.py tests/golden/qwen3_vl --fovea build/release/apps/cli/fovea
    python3 tools/compare_media_with_vllm.py ./Qwen3-VL-2B-Instruct phone.jpg logo.png

For every media profile, the loader's pixels are written as plain RGB files, and `fovea encode` must give the same rows,
bit for bit, for the file itself and for these pixels. Without files it makes images of every kind of orientation and
transparency, and odd files of every format, of 96 x 64 pixels, which most models do not resize. A profile whose library is installed is compared with
the library's own loader, the others with the same calls of Pillow (tools/media_profiles.py); the output says which.
Needs numpy, pillow and safetensors.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import PIL
from PIL import Image
from safetensors import safe_open

import image_formats
import media_profiles


def library_loaders():
    """Of the libraries that are installed: profile: (name and version, function from a path to an RGB image)."""
    loaders = {}
    try:
        import vllm
        from vllm.multimodal.media.image import ImageMediaIO

        profile = "vllm" if tuple(map(int, vllm.__version__.split(".")[:2])) >= (0, 24) else "vllm-0.23"
        loaders[profile] = (f"ImageMediaIO of vLLM {vllm.__version__}", lambda path: ImageMediaIO().load_file(path).media)
    except ImportError as error:
        print(f"vLLM's loader cannot be imported ({error}): its profiles are compared with Pillow's calls")
    try:
        import transformers
        from transformers.image_utils import load_image

        loaders["transformers"] = (f"load_image of transformers {transformers.__version__}", lambda path: load_image(str(path)))
    except ImportError as error:
        print(f"load_image of transformers cannot be imported ({error}): its profile is compared with Pillow's calls")
    return loaders


def pillow_loader(profile):
    return f"Pillow {PIL.__version__}", lambda path: media_profiles.PROFILES[profile](Image.open(path))


def load_all(load, paths):
    """Pixels by path; without those of images that the loader refuses."""
    loaded = {}
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                Image.open(path).load()  # as in media_profiles.pixels
                loaded[path] = np.asarray(load(path))
            except Exception as error:  # whatever a loader raises is a refusal
                print(f"  {path.name}: refused by the loader: {str(error).splitlines()[0]}")
    return loaded


def rows_of(program, model, paths, workspace, *flags):
    """Bytes of the rows by path; without those of images that Fovea refuses."""
    output = workspace / "rows.safetensors"
    command = [program, "encode", model, *map(str, paths), "--device", "cpu", "--on-error", "skip", *flags]
    run = subprocess.run([*command, "--output", str(output)], capture_output=True, text=True)
    if not output.exists():
        sys.exit(run.stderr.strip())
    with safe_open(output, "np") as file:
        items = json.loads(file.metadata()["fovea.items"])
        names = set(file.keys())
        tensors = [f"item_{item['index']}" for item in items]
        return {path: file.get_tensor(name).tobytes() for path, name in zip(paths, tensors) if name in names}


def differences(program, model, profile, loaded, workspace):
    """Names of images whose rows are not those of the loader's pixels."""
    plain = {}
    for i, (path, pixels) in enumerate(loaded.items()):
        plain[path] = workspace / f"{profile}_{i}.png"
        Image.fromarray(pixels, "RGB").save(plain[path])
    rows = rows_of(program, model, list(loaded), workspace, "--media-profile", profile)
    expected = rows_of(program, model, list(plain.values()), workspace)
    return [path.name for path in loaded if path not in rows or rows[path] != expected[plain[path]]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="directory of a checkpoint")
    parser.add_argument("images", nargs="*", type=pathlib.Path)
    parser.add_argument("--fovea", default="fovea", help="the program (default: fovea on PATH)")
    args = parser.parse_args()

    loaders = library_loaders()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        workspace = pathlib.Path(folder)
        paths = args.images
        if not paths:
            made = dict(media_profiles.made_images(96, 64)) | dict(image_formats.made_images(96, 64))
            paths = [workspace / name for name in made]
            for path in paths:
                path.write_bytes(made[path.name])
        for profile in media_profiles.PROFILES:
            name, load = loaders.get(profile) or pillow_loader(profile)
            loaded = load_all(load, paths)
            different = differences(args.fovea, args.model, profile, loaded, workspace)
            print(f"{profile}: {len(loaded) - len(different)} of {len(loaded)} images as in {name}")
            for image in different:
                print(f"  {image}: DIFFERENT")
            failed |= bool(different)
    sys.exit(failed)


if __name__ == "__main__":
    main()
