"""Requests of OTLP as a collector reads them: protobuf becomes what JSON says, whole numbers as text.

Numbers of fields are those of opentelemetry/proto/trace/v1/trace.proto.
"""
import json
import struct


def fields_of(data):
    """Numbers and values of a message; texts, bytes and messages are bytes."""
    place = 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind in (1, 2):
            size = 8 if kind == 1 else varint()
            value = data[place:place + size]
            assert len(value) == size, "a field ends early"
            place += size
        else:
            raise AssertionError(f"wire type {kind}")
        yield key >> 3, value


def texts_of(data, names):
    return {names[number]: value.decode() for number, value in fields_of(data)}


def value_of(data):
    (number, value), = fields_of(data)
    return {1: lambda: {"stringValue": value.decode()},
            2: lambda: {"boolValue": bool(value)},
            3: lambda: {"intValue": str(value - (1 << 64) if value >> 63 else value)},
            4: lambda: {"doubleValue": struct.unpack("<d", value)[0]}}[number]()


def attribute_of(data):
    key, value = (value for _, value in fields_of(data))
    return {"key": key.decode(), "value": value_of(value)}


def span_of(data):
    span = {"attributes": []}
    for number, value in fields_of(data):
        if number in (1, 2, 4):
            span[{1: "traceId", 2: "spanId", 4: "parentSpanId"}[number]] = value.hex()
        elif number in (3, 5):
            span[{3: "traceState", 5: "name"}[number]] = value.decode()
        elif number == 6:
            span["kind"] = value
        elif number in (7, 8):
            span[{7: "startTimeUnixNano", 8: "endTimeUnixNano"}[number]] = str(struct.unpack("<Q", value)[0])
        elif number == 9:
            span["attributes"].append(attribute_of(value))
        elif number == 13:
            trace_id, span_id = (value for _, value in fields_of(value))
            span.setdefault("links", []).append({"traceId": trace_id.hex(), "spanId": span_id.hex()})
        elif number == 15:
            span["status"] = {"code": dict(fields_of(value))[3]}
        else:
            raise AssertionError(f"field {number} of a span")
    return span


def scope_of(data):
    scope = {"spans": []}
    for number, value in fields_of(data):
        if number == 1:
            scope["scope"] = texts_of(value, {1: "name", 2: "version"})
        else:
            scope["spans"].append(span_of(value))
    return scope


def request_of(content_type, body):
    """The spans of a request by resource."""
    if content_type == "application/json":
        return json.loads(body)["resourceSpans"]
    assert content_type == "application/x-protobuf", content_type
    resources = []
    for _, resource in fields_of(body):
        parts = list(fields_of(resource))
        resources.append({"resource": {"attributes": [attribute_of(value) for _, value in fields_of(parts[0][1])]},
                          "scopeSpans": [scope_of(value) for number, value in parts if number == 2]})
    return resources
