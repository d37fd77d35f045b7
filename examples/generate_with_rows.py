"""Text of a model of transformers about images whose rows Fovea encodes. The model's own tower is not loaded for it.

usage: generate_with_rows.py MODEL IMAGE... [--prompt TEXT] [--max-new-tokens N] [--device auto|cpu|cuda] [--compare]

With --compare the own tower makes the text once more, and the program ends with 1 if it is another one.
Needs transformers 5.24 or newer, torch and pillow.
"""

import argparse
import sys
import time
from typing import Any, Tuple

import torch
import transformers
from PIL import Image

import fovea_encoder as fovea
from fovea_encoder.integrations.transformers import encoder_outputs


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").partition("usage: ")[2])
    parser.add_argument("model")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--prompt", default="Describe this.")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compare", action="store_true")
    return parser.parse_args()


def continued(model: Any, processor: Any, inputs: Any, limit: int) -> Tuple[str, float]:
    """The text behind the prompt, and seconds."""
    start = time.perf_counter()
    with torch.no_grad():
        tokens = model.generate(**inputs, max_new_tokens=limit, do_sample=False)
    text = processor.decode(tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return text, time.perf_counter() - start


def main() -> int:
    arguments = parse_arguments()
    cuda = torch.cuda.is_available() if arguments.device == "auto" else arguments.device.startswith("cuda")
    device, dtype = ("cuda", torch.bfloat16) if cuda else ("cpu", torch.float32)
    processor = transformers.AutoProcessor.from_pretrained(arguments.model)
    model = transformers.AutoModelForImageTextToText.from_pretrained(arguments.model, dtype=dtype).to(device)
    engine = fovea.Engine.from_pretrained(arguments.model, device=device)

    content = [*({"type": "image"} for _ in arguments.images), {"type": "text", "text": arguments.prompt}]
    prompt = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    images = [Image.open(path).convert("RGB") for path in arguments.images]
    pixels = processor(text=prompt, images=images, return_tensors="pt").to(device)

    start = time.perf_counter()
    items = engine.encode(images, device=device)
    seconds = time.perf_counter() - start
    inputs = {name: value for name, value in pixels.items() if name != "pixel_values"}
    inputs["mm_encoder_outputs"] = encoder_outputs(items, model)
    text, generated = continued(model, processor, inputs, arguments.max_new_tokens)
    print(text)
    print(f"{sum(map(len, items))} rows in {seconds:.3f} s, text in {generated:.3f} s", file=sys.stderr)
    if not arguments.compare:
        return 0
    own, generated = continued(model, processor, pixels, arguments.max_new_tokens)
    print(f"rows and text of the own tower in {generated:.3f} s: {'the same' if own == text else own}", file=sys.stderr)
    return int(own != text)


if __name__ == "__main__":
    sys.exit(main())
