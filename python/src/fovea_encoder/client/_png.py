"""Pixels as a PNG file, so that they reach a server as they are."""

from __future__ import annotations

import struct
import zlib

from ._http import Bytes

# Up to here, packing takes longer than sending; beyond it, images come near the 32 MiB that servers
# take (--max-image-bytes).
_PLAIN_BYTES = 16 << 20


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))


def png(pixels: Bytes, width: int, height: int) -> bytes:
    """`pixels` are RGB, height * width * 3 bytes. Source: PNG (third edition), 5 and 11.2.1."""
    view, stride = memoryview(pixels).cast("B"), 3 * width
    rows = bytearray()
    for begin in range(0, height * stride, stride):
        rows += b"\0"  # a row without a filter
        rows += view[begin : begin + stride]
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(rows, 0 if len(rows) <= _PLAIN_BYTES else 1)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", size) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
