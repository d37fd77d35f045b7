#!/usr/bin/env python3
"""Prints the tables of docs/encoder_graphs.md: how many rows each packing policy computes for some workloads, and
what it saves to pack a call as a whole instead of 16 items and then 32 at a time.

    python3 tools/packing_table.py build/release/apps/cli/fovea
    python3 tools/packing_table.py build/release/apps/cli/fovea --measure

With --measure, on a GPU: milliseconds of the tower for the same workloads, modelled (the time measured for each graph
of the plan, eager rows at the rate of the largest graph) and measured (mean of two seconds, random pixels).
Only sizes are planned; no weights are needed. The mixed photos have log-normal widths (median 812 pixels) and
common aspect ratios, the documents are pages and slides at usual scanning sizes, the videos have 8 to 512 frames;
all from a fixed seed. The chat images are drawn as vision-arena-like of fovea bench mm-processor draws them.
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import tempfile

QWEN = "bench/configs/qwen3_vl_30b_a3b"
DEEPSEEK = "bench/configs/deepseek_ocr"
INTERNVL = "tests/configs/InternVL3-8B"
POLICIES = ["greedy", "cost", "units"]
LADDER = ["--token-budgets", "512,1024,1536,2048,2560,3072,3584,4096,4864", "--max-items-per-batch", "8"]


def mixed_photos(count):
    sizes = []
    for _ in range(count):
        width = int(min(4000, max(200, random.lognormvariate(6.7, 0.5))))
        sizes.append((width, max(100, int(width / random.choice([1, 4 / 3, 16 / 9, 3 / 4, 9 / 16, 1.5])))))
    return sizes


def documents(count):
    pages = [(1240, 1754), (1654, 2339), (850, 1100), (640, 480), (1920, 1080), (600, 600)]
    return [random.choice(pages) for _ in range(count)]


def videos(count):
    sizes = [(640, 360), (854, 480), (1280, 720), (480, 640)]
    return [(*random.choice(sizes), 2 ** random.randint(3, 9)) for _ in range(count)]


CHAT = [((1920, 1080), 6), ((1440, 900), 6), ((1280, 720), 10), ((828, 1792), 5), ((720, 1280), 7), ((1024, 768), 14),
        ((768, 1024), 12), ((1024, 1024), 10), ((800, 600), 10), ((640, 480), 8), ((512, 512), 8), ((256, 256), 4)]


def chat_images(count):
    sizes = random.choices([size for size, _ in CHAT], [share for _, share in CHAT], k=count)
    return [tuple(round(side * random.uniform(0.85, 1.15)) for side in size) for size in sizes]


def write_sizes(file, sizes):
    file.write("\n".join(f"{w}x{h}" + "".join(f"x{n}f" for n in frames) for w, h, *frames in sizes))
    file.flush()


def plan_runs(fovea, model, sizes, policy, flags, device="cuda"):
    """(path, tokens, budget) of every replay or eager run, and the number of sub-batches"""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        write_sizes(file, sizes)
        command = [fovea, "plan", model, "--sizes", "@" + file.name, "--packing", policy, "--json", "--device", device,
                   *flags]
        result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    runs = [run for batch in result["batches"] for run in zip(result["paths"], batch["tokens"], batch["budgets"])]
    return runs, len(result["batches"])


def plan(fovea, model, sizes, policy, flags):
    """(sub-batches, rows of all budgets, rows of them that are padding, rows that run eagerly)"""
    runs, batches = plan_runs(fovea, model, sizes, policy, flags)
    computed = sum(budget for _, _, budget in runs if budget)
    padding = computed - sum(tokens for _, tokens, budget in runs if budget)
    return batches, computed, padding, sum(tokens for _, tokens, budget in runs if budget is None)


def plan_in_windows(fovea, sizes, policy, flags):
    """As plan_runs, 16 items by themselves and then 32 at a time."""
    runs, batches = [], 0
    for begin, end in [(0, 16), *((i, i + 32) for i in range(16, len(sizes), 32))]:
        more, count = plan_runs(fovea, QWEN, sizes[begin:end], policy, flags, "cpu")
        runs, batches = runs + more, batches + count
    return runs, batches


def whole_calls(fovea):
    print("| 1000 items | in windows: batches | rows | as a whole: batches | rows | saved |")
    print("|---|---|---|---|---|---|")
    for workload, sizes in [("336x336", [(336, 336)] * 1000), ("chat images", chat_images(1000))]:
        for name, policy, flags in [("8 items, greedy", "greedy", LADDER), ("8 items, cost", "cost", LADDER),
                                    ("64 items, greedy", "greedy", []), ("64 items, cost", "cost", [])]:
            cells, rows = [f"{workload}, {name}"], []
            whole = plan_runs(fovea, QWEN, sizes, policy, flags)
            for runs, batches in (plan_in_windows(fovea, sizes, policy, flags), whole):
                rows.append(sum(budget or tokens for _, tokens, budget in runs))
                cells += [str(batches), str(rows[-1])]
            print("| " + " | ".join([*cells, f"{100 * (1 - rows[1] / rows[0]):.1f} %"]) + " |")


def time_tower(fovea, model, sizes, policy, flags):
    """Mean milliseconds of the tower, and {(path, budget): milliseconds of its graph}"""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file, tempfile.TemporaryDirectory() as folder:
        write_sizes(file, sizes)
        report = pathlib.Path(folder, "report.json")
        command = [fovea, "bench", "latency", model, "--load-format", "dummy", "--device", "cuda:0", "--sizes",
                   "@" + file.name, "--packing", policy, "--repetitions", "1", "--log-level", "info", "--output-json",
                   report, *flags]
        log = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        result = json.loads(report.read_text())["results"][0]
    graphs = re.findall(r"encoder_graphs\.graph .*?path=(\S+) budget=(\d+) .*?replay_ms=([\d.e+-]+)", log)
    return result["energy"]["mean_ms"], {(path, int(budget)): float(ms) for path, budget, ms in graphs}


def modelled_ms(runs, graphs):
    """Of a plan, by the times of its graphs"""
    largest = {path: max(budget for p, budget in graphs if p == path) for path, _ in graphs}
    return sum(graphs[path, budget] if budget else tokens / largest[path] * graphs[path, largest[path]]
               for path, tokens, budget in runs if tokens)


def measured_table(fovea, workloads):
    print("| workload | " + " | ".join(f"{policy}: modelled ms | measured" for policy in POLICIES) + " |")
    print("|---" * (1 + 2 * len(POLICIES)) + "|")
    for name, model, sizes, flags in workloads:
        cells = []
        for policy in POLICIES:
            measured, graphs = time_tower(fovea, model, sizes, policy, flags)
            runs, _ = plan_runs(fovea, model, sizes, policy, flags)
            cells += [f"{modelled_ms(runs, graphs):.1f}", f"{measured:.1f}"]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fovea", help="the program")
    parser.add_argument("--measure", action="store_true", help="time the tower on a GPU instead")
    args = parser.parse_args()
    random.seed(1)
    photos = mixed_photos(200)
    workloads = [
        ("20 images of 336x336", QWEN, [(336, 336)] * 20, []),
        ("the same, budgets 512 to 4864, 8 items", QWEN, [(336, 336)] * 20, LADDER),
        ("200 mixed photos", QWEN, photos, []),
        ("the same, budgets 512 to 4864, 8 items", QWEN, photos, LADDER),
        ("100 documents, two paths", DEEPSEEK, documents(100), []),
        ("200 mixed photos in tiles, InternVL", INTERNVL, mixed_photos(200), []),
        ("40 videos of 8 to 512 frames", QWEN, videos(40), []),
    ]
    if args.measure:
        measured_table(args.fovea, workloads)
        return
    print("| workload | " + " | ".join(f"{policy}: batches | rows | padding" for policy in POLICIES) + " | eager rows |")
    print("|---" * (2 + 3 * len(POLICIES)) + "|")
    for name, model, sizes, flags in workloads:
        cells, eager = [], []
        for policy in POLICIES:
            batches, computed, padding, eagerly = plan(args.fovea, model, sizes, policy, flags)
            cells += [str(batches), str(computed), f"{padding} ({100 * padding / computed:.1f} %)"]
            eager.append(str(eagerly))
        print("| " + " | ".join([name, *cells, ", ".join(eager)]) + " |")
    print()
    whole_calls(args.fovea)


if __name__ == "__main__":
    main()
