#!/usr/bin/env python3
"""Times the towers of many models on one GPU, Fovea's beside those of transformers.

    python3 bench/peers/families_gpu.py build/release/apps/cli/fovea tests/configs/gemma-3-4b-it tests/configs/GLM-OCR

MODEL is a directory with config.json; weights are random, in bf16. A case is a number of equal images of --size, each
made into pixels by the processor of its side. Peers run with SDPA, eagerly and compiled whole for the shapes of the case
(torch.compile); all are compiled at the same time first, and then every model is timed alone, its peer and Fovea one
after the other. Peers begin with pixels on the GPU, Fovea with prepared bytes in host memory. A ratio above 1 says that
Fovea is faster than the faster of the peer's ways; "rows" are those of the whole case, and differing ones are marked.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def first_line(error):
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:140]}"


# ---- the peer, in a process of its own -----------------------------------------------------------------------------


def pictures(count, size):
    import numpy
    from PIL import Image

    width, height = map(int, size.split("x"))
    random = numpy.random.default_rng(0)
    return [Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=numpy.uint8)) for _ in range(count)]


def median_ms(call, seconds):
    import torch

    def finished():
        start = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start)

    for _ in range(3):
        first = finished()
    return statistics.median(finished() for _ in range(max(10, round(1e3 * seconds / first))))


@contextlib.contextmanager
def time_limit(seconds):
    """Raises TimeoutError in the main thread of the process."""
    def end(*_):
        raise TimeoutError(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def prepare_case(model, processor, folder, count, arguments):
    """The number of rows and the ways to run one case, compiled and run once."""
    import torch
    import transformers_tower as tower

    inputs = tower.processor_inputs(processor, folder, pictures(count, arguments.size))
    call = tower.features_call(model, inputs)
    case = {"rows": len(tower.rows(call())), "ways": {"eager": call}, "note": ""}
    if arguments.compile:
        try:
            with time_limit(arguments.compile_limit):
                compiled = torch.compile(call, dynamic=False)
                compiled()
            case["ways"]["compiled"] = compiled
        except Exception as error:
            case["note"] = f"compile: {first_line(error)}"
    return case


def prepare_cases(folder, arguments):
    import torch
    import transformers_tower as tower

    tower.quiet()
    model = tower.make_model(folder, torch.bfloat16, arguments.device)
    processor = tower.image_processor(folder)
    cases = {}
    for count in arguments.images:
        try:
            cases[count] = prepare_case(model, processor, folder, count, arguments)
        except Exception as error:
            cases[count] = {"rows": None, "ways": {}, "note": first_line(error)}
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return cases


def peer_main(pipe, model_folder, arguments):
    """Sends "ready" or what failed; on a message, times all cases and sends them."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    try:
        cases = prepare_cases(model_folder, arguments)
        pipe.send("ready")
        pipe.recv()
        for case in cases.values():
            case["ways"] = {name: median_ms(way, arguments.seconds) for name, way in case["ways"].items()}
        pipe.send(cases)
    except Exception as error:
        pipe.send(first_line(error))


class Peer:
    def __init__(self, model, arguments):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=peer_main, args=(other, model, arguments), daemon=True)
        self.process.start()
        other.close()

    def receive(self):
        try:
            return self.pipe.recv()
        except EOFError:
            return "ended without a word"

    def times(self):
        """The cases, or what failed. The process is gone after it."""
        state = self.state
        if state == "ready":
            self.pipe.send("go")
            state = self.receive()
        self.process.kill()
        self.process.join()
        return state

    def wait(self):
        self.state = self.receive()


# ---- Fovea ---------------------------------------------------------------------------------------------------------


def run_fovea(arguments, *words):
    done = subprocess.run([str(word) for word in (arguments.fovea, *words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:200])
    return done.stdout


def exact_budgets(model, count, arguments):
    """Flags for graphs of exactly the tokens that so many images have on each path, replayed whatever was measured."""
    plan = json.loads(run_fovea(arguments, "plan", model, "--sizes", arguments.size, "--json"))
    tokens = [sum(column) for column in zip(*(batch["tokens"] for batch in plan["batches"]))]
    budgets = {path: [count * number] for path, number in zip(plan["paths"], tokens)}
    return ["--token-budgets", json.dumps(budgets), "--max-items-per-batch", count, "--no-measure-graphs"]


def time_fovea(model, count, arguments):
    """The result of `fovea bench latency` for one case."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        run_fovea(arguments, "bench", "latency", model, "--load-format", "dummy", "--device", arguments.device,
                  "--sizes", ",".join([arguments.size] * count), "--repetitions", arguments.repetitions,
                  "--output-json", report, *exact_budgets(model, count, arguments))
        result, = json.loads(report.read_text(encoding="utf-8"))["results"]
        return result


# ---- the table -----------------------------------------------------------------------------------------------------


def time_model(model, peer, arguments):
    """One row of the table per case."""
    peers = peer.times() if peer else {}
    failed = peers if isinstance(peers, str) else ""
    rows = []
    for count in arguments.images:
        case = {} if failed else peers.get(count, {})
        row = {"model": model.name, "images": count, "rows": case.get("rows")}
        note = failed or case.get("note", "")
        try:
            own = time_fovea(model, count, arguments)
            row["fovea"] = {name: own[f"{name}_ms"]["median"] for name in ("eager", "replay") if own.get(f"{name}_ms")}
            row["raw"] = own
            if case.get("rows") and own["rows"] != case["rows"]:
                note += f"Fovea makes {own['rows']} rows"
        except RuntimeError as error:
            note += str(error)
        row |= {"peer": case.get("ways", {}), "note": note}
        rows.append(row)
    return rows


def cells(row):
    own, peer = row.get("fovea", {}), row["peer"]

    def ms(value):
        return f"{value:.2f}" if value is not None else "-"

    ratio = f"{min(peer.values()) / min(own.values()):.2f}" if own and peer else "-"
    flops = row.get("raw", {}).get("gflops_per_s")
    return [row["model"], str(row["images"]), str(row["rows"] or "-"), ms(peer.get("eager")), ms(peer.get("compiled")),
            ms(own.get("eager")), ms(own.get("replay")), ratio, f"{flops / 1e3:.0f}" if flops else "-", row["note"]]


def print_table(rows):
    head = ["model", "images", "rows", "transformers", "compiled", "fovea eager", "replay", "ratio", "TFLOP/s", ""]
    table = [head, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(cell.ljust(width) if i in (0, len(head) - 1) else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(line, widths))).rstrip())


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fovea", type=Path, help="the program")
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--images", default=[1, 4], type=lambda text: [int(word) for word in text.split(",")],
                        help="cases: images of each (default: 1,4)")
    parser.add_argument("--size", default="1024x768", metavar="WxH")
    parser.add_argument("--seconds", type=float, default=1, help="that each way of a peer runs for")
    parser.add_argument("--repetitions", type=int, default=20, help="of Fovea")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile-limit", type=int, default=240, metavar="SECONDS", help="for one case (default: 240)")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="peers only eagerly")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="Fovea alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    peers = [Peer(model, arguments) if arguments.peers else None for model in arguments.models]
    for model, peer in zip(arguments.models, peers):
        if peer:
            peer.wait()
            print(f"{model.name}: {peer.state}", file=sys.stderr, flush=True)
    rows = []
    for model, peer in zip(arguments.models, peers):
        rows += time_model(model, peer, arguments)
        print("  ".join(cells(rows[-1])), file=sys.stderr, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print_table(rows)


if __name__ == "__main__":
    main()
