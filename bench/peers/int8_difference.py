#!/usr/bin/env python3
"""How far int8 takes a tower from its float32 rows: in Fovea, and in OpenVINO with int8 weights beside it.

    pip install torch transformers safetensors pillow openvino nncf
    python3 bench/peers/int8_difference.py tests/golden/*/ --fovea build/release/apps/cli/fovea

MODEL is a directory with a checkpoint in one file, golden.safetensors and images/, or without both, as cpu_peers.py
writes a Qwen3-VL checkpoint: then the image is random. Prints the relative L2 difference to rows in float32 and
1 - cosine, over the rows of all images, deepstack levels included:

    fovea int8         weights and rows of x in 8 bits in blocks: `fovea encode --quantization int8`
    fovea weights      only its weights: rounded as for int8, written back to the checkpoint, encoded in float32
    nncf weights       weight-only int8: the same layers rounded by NNCF as for OpenVINO, then as above
    openvino           transformers' tower in OpenVINO, weights compressed by NNCF, with what OpenVINO chooses by
                       itself: its own precision, and rows of x in 8 bits with a scale for every 32 numbers
    openvino f32       the same with inference precision f32; rows of x stay 8 bits
    openvino f32 rows  the same without 8-bit rows, so weight-only int8
    openvino exact     with weights as they are and inference precision f32: a control

The first three are compared with Fovea's float32 rows, and so is the last, which has to be near 0; the other columns of
OpenVINO with those of the last. In OpenVINO NNCF also rounds the patch embedding and what follows the blocks, which
Fovea does not, and "nncf weights" not either. A family that transformers does not have gets dashes. NNCF's mode is
INT8_ASYM, its default.
"""

import argparse
import contextlib
import json
import logging
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nncf
import numpy as np
import openvino
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

# The weights that --quantization int8 rounds: those of GEMMs in blocks.
IN_BLOCKS = re.compile(r"^(?!.*language_model).*\.(blocks|layers?)\.\d+\.")
RANDOM_SIDE = 256  # pixels
OPENVINO = {
    "openvino": (True, {}),
    "openvino f32": (True, {"INFERENCE_PRECISION_HINT": "f32"}),
    "openvino f32 rows": (True, {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}),
    "openvino exact": (False, {"INFERENCE_PRECISION_HINT": "f32"}),
}
COLUMNS = ["fovea int8", "fovea weights", "nncf weights", *OPENVINO]


def compress(model):
    """Linear layers, convolutions and tables in 8 bits; NNCF shows its progress on stdout."""
    with contextlib.redirect_stdout(sys.stderr):
        return nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)


# Fovea.

def fovea_rows(program, folder, images, *flags):
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "rows.safetensors"
        subprocess.run([program, "encode", folder, *images, "--device", "cpu", "--no-table", "--output", out, *flags],
                       check=True, stdout=subprocess.DEVNULL)
        rows = load_file(out)
    return [rows[f"item_{index}"] for index in range(len(images))]


def fovea_weight(weight):
    """255 steps from the smallest weight of a row to the largest; as src/ops/cpu/gemm/gemm.h has it."""
    low, high = weight.amin(1, keepdim=True), weight.amax(1, keepdim=True)
    middle, scale = (low + high) / 2, (high - low) / 254
    return torch.where(scale > 0, middle + ((weight - middle) / scale).round() * scale, middle)


def nncf_weights(weights):
    """The same matrices as OpenVINO multiplies them, once NNCF has compressed a model of one layer for each."""
    inputs, layers = [], []
    for name, weight in weights.items():
        inputs.append(openvino.opset13.parameter([1, weight.shape[1]], np.float32))
        layers.append(openvino.opset13.matmul(inputs[-1], openvino.opset13.constant(weight.numpy()), False, True,
                                              name=name))
    model = compress(openvino.Model(layers, inputs))
    return {node.get_friendly_name(): torch.from_numpy(decompressed(node)) for node in model.get_ops()
            if node.get_friendly_name() in weights}


def decompressed(layer):
    """(integer - zero point) scale, from the constants that the second input of a layer comes from."""
    constants, nodes = [], [layer.input_value(1).get_node()]
    while nodes:
        node = nodes.pop()
        if node.get_type_name() == "Constant":
            constants.append(node.data)
        nodes.extend(value.get_node() for value in node.input_values())
    integers, zero = sorted((data for data in constants if data.dtype == np.uint8), key=np.size, reverse=True)
    (scale,) = (data for data in constants if data.dtype != np.uint8)
    return (integers.astype(np.float32) - zero) * scale.astype(np.float32)


def rows_of_weights(arguments, folder, images, change):
    """Float32 rows with the weights that int8 rounds replaced by what `change` makes of them, as matrices."""
    tensors = load_file(folder / "model.safetensors")
    matrices = {name: value.float().flatten(1) for name, value in tensors.items()
                if name.endswith(".weight") and value.ndim > 1 and IN_BLOCKS.search(name)}
    changed = change(matrices)
    for name in matrices:
        tensors[name] = changed[name].view(tensors[name].shape).contiguous()
    with tempfile.TemporaryDirectory() as name:
        for file in folder.glob("*.json"):
            shutil.copy(file, name)
        save_file(tensors, Path(name) / "model.safetensors")
        return fovea_rows(arguments.fovea, name, images)


# OpenVINO.

