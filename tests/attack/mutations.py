"""Cases made at random for a long run. Equal seeds give equal cases."""
import copy
import json
import random
import shlex

import checkpoints as ck
from case import Case, Expected

FLAGS = ("--token-budgets --max-items-per-batch --max-frames-per-batch --max-num-batched-tokens "
         "--min-pixels --max-pixels --max-image-pixels --max-item-bytes --max-patches-per-item "
         "--max-patches-at-once --max-decode-bytes --decode-deadline --deadline --seed "
         "--data-parallel-size --rgba-background-color --video-pruning-rate --compilation-config "
         "--limit-mm-per-prompt --max-model-len --tensor-parallel-size --fps --device --dtype --media-profile "
         "--image-backend --packing --golden --cache-dir").split()
NUMBERS = ["0", "1", "-1", "7", str(2**31), str(2**32), str(2**63 - 1), str(-2**63), str(2**64),
           "1e308", "1e-308", "-0.0", "nan", "inf", "0x10", "1,2,3", "", " ", "\u00e9", "[]", "{}"]
VALUES = [0, 1, -1, 2**31, 2**63 - 1, 2**64, 1e308, -1e-308, 0.5, "", "x", [], {}, None, True,
          [[[]]], [0] * 1000, {"a": {"a": {}}}]


def _images():
    tests = ck.golden_folder().parent.parent
    folders = [tests / "media" / "images", ck.golden_folder() / "images"]
    folders += [tests / "fuzz" / "corpus" / f"decode_{kind}" for kind in ("bmp", "gif", "tiff", "avif", "heic")]
    return [path for folder in folders for path in sorted(folder.iterdir())]


def _mutated(chance, content):
    """A truncation, or a few flipped bits."""
    if chance.random() < 0.5:
        return content[:chance.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(chance.randint(1, 16)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def image(chance):
    path = chance.choice(_images())
    name = "a" + path.suffix
    return (f"encode MODEL {name} -o out.st --max-pixels 20000",
            {name: _mutated(chance, path.read_bytes())}, (0, 1))


def weights(chance):
    at = chance.getrandbits(63)

    def change(content):
        changed = bytearray(content)
        header = 8 + int.from_bytes(content[:8], "little")
        changed[at % header] ^= 1 << at % 8
        return bytes(changed) if at % 3 else bytes(changed[:at % len(changed)])

    return "inspect m", {"m": ck.with_weights(ck.golden_folder(), change)}, (0, 1)


def _replace_one(chance, node):
    """Replaces a value somewhere in a tree of lists and objects."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    key = chance.choice(keys)
    if isinstance(node[key], (dict, list)) and node[key] and chance.random() < 0.8:
        _replace_one(chance, node[key])
    else:
        node[key] = copy.deepcopy(chance.choice(VALUES))


def configuration(chance):
    source = chance.choice(sorted((ck.golden_folder().parent.parent / "configs").iterdir()))
    files = {}
    for path in source.glob("*.json"):
        config = json.loads(path.read_text())
        for _ in range(chance.randint(0, 3)):
            _replace_one(chance, config)
        files["m/" + path.name] = json.dumps(config)
    verb = chance.choice(["inspect m --load-format dummy --image 640x480",
                          "plan m --sizes 640x480,64x64x4f"])
    return verb, files, (0, 1)


def flags(chance):
    words = []
    for flag in chance.sample(FLAGS, chance.randint(1, 3)):
        words += [flag, chance.choice(NUMBERS)]
    verb = "encode MODEL MODEL/images/shapes_120x90.png -o out.st "
    return verb + shlex.join(words), {}, (0, 1, 2)


def cases(seed, count):
    """`count` cases, in turn of each kind."""
    kinds = [image, image, configuration, flags, weights]
    for number in range(count):
        make = kinds[number % len(kinds)]
        command, files, codes = make(random.Random(f"{seed}.{number}"))
        yield Case(f"mutation.{make.__name__}.{seed}.{number}", command, Expected(codes), files)
