#!/usr/bin/env python3
"""Prints, for some workloads, how many rows each packing policy computes: the table of docs/encoder_graphs.md.

    python3 tools/packing_table.py build/release/apps/cli/fovea

Only sizes are planned; no weights are needed. The mixed photos have log-normal widths (median 812 pixels) and
common aspect ratios, the documents are pages and slides at usual scanning sizes; both from a fixed seed.
"""

import json
import random
import subprocess
import sys
import tempfile

QWEN = "bench/configs/qwen3_vl_30b_a3b"
DEEPSEEK = "bench/configs/deepseek_ocr"
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


def plan(fovea, model, sizes, policy, flags):
    """(sub-batches, rows of all budgets, rows of them that are padding)"""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(f"{w}x{h}" for w, h in sizes))
        file.flush()
        command = [fovea, "plan", model, "--sizes", "@" + file.name, "--packing", policy, "--json", *flags]
        batches = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["batches"]
    runs = [(tokens, budget) for batch in batches for tokens, budget in zip(batch["tokens"], batch["budgets"])]
    computed = sum(budget for _, budget in runs if budget)
    return len(batches), computed, computed - sum(tokens for tokens, budget in runs if budget)


def main():
    random.seed(1)
    photos = mixed_photos(200)
    workloads = [
        ("20 images of 336x336", QWEN, [(336, 336)] * 20, []),
        ("the same, budgets 512 to 4864, 8 items", QWEN, [(336, 336)] * 20, LADDER),
        ("200 mixed photos", QWEN, photos, []),
        ("the same, budgets 512 to 4864, 8 items", QWEN, photos, LADDER),
        ("100 documents, two paths", DEEPSEEK, documents(100), []),
    ]
    print("| workload | greedy: batches | rows | padding | cost: batches | rows | padding |")
    print("|---|---|---|---|---|---|---|")
    for name, model, sizes, flags in workloads:
        cells = []
        for policy in ("greedy", "cost"):
            batches, computed, padding = plan(sys.argv[1], model, sizes, policy, flags)
            cells += [str(batches), str(computed), f"{padding} ({100 * padding / computed:.1f} %)"]
        print("| " + " | ".join([name, *cells]) + " |")


if __name__ == "__main__":
    main()
