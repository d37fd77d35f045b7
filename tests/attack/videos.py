"""Small video files with many or large frames."""
import struct

import images


def _size(count):
    return struct.pack(">Q", 1 << 56 | count)


def _element(name, payload):
    if isinstance(payload, int):
        payload = payload.to_bytes(max(1, (payload.bit_length() + 7) // 8), "big")
    return bytes.fromhex(name) + _size(len(payload)) + payload


def _track(codec, private, width, height):
    picture = _element("B0", width) + _element("BA", height)
    return _element("AE", _element("D7", 1) + _element("73C5", 1) + _element("83", 1) +
                    _element("86", codec) + _element("63A2", private) + _element("E0", picture))


def _clusters(packets, frame_ms):
    step = max(1, 30000 // frame_ms)  # a block's time is 16 bits of milliseconds
    for start in range(0, len(packets), step):
        blocks = b""
        for i, packet in enumerate(packets[start:start + step]):
            key = 0x80 if start + i == 0 or packet is packets[0] else 0
            blocks += _element("A3", b"\x81" + struct.pack(">hB", i * frame_ms, key) + packet)
        yield _element("1F43B675", _element("E7", start * frame_ms) + blocks)


def matroska(codec, private, width, height, packets, frame_ms=500):
    """A video of these packets whose header says width x height."""
    head = _element("1A45DFA3", _element("4282", b"matroska") + _element("4287", 4) +
                    _element("4285", 2))
    length = struct.pack(">d", float(len(packets) * frame_ms))
    info = _element("1549A966", _element("2AD7B1", 1000000) + _element("4489", length))
    tracks = _element("1654AE6B", _track(codec, private, width, height))
    return head + _element("18538067", info + tracks + b"".join(_clusters(packets, frame_ms)))


def of_pngs(width, height, packets):
    """A video whose packets are PNG files of any size."""
    bitmap = struct.pack("<IiiHH4sIIIII", 40, width, height, 1, 24, b"MPNG", 0, 0, 0, 0, 0)
    return matroska(b"V_MS/VFW/FOURCC", bitmap, width, height, packets)


def large_frames(side, count):
    """`count` black frames, side x side."""
    return of_pngs(side, side, [images.png(side, side)] * count)


def growing_frames(side, count):
    """The header says 64x64, and so is the first frame; the others are side x side."""
    first, other = images.png(64, 64), images.png(side, side)
    return of_pngs(64, 64, [first] + [other] * (count - 1))


class _H264Bits(images.Bits):
    def ue(self, value):
        """An unsigned Exp-Golomb code."""
        size = (value + 1).bit_length()
        return self.put(0, size - 1).put(value + 1, size)

    def unit(self, kind):
        """A NAL unit: stop bit, alignment, escapes."""
        self.put(1, 1)
        raw, out, zeros = self.bytes(), bytearray([kind]), 0
        for byte in raw:
            if zeros >= 2 and byte <= 3:
                out.append(3)
                zeros = 0
            zeros = zeros + 1 if byte == 0 else 0
            out.append(byte)
        return bytes(out)


def _sequence_set(columns, rows):
    bits = _H264Bits().put(66, 8).put(0, 8).put(51, 8).ue(0)
    bits.ue(0).ue(2).ue(1).put(0, 1)  # 4-bit frame numbers, output in decoding order, one reference
    return bits.ue(columns - 1).ue(rows - 1).put(1, 1).put(1, 1).put(0, 2).unit(0x67)


def _picture_set():
    bits = _H264Bits().ue(0).ue(0).put(0, 2).ue(0).ue(0).ue(0).put(0, 3)
    return bits.ue(0).ue(0).ue(0).put(4, 3).unit(0x68)  # with control of the deblocking filter


def _grey_frame(blocks):
    bits = _H264Bits().ue(0).ue(7).ue(0).put(0, 4).ue(0).put(0, 2).ue(0).ue(1)
    for _ in range(blocks):
        bits.put(0x27, 8)  # mean of the neighbours, nothing added
    return bits.unit(0x65)


def _skipped_frame(number, blocks):
    bits = _H264Bits().ue(0).ue(5).ue(0).put(number % 16, 4).put(0, 1).put(0, 1).put(0, 1)
    return bits.ue(0).ue(1).ue(blocks).unit(0x61)


def skipped_frames(columns, rows, count, frame_ms):
    """H.264 of columns x rows macroblocks: a grey frame, then frames of 16 bytes that repeat it."""
    sequence, picture = _sequence_set(columns, rows), _picture_set()
    blocks = columns * rows
    skipped = [_skipped_frame(number, blocks) for number in range(16)]
    frames = [_grey_frame(blocks)] + [skipped[n % 16] for n in range(1, count)]
    private = (b"\1" + sequence[1:4] + b"\xff\xe1" + struct.pack(">H", len(sequence)) + sequence +
               b"\1" + struct.pack(">H", len(picture)) + picture)
    packets = {id(frame): struct.pack(">I", len(frame)) + frame for frame in frames}
    return matroska(b"V_MPEG4/ISO/AVC", private, 16 * columns, 16 * rows,
                    [packets[id(frame)] for frame in frames], frame_ms)


def _box(name, *parts):
    payload = b"".join(parts)
    return struct.pack(">I4s", 8 + len(payload), name) + payload


def _table(name, *numbers):
    return _box(name, bytes(4), struct.pack(f">{len(numbers)}I", *numbers))


def _mp4(track, *fragments):
    """An MP4 file whose one track has these tables, and whose frames are 64x64 PNG files."""
    matrix = struct.pack(">9I", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    entry = _box(b"png ", bytes(6), struct.pack(">H", 1), bytes(16), struct.pack(">HH", 64, 64),
                 bytes(50))
    movie = _box(b"mvhd", bytes(12), struct.pack(">II", 1000, 1000), bytes(12), matrix, bytes(28))
    header = _box(b"tkhd", bytes(3), b"\x03", bytes(8), struct.pack(">II", 1, 0), bytes(24), matrix,
                  struct.pack(">II", 64 << 16, 64 << 16))
    tables = _box(b"stbl", _box(b"stsd", bytes(4), struct.pack(">I", 1), entry), track)
    media = _box(b"mdia", _box(b"mdhd", bytes(12), struct.pack(">II", 1000, 1000), bytes(4)),
                 _box(b"hdlr", bytes(8), b"vide", bytes(13)), _box(b"minf", tables))
    extends = _box(b"mvex", _table(b"trex", 1, 1, 1, 1, 0))
    return (_box(b"ftyp", b"isom", bytes(4)) +
            _box(b"moov", movie, _box(b"trak", header, media), extends) + b"".join(fragments))


def mp4_of_samples(count):
    """A header of some hundred bytes that speaks of `count` samples."""
    return _mp4(_table(b"stts", 1, count, 1) + _table(b"stsc", 1, 1, count, 1) +
                _table(b"stsz", 1, count) + _table(b"stco", 1, 1000)) + bytes(4096)


def mp4_of_fragments(count):
    """A fragment of some dozen bytes that speaks of `count` samples."""
    empty = _table(b"stts", 0) + _table(b"stsc", 0) + _table(b"stsz", 0, 0) + _table(b"stco", 0)
    run = _box(b"traf", _table(b"tfhd", 1), _table(b"trun", count))
    return _mp4(empty, _box(b"moof", _table(b"mfhd", 1), run)) + _box(b"mdat", bytes(4096))


def mp4_of_endless_tables(count):
    """A header of `count` empty tables that say they are as long as a table can be."""
    return _mp4(_table(b"stsc", 0xFFFFFFFF) * count) + bytes(4096)
