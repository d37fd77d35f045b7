#!/usr/bin/env python3
"""Runs Fovea and its peers one after the other on one GPU and prints them side by side.

    python3 bench/peers/compare_gpu.py build/release/apps/cli/fovea bench/configs/qwen3_vl_30b_a3b --compile

First the tower alone (PyTorch's of qwen3_vl_gpu.py, and with --vllm that of vllm_gpu.py, against
`fovea bench latency`), then from JPEG bytes to rows (end_to_end_gpu.py against `fovea bench mm-processor`), medians in
milliseconds. A ratio above 1 says that Fovea is faster than the fastest peer. Each mode of a peer's tower runs for
--seconds, each of Fovea's as often as the fastest peer. Without --vllm the scripts can be tried with --device cpu.
"""

import argparse
import json
import math
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PEERS = Path(__file__).parent


def run(command):
    print("$", " ".join(map(str, command)), file=sys.stderr, flush=True)
    if subprocess.run([str(word) for word in command], stdout=sys.stderr).returncode != 0:
        sys.exit("compare_gpu.py: this command failed")


def run_peer(script, arguments, folder, *more):
    report = folder / "peer.json"
    run([sys.executable, PEERS / script, arguments.model / "config.json", "--device", arguments.device,
         "--repetitions", arguments.repetitions, "--json", report, *more])
    return json.loads(report.read_text(encoding="utf-8"))


def run_fovea(verb, arguments, folder, *more):
    report = folder / "fovea.json"
    run([arguments.fovea, "bench", verb, arguments.model, "--load-format", "dummy", "--device", arguments.device,
         "--output-json", report, *more, *arguments.fovea_flags])
    return json.loads(report.read_text(encoding="utf-8"))


def graph_flags(case, model):
    """Captures a graph of exactly the size of a case, as the peers do, and replays it whatever was measured."""
    count, patches = map(int, case.split("x"))
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))["vision_config"]
    tokens = count * patches // config["spatial_merge_size"] ** 2
    return ["--token-budgets", tokens, "--max-items-per-batch", count, "--no-measure-graphs"]


def time_peer_towers(arguments, folder):
    """Milliseconds of vLLM's and PyTorch's modes by case; those that could not run are left out."""
    flags = ["--cases", arguments.cases, "--seconds", arguments.seconds]
    vllm = run_peer("vllm_gpu.py", arguments, folder, *flags)["cases"] if arguments.vllm else {}
    compile_flag = ["--compile"] if arguments.compile else []
    torch = run_peer("qwen3_vl_gpu.py", arguments, folder, *flags, "--attention", arguments.attention,
                     *compile_flag)["cases"]
    return {case: vllm.get(case, {}) | times for case, times in torch.items()}


def time_fovea_tower(case, arguments, folder, fastest_peer):
    """Milliseconds of Fovea's modes, each repeated as often as the fastest peer runs in --seconds."""
    repetitions = max(arguments.repetitions, round(1e3 * arguments.seconds / fastest_peer))
    result, = run_fovea("latency", arguments, folder, "--cases", case, "--repetitions", repetitions,
                        *graph_flags(case, arguments.model))["results"]
    modes = {"fovea eager": result["eager_ms"], "fovea replay": result["replay_ms"]}
    return {name: times["median"] for name, times in modes.items() if times}


def compare_towers(arguments, folder):
    """One row per case: Fovea's and the peers' medians, and the fastest peer relative to Fovea's faster mode."""
    rows = []
    for case, peers in time_peer_towers(arguments, folder).items():
        fastest_peer = min(peers.values(), default=math.inf)
        ours = time_fovea_tower(case, arguments, folder, fastest_peer)
        row = {"case": case, **ours, **peers}
        if peers:  # else no peer could run it
            row["ratio"] = fastest_peer / min(ours.values())
        rows.append(row)
    return rows


def compare_end_to_end(arguments, folder):
    """One row per number of images in a request: stages of both, and the ratio of the totals.

    Fovea's stages are sums over the images, which several threads decode and resize at once. Stages overlap, so "fovea
    sum" exceeds "fovea total". If the peer runs with several attention kernels, the fastest counts.
    """
    compile_flag = ["--compile"] if arguments.compile else []
    peers = [run_peer("end_to_end_gpu.py", arguments, folder, "--counts", arguments.counts, "--size", arguments.size,
                      "--write", folder, *attention, *compile_flag)["counts"]
             for attention in ([["--attention", name] for name in arguments.attention.split(",")]
                               if arguments.attention else [[]])]
    rows = []
    for count in arguments.counts.split(","):
        peer = min((times[count] for times in peers), key=lambda times: times["total"])
        ours = run_fovea("mm-processor", arguments, folder, "--dataset-name", "jsonl",
                         "--dataset-path", folder / f"requests_{count}.jsonl",
                         "--num-prompts", arguments.repetitions, "--num-warmups", 3, "--dtype", "bfloat16")
        stages = {name.removesuffix("_ms"): stage["median"] for name, stage in ours["stages"].items()}
        total = stages.pop("e2e")
        row = {"images": count}
        row.update({f"fovea {name}": ms for name, ms in stages.items()})
        row.update({"fovea sum": sum(stages.values()), "fovea total": total})
        row.update({f"peer {name}": ms for name, ms in peer.items()})
        row["ratio"] = peer["total"] / total
        rows.append(row)
    return rows


def print_table(rows):
    names = list(dict.fromkeys(name for row in rows for name in row))

    def cell(row, name):
        value = row.get(name, "-")
        return f"{value:.{2 if name == 'ratio' else 3}f}" if isinstance(value, float) else str(value)

    widths = [max(len(name), *(len(cell(row, name)) for row in rows)) for name in names]
    print("  ".join(name.rjust(width) for name, width in zip(names, widths)))
    for row in rows:
        print("  ".join(cell(row, name).rjust(width) for name, width in zip(names, widths)))
    print(flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fovea", type=Path, help="the program")
    parser.add_argument("model", type=Path, help="directory with the config.json of a Qwen3-VL checkpoint")
    parser.add_argument("--cases", default="1x64,1x256,1x1024,1x4096,1x16384,8x256,20x440,8x1024")
    parser.add_argument("--attention", default="",
                        help="of the peers' towers: flash, cudnn (default: all that fit; from JPEG bytes, cudnn)")
    parser.add_argument("--counts", default="1,8,64", help="images per request; empty: leave this part out")
    parser.add_argument("--size", default="1024x768", help="of these images")
    parser.add_argument("--no-tower", action="store_true", help="only from JPEG bytes to rows")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--repetitions", type=int, default=20, help="at least")
    parser.add_argument("--seconds", type=float, default=2, help="that each mode of a tower runs for, at least")
    parser.add_argument("--compile", action="store_true", help="also torch.compile, which is slow to start")
    parser.add_argument("--vllm", action="store_true", help="also vLLM's own tower; needs vLLM")
    parser.add_argument("--fovea-flags", default="", type=shlex.split, metavar="FLAGS",
                        help="for every run of Fovea, as in --fovea-flags='--mm-encoder-attn-backend cudnn'")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write both tables as JSON")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    report = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not arguments.no_tower:
            report["tower"] = compare_towers(arguments, folder)
            print_table(report["tower"])
        if arguments.counts:
            report["end_to_end"] = compare_end_to_end(arguments, folder)
            print_table(report["end_to_end"])
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
