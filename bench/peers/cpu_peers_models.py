"""What cpu_peers.py measures: one Qwen3-VL vision tower with random weights in the format of every peer.

All come from the module of torch_cpu.py, not from that of transformers: its shapes are fixed, so every exporter
follows it. Position weights and rotary angles are constants of each model. Weights are bf16 numbers in f32, so that
the checkpoint for Fovea holds the same ones.
"""

import json
import math
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import torch_cpu

SEED = 1
WEIGHT_DEVIATION = 0.02
LEVEL_SCALE = 127.5  # of a byte of an image: pixels lie in [-1, 1]
OPSET = 20  # the first with Gelu


class FixedTower(nn.Module):
    """The tower on one image of a fixed number of patches."""

    def __init__(self, tower, sizes, patches):
        super().__init__()
        random = torch.Generator().manual_seed(SEED + patches)
        angles = torch.rand(patches, 1, sizes.head_dim // 2, generator=random) * 2 * torch.pi
        positions = torch.randn(patches, sizes.hidden, generator=random) * WEIGHT_DEVIATION
        self.tower, self.patches = tower, patches
        self.register_buffer("positions", positions)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, pixels):
        return self.tower(pixels, self.positions, self.cos, self.sin, [self.patches])


def make_pixels(sizes, patches, seed=SEED):
    random = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (patches, sizes.patch), generator=random) / LEVEL_SCALE - 1


def random_weights(sizes):
    random = torch.Generator().manual_seed(SEED)
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in torch_cpu.Tower(sizes).state_dict().items()}

    def weight(name, shape):
        mean = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        return (mean + WEIGHT_DEVIATION * torch.randn(shape, generator=random)).bfloat16()

    return {name: weight(name, shape) for name, shape in shapes.items()}


def checkpoint_name(name):
    """The name of a weight of torch_cpu.Tower in a checkpoint of Qwen3-VL."""
    for ours, theirs in (("embed.", "patch_embed.proj."), ("deepstack_mergers.", "deepstack_merger_list.")):
        if name.startswith(ours):
            name = theirs + name[len(ours):]
    for ours, theirs in ((".qkv.", ".attn.qkv."), (".proj.", ".attn.proj.")):
        if name.startswith("blocks."):
            name = name.replace(ours, theirs)
    for layer in ("fc1", "fc2"):
        name = name.replace(f".{layer}.", f"{'.mlp' if name.startswith('blocks.') else ''}.linear_{layer}.")
    return "model.visual." + name


def write_checkpoint(config, folder):
    """For Fovea, and all that follows reads the weights from it."""
    sizes = torch_cpu.Sizes(config)
    vision = json.loads(Path(config).read_text(encoding="utf-8"))["vision_config"]
    tensors = {checkpoint_name(name): value for name, value in random_weights(sizes).items()}
    patch, side = "model.visual.patch_embed.proj.weight", sizes.patch_side
    tensors[patch] = tensors[patch].view(sizes.hidden, -1, vision["temporal_patch_size"], side, side)
    tensors["model.visual.pos_embed.weight"] = torch.zeros(
        vision["num_position_embeddings"], sizes.hidden, dtype=torch.bfloat16)
    save_file(tensors, folder / "model.safetensors")
    shutil.copy(config, folder / "config.json")
    (folder / "preprocessor_config.json").write_text(json.dumps({
        "image_processor_type": "Qwen2VLImageProcessor", "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
        "patch_size": side, "merge_size": vision["spatial_merge_size"],
        "temporal_patch_size": vision["temporal_patch_size"],
        "size": {"shortest_edge": 4 * side**2, "longest_edge": 1 << 24}}), encoding="utf-8")


def fixed_tower(config, patches, work):
    """The module with the weights of the checkpoint in `work`, and an image for it."""
    sizes = torch_cpu.Sizes(config)
    tensors = load_file(work / "checkpoint" / "model.safetensors")
    with torch.device("meta"):
        tower = torch_cpu.Tower(sizes)
    weights = {name: tensors[checkpoint_name(name)].float().view(value.shape)
               for name, value in tower.state_dict().items()}
    tower.load_state_dict(weights, assign=True)
    fixed = FixedTower(tower, sizes, patches).eval().requires_grad_(False)
    return fixed, make_pixels(sizes, patches)


def write_reference(config, patches, folder):
    """The rows that peers are compared with."""
    tower, pixels = fixed_tower(config, patches, folder.parent)
    np.savez(folder / "rows.npz", pixels=pixels.numpy(), rows=tower(pixels).numpy())


