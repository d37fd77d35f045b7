"""A resident peer of cpu_peers.py: loads one model, then times forwards for as long as it is asked.

A line on stdin is a number of forwards; the answer on stdout is a line of JSON with their milliseconds. The first
line, unasked, says how the rows differ from those of the module in f32, if they can be compared. Libraries that print
do so on stderr.
"""

import ctypes
import functools
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np

CHANNELS, FRAMES, MERGE = 3, 2, 4  # of an image; of a patch; patches of a row: what llama.cpp has fixed


def load_openvino(path, threads, precision):
    import openvino

    hints = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads}
    if precision != "default":
        hints["INFERENCE_PRECISION_HINT"] = precision
    model = openvino.Core().compile_model(path, "CPU", hints)
    request = model.create_infer_request()

    def forward(pixels):
        return request.infer([pixels], share_inputs=True, share_outputs=True)[0]

    used = model.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    return forward, f"openvino {openvino.__version__}, precision {used}"


def load_onnxruntime(path, threads, _):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.force_spinning_stop", "1")  # idle peers must not take time from others
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda pixels: session.run(None, {"pixels": pixels})[0], f"onnxruntime {onnxruntime.__version__}"


def load_inductor(path, threads, _):
    import torch

    torch.set_num_threads(threads)
    tower = torch._inductor.aoti_load_package(path)
    return lambda pixels: tower(torch.from_numpy(pixels)).numpy(), f"torch {torch.__version__}, inductor"


# llama.cpp, through its C interface. Structures are those of llama.h and mtmd.h in version 0.5, as far as fields are
# set here; the rest is room for the others.

class Pointer(ctypes.c_void_p):
    """Functions return it as it is; of c_void_p ctypes would make a number, and pass that on as an int."""


class LlamaModelParams(ctypes.Structure):
    _fields_ = [("first_pointers", ctypes.c_void_p * 2), ("integers", ctypes.c_int32 * 5),
                ("pointers", ctypes.c_void_p * 4), ("vocab_only", ctypes.c_bool), ("rest", ctypes.c_byte * 256)]


class MtmdContextParams(ctypes.Structure):
    _fields_ = [("use_gpu", ctypes.c_bool), ("device", ctypes.c_void_p), ("print_timings", ctypes.c_bool),
                ("n_threads", ctypes.c_int), ("image_marker", ctypes.c_void_p), ("media_marker", ctypes.c_void_p),
                ("flash_attn_type", ctypes.c_int), ("warmup", ctypes.c_bool), ("rest", ctypes.c_byte * 256)]


class MtmdInputText(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("text_len", ctypes.c_size_t), ("flags", ctypes.c_bool * 2)]


RESULTS = {
    "ggml_version": ctypes.c_char_p,
    "llama_model_default_params": LlamaModelParams,
    "llama_model_load_from_file": Pointer,
    "mtmd_bitmap_init": Pointer,
    "mtmd_context_params_default": MtmdContextParams,
    "mtmd_default_marker": Pointer,
    "mtmd_init_from_file": Pointer,
    "mtmd_input_chunk_get_n_tokens": ctypes.c_size_t,
    "mtmd_input_chunks_get": Pointer,
    "mtmd_input_chunks_init": Pointer,
}  # others return int


def open_llamacpp(folder):
    library = ctypes.CDLL(str(Path(folder).resolve() / "libmtmd.so"))
    for name, result in RESULTS.items():
        getattr(library, name).restype = result
    return library


def llamacpp_context(library, path, threads):
    """The tower of a file, for `threads`, with flash attention. Images need a vocabulary for the tokens beside them."""
    model = library.llama_model_default_params()
    model.vocab_only = True
    vocabulary = library.llama_model_load_from_file(os.fsencode(Path(path).with_name("vocabulary.gguf")), model)
    params = library.mtmd_context_params_default()
    if params.media_marker != library.mtmd_default_marker().value:
        raise RuntimeError("mtmd_context_params: expected the fields of llama.cpp 0.5, got those of another version")
    params.use_gpu, params.n_threads, params.flash_attn_type, params.warmup = False, threads, 1, False
    context = library.mtmd_init_from_file(os.fsencode(path), vocabulary, params) if vocabulary else None
    if not context:
        raise RuntimeError(f"{path}: llama.cpp does not load it")
    return context


def llamacpp_image(library, context, patches, width):
    """A square image of `patches` of `width` numbers each, in f32 and ready to be encoded."""
    side = math.isqrt(patches) * math.isqrt(width // (CHANNELS * FRAMES))
    pixels = np.random.default_rng(1).integers(0, 256, (side, side, CHANNELS), np.uint8)
    bitmap = library.mtmd_bitmap_init(side, side, pixels.tobytes())
    marker = library.mtmd_default_marker()
    text = MtmdInputText(marker, len(ctypes.string_at(marker)))
    chunks = library.mtmd_input_chunks_init()
    failure = library.mtmd_tokenize(context, chunks, ctypes.byref(text), ctypes.byref(bitmap), ctypes.c_size_t(1))
    image = library.mtmd_input_chunks_get(chunks, ctypes.c_size_t(1))  # between the tokens of its ends
    rows = 0 if failure else library.mtmd_input_chunk_get_n_tokens(image)
    if rows * MERGE != patches:
        raise RuntimeError(f"llama.cpp: expected {patches // MERGE} rows of {patches} patches in a square, got {rows}")
    return image


def load_llamacpp(path, threads, libraries):
    library = open_llamacpp(libraries)
    context = llamacpp_context(library, path, threads)
    image = functools.cache(functools.partial(llamacpp_image, library, context))

    def forward(pixels):
        """Of an image of its own. Returns nothing: positions and angles are not those of the other peers."""
        if library.mtmd_encode_chunk(context, image(*pixels.shape)) != 0:
            raise RuntimeError("llama.cpp: mtmd_encode_chunk failed")

    return forward, f"llama.cpp, ggml {library.ggml_version().decode()}"


LOADERS = {"openvino": load_openvino, "onnxruntime": load_onnxruntime, "inductor": load_inductor,
           "llamacpp": load_llamacpp}


def time_forwards(forward, pixels, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        forward(pixels)
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def main():
    kind, path, threads, option, reference = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what):
        print(json.dumps(what), file=answers, flush=True)

    forward, library = LOADERS[kind](path, int(threads), option)
    data = np.load(reference)
    pixels, expected = data["pixels"], data["rows"]
    facts, rows = {"library": library}, forward(pixels)
    if rows is not None:
        facts["relative_l2"] = float(np.linalg.norm(rows - expected) / np.linalg.norm(expected))
    answer(facts)
    for line in sys.stdin:
        answer(time_forwards(forward, pixels, int(line)))


if __name__ == "__main__":
    main()
