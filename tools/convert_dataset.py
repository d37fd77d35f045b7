#!/usr/bin/env python3
"""Writes requests of a data set of the Hugging Face hub as files that `fovea bench mm-processor` reads.

    hf download lmarena-ai/VisionArena-Chat --repo-type dataset
    python3 tools/convert_dataset.py lmarena-ai/VisionArena-Chat --num-prompts 3000 --num-warmups 300 --seed 42
    fovea bench mm-processor MODEL --dataset-name hf --dataset-path lmarena-ai/VisionArena-Chat \\
        --num-prompts 3000 --num-warmups 300 --seed 42

Requests are those of `vllm bench mm-processor`: the rows of the data set, streamed and shuffled by `datasets` with
the seed, one image each (the first of the column `images`, or the column `image`), drawn again with the same seed if
there are too few. Warm-ups come from the next seed. As in vLLM, every image becomes a JPEG file of Pillow's default
quality, transparent ones over white. Rows with less than two turns in the column `conversations` are left out; the
limits that vLLM puts on the tokens of these conversations need a tokenizer and are not applied.

NAME is read from the cache of the hub, or with --stream from the hub itself, which downloads no more than it needs; a
directory with parquet files will do, too. Needs the packages datasets and Pillow. The files go below
$XDG_CACHE_HOME/fovea/datasets or ~/.cache/fovea/datasets, where the program looks for them.
Source: vllm-project/vllm, vllm/benchmarks/datasets/huggingface.py and utils.py (commit 237145ea190a).
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import sys

import datasets
import huggingface_hub
from PIL import Image


def cache_folder():
    """As user_cache_dir() of the program, plus "datasets"."""
    for variable, below in (("XDG_CACHE_HOME", "fovea"), ("HOME", ".cache/fovea")):
        if os.environ.get(variable, "").startswith("/"):
            return pathlib.Path(os.environ[variable]) / below / "datasets"
    sys.exit("convert_dataset.py: expected XDG_CACHE_HOME or HOME, or --output DIR")


def snapshot(name):
    """Directory of the data set: a path as it is, a name in the cache of the hub."""
    if pathlib.Path(name).is_dir():
        return name
    try:
        return huggingface_hub.snapshot_download(name, repo_type="dataset", local_files_only=True)
    except huggingface_hub.errors.LocalEntryNotFoundError:
        sys.exit(f"convert_dataset.py: {name} is not in the cache of the hub; run\n"
                 f"  hf download {name} --repo-type dataset\n"
                 "or add --stream, which reads no more than it needs from the hub")


def images_of(rows):
    for row in rows:
        if "conversations" in row and len(row["conversations"]) < 2:
            continue
        image = row["images"][0] if row.get("images") else row.get("image")
        if image is not None:
            yield image


def to_rgb(image):
    if image.mode == "RGB":
        return image
    if image.mode == "RGBA":
        white = Image.new("RGB", image.size, (255, 255, 255))
        white.paste(image, mask=image.getchannel("A"))
        return white
    return image.convert("RGB")


def write_requests(rows, count, seed, folder):
    """seed-<seed>.jsonl with `count` lines, and the images beside it."""
    images = folder / f"seed-{seed}"
    shutil.rmtree(images, ignore_errors=True)
    images.mkdir(parents=True)
    requests = []
    for index, image in enumerate(itertools.islice(images_of(rows.shuffle(seed=seed)), count)):
        to_rgb(image).save(images / f"{index:06}.jpg", format="JPEG")
        requests.append({"image": f"seed-{seed}/{index:06}.jpg"})
    if not requests:
        sys.exit("convert_dataset.py: no row has an image in the columns `images` or `image`")
    if len(requests) < count:
        print(f"{len(requests)} rows have images, {count - len(requests)} requests repeat one", file=sys.stderr)
        random.seed(seed)
        requests += random.choices(requests, k=count - len(requests))
    file = folder / f"seed-{seed}.jsonl"
    partial = file.with_suffix(".partial")
    partial.write_text("".join(json.dumps(request) + "\n" for request in requests))
    partial.rename(file)
    print(f"{file}: {len(requests)} requests")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME", help="org/name on the hub, or a directory")
    parser.add_argument("--num-prompts", type=int, default=10)
    parser.add_argument("--num-warmups", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hf-subset", help="configuration of the data set")
    parser.add_argument("--hf-split", default="train")
    parser.add_argument("--hf-name", help="org/name under which a directory is looked for")
    parser.add_argument("--stream", action="store_true", help="read from the hub, not from its cache")
    parser.add_argument("--output", type=pathlib.Path, metavar="DIR", help="instead of the cache of the program")
    args = parser.parse_args()

    source = args.name if args.stream else snapshot(args.name)
    rows = datasets.load_dataset(source, name=args.hf_subset, split=args.hf_split, streaming=True)
    part = f"{args.hf_subset}--{args.hf_split}" if args.hf_subset else args.hf_split
    name = (args.hf_name or args.name).strip("/").replace("/", "--")
    folder = args.output or cache_folder() / name / part
    for count, seed in ((args.num_prompts, args.seed), (args.num_warmups, args.seed + 1)):
        if count > 0:
            write_requests(rows, count, seed, folder)


if __name__ == "__main__":
    main()
