"""Parts of tiny models whose published checkpoints bring code of their own and have names of tensors that transformers does not
write: what tiny_models.py puts beside a language model."""

import pathlib

import torch

CODE = pathlib.Path(__file__).with_name("tiny_vendor_code.py")


def linear(name, width, *shape, bias=True):
    return {f"{name}.weight": (width, *shape), **({f"{name}.bias": (width,)} if bias else {})}


def norm(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def kimi_vl(config):
    """Shapes of the tensors of the tower and its projector, by name."""
    vision, words = config["vision_config"], config["text_config"]["hidden_size"]
    width, hidden, side = (vision[key] for key in ("hidden_size", "intermediate_size", "patch_size"))
    table = (vision["init_pos_emb_height"], vision["init_pos_emb_width"], width)
    shapes = {**linear("vision_tower.patch_embed.proj", width, 3, side, side), "vision_tower.patch_embed.pos_emb.weight": table}
    for i in range(vision["num_hidden_layers"]):
        block = f"vision_tower.encoder.blocks.{i}"
        shapes |= {**norm(f"{block}.norm0", width), **norm(f"{block}.norm1", width)}
        shapes |= {**linear(f"{block}.wqkv", 3 * width, width), **linear(f"{block}.wo", width, width)}
        shapes |= {**linear(f"{block}.mlp.fc0", hidden, width), **linear(f"{block}.mlp.fc1", width, hidden)}
    shapes |= norm("vision_tower.encoder.final_layernorm", width)
    shapes |= norm("multi_modal_projector.pre_norm", width)
    shapes |= linear("multi_modal_projector.linear_1", 4 * width, 4 * width)
    return {**shapes, **linear("multi_modal_projector.linear_2", words, 4 * width)}


def kimi_k25(config):
    """As kimi_vl()."""
    names = {
        "multi_modal_projector.linear_1": "mm_projector.proj.0", "multi_modal_projector.linear_2": "mm_projector.proj.2",
        "multi_modal_projector": "mm_projector",
    }  # fmt: skip

    def published(name):
        for old, new in names.items():
            if name.startswith(old):
                return new + name[len(old) :]
        return name

    return {published(name): shape for name, shape in kimi_vl(config).items()}


def internvl_chat(config):
    """As kimi_vl()."""
    vision, words = config["vision_config"], (config.get("llm_config") or config["text_config"])["hidden_size"]
    width, hidden, side = (vision[key] for key in ("hidden_size", "intermediate_size", "patch_size"))
    tower = "vision_model.embeddings"
    shapes = {f"{tower}.class_embedding": (1, 1, width), **linear(f"{tower}.patch_embedding", width, 3, side, side)}
    shapes[f"{tower}.position_embedding"] = (1, 1 + (vision["image_size"] // side) ** 2, width)
    for i in range(vision["num_hidden_layers"]):
        layer = f"vision_model.encoder.layers.{i}"
        shapes |= {f"{layer}.ls1": (width,), f"{layer}.ls2": (width,)}
        shapes |= {**norm(f"{layer}.norm1", width), **norm(f"{layer}.norm2", width)}
        shapes |= {**linear(f"{layer}.attn.qkv", 3 * width, width), **linear(f"{layer}.attn.proj", width, width)}
        shapes |= {**linear(f"{layer}.mlp.fc1", hidden, width), **linear(f"{layer}.mlp.fc2", width, hidden)}
    return {**shapes, **norm("mlp1.0", 4 * width), **linear("mlp1.1", words, 4 * width), **linear("mlp1.3", words, words)}


def random_tensors(shapes, deviation):
    """By the names of `shapes`. Norms and scales of layers lie about 1, biases about 0."""
    tensors = {}
    for name, shape in shapes.items():
        is_scale = len(shape) == 1 and not name.endswith(".bias")
        tensors[name] = torch.randn(shape) * (0.02 if len(shape) == 1 else deviation) + is_scale
    return tensors
