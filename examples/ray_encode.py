#!/usr/bin/env python3
"""Encodes a folder of images, or a list of images and videos, on a Ray cluster, or on this machine where there is none.

    python3 examples/ray_encode.py Qwen3-VL-8B-Instruct photos rows.parquet --actors 8 --gpus 1
    python3 examples/ray_encode.py Qwen3-VL-8B-Instruct photos list.parquet --shards rows --actors 8 --gpus 1

    python3 examples/ray_encode.py Qwen3-VL-8B-Instruct @list.txt list.parquet --shards rows --actors 8 --gpus 1

The first writes Parquet files with the rows; the second writes the rows into safetensors files in the folder
`rows`, and Parquet files that say where they are, which is what to do with more than 100 GB of rows. The third takes a
list of `fovea encode`, whose lines are paths, or JSON objects that name an image or a video with options of its own
(docs/shards.md). Model, images and outputs are paths that all nodes can read. Needs pip install '.[ray]'.
"""

import argparse
import os

import ray

from fovea_encoder.integrations.ray import EncodeBatch, EncodeShards, read_list


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a checkpoint")
    parser.add_argument("images", help="folder of images, with its subfolders, or @list of images and videos")
    parser.add_argument("output", help="folder for Parquet files")
    parser.add_argument("--shards", help="folder for safetensors files; Parquet then holds where rows are")
    parser.add_argument("--actors", type=int, default=1, help="engines (default: 1)")
    parser.add_argument("--cpus", type=int, default=1, help="threads of each (default: 1)")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of each (default: 0, on the CPU)")
    parser.add_argument("--batch-size", type=int, default=64, help="images of a task (default: 64)")
    args = parser.parse_args()

    arguments = {"model": os.path.abspath(args.model)}
    if args.shards:
        arguments["output"] = os.path.abspath(args.shards)
    if args.images.startswith("@"):
        data = read_list(args.images[1:])
        arguments.update(column="path", modality_column="type", options_column="options", fps_column="fps")
    else:
        data = ray.data.read_binary_files(args.images, include_paths=True)  # bytes travel, not pixels
    data = data.map_batches(
        EncodeShards if args.shards else EncodeBatch,
        fn_constructor_kwargs=arguments,
        batch_format="pyarrow",
        batch_size=args.batch_size,
        num_cpus=args.cpus,
        num_gpus=args.gpus,
        compute=ray.data.ActorPoolStrategy(size=args.actors),
    )
    data.write_parquet(os.path.abspath(args.output))


if __name__ == "__main__":
    main()
