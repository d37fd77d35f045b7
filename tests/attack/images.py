"""Small image files that ask for much: flat, so that kilobytes stand for hundreds of megabytes."""
import struct
import zlib


def zeros(count):
    """A zlib stream of `count` zero bytes. Its blocks are equal, so it costs no time to make."""
    block = 1 << 20
    packer = zlib.compressobj(9, wbits=-15)
    one = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, wbits=-15)
    tail = last.compress(bytes(count % block)) + last.flush()
    adler = (count % 65521) << 16 | 1
    return b"\x78\xda" + one * (count // block) + tail + struct.pack(">I", adler)


def _chunk(kind, payload):
    checksum = zlib.crc32(payload, zlib.crc32(kind))
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", checksum)


def _pass_bytes(width, height, bits, interlaced):
    """Bytes of all rows, each with its filter byte; those of Adam7's seven passes if interlaced."""
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                  (1, 0, 2, 2), (0, 1, 1, 2)]
    total = 0
    for x, y, dx, dy in passes:
        columns, rows = -(-(width - x) // dx), -(-(height - y) // dy)
        if columns > 0 and rows > 0:
            total += rows * (1 + (columns * bits + 7) // 8)
    return total


PNG_KINDS = {"grey1": (1, 0, 1), "rgb": (8, 2, 24), "rgba": (8, 6, 32)}


def png(width, height, kind="grey1", interlaced=False, surplus=0, chunks=b""):
    """A black PNG; `surplus` zero bytes follow its last row in the compressed stream."""
    depth, color, bits = PNG_KINDS[kind]
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    data = zeros(_pass_bytes(width, height, bits, interlaced) + surplus)
    return (b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + chunks + _chunk(b"IDAT", data) +
            _chunk(b"IEND", b""))


def png_of_texts(count, text_bytes):
    """A PNG with `count` texts that might be EXIF, each of so many bytes when it is inflated."""
    text = b"Raw profile type exif\0\0" + zeros(text_bytes)
    return png(64, 64, chunks=_chunk(b"zTXt", text) * count)


class Bits:
    """Bits of a stream, first bit highest."""

    def __init__(self):
        self.text = []

    def put(self, value, count):
        self.text.append(format(value, f"0{count}b") if count else "")
        return self

    def bytes(self, fill="0"):
        text = "".join(self.text)
        text += fill * (-len(text) % 8)
        return int(text, 2).to_bytes(len(text) // 8, "big") if text else b""


def _segment(marker, payload):
    return bytes([0xFF, marker]) + struct.pack(">H", len(payload) + 2) + payload


def _huffman(table, lengths, symbols):
    counts = bytes(lengths.get(bits, 0) for bits in range(1, 17))
    return _segment(0xC4, bytes([table]) + counts + bytes(symbols))


def _scan(component, first, last, high, data):
    head = bytes([1, component, 0, first, last, high << 4])
    return _segment(0xDA, head) + data


def _blocks_without_coefficients(blocks):
    """Entropy-coded data that says "end of band" for all blocks, 32,767 at a time."""
    bits = Bits()
    while blocks > 0:
        run = min(blocks, 32767)
        size = run.bit_length() - 1
        bits.put(size, 4).put(run - (1 << size), size)
        blocks -= run
    return bits.bytes("1").replace(b"\xff", b"\xff\x00")


def progressive_jpeg(width, height, components=1, scans=1, complete=True):
    """A flat progressive JPEG whose scans refine nothing, but visit every block. Complete ones also
    have the scan of mean values without which a decoder warns."""
    blocks = -(-width // 8) * -(-height // 8)
    ids = range(1, components + 1)
    frame = struct.pack(">BHHB", 8, height, width, components)
    frame += b"".join(bytes([i, 0x11, 0]) for i in ids)
    out = b"\xff\xd8" + _segment(0xDB, b"\0" + b"\1" * 64) + _segment(0xC2, frame)
    out += _huffman(0x00, {2: 2}, [0, 1])
    out += _huffman(0x10, {4: 15}, [run << 4 for run in range(15)])
    if complete:
        means = bytes((2 * blocks + 7) // 8)
        out += b"".join(_scan(i, 0, 0, 0, means) for i in ids)
    empty = _blocks_without_coefficients(blocks)
    out += b"".join(_scan(1 + n % components, 1, 63, 1, empty) for n in range(scans))
    return out + b"\xff\xd9"


def exif_jpeg(jpeg, entries):
    """`jpeg` with an EXIF block of these (tag, type, count, value) entries, true or not."""
    tiff = b"II*\0" + struct.pack("<IH", 8, len(entries))
    tiff += b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    return jpeg[:2] + _segment(0xE1, b"Exif\0\0" + tiff) + jpeg[2:]


ONE_SYMBOL = "1000"  # a code that takes no bits


def _vp8l(width, height, text="000" + ONE_SYMBOL * 5):
    """A lossless WebP image. By default, it has one colour: no transform, no colour cache, and one
    group of five codes."""
    text = format(width - 1, "014b")[::-1] + format(height - 1, "014b")[::-1] + "0" + "000" + text
    text += "0" * (-len(text) % 8)
    data = b"\x2f" + int(text[::-1], 2).to_bytes(len(text) // 8, "little")
    return b"VP8L" + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def _riff(chunks):
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks


def webp(width, height):
    return _riff(_vp8l(width, height))


def webp_of_transforms(width, height):
    """A WebP of one colour after three transforms whose images take no bits, and an image of codes."""
    image = "000" + "0" + ONE_SYMBOL * 5  # one pixel for 4 x 4, no cache
    kinds = ("00", "10", "01")  # predictor, colour, green
    transforms = "".join("1" + kind + ("" if kind == "01" else image) for kind in kinds)
    return _riff(_vp8l(width, height, transforms + "0" + "0" + "1" + image + ONE_SYMBOL * 5))


def webp_of_images(count):
    """A WebP of `count` images, of which decoders read the first; each has an image of codes."""
    image = "000" + "0" + ONE_SYMBOL * 5  # one pixel for 4 x 4, no cache
    return _riff(_vp8l(16383, 16383, "00" + "1" + image + ONE_SYMBOL * 5) * count)


def webp_of_codes(side, groups):
    """A WebP of one colour with so many groups of codes, for blocks of 4 x 4 pixels in turn."""
    lengths = "0" + format(8, "04b")[::-1] + "000" * 11 + "100"  # every symbol has 8 bits
    first_256 = "1" + format(3, "03b")[::-1] + format(254, "08b")[::-1]
    image = "0" + lengths + first_256 + lengths + "0" + ONE_SYMBOL * 3
    for block in range((side // 4) ** 2):
        group = block % groups
        image += format(group & 255, "08b") + format(group >> 8, "08b")
    return _riff(_vp8l(side, side, "00" + "1000" + image + ONE_SYMBOL * 5 * groups))


def _u24(*values):
    return b"".join(struct.pack("<I", value)[:3] for value in values)


def webp_animation(canvas_width, canvas_height, width, height):
    """One small frame on a large canvas."""
    canvas = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + _u24(canvas_width - 1,
                                                                   canvas_height - 1)
    head = b"ANIM" + struct.pack("<I", 6) + bytes(6)
    frame = _u24(0, 0, width - 1, height - 1, 100) + b"\0" + _vp8l(width, height)
    return _riff(canvas + head + b"ANMF" + struct.pack("<I", len(frame)) + frame)


def bmp(width, height, runs=None):
    """A header of 8-bit indices with two colours; by default, without its rows."""
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, int(runs is not None), 0, 0, 0, 2, 0)
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, 62) + head + b"\1\2\3\0\4\5\6\0" + (runs or b"")


def bmp_of_skips(width, height):
    """A BMP whose run lengths skip all rows, 255 of them at a time."""
    return bmp(width, height, b"\0\2\0\xff" * (height // 255 + 1) + b"\0\1")


def gif(screen, frame, data=b"\x04\x84\x10"):
    """A screen and a frame of these sides, by default with a few codes; `data` is one piece of them."""
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + bytes(6)
    codes = bytes([2, len(data)]) + data
    return head + struct.pack("<BHHHHB", 0x2C, 0, 0, *frame, 0) + codes + b"\0;"


def gif_of_pieces(count):
    """A frame of one pixel behind so many empty extensions and in front of as many pieces of codes."""
    start = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes(6)
    frame = struct.pack("<BHHHHB", 0x2C, 0, 0, 1, 1, 0) + b"\2\2\x44\1"
    return start + b"!\x99\1\0\0" * count + frame + b"\1\0" * count + b"\0;"


def tiff(fields, data=b""):
    """A directory of these fields, each of one number, or of a list that lies behind it, and data."""
    place = 8 + 2 + 12 * len(fields) + 4
    entries = lists = b""
    for tag, value in sorted(fields.items()):
        values = value if isinstance(value, list) else [value]
        at = value if len(values) == 1 and value is not values else place + len(lists)
        entries += struct.pack("<HHII", tag, 4, len(values), at)
        if values is value:
            lists += struct.pack(f"<{len(values)}I", *values)
    return b"II*\0" + struct.pack("<IH", 8, len(fields)) + entries + bytes(4) + lists + data


def tiff_image(width, height, **changes):
    """A grey TIFF that says it has one strip of no compression."""
    fields = {"f256": width, "f257": height, "f258": 8, "f259": 1, "f262": 1, "f273": 8, "f277": 1, "f278": height,
              "f279": 100} | changes
    return tiff({int(tag[1:]): value for tag, value in fields.items() if value is not None})


def tiff_of_equal_strips(side, rows):
    """A TIFF whose strips are all the same zlib stream of zeros."""
    data = zeros(side * rows)
    count = -(-side // rows)
    place = 8 + 2 + 12 * 9 + 4 + 8 * count
    fields = {256: side, 257: side, 258: 8, 259: 8, 262: 1, 273: [place] * count, 277: 1, 278: rows,
              279: [len(data)] * count}
    return tiff(fields, data)


def tiff_of_fields(count):
    """A directory of so many fields that lie upon each other."""
    fields = {tag: tag for tag in range(1000, 1000 + count)} | {256: 1, 257: 1, 258: 8, 262: 1, 273: 8, 279: 1}
    return tiff(fields)


def _box(kind, *parts):
    payload = b"".join(parts)
    return struct.pack(">I", 8 + len(payload)) + kind + payload


def avif(width, height, data=b"\x12\0\x0a\x04\0\0\0\x02"):
    """An AVIF file of one item that says it has these sides; by default, without coded pixels."""
    full = lambda kind, *parts: _box(kind, bytes(4), *parts)
    infe = _box(b"infe", b"\2\0\0\0", struct.pack(">HH", 1, 0), b"av01\0")
    ispe = full(b"ispe", struct.pack(">II", width, height))
    av1c = _box(b"av1C", b"\x81\0\x0c\0")
    pixi = full(b"pixi", b"\3\x08\x08\x08")
    ipma = full(b"ipma", struct.pack(">IHB", 1, 1, 3), b"\1\x82\3")

    def meta(offset):
        iloc = full(b"iloc", b"\x44\0", struct.pack(">HHHHII", 1, 1, 0, 1, offset, len(data)))
        return full(b"meta", full(b"hdlr", bytes(4), b"pict", bytes(13)), full(b"pitm", b"\0\1"), iloc,
                    full(b"iinf", b"\0\1", infe), _box(b"iprp", _box(b"ipco", ispe, av1c, pixi), ipma))

    head = _box(b"ftyp", b"avif\0\0\0\0avifmif1miaf")
    return head + meta(len(head) + len(meta(0)) + 8) + _box(b"mdat", data)


def heic_of_extents(items, extents):
    """A HEIC file that says where its items lie: each in so many pieces that take no bytes."""
    places = b"".join(struct.pack(">HHH", i + 1, 0, extents) for i in range(items))
    iloc = _box(b"iloc", bytes(4), bytes(2), struct.pack(">H", items), places)
    return _box(b"ftyp", b"heic\0\0\0\0mif1heic") + _box(b"meta", bytes(4), iloc)


def heic(width, height, items=1, kind=b"hvc1", made_of=(), data=bytes(1000)):
    """A HEIC file whose image, item 1, says it has these sides, and items that all have the same bytes."""
    full = lambda box, *parts: _box(box, bytes(4), *parts)
    infes = [_box(b"infe", b"\2\0\0\0", struct.pack(">HH", i + 1, 0), (kind if i == 0 else b"hvc1") + b"\0") for i in range(items)]
    ispe = full(b"ispe", struct.pack(">II", width, height))
    hvcc = _box(b"hvcC", b"\1\3\x70" + bytes(18) + b"\x0f\0")
    ipma = full(b"ipma", struct.pack(">IHB", 1, 1, 2), b"\x82\1")
    iref = full(b"iref", _box(b"dimg", struct.pack(f">HH{len(made_of)}H", 1, len(made_of), *made_of))) if made_of else b""

    def meta(offset):
        places = [struct.pack(">HHHII", i + 1, 0, 1, offset, len(data)) for i in range(items)]
        iloc = full(b"iloc", b"\x44\0", struct.pack(">H", items), *places)
        return full(b"meta", full(b"hdlr", bytes(4), b"pict", bytes(13)), full(b"pitm", b"\0\1"), iloc,
                    full(b"iinf", struct.pack(">H", items), *infes), _box(b"iprp", _box(b"ipco", ispe, hvcc), ipma), iref)

    head = _box(b"ftyp", b"heic\0\0\0\0mif1heic")
    return head + meta(len(head) + len(meta(0)) + 8) + _box(b"mdat", data)
