#!/usr/bin/env python3
"""Makes the short videos of tests/media/golden_videos, and frames.json: what PyAV reads of them.

    python3 tools/golden_videos.py tests/media/golden_videos
    python3 tools/golden_videos.py tests/media/golden_videos --keep    # reads the files that are there

Codecs, containers, widths that are no multiple of 8, odd heights, ranges, matrices, B-frames, an edit list and a display
matrix. Of each frame frames.json holds the SHA-256 of its upright RGB bytes. PyAV interpolates chroma bicubically here, as
the ffmpeg program does and as PyAV does by itself at even heights; the script checks both. Needs the ffmpeg program with
x264, x265, libvpx and libtheora, numpy and av.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess

import av
import numpy as np

PATTERN = "geq=r='128+127*sin(X/9+N)':g='128+127*cos(Y/7+X/17)':b='128+127*sin((X-Y)/11-N/3)'"
RATE = 10
B_FRAMES = ["-g", 6, "-bf", 2]
H264 = ["-c:v", "libx264", "-qp", 26, "-threads", 1, *B_FRAMES]
H265 = ["-c:v", "libx265", "-x265-params", "log-level=error:pools=1:frame-threads=1:keyint=6:bframes=2:qp=28", "-tag:v", "hvc1"]
VP9 = ["-c:v", "libvpx-vp9", "-crf", 36, "-b:v", 0, "-threads", 1, "-g", 6]
MPEG4 = ["-c:v", "mpeg4", "-q:v", 5, "-threads", 1]
MJPEG = ["-c:v", "mjpeg", "-q:v", 8, "-threads", 1]
THEORA = ["-c:v", "libtheora", "-q:v", 6, "-g", 4]
TAGGED_709 = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]
MATRIX_709 = "scale=out_color_matrix=bt709,format=yuv420p"

# name: (width, height, frames, conversion from RGB, encoder)
MADE = {
    "h264_b_frames_162x122.mp4": (162, 122, 12, "format=yuv420p", H264),
    "h264_full_164x122.mov": (164, 122, 8, "scale=out_range=full,format=yuv420p", [*H264, "-color_range", "pc"]),
    "h264_bt709_406x122.mkv": (406, 122, 6, MATRIX_709, [*H264, *TAGGED_709]),
    "h264_422_426x122.mp4": (426, 122, 6, "format=yuv422p", H264),
    "h264_444_163x121.mkv": (163, 121, 6, "format=yuv444p", H264),
    "h264_164x122.ts": (164, 122, 12, "format=yuv420p", H264),
    "h265_b_frames_162x122.mp4": (162, 122, 12, "format=yuv420p", H265),
    "h265_bt709_full_426x120.mkv": (426, 120, 6, "scale=out_color_matrix=bt709:out_range=full,format=yuv420p",
                                    [*H265, *TAGGED_709, "-color_range", "pc"]),
    "vp9_406x121.webm": (406, 121, 6, "format=yuv420p", VP9),
    "vp9_bt709_163x120.webm": (163, 120, 8, MATRIX_709, [*VP9, "-colorspace", "bt709"]),
    "mpeg4_b_frames_162x122.avi": (162, 122, 12, "format=yuv420p", [*MPEG4, *B_FRAMES]),
    "mpeg4_164x122.mp4": (164, 122, 8, "format=yuv420p", MPEG4),
    "mjpeg_full_163x121.avi": (163, 121, 6, "format=yuvj420p", MJPEG),
    "mjpeg_426x122.mov": (426, 122, 6, "format=yuvj422p", MJPEG),
    "theora_164x122.ogv": (164, 122, 8, "format=yuv420p", THEORA),
}  # fmt: skip

# name: (file that it is made of, options before and after it)
DERIVED = {
    "h264_cut_162x122.mp4": ("h264_b_frames_162x122.mp4", ["-ss", "0.25"], ["-c", "copy"]),
    "h264_rotated_122x162.mp4": ("h264_b_frames_162x122.mp4", [], ["-c", "copy", "-metadata:s:v", "rotate=90"]),
}


def ffmpeg(*arguments):
    return subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, arguments)], check=True, capture_output=True).stdout


def make(path, width, height, frames, conversion, encoder):
    filters = f"format=gbrp,{PATTERN},crop={width}:{height}:0:0:exact=1,{conversion}"
    source = ["-f", "lavfi", "-i", f"color=black:size=512x128:rate={RATE}"]
    ffmpeg(*source, "-frames:v", frames, "-vf", filters, *encoder, "-fflags", "+bitexact", "-flags:v", "+bitexact", path)


def make_all(folder):
    for name, recipe in MADE.items():
        make(folder / name, *recipe)
    for name, (source, before, after) in DERIVED.items():
        ffmpeg(*before, "-i", folder / source, *after, "-fflags", "+bitexact", folder / name)


def upright(frame, **how):
    return np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24", **how), frame.rotation // 90))


def frames_of(path):
    """Upright RGB frames as [height, width, 3] bytes, and frames per second."""
    frames = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        for frame in container.decode(stream):
            frames.append(upright(frame, interpolation="BICUBIC"))
            same = np.array_equal(frames[-1], upright(frame))
            assert same or frame.height % 2 == 1, f"{path}: PyAV's own conversion differs at an even height"
        return frames, float(stream.average_rate or stream.guessed_rate)


def check_with_program(path, frames):
    raw = ffmpeg("-i", path, "-map", "0:v:0", "-f", "rawvideo", "-pix_fmt", "rgb24", "-vsync", "passthrough", "-")
    assert raw == b"".join(frame.tobytes() for frame in frames), f"{path}: the ffmpeg program reads other frames than PyAV"


def describe(path):
    frames, rate = frames_of(path)
    check_with_program(path, frames)
    height, width, _ = frames[0].shape
    hashes = [hashlib.sha256(frame.tobytes()).hexdigest() for frame in frames]
    return {"width": width, "height": height, "fps": rate, "frames": hashes}


def versions():
    program = ffmpeg("-version").decode().split()[2]
    libraries = {name: ".".join(map(str, av.library_versions[name])) for name in ("libavcodec", "libswscale")}
    return {"av": av.__version__, **libraries, "ffmpeg": program}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="make no files, only frames.json")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if not args.keep:
        make_all(args.folder)
    files = {name: describe(args.folder / name) for name in sorted([*MADE, *DERIVED])}
    contents = {"read_by": versions(), "files": files}
    (args.folder / "frames.json").write_text(json.dumps(contents, indent=1) + "\n")
    for name, file in files.items():
        print(f"{name}: {len(file['frames'])} frames of {file['width']}x{file['height']} at {file['fps']:g}")


if __name__ == "__main__":
    main()