class Tower(torch.nn.Module):
    """Rows of one image as Fovea writes them: deepstack levels beside the main embedding."""

    def __init__(self, model, grid):
        super().__init__()
        self.model, self.grid = model, grid

    def forward(self, pixels):
        grid = [] if self.grid is None else [self.grid]
        out = self.model.get_image_features(pixels, *grid)
        if out.pooler_output is None:  # Llama 4 leaves the projector to the caller
            return self.model.multi_modal_projector(out.last_hidden_state.flatten(0, -2))
        levels = [out.pooler_output, *(getattr(out, "deepstack_features", None) or ())]
        levels = [level if torch.is_tensor(level) else level[0] for level in levels]
        return torch.cat([level.flatten(0, -2) for level in levels], dim=1)


def load_tower(folder):
    """transformers' model with next to no language model; None if there is no such family."""
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        family = getattr(transformers, config.architectures[0])
    except (AttributeError, KeyError, OSError, ValueError) as error:
        print(f"{folder}: not in transformers: {str(error).splitlines()[0]}", file=sys.stderr)
        return None
    config.text_config.num_hidden_layers, config.text_config.vocab_size = 1, 512
    model = family.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def random_image(processor, path):
    """Writes an image that needs no resizing. Returns its bytes, cut as processors of Qwen cut them, and its grid."""
    image = torch.randint(0, 256, (RANDOM_SIDE, RANDOM_SIDE, 3), generator=torch.Generator().manual_seed(1))
    Image.fromarray(image.byte().numpy()).save(path)
    merge, patch = processor["merge_size"], processor["patch_size"]
    side = RANDOM_SIDE // patch
    cut = image.view(side // merge, merge, patch, side // merge, merge, patch, 3).permute(0, 3, 1, 4, 6, 2, 5)
    frames = cut.reshape(side**2, 3, 1, patch**2).repeat(1, 1, processor["temporal_patch_size"], 1)
    return frames.flatten(2), torch.tensor([[1, side, side]])


def read_inputs(folder, scratch):
    """Images, and for each its resized bytes and its grid, if it has one."""
    if not (folder / "images").is_dir():
        image = Path(scratch) / "image.png"
        return [image], [random_image(json.loads((folder / "preprocessor_config.json").read_text()), image)]
    golden = load_file(folder / "golden.safetensors")
    images = sorted((folder / "images").iterdir())
    return images, [(golden.get(f"{image.stem}.in.pixel_values_u8"), golden.get(f"{image.stem}.in.image_grid_thw"))
                    for image in images]


def normalized(resized, grid, processor):
    mean, deviation = (torch.tensor(processor[key]).view([3] + [1] * (resized.ndim - 2))
                       for key in ("image_mean", "image_std"))
    pixels = (resized.float() / 255 - mean) / deviation
    return pixels if grid is None else pixels.flatten(1)


def convert(tower, pixels):
    """The model for one image. What follows from its grid is computed here: OpenVINO does not know all of these
    operations."""
    traced = torch.jit.freeze(torch.jit.trace(tower.eval(), pixels, check_trace=False), optimize_numerics=False)
    return openvino.convert_model(traced, example_input=pixels, input=tuple(pixels.shape))


def openvino_rows(folder, inputs):
    """Rows of every image for every column of OPENVINO."""
    model = load_tower(folder)
    if model is None:
        return {}
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    got = {name: [] for name in OPENVINO}
    for resized, grid in inputs:
        pixels = normalized(resized, grid, processor)
        exact = convert(Tower(model, grid), pixels)
        rounded = compress(exact.clone())
        for name, (is_rounded, hints) in OPENVINO.items():
            compiled = openvino.Core().compile_model(rounded if is_rounded else exact, "CPU", hints)
            got[name].append(torch.from_numpy(compiled([pixels.numpy()])[0]))
    return got


# Both.

def closeness(got, want):
    got, want = (torch.cat([rows.double().flatten() for rows in items]) for items in (got, want))
    relative = (got - want).norm() / want.norm()
    return relative.item(), 1 - (got @ want / (got.norm() * want.norm())).item()


def measure(arguments, folder):
    with tempfile.TemporaryDirectory() as scratch:
        images, inputs = read_inputs(folder, scratch)
        want = fovea_rows(arguments.fovea, folder, images)
        got = {"fovea int8": fovea_rows(arguments.fovea, folder, images, "--quantization", "int8"),
               "fovea weights": rows_of_weights(arguments, folder, images,
                                                lambda weights: {k: fovea_weight(v) for k, v in weights.items()}),
               "nncf weights": rows_of_weights(arguments, folder, images, nncf_weights),
               **openvino_rows(folder, inputs)}
    exact = got.get("openvino exact")
    is_peer = {name: is_rounded for name, (is_rounded, _) in OPENVINO.items()}
    return {name: closeness(rows, exact if is_peer.get(name) else want) for name, rows in got.items()}


def default_precision():
    x = openvino.opset13.parameter([1], np.float32)
    compiled = openvino.Core().compile_model(openvino.Model([openvino.opset13.relu(x)], [x]), "CPU")
    return compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--fovea", type=Path, metavar="PROGRAM", required=True)
    arguments = parser.parse_args()
    nncf.set_log_level(logging.ERROR)
    transformers.logging.set_verbosity_error()
    version = subprocess.run([arguments.fovea, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"{version}, openvino {openvino.__version__} (chooses {default_precision()}), nncf {nncf.__version__}, "
          f"transformers {transformers.__version__}, torch {torch.__version__}")
    width = max(len(folder.name) for folder in arguments.models)
    print(" " * width + "".join(f"  {name:>17}" for name in COLUMNS))
    for folder in arguments.models:
        result = measure(arguments, folder)
        cells = (f"{result[name][0]:.2e} {result[name][1]:.1e}" if name in result else "-" for name in COLUMNS)
        print(f"{folder.name:<{width}}" + "".join(f"  {cell:>17}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
