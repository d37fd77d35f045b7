#!/usr/bin/env python3
"""Times everything from JPEG bytes to rows in host memory on a GPU: the peer of `fovea bench mm-processor`.

Pillow decodes on all cores, the processor of transformers resizes and cuts patches on the CPU or the GPU, and the
tower of qwen3_vl_gpu.py runs as CUDA graphs of up to --chunk images, compiled first with --compile. Position weights
and rotary angles are computed beforehand, which a serving engine has to do for every image.

    python3 bench/peers/end_to_end_gpu.py bench/configs/qwen3_vl_30b_a3b/config.json --write images

Prints the median milliseconds of every stage per request. Stages follow one another, and rows go to pinned memory that
already exists. "to device" is the time until the rows are on the GPU. --write DIR also leaves the images there, with
files of requests for `fovea bench mm-processor --dataset-name jsonl`. With --device cpu the tower runs
eagerly, to try the script.
"""

import argparse
import io
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from PIL import Image
from torch.nn import functional as F

import qwen3_vl_gpu as peer
import torch_cpu

STAGES = ("decode", "process", "upload", "tower", "download")


def make_jpeg(seed, width, height):
    """An image with shapes and some noise, about as hard to decode as a photo."""
    random = torch.Generator().manual_seed(seed)
    shapes = torch.rand(1, 3, height // 32, width // 32, generator=random)
    smooth = F.interpolate(shapes, (height, width), mode="bicubic")[0]
    pixels = smooth * 255 + 4 * torch.randn(3, height, width, generator=random)
    image = Image.fromarray(pixels.clamp(0, 255).to(torch.uint8).permute(1, 2, 0).contiguous().numpy())
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    return file.getvalue()


def decode(jpeg):
    return Image.open(io.BytesIO(jpeg)).convert("RGB")


def make_processor(sizes):
    import transformers

    # Since transformers 5 the fast processor has the plain name.
    fast = "Qwen2VLImageProcessor" + ("Fast" if transformers.__version__.startswith("4.") else "")
    return getattr(transformers, fast)(
        patch_size=sizes.patch_side, merge_size=round(sizes.merge**0.5), temporal_patch_size=2,
        image_mean=[0.5] * 3, image_std=[0.5] * 3, size={"shortest_edge": 32 * 32, "longest_edge": 4096 * 4096})


class Encoder:
    """The tower on any number of equal images, one CUDA graph per chunk."""

    def __init__(self, sizes, patches, arguments):
        self.sizes, self.patches, self.arguments = sizes, patches, arguments
        self.tower = peer.make_tower(sizes, arguments.attention, arguments.device)
        if arguments.compile:
            self.tower = torch.compile(self.tower, dynamic=False)
        self.chunks = {}  # by number of images: static inputs, what runs them, where it leaves the rows

    def chunk(self, count):
        if count not in self.chunks:
            inputs = peer.make_inputs(self.sizes, count, self.patches, self.arguments.device)
            rows = []

            def call():
                rows[:] = [self.tower(*inputs)]

            run = peer.graphed(call) if self.arguments.device == "cuda" else call
            self.chunks[count] = inputs, run, rows  # the graph does not keep its inputs
        return self.chunks[count]

    def __call__(self, pixels):
        outputs = []
        for part in pixels.split(self.arguments.chunk * self.patches):
            inputs, run, rows = self.chunk(len(part) // self.patches)
            inputs[0].copy_(part)
            run()
            outputs.append(rows[0].clone())  # the next replay writes to the same memory
        return torch.cat(outputs)


def make_host_rows(count, processor, encoder, jpegs, arguments):
    """Memory for the rows of one request."""
    pixels = processor(images=[decode(jpegs[0])], return_tensors="pt")["pixel_values"]
    rows = encoder(pixels.to(arguments.device, torch.bfloat16))
    return torch.empty((count * len(rows), rows.shape[1]), dtype=rows.dtype, pin_memory=arguments.device == "cuda")


def time_request(jpegs, processor, encoder, host_rows, pool, arguments):
    """Milliseconds per stage of one request."""
    marks = [time.perf_counter()]

    def mark():
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        marks.append(time.perf_counter())

    images = list(pool.map(decode, jpegs))
    mark()
    pixels = processor(images=images, return_tensors="pt", device=arguments.processor_device)["pixel_values"]
    mark()
    pixels = pixels.to(arguments.device, torch.bfloat16)
    mark()
    rows = encoder(pixels)
    mark()
    host_rows.copy_(rows, non_blocking=True)
    mark()
    return [1e3 * (end - begin) for begin, end in zip(marks, marks[1:])]


def time_count(jpegs, processor, encoder, pool, arguments):
    """Medians over requests with all of `jpegs`."""
    host_rows = make_host_rows(len(jpegs), processor, encoder, jpegs, arguments)
    times = [time_request(jpegs, processor, encoder, host_rows, pool, arguments)
             for _ in range(arguments.warmups + arguments.repetitions)][arguments.warmups:]
    result = {stage: statistics.median(samples) for stage, samples in zip(STAGES, zip(*times))}
    result["to device"] = statistics.median(sum(stages[:-1]) for stages in times)
    result["total"] = statistics.median(map(sum, times))
    return result


def write_requests(folder, jpegs, counts):
    """Writes the images, and for each count a file with one request of that many."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{index:03}.jpg" for index in range(len(jpegs))]
    for name, jpeg in zip(names, jpegs):
        (folder / name).write_bytes(jpeg)
    for count in counts:
        (folder / f"requests_{count}.jsonl").write_text(json.dumps({"images": names[:count]}) + "\n",
                                                        encoding="utf-8")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config.json of a Qwen3-VL checkpoint")
    parser.add_argument("--counts", default="1,8,64", help="images per request, comma-separated")
    parser.add_argument("--size", default="1024x768", help="width x height, multiples of 32 pixels")
    parser.add_argument("--chunk", type=int, default=8, help="most images per run of the tower")
    parser.add_argument("--attention", choices=tuple(peer.ATTENTION), help="default: cudnn, on a CPU sdpa")
    parser.add_argument("--compile", action="store_true", help="torch.compile the tower, which is slow to start")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--processor-device", choices=("cuda", "cpu"), help="default: --device")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the decoder")
    parser.add_argument("--warmups", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--write", metavar="DIR", type=Path, help="leave images and requests there")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    arguments = parser.parse_args()
    arguments.processor_device = arguments.processor_device or arguments.device
    arguments.attention = arguments.attention or ("cudnn" if arguments.device == "cuda" else "sdpa")
    return arguments


@torch.inference_mode()
def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    sizes = torch_cpu.Sizes(arguments.config)
    width, height = map(int, arguments.size.split("x"))
    counts = [int(count) for count in arguments.counts.split(",")]
    jpegs = [make_jpeg(seed, width, height) for seed in range(max(counts))]
    if arguments.write:
        write_requests(arguments.write, jpegs, counts)

    processor = make_processor(sizes)
    encoder = Encoder(sizes, (width // sizes.patch_side) * (height // sizes.patch_side), arguments)
    results = {}
    print(f"torch {torch.__version__}, {arguments.attention}{', compiled' if arguments.compile else ''}, processor on "
          f"{arguments.processor_device}, {arguments.threads} decoder threads")
    print(f"{'images':>8}" + "".join(f"{name:>10}" for name in (*STAGES, "to device", "total")))
    with ThreadPoolExecutor(arguments.threads) as pool:
        for count in counts:
            results[count] = time_count(jpegs[:count], processor, encoder, pool, arguments)
            print(f"{count:>8}" + "".join(f"{ms:>10.3f}" for ms in results[count].values()), flush=True)
    if arguments.json:
        report = {"torch": torch.__version__, "size": arguments.size, "counts": results}
        Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