# PyTorch inductor.

def write_inductor(config, patches, threads, folder):
    """Ahead of time, because inductor then multiplies with oneDNN and not with MKL, which is slow on processors of
    other makers, and because a measurement then needs not compile."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
    torch.set_num_threads(threads)  # compiled code is for one number of threads
    tower, pixels = fixed_tower(config, patches, folder.parent)
    package = torch._inductor.aoti_compile_and_package(
        torch.export.export(tower, (pixels,)), package_path=str(folder / "tower.pt2"),
        inductor_configs={"freezing": True})
    with zipfile.ZipFile(package) as file:
        file.extractall(folder)  # tower/, which loads faster than the package
    Path(package).unlink()
    shutil.rmtree(folder / "cache")


# OpenVINO.

def write_openvino(config, patches, folder):
    import openvino

    tower, pixels = fixed_tower(config, patches, folder.parent)
    model = openvino.convert_model(tower, example_input=pixels, input=tuple(pixels.shape))
    openvino.save_model(model, folder / "tower.xml", compress_to_fp16=False)


def write_openvino_int8(mode, config, patches, source, folder):
    import nncf
    import openvino

    model = openvino.Core().read_model(source / "tower.xml")
    if mode == "weights":
        model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
    else:
        pixels = make_pixels(torch_cpu.Sizes(config), patches, seed=SEED + 1).numpy()
        model = nncf.quantize(model, nncf.Dataset([pixels]), subset_size=1, model_type=nncf.ModelType.TRANSFORMER)
    openvino.save_model(model, folder / "tower.xml", compress_to_fp16=False)


# ONNX Runtime: its own operators for attention and rotation, which exporters do not reach.

class OnnxGraph:
    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, kind, inputs, outputs=1, domain="", **attributes):
        from onnx import helper

        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values):
        from onnx import numpy_helper

        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def reshape(self, x, *shape):
        return self.add("Reshape", [x, self.constant(np.array(shape, np.int64))])

    def norm(self, x, layer):
        inputs = [x, self.constant(layer.weight.numpy()), self.constant(layer.bias.numpy())]
        return self.add("LayerNormalization", inputs, axis=-1, epsilon=layer.eps)

    def linear(self, x, layer):
        return self.add("Add", [self.add("MatMul", [x, self.constant(layer.weight.T.numpy())]),
                                self.constant(layer.bias.numpy())])

    def merger(self, x, merger):
        merge = [x, -1, merger.width]
        x = self.norm(self.reshape(*merge), merger.norm) if merger.norm_after_merge else self.reshape(
            self.norm(x, merger.norm), *merge[1:])
        return self.linear(self.add("Gelu", [self.linear(x, merger.fc1)], approximate="none"), merger.fc2)


def onnx_attention(graph, x, block, tables):
    sizes = block.sizes
    qkv = graph.reshape(graph.linear(x, block.qkv), 1, -1, 3 * sizes.hidden)
    q, k, v = graph.add("Split", [qkv], outputs=3, axis=2, num_outputs=3)
    q, k = (graph.add("RotaryEmbedding", [part, *tables], domain="com.microsoft", num_heads=sizes.heads)
            for part in (q, k))
    heads = graph.add("MultiHeadAttention", [q, k, v], domain="com.microsoft", num_heads=sizes.heads)
    return graph.linear(graph.reshape(heads, -1, sizes.hidden), block.proj)


def write_onnx(config, patches, folder):
    import onnx
    from onnx import helper

    fixed, pixels = fixed_tower(config, patches, folder.parent)
    tower, graph = fixed.tower, OnnxGraph()
    tables = [graph.constant(np.arange(patches, dtype=np.int64)[None]),
              graph.constant(fixed.cos[:, 0].numpy()), graph.constant(fixed.sin[:, 0].numpy())]
    x = graph.add("Add", [graph.linear("pixels", tower.embed), graph.constant(fixed.positions.numpy())])
    levels = []
    for index, block in enumerate(tower.blocks):
        x = graph.add("Add", [x, onnx_attention(graph, graph.norm(x, block.norm1), block, tables)])
        inner = graph.add("Gelu", [graph.linear(graph.norm(x, block.norm2), block.fc1)], approximate="tanh")
        x = graph.add("Add", [x, graph.linear(inner, block.fc2)])
        if index in tower.deepstack:
            levels.append(graph.merger(x, tower.deepstack_mergers[tower.deepstack.index(index)]))
    rows = graph.add("Concat", [graph.merger(x, tower.merger), *levels], axis=1)
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
            for name, shape in (("pixels", list(pixels.shape)), (rows, [patches // block.sizes.merge, None]))]
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(graph.nodes, "tower", ends[:1], ends[1:], graph.weights),
                              opset_imports=opsets, ir_version=10)
    onnx.save_model(model, folder / "tower.onnx", save_as_external_data=True, location="weights")


def write_onnx_int8(source, folder):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source / "tower.onnx", folder / "tower.onnx", weight_type=QuantType.QInt8, per_channel=True,
                     op_types_to_quantize=["MatMul"],
                     extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})  # behind com.microsoft's operators


# llama.cpp: tensors and fields as in convert_hf_to_gguf.py of its version 0.5, with --mmproj.

GGUF_NAMES = (
    ("model.visual.merger.norm.", "v.post_ln."), ("model.visual.merger.linear_fc1.", "mm.0."),
    ("model.visual.merger.linear_fc2.", "mm.2."), ("model.visual.", "v."), ("blocks.", "blk."), ("norm1.", "ln1."),
    ("norm2.", "ln2."), ("attn.qkv.", "attn_qkv."), ("attn.proj.", "attn_out."), ("mlp.linear_fc1.", "ffn_up."),
    ("mlp.linear_fc2.", "ffn_down."), ("deepstack_merger_list.", "deepstack."), (".linear_fc", ".fc"),
    ("patch_embed.proj.", "patch_embd."), ("pos_embed.", "position_embd."))


def gguf_tensors(tensors, deepstack):
    """A checkpoint under llama.cpp's names, which count deepstack mergers by block and split patches by frame."""
    for name, value in tensors.items():
        for ours, theirs in GGUF_NAMES:
            name = name.replace(ours, theirs)
        if name.startswith("v.deepstack."):
            _, _, index, rest = name.split(".", 3)
            name = f"v.deepstack.{deepstack[int(index)]}.{rest}"
        if name == "v.patch_embd.weight":
            yield from ((name, value[:, :, 0]), (name + ".1", value[:, :, 1]))
        else:
            yield name, value


