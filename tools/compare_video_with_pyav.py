#!/usr/bin/env python3
"""Compares what Fovea makes of video files with what it makes of the frames that other readers decode from them.

    python3 tools/compare_video_with_pyav.py tests/golden/qwen3_vl --fovea build/release/apps/cli/fovea
    python3 tools/compare_video_with_pyav.py ./Qwen3-VL-2B-Instruct phone.mp4 cut.mkv

All frames are decoded by PyAV and by the ffmpeg program and written as PNG files, and `fovea encode` must give the same
rows, bit for bit, for the file itself and for these frames. Without files it makes short ones whose widths, heights,
ranges and colour matrices are awkward. Prints one line a file. Files must be so short that the model takes every frame.
At odd heights and of 10 bits PyAV and the ffmpeg program differ: there the exit status asks for the rows of the latter.
Needs the ffmpeg program, numpy, av, pillow and safetensors.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import av
import numpy as np
from PIL import Image
from safetensors import safe_open

PATTERN = "geq=r='128+127*sin(X/3+N)':g='128+127*cos(Y/2+X/7)':b='128+127*sin((X-Y)/4)'"
H264 = ["-c:v", "libx264", "-qp", "20"]
VP9 = ["-c:v", "libvpx-vp9", "-crf", "20", "-b:v", "0"]
TAGGED_709 = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]

# name: (size, conversion from RGB, encoder)
MADE = {
    **{f"limited_{width}x122.mp4": (f"{width}:122", "format=yuv420p", H264) for width in (160, 162, 164, 406, 426)},
    "full_162x122.mp4": ("162:122", "scale=out_range=full,format=yuv420p", [*H264, "-color_range", "pc"]),
    "bt709_164x122.mp4": ("164:122", "scale=out_color_matrix=bt709,format=yuv420p", [*H264, *TAGGED_709]),
    "limited_406x121.webm": ("406:121", "format=yuv420p", VP9),
    "bt709_163x120.webm": ("163:120", "scale=out_color_matrix=bt709,format=yuv420p", [*VP9, "-colorspace", "bt709"]),
    "full_163x121.avi": ("163:121", "format=yuvj420p", ["-c:v", "mjpeg", "-q:v", "4"]),
    "limited_422_162x122.mp4": ("162:122", "format=yuv422p", H264),
    "limited_444_162x122.mp4": ("162:122", "format=yuv444p", H264),
    "limited_10_bits_162x122.mp4": ("162:122", "format=yuv420p10le", H264),
}


def ffmpeg(*arguments):
    return subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, arguments)], check=True, capture_output=True).stdout


def make(path):
    size, conversion, encoder = MADE[path.name]
    filters = f"format=gbrp,{PATTERN},crop={size}:0:0:exact=1,{conversion}"
    ffmpeg("-f", "lavfi", "-i", "color=black:size=512x128:rate=10", "-frames:v", 4, "-vf", filters, *encoder, path)


def frames_of_pyav(path):
    """Upright RGB frames as [height, width, 3] bytes, and frames per second."""
    with av.open(str(path)) as container:
        rate = float(container.streams.video[0].average_rate)
        frames = container.decode(video=0)
        return [np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), frame.rotation // 90)) for frame in frames], rate


def frames_of_program(path, shape):
    raw = ffmpeg("-i", path, "-map", "0:v:0", "-f", "rawvideo", "-pix_fmt", "rgb24", "-vsync", "passthrough", "-")
    return list(np.frombuffer(raw, np.uint8).reshape(-1, *shape))


def rows_of(program, model, video, rate, workspace):
    output = workspace / "rows.safetensors"
    output.unlink(missing_ok=True)
    command = [program, "encode", model, "--video", str(video), "--fps", str(rate), "--device", "cpu", "--no-table"]
    run = subprocess.run([*command, "--output", str(output)], capture_output=True, text=True)
    if not output.exists():
        sys.exit(run.stderr.strip())
    with safe_open(output, "np") as file:
        return {name: file.get_tensor(name).tobytes() for name in file.keys()}


def rows_of_frames(program, model, frames, rate, workspace):
    with tempfile.TemporaryDirectory(dir=workspace) as folder:
        for index, frame in enumerate(frames):
            Image.fromarray(frame).save(pathlib.Path(folder) / f"{index:06d}.png", compress_level=1)
        return rows_of(program, model, folder, rate, workspace)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="directory of a checkpoint")
    parser.add_argument("videos", nargs="*", type=pathlib.Path)
    parser.add_argument("--fovea", default="fovea", help="the program (default: fovea on PATH)")
    args = parser.parse_args()

    failed = False
    with tempfile.TemporaryDirectory() as folder:
        workspace = pathlib.Path(folder)
        paths = args.videos or [workspace / name for name in MADE]
        for path in paths:
            if not args.videos:
                make(path)
            frames, rate = frames_of_pyav(path)
            rows = rows_of(args.fovea, args.model, path, rate, workspace)
            readers = {f"PyAV {av.__version__}": frames, "ffmpeg": frames_of_program(path, frames[0].shape)}
            same = {name: rows == rows_of_frames(args.fovea, args.model, of, rate, workspace) for name, of in readers.items()}
            words = [("as " if equal else "DIFFERENT from ") + name for name, equal in same.items()]
            print(f"{path.name}: {len(frames)} frames, {', '.join(words)}", flush=True)
            failed |= not same["ffmpeg"]
    sys.exit(failed)


if __name__ == "__main__":
    main()
