#!/usr/bin/env python3
"""Serves the vision tower of a Qwen3-VL checkpoint over HTTP with FastAPI and transformers: the peer of `fovea serve`.

What one would write with PyTorch: float32 on the CPU, torch.inference_mode, the processor of transformers, one thread
that encodes all that waits in one forward pass, up to a number of rows. POST /v1/encode takes an image as its body
and answers its rows, float32, little-endian, [rows, hidden * (1 + deepstack levels)], as Fovea's format `raw` does.
GET /readyz answers 200 once the model is loaded.

    pip install torch torchvision transformers fastapi uvicorn pillow  # tried with torch 2.15, transformers 5.23
    python3 bench/peers/http_transformers.py bench/configs/qwen3_vl_2b --dummy --threads 16 --port 8001 &
    python3 bench/peers/http_load.py http://127.0.0.1:8001/v1/encode --wait http://127.0.0.1:8001/readyz
    kill %1
    fovea serve bench/configs/qwen3_vl_2b --load-format dummy --device cpu --threads 16 --port 8000 &
    python3 bench/peers/http_load.py 'http://127.0.0.1:8000/v1/encode?output.format=raw&output.dtype=float32&cache=bypass' \\
        --wait http://127.0.0.1:8000/readyz
    kill %1

Give both the same threads, and the load generator processors of its own (taskset) where there are enough. The folder
may also be that of a checkpoint; without --dummy its weights are read.
"""

import argparse
import asyncio
import concurrent.futures
import contextlib
import io
import os
import queue
import threading

import torch
import uvicorn
from fastapi import FastAPI, Request, Response
from PIL import Image
from transformers import AutoConfig, Qwen3VLForConditionalGeneration, Qwen3VLVisionModel
from transformers.models.qwen2_vl import Qwen2VLImageProcessor


class Encoder:
    """Encodes images in batches of what waits, on a thread of its own."""

    def __init__(self, arguments):
        self.processor = image_processor(arguments.model)
        self.tower = load_tower(arguments)
        self.max_patches = arguments.max_batch_rows * self.tower.spatial_merge_size**2
        self.waiting = queue.SimpleQueue()
        threading.Thread(target=self.run, daemon=True).start()

    def prepare(self, data):
        """Pixels and grid of an encoded image."""
        image = Image.open(io.BytesIO(data)).convert("RGB")
        inputs = self.processor(images=[image], return_tensors="pt")
        return inputs["pixel_values"], inputs["image_grid_thw"]

    def submit(self, inputs):
        future = concurrent.futures.Future()
        self.waiting.put((inputs, future))
        return future

    def run(self):
        left_over = None
        while True:
            batch = [left_over or self.waiting.get()]
            left_over = None
            patches = batch[0][0][0].shape[0]
            while not self.waiting.empty():
                entry = self.waiting.get()
                patches += entry[0][0].shape[0]
                if patches > self.max_patches:
                    left_over = entry
                    break
                batch.append(entry)
            self.encode(batch)

    @torch.inference_mode()
    def encode(self, batch):
        try:
            pixels = torch.cat([inputs[0] for inputs, _ in batch])
            grids = torch.cat([inputs[1] for inputs, _ in batch])
            output = self.tower(pixels, grids)
            rows = torch.cat([output.pooler_output, *output.deepstack_features], 1)
            counts = (grids.prod(1) // self.tower.spatial_merge_size**2).tolist()
            for (_, future), part in zip(batch, rows.split(counts)):
                future.set_result(part.numpy())
        except Exception as error:  # one reply each, whatever it is
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)


def image_processor(model):
    if os.path.exists(os.path.join(model, "preprocessor_config.json")):
        return Qwen2VLImageProcessor.from_pretrained(model)
    return Qwen2VLImageProcessor(patch_size=16, temporal_patch_size=2, merge_size=2, image_mean=[0.5] * 3,
                                 image_std=[0.5] * 3, min_pixels=65536, max_pixels=16777216)


def load_tower(arguments):
    if arguments.dummy:
        torch.manual_seed(0)
        config = AutoConfig.from_pretrained(arguments.model).vision_config
        config._attn_implementation = "sdpa"
        return Qwen3VLVisionModel._from_config(config, dtype=torch.float32).eval()
    model = Qwen3VLForConditionalGeneration.from_pretrained(arguments.model, dtype=torch.float32,
                                                            attn_implementation="sdpa")
    return model.model.visual.eval()


def make_app(encoder, preparing_threads):
    pool = concurrent.futures.ThreadPoolExecutor(preparing_threads)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        yield
        pool.shutdown(cancel_futures=True)

    app = FastAPI(lifespan=lifespan)

    @app.get("/readyz")
    async def readyz():
        return {"status": "ok"}

    @app.post("/v1/encode")
    async def encode(request: Request):
        loop = asyncio.get_running_loop()
        data = await request.body()
        try:
            inputs = await loop.run_in_executor(pool, encoder.prepare, data)
        except Exception as error:
            return Response(str(error), status_code=422)
        rows = await asyncio.wrap_future(encoder.submit(inputs))
        return Response(rows.tobytes(), media_type="application/octet-stream",
                        headers={"X-Shape": ",".join(map(str, rows.shape))})

    return app


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a Qwen3-VL checkpoint")
    parser.add_argument("--dummy", action="store_true", help="random weights; config.json is enough")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of a forward pass")
    parser.add_argument("--preparing-threads", type=int, default=4, help="that decode and resize")
    parser.add_argument("--max-batch-rows", type=int, default=8192, help="rows of one forward pass")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    app = make_app(Encoder(arguments), arguments.preparing_threads)
    uvicorn.run(app, host=arguments.host, port=arguments.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
