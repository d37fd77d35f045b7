#!/usr/bin/env python3
"""Times the vision tower of Qwen3-VL-2B on the CPU in Fovea and in OpenVINO, ONNX Runtime, PyTorch inductor and
llama.cpp, in turns.

    pip install torch safetensors openvino nncf onnx onnxruntime gguf llama-cpp-python
    python3 bench/peers/cpu_peers.py --work DIR --prepare
    python3 bench/peers/cpu_peers.py --work DIR --fovea build/release/apps/cli/fovea --output-json peers.json

One image, one forward, the same random weights for all. --prepare writes the model in the format of every peer to DIR,
some 24 GB; cpu_peers_models.py says how. What is there already stays, and a measurement writes what is missing. A
column whose package is not installed is named and left out, and so are those of llama.cpp without --llama-cpp FOLDER,
which holds its shared libraries, libmtmd.so among them: llama_cpp/lib of an installed llama-cpp-python, which pip
compiles, or bin of a build of llama.cpp.

For every number of threads and patches the peers are loaded and stay (cpu_peers_worker.py). Then every round asks all
columns in turn, the order reversed from round to round, for one untimed forward and some timed ones. The figure of a
turn is the median of its forwards; ratios are of turns in the same round. Fovea runs as `fovea bench latency
--enforce-eager`; its time includes cutting patches from bytes, positions and rotary angles, which the others have as
constants. llama.cpp too computes positions and angles, of an image of its own: its rows are not compared, its time
includes building the graph, and it rounds keys and values to f16 in both columns. The columns of OpenVINO without f32
in their name use the precision that it chooses itself, bf16 where the processor has it. Use --fifo on a machine with
other work: it runs all columns at real-time priority.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONFIG = HERE.parent / "configs" / "qwen3_vl_2b" / "config.json"
PAUSE = 0.2  # seconds between turns, for threads of the last one to fall asleep


@dataclass
class Column:
    kind: str  # of cpu_peers_worker.py, or fovea
    model: str = ""  # what prepare() writes
    packages: tuple = ()
    precision: str = "default"  # of openvino: what the library chooses on this processor
    flags: list = field(default_factory=list)  # of fovea


COLUMNS = {
    "fovea": Column("fovea"),
    "fovea_int8": Column("fovea", flags=["--quantization", "int8"]),
    "openvino_f32": Column("openvino", "openvino", ("openvino",), precision="f32"),
    "openvino_default": Column("openvino", "openvino", ("openvino",)),
    "openvino_int8_weights": Column("openvino", "openvino_weights", ("openvino", "nncf")),
    "openvino_int8": Column("openvino", "openvino_full", ("openvino", "nncf")),
    "onnxruntime_f32": Column("onnxruntime", "onnx", ("onnx", "onnxruntime")),
    "onnxruntime_int8": Column("onnxruntime", "onnx_int8", ("onnx", "onnxruntime")),
    "inductor_f32": Column("inductor", "inductor"),
    "llamacpp_f32": Column("llamacpp", "gguf_f32", ("gguf",)),
    "llamacpp_q8_0": Column("llamacpp", "gguf_q8_0", ("gguf",)),
}
FILES = {"openvino": "tower.xml", "onnxruntime": "tower.onnx", "inductor": "tower", "llamacpp": "tower.gguf"}


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", help="the program; without it only the peers are measured")
    parser.add_argument("--llama-cpp", type=Path, metavar="FOLDER",
                        help="shared libraries of llama.cpp; without it that is not measured")
    parser.add_argument("--work", type=Path, required=True, help="folder for models, kept between runs")
    parser.add_argument("--config", type=Path, default=CONFIG, help="config.json of a Qwen3-VL checkpoint")
    parser.add_argument("--columns", default=",".join(COLUMNS), help="default: all")
    parser.add_argument("--patches", type=numbers, default=[64, 256, 1024])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--rounds", type=numbers, default=[5, 4, 3], help="for each of --patches")
    parser.add_argument("--repetitions", type=numbers, default=[4, 2, 1], help="timed forwards of a turn, likewise")
    parser.add_argument("--fifo", action="store_true", help="real-time priority (chrt -f 10); needs the right to it")
    parser.add_argument("--prepare", action="store_true", help="only write the models")
    parser.add_argument("--output-json", type=Path)
    arguments = parser.parse_args()
    for name in ("rounds", "repetitions"):
        if len(getattr(arguments, name)) != len(arguments.patches):
            parser.error(f"--{name}: expected as many numbers as --patches has")
    if arguments.fovea and not shutil.which(arguments.fovea):
        parser.error(f"--fovea: no program {arguments.fovea}")
    if arguments.llama_cpp and not (arguments.llama_cpp / "libmtmd.so").exists():
        parser.error(f"--llama-cpp: no libmtmd.so in {arguments.llama_cpp}")
    missing = [package for package in ("numpy", "torch", "safetensors") if importlib.util.find_spec(package) is None]
    if missing:
        parser.error(f"writing the models needs {', '.join(missing)}")
    unknown = set(arguments.columns.split(",")) - set(COLUMNS)
    if unknown:
        parser.error(f"--columns: expected some of {','.join(COLUMNS)}, got {','.join(sorted(unknown))}")
    return arguments


def say(text):
    print(text, file=sys.stderr, flush=True)


def cpu_name():
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def usable_columns(arguments):
    columns = {}
    for name in arguments.columns.split(","):
        column = COLUMNS[name]
        missing = [package for package in column.packages if importlib.util.find_spec(package) is None]
        if column.kind == "fovea" and not arguments.fovea:
            missing.append("--fovea")
        if column.kind == "llamacpp" and not arguments.llama_cpp:
            missing.append("--llama-cpp")
        if missing:
            say(f"{name}: left out, no {', '.join(missing)}")
        else:
            columns[name] = column
    return columns


# Models.

def write_step(function, arguments):
    """The body of a process of its own, which gives its memory back."""
    import torch
    import cpu_peers_models

    torch.set_grad_enabled(False)
    getattr(cpu_peers_models, function)(*arguments)


def prepare_one(folder, function, *arguments):
    """Runs a function of cpu_peers_models that fills a folder, unless there is one; False if it fails."""
    if folder.exists():
        return True
    say(f"writing {folder}")
    begin = time.perf_counter()
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    process = multiprocessing.get_context("spawn").Process(target=write_step, args=(function, (*arguments, part)))
    process.start()
    process.join()
    if process.exitcode != 0:
        say(f"{folder}: not written, {function} ended with {process.exitcode}")
        return False
    part.rename(folder)
    say(f"  {time.perf_counter() - begin:.0f} s")
    return True


def model_folder(arguments, model, patches, threads):
    if model.startswith("gguf_"):
        return arguments.work / model  # for any number of patches
    return arguments.work / (f"{model}_{patches}" + (f"_{threads}" if model == "inductor" else ""))


def prepare(arguments, model, patches, threads):
    """Writes one model and those that it is made from; False if that fails."""
    folder = model_folder(arguments, model, patches, threads)
    if folder.exists():
        return True
    common = (str(arguments.config), patches)
    if model == "onnx_int8":
        source = model_folder(arguments, "onnx", patches, threads)
        return prepare(arguments, "onnx", patches, threads) and prepare_one(folder, "write_onnx_int8", source)
    if model in ("openvino_weights", "openvino_full"):
        source = model_folder(arguments, "openvino", patches, threads)
        mode = model.removeprefix("openvino_")
        return prepare(arguments, "openvino", patches, threads) and prepare_one(
            folder, "write_openvino_int8", mode, *common, source)
    if model == "inductor":
        return prepare_one(folder, "write_inductor", *common, threads)
    if model.startswith("gguf_"):
        return prepare_one(folder, "write_gguf", model.removeprefix("gguf_"), str(arguments.config))
    return prepare_one(folder, f"write_{model}", *common)


def prepare_all(arguments, columns):
    """Columns without those that cannot be prepared."""
    kept = dict(columns)
    if not prepare_one(arguments.work / "checkpoint", "write_checkpoint", str(arguments.config)):
        sys.exit("no checkpoint, nothing to measure")
    for patches in arguments.patches:
        if not prepare(arguments, "reference", patches, 0):
            sys.exit("no reference, nothing to measure")
        for threads in arguments.threads:
            for name, column in columns.items():
                if column.model and name in kept and not prepare(arguments, column.model, patches, threads):
                    say(f"{name}: left out")
                    del kept[name]
    return kept


# Turns.

class Resident:
    """A peer in a process of its own."""

    def __init__(self, name, column, arguments, patches, threads):
        path = model_folder(arguments, column.model, patches, threads) / FILES[column.kind]
        reference = model_folder(arguments, "reference", patches, 0) / "rows.npz"
        option = str(arguments.llama_cpp) if column.kind == "llamacpp" else column.precision
        command = [sys.executable, str(HERE / "cpu_peers_worker.py"), column.kind, str(path), str(threads), option,
                   str(reference)]
        self.name = name
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)})
        self.facts = {}

    def await_load(self):
        self.facts = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise RuntimeError(f"{self.name} ended: {self.errors.read()[-2000:].decode(errors='replace')}")
        return json.loads(line)

    def turn(self, repetitions):
        print(1 + repetitions, file=self.process.stdin, flush=True)
        return self.answer()[1:]

    def close(self):
        self.process.kill()
        self.process.wait()


class Fovea:
    """The program, started anew for every turn."""

    def __init__(self, name, column, arguments, patches, threads):
        self.facts = {}  # known after the first turn
        self.json = arguments.work / f"{name}.json"
        self.command = [
            arguments.fovea, "bench", "latency", str(arguments.work / "checkpoint"), "--device", "cpu", "--quiet",
            "--enforce-eager", "--patches", str(patches), "--threads", str(threads), "--warmups", "1",
            "--output-json", str(self.json), *column.flags]

    def turn(self, repetitions):
        result = subprocess.run([*self.command, "--repetitions", str(repetitions)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(self.command)} ended with {result.returncode}: {result.stdout}")
        report = json.loads(self.json.read_text(encoding="utf-8"))
        self.facts = {"library": f"fovea {report['fovea_version']}, {report['device']}"}
        return [report["results"][0]["eager_ms"]["median"]]

    def await_load(self):
        pass

    def close(self):
        self.json.unlink(missing_ok=True)


def start(columns, arguments, patches, threads):
    """Loads all at once; those that fail are named and left out."""
    runners = {name: (Fovea if column.kind == "fovea" else Resident)(name, column, arguments, patches, threads)
               for name, column in columns.items()}
    for name in list(runners):
        try:
            runners[name].await_load()
        except RuntimeError as error:
            say(f"{error}\n{name}: left out")
            runners.pop(name).close()
    return runners


def ratios(turns, base):
    if base not in turns:
        return {}
    result = {}
    for name, times in turns.items():
        values = [time / ours for time, ours in zip(times, turns[base])]
        result[name] = [statistics.median(values), min(values), max(values)]
    return result


def measure_cell(columns, arguments, patches, threads, rounds, repetitions):
    begin = time.perf_counter()
    runners = start(columns, arguments, patches, threads)
    loaded = time.perf_counter() - begin
    turns = {name: [] for name in runners}
    try:
        for number in range(rounds):
            for name in list(runners)[::1 if number % 2 == 0 else -1]:
                try:
                    turns[name].append(statistics.median(runners[name].turn(repetitions)))
                except (OSError, RuntimeError) as error:
                    say(f"{error}\n{name}: left out")
                    runners.pop(name).close()
                    del turns[name]
                time.sleep(PAUSE)
    finally:
        for runner in runners.values():
            runner.close()
    bases = {base: ratios(turns, base) for base in ("fovea", "fovea_int8")}
    return {"threads": threads, "patches": patches, "rounds": rounds, "repetitions": repetitions,
            "load_s": loaded, "seconds": time.perf_counter() - begin,
            "columns": {name: {"median_ms": statistics.median(turns[name]), "turns_ms": turns[name],
                               **{f"ratio_to_{base}": values[name] for base, values in bases.items() if values},
                               **runners[name].facts} for name in runners}}


def print_cell(cell):
    def ratio(entry, base):
        values = entry.get(f"ratio_to_{base}")
        return "{:.2f} ({:.2f} - {:.2f})".format(*values) if values else "-"

    print(f"\n{cell['threads']} thread{'s' * (cell['threads'] > 1)}, {cell['patches']} patches: "
          f"{cell['rounds']} rounds of {cell['repetitions']}, {cell['seconds']:.0f} s, loading {cell['load_s']:.0f} s")
    print(f"{'':22} {'median ms':>10} {'min':>9} {'max':>9} {'/ Fovea f32':>20} {'/ Fovea int8':>20} {'rel. L2':>8}")
    for name, entry in cell["columns"].items():
        turns, error = entry["turns_ms"], entry.get("relative_l2")
        print(f"{name:22} {entry['median_ms']:10.1f} {min(turns):9.1f} {max(turns):9.1f} "
              f"{ratio(entry, 'fovea'):>20} {ratio(entry, 'fovea_int8'):>20} "
              f"{'-' if error is None else format(error, '.1e'):>8}", flush=True)


def main():
    arguments = parse_arguments()
    columns = prepare_all(arguments, usable_columns(arguments))
    if arguments.prepare:
        return
    if arguments.fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    begin = time.perf_counter()
    cells = []
    for threads in arguments.threads:
        for patches, rounds, repetitions in zip(arguments.patches, arguments.rounds, arguments.repetitions):
            cells.append(measure_cell(columns, arguments, patches, threads, rounds, repetitions))
            print_cell(cells[-1])
            if arguments.output_json:  # after every cell: a run that is stopped keeps what it has
                report = json.dumps({"cpu": cpu_name(), "cells": cells}, indent=2)
                arguments.output_json.write_text(report + "\n", encoding="utf-8")
    print()
    for name, entry in cells[-1]["columns"].items():
        print(f"{name:22} {entry.get('library', '')}")
    print(f"\nratios: time of the row over that of Fovea, median (least - greatest) of rounds; above 1 Fovea is ahead\n"
          f"rel. L2: rows against the module in f32, on random weights; ranks methods, says nothing of a checkpoint\n"
          f"measured in {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