def add_gguf_fields(writer, sizes, vision):
    import gguf

    writer.add_type(gguf.GGUFType.MMPROJ)
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(gguf.VisionProjectorType.QWEN3VL)
    writer.add_vision_projection_dim(sizes.out)
    writer.add_vision_image_size(math.isqrt(vision["num_position_embeddings"]) * sizes.patch_side)
    writer.add_vision_patch_size(sizes.patch_side)
    writer.add_vision_spatial_merge_size(vision["spatial_merge_size"])
    writer.add_vision_embedding_length(sizes.hidden)
    writer.add_vision_feed_forward_length(sizes.mlp)
    writer.add_vision_block_count(sizes.depth)
    writer.add_vision_head_count(sizes.heads)
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_use_gelu(True)
    writer.add_vision_is_deepstack_layers([index in sizes.deepstack for index in range(sizes.depth)])
    writer.add_vision_image_mean([0.5] * 3)
    writer.add_vision_image_std([0.5] * 3)


def finish_gguf(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_vocabulary(path):
    """The least that llama.cpp makes tokens of an image with: those that it puts at its ends."""
    import gguf

    writer = gguf.GGUFWriter(path, "qwen3vl")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>", "<|vision_start|>", "<|vision_end|>"])
    writer.add_token_types([gguf.TokenType.UNKNOWN] + 4 * [gguf.TokenType.CONTROL])
    finish_gguf(writer)


def write_gguf(kind, config, folder):
    import gguf

    sizes = torch_cpu.Sizes(config)
    vision = json.loads(Path(config).read_text(encoding="utf-8"))["vision_config"]
    writer = gguf.GGUFWriter(folder / "tower.gguf", "clip")
    add_gguf_fields(writer, sizes, vision)
    tensors = load_file(folder.parent / "checkpoint" / "model.safetensors")
    for name, value in gguf_tensors(tensors, sizes.deepstack):
        quantized = value.dim() == 2 and name != "v.position_embd.weight"  # the weights of linear layers
        kept_as = gguf.GGMLQuantizationType[kind.upper() if quantized else "F32"]
        writer.add_tensor(name, gguf.quants.quantize(value.float().numpy(), kept_as), raw_dtype=kept_as)
    finish_gguf(writer)
    write_vocabulary(folder / "vocabulary.gguf")
