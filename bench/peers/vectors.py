#!/usr/bin/env python3
"""Images per second of retrieval encoders, from JPEG files to vectors: sentence-transformers and Fovea in turns.

    python3 bench/peers/vectors.py build/release/apps/cli/fovea --device cuda

Models have published sizes and random weights, which both read from the same checkpoint. Prints the cosine of the
vectors of both as well, so that equal work is compared.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import tokenizers
import torch
import transformers as T
from PIL import Image
from safetensors.torch import load_file

SO400M = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}
TEXT = {"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 64,
        "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 1}


def square(side):
    return {"height": side, "width": side}


# Class of the model, its configuration, its image processor, the class of images and text, and how sentence-transformers calls it.
MODELS = {
    "CLIP-L/14-336": (
        "CLIPModel",
        lambda: T.CLIPConfig(text_config=TEXT, projection_dim=768, vision_config={
            "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
            "image_size": 336, "patch_size": 14}),
        lambda: T.CLIPImageProcessor(size={"shortest_edge": 336}, crop_size=square(336)), "CLIPProcessor", None),
    "SigLIP2-So400m/14-384": (
        "SiglipModel", lambda: T.SiglipConfig(text_config=TEXT | {"projection_size": 1152}, vision_config=SO400M | {
            "image_size": 384, "patch_size": 14}), lambda: T.SiglipImageProcessor(size=square(384)),
        "SiglipProcessor", None),
    "DINOv3-L/16": (
        "DINOv3ViTModel", lambda: T.DINOv3ViTConfig(
            hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16,
            num_register_tokens=4, patch_size=16, image_size=224),
        lambda: T.DINOv3ViTImageProcessor(size=square(224)), None,
        {"image": {"method": "forward", "method_output_name": "pooler_output"}}),
}


def write_model(folder, name):
    cls, config, processor, text, _ = MODELS[name]
    torch.manual_seed(0)
    model = getattr(T, cls)._from_config(config(), dtype=torch.bfloat16)
    model.save_pretrained(folder)
    if text is None:
        processor().save_pretrained(folder)
        return
    # sentence-transformers asks for the tokenizer of the text side, which no image passes through.
    words = {word: index for index, word in enumerate(("<s>", "</s>", "<unk>"))}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer = T.PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="</s>", model_max_length=64)
    getattr(T, text)(processor(), tokenizer).save_pretrained(folder)


def write_images(folder, count, size):
    width, height = map(int, size.split("x"))
    y, x = numpy.mgrid[0:height, 0:width]
    random = numpy.random.default_rng(0)
    for index in range(count):
        waves = [127 + 120 * numpy.sin(x / random.uniform(5, 90) + y / random.uniform(5, 90)) for _ in range(3)]
        noise = random.normal(0, 8, (height, width, 3))
        pixels = numpy.clip(numpy.stack(waves, -1) + noise, 0, 255).astype(numpy.uint8)
        Image.fromarray(pixels).save(folder / f"image_{index:04}.jpg", quality=90)


def sentence_transformer(folder, modality, arguments):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer

    dtype = torch.float32 if arguments.device == "cpu" else torch.bfloat16
    more = {"modality_config": modality, "module_output_name": "sentence_embedding"} if modality else {}
    module = Transformer(str(folder), model_kwargs={"dtype": dtype}, **more)
    return SentenceTransformer(modules=[module], device=arguments.device)


def peer_rate(model, files, arguments):
    """Images per second from files to vectors, and the vectors."""
    start = time.perf_counter()
    vectors = model.encode([Image.open(file).convert("RGB") for file in files], batch_size=arguments.batch)
    return len(files) / (time.perf_counter() - start), numpy.asarray(vectors, dtype=numpy.float64)


def run(arguments, *words):
    command = [str(word) for word in (arguments.fovea, *words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"vectors.py: {' '.join(command)}\n{done.stderr}")


def fovea_rate(folder, images, scratch, arguments):
    report = scratch / "report.json"
    run(arguments, "bench", "throughput", folder, images, "--vectors", "--device", arguments.device, "--repeat", 3,
        "--output-json", report)
    return json.loads(report.read_text(encoding="utf-8"))


def fovea_vectors(folder, images, scratch, arguments):
    out = scratch / "vectors.safetensors"
    run(arguments, "encode", folder, images, "--vectors", "--device", arguments.device, "--dtype", "float32", "--output",
        out)
    rows = load_file(out)
    return numpy.stack([rows[f"item_{index}"][0].double().numpy() for index in range(arguments.count)])


def cosine(a, b):
    return float(((a * b).sum(1) / numpy.linalg.norm(a, axis=1) / numpy.linalg.norm(b, axis=1)).min())


def compare(name, arguments, scratch):
    folder, images = scratch / name.replace("/", "-"), scratch / "images"
    write_model(folder, name)
    files = sorted(images.iterdir())
    model = sentence_transformer(folder, MODELS[name][4], arguments)
    _, want = peer_rate(model, files, arguments)
    peers, own = [], []
    for _ in range(arguments.rounds):
        peers.append(peer_rate(model, files, arguments)[0])
        own.append(fovea_rate(folder, images, scratch, arguments)["items_per_s"])
    got = fovea_vectors(folder, images, scratch, arguments)
    print(f"{name:<24}{max(peers):>24.2f}{max(own):>12.2f}{max(own) / max(peers):>8.2f}{1 - cosine(got, want):>12.1e}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fovea", type=Path, help="the program")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--count", type=int, default=256, help="JPEG files")
    parser.add_argument("--size", default="640x480", help="of these")
    parser.add_argument("--batch", type=int, default=64, help="of sentence-transformers")
    parser.add_argument("--rounds", type=int, default=2, help="the best of which counts")
    arguments = parser.parse_args()
    T.utils.logging.set_verbosity_error()
    T.utils.logging.disable_progress_bar()
    torch.set_grad_enabled(False)
    import sentence_transformers
    print(f"sentence-transformers {sentence_transformers.__version__}, transformers {T.__version__}, "
          f"torch {torch.__version__}, {arguments.count} JPEG files of {arguments.size}")
    print(f"{'images per second':<24}{'sentence-transformers':>24}{'fovea':>12}{'ratio':>8}{'1 - cosine':>12}")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "images").mkdir()
        write_images(scratch / "images", arguments.count, arguments.size)
        for model in arguments.models.split(","):
            compare(model, arguments, scratch)


if __name__ == "__main__":
    main()
