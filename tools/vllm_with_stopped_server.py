#!/usr/bin/env python3
"""What vLLM's requests take while the server that its FoveaECConnector asks is stopped (SIGSTOP).

    python3 tools/vllm_with_stopped_server.py ./Qwen3-VL-2B-Instruct --fovea build/release/apps/cli/fovea

Runs a whole vLLM, as AsyncLLM with its engine in another process, and `fovea serve` on a CPU. Every round times a request of
text alone; then it stops the server, sends requests with images, and times the same request of text beside them. The images
have other uuids in each round, and their rows were published before. Then the server goes on, until a probe has found it.
Prints the times, and whether all requests gave the text that they give from published rows; exit code 1 if one did not, or
if the text took more than --limit times as long beside stopped images. Needs vLLM 0.31 or newer, numpy and pillow.
"""

import argparse
import asyncio
import base64
import io
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

SIZES = [(180, 140), (64, 300), (333, 222), (96, 96)]  # width, height
IMAGE = "<|vision_start|><|image_pad|><|vision_end|>describe the image"


def make_images():
    import numpy
    from PIL import Image

    random = numpy.random.default_rng(3)
    noise = [random.integers(0, 255, (9, 9, 3), dtype=numpy.uint8) for _ in SIZES]
    return [Image.fromarray(pixels).resize(size, Image.BICUBIC) for pixels, size in zip(noise, SIZES)]


class Server:
    """A `fovea serve` in a process of its own."""

    def __init__(self, program, model, folder):
        address = folder / "address"
        command = [program, "serve", model, "--device", "cpu", "--port", "0", "--address-file", address]
        self.process = subprocess.Popen([*map(str, command), "--log-level", "warning"])
        while not address.exists():
            if self.process.poll() is not None:
                sys.exit(f"fovea serve ended with {self.process.returncode}")
            time.sleep(0.1)
        self.url = address.read_text().strip()

    def publish(self, names, images):
        """Encodes the images, so that their rows are found under these names."""
        parts = []
        for name, image in zip(names, images):
            file = io.BytesIO()
            image.save(file, "PNG")
            url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
            parts.append({"type": "image_url", "image_url": {"url": url}, "uuid": name})
        body = json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()
        request = urllib.request.Request(self.url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request).close()

    def signal(self, number):
        os.kill(self.process.pid, number)


class Language:
    """A vLLM that takes rows from a server."""

    def __init__(self, model, url, options):
        from vllm import AsyncEngineArgs
        from vllm.config import ECTransferConfig
        from vllm.v1.engine.async_llm import AsyncLLM

        transfer = ECTransferConfig(
            ec_connector="FoveaECConnector", ec_role="ec_consumer", ec_connector_module_path="fovea_encoder.integrations.vllm",
            ec_connector_extra_config={"fovea_urls": [url], "timeout_s": options.timeout},
        )
        self.engine = AsyncLLM.from_engine_args(AsyncEngineArgs(
            model, dtype=options.dtype, enforce_eager=True, max_model_len=2048, mm_processor_cache_gb=0,
            enable_prefix_caching=False, ec_transfer_config=transfer, tensor_parallel_size=options.tensor_parallel_size,
        ))
        self.count = 0

    async def answer(self, prompt, tokens, image=None, name=None):
        """Tokens of an answer, and the seconds that they took."""
        from vllm import SamplingParams

        if image is not None:
            prompt = {"prompt": prompt, "multi_modal_data": {"image": [image]}, "multi_modal_uuids": {"image": [name]}}
        greedy, begin = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True), time.monotonic()
        self.count += 1
        async for output in self.engine.generate(prompt, greedy, str(self.count)):
            pass
        return list(output.outputs[0].token_ids), time.monotonic() - begin

    async def items(self):
        """Items by how vLLM's counters say that asking for them ended."""
        import prometheus_client

        await self.engine.do_log_stats()
        return {
            sample.labels["result"]: int(sample.value)
            for metric in prometheus_client.REGISTRY.collect() if metric.name == "vllm:fovea_items"
            for sample in metric.samples if sample.name.endswith("_total")
        }


async def with_images(language, images, names):
    answers = (language.answer(IMAGE, 24, image, name) for image, name in zip(images, names))
    return await asyncio.gather(*answers)


async def measure(language, server, options):
    images, times, good = make_images(), {"alone": [], "beside": [], "images": []}, True
    text = lambda: language.answer("describe the image in a few words please", options.tokens)
    names = [[f"{kind}-{i}" for i in range(len(images))] for kind in ["first", *range(options.rounds), "last"]]
    for group in names:
        server.publish(group, images)
    expected_text, _ = await text()
    expected = [tokens for tokens, _ in await with_images(language, images, names[0])]
    for group in names[1:-1]:
        tokens, seconds = await text()
        times["alone"].append(seconds)
        good &= tokens == expected_text
        server.signal(signal.SIGSTOP)
        waiting = asyncio.create_task(with_images(language, images, group))
        await asyncio.sleep(0.1)
        tokens, seconds = await text()
        times["beside"].append(seconds)
        good &= tokens == expected_text and not waiting.done()
        answers = await waiting
        times["images"].append(max(seconds for _, seconds in answers))
        good &= [tokens for tokens, _ in answers] == expected
        server.signal(signal.SIGCONT)
        await asyncio.sleep(5)  # a probe comes after at most 4 s
    good &= [tokens for tokens, _ in await with_images(language, images, names[-1])] == expected
    await text()  # brings the counters of what came before
    return times, good, await language.items()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="checkpoint of Qwen3-VL that vLLM can load")
    parser.add_argument("--fovea", default="fovea", help="the program")
    parser.add_argument("--dtype", default="float32", help="of vLLM and the checkpoint")
    parser.add_argument("--tensor-parallel-size", type=int, default=1, help="workers of vLLM, which map the same rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=200, help="of the answer to the request of text")
    parser.add_argument("--timeout", type=float, default=8, help="timeout_s of the connector; more than the text takes")
    parser.add_argument("--limit", type=float, default=1.2, help="how often the time alone the text may take")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.fovea, options.model, pathlib.Path(folder))
        try:
            language = Language(options.model, server.url, options)
            try:
                times, good, items = asyncio.run(measure(language, server, options))
            finally:
                language.engine.shutdown()
        finally:
            server.process.kill()
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    ratio = medians["beside"] / medians["alone"]
    for name, what in (("alone", "text alone"), ("beside", "text beside images whose server is stopped"),
                       ("images", f"these images, given up after {options.timeout:g} s")):
        print(f"{what}: {medians[name]:.3f} s, of {', '.join(f'{seconds:.3f}' for seconds in times[name])}")
    print(f"text beside to alone: {ratio:.2f}; items: {items}; {'all answers as with rows' if good else 'ANSWERS DIFFER'}")
    return 0 if good and ratio <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
