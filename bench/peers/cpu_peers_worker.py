"""A resident peer of cpu_peers.py: loads one model, then times forwards for as long as it is asked.

A line on stdin is a number of forwards; the answer on stdout is a line of JSON with their milliseconds. The first
line, unasked, says how the rows differ from those of the module in f32. Libraries that print do so on stderr.
"""

import json
import os
import sys
import time

import numpy as np


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


LOADERS = {"openvino": load_openvino, "onnxruntime": load_onnxruntime, "inductor": load_inductor}


def time_forwards(forward, pixels, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        forward(pixels)
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def main():
    kind, path, threads, precision, reference = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what):
        print(json.dumps(what), file=answers, flush=True)

    forward, library = LOADERS[kind](path, int(threads), precision)
    data = np.load(reference)
    pixels, expected = data["pixels"], data["rows"]
    difference = np.linalg.norm(forward(pixels) - expected) / np.linalg.norm(expected)
    answer({"library": library, "relative_l2": float(difference)})
    for line in sys.stdin:
        answer(time_forwards(forward, pixels, int(line)))


if __name__ == "__main__":
    main()
