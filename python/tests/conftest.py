import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy
import pytest
from servers import served

import fovea_encoder as fovea

MODEL = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "qwen3_vl"
IMAGES = sorted(str(path) for path in (MODEL / "images").iterdir())
FRAMES = sorted(str(path) for path in (MODEL / "video_frames").iterdir())


def load_engine(**options):
    return fovea.Engine.from_pretrained(MODEL, device="cpu", threads=2, **options)


def read_safetensors(path):
    """Tensors by name; bfloat16 as its bits."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    types = {"F32": "f4", "BF16": "u2", "F16": "f2", "I64": "i8", "U8": "u1"}
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


@pytest.fixture(scope="session")
def engine():
    return load_engine()


@pytest.fixture(scope="session")
def program():
    """The program `fovea`: $FOVEA_PROGRAM, or the one that was installed with the package."""
    path = os.environ.get("FOVEA_PROGRAM") or shutil.which("fovea", path=os.path.dirname(sys.executable))
    assert path, "no program fovea beside Python: set FOVEA_PROGRAM"
    return path


@pytest.fixture(scope="session")
def program_rows(program, tmp_path_factory):
    """Rows that the program writes for the golden images in a dtype, in the order of IMAGES, then of
    the folder of frames."""
    cache = {}

    def rows(dtype):
        if dtype not in cache:
            output = tmp_path_factory.mktemp("program") / "rows.safetensors"
            command = [program, "encode", MODEL, *IMAGES, "--video", MODEL / "video_frames"]
            subprocess.run(
                [*command, "--dtype", dtype, "--device", "cpu", "-o", output],
                check=True,
                capture_output=True,
            )
            tensors = read_safetensors(output)
            cache[dtype] = [tensors[f"item_{i}"] for i in range(len(IMAGES) + 1)]
        return cache[dtype]

    return rows


@pytest.fixture(scope="session")
def server(program):
    """The URL of a running `fovea serve`."""
    with served(program, MODEL) as url:
        yield url


@pytest.fixture
def plugin(monkeypatch):
    """Fovea's plugin of vLLM, registered with stand-ins."""
    import vllm_stand_ins

    return vllm_stand_ins.install(monkeypatch)
