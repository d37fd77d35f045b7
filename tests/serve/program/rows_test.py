"""Rows over HTTP are those of `fovea encode`, bit for bit, in every format, alone and in a crowd."""
import base64
import random
import struct
import tempfile
import unittest

from served import (IMAGES, PHOTO, Served, data_url, encoded_by_program, image, in_parallel, main,
                    payload_of_npy, payload_of_torch, tensors_of)


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served()
        cls.folder = tempfile.TemporaryDirectory()
        cls.expected = {dtype: encoded_by_program(IMAGES, dtype, cls.folder.name)
                        for dtype in ("float32", "bfloat16", "float16")}

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def rows(self, dtype, item=0):
        return self.expected[dtype][f"item_{item}"][2]

    def test_safetensors(self):
        for dtype, tensors in self.expected.items():
            reply = self.server.encode(image(PHOTO),
                                       f"output.format=safetensors&output.dtype={dtype}")
            self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual(reply.headers["X-Fovea-Format"], "safetensors")
            got = tensors_of(reply.body)
            self.assertEqual(got["item_0"], tensors["item_0"])
            self.assertEqual(got["item_0.grid_thw"], tensors["item_0.grid_thw"])

    def test_npy(self):
        for dtype in ("float32", "float16"):
            reply = self.server.encode(image(PHOTO), f"output.format=npy&output.dtype={dtype}")
            self.assertEqual(payload_of_npy(reply.body), self.rows(dtype))

    def test_raw(self):
        reply = self.server.encode(image(PHOTO), "output.format=raw&output.dtype=bfloat16")
        self.assertEqual(reply.body, self.rows("bfloat16"))

    def test_torch(self):
        for dtype in self.expected:
            reply = self.server.encode(image(PHOTO), f"output.format=torch&output.dtype={dtype}")
            self.assertEqual(payload_of_torch(reply.json()["data"][0]["data"]), self.rows(dtype))

    def test_base64(self):
        reply = self.server.encode(image(PHOTO), "output.format=base64&output.dtype=float16")
        self.assertEqual(base64.b64decode(reply.json()["data"][0]["data"]), self.rows("float16"))

    def test_json(self):
        reply = self.server.encode(image(PHOTO), "output.format=json&output.dtype=float32")
        item = reply.json()["data"][0]
        numbers = [number for row in item["data"] for number in row]
        self.assertEqual([item["num_embeds"], item["width"]], item["shape"])
        self.assertEqual(struct.pack(f"<{len(numbers)}f", *numbers), self.rows("float32"))

    def test_all_images_of_one_request(self):
        items = [{"type": "image", "image": data_url(image(name))} for name in IMAGES]
        reply = self.server.post("/v1/encode", {
            "items": items, "output": {"format": "safetensors", "dtype": "float32"}})
        self.assertEqual(reply.status, 200, reply.body)
        got = tensors_of(reply.body)
        for i in range(len(IMAGES)):
            self.assertEqual(got[f"item_{i}"], self.expected["float32"][f"item_{i}"])

    def test_where_the_rows_come_from(self):
        # Bytes behind an image make it one that nobody has sent yet.
        items = [{"image": data_url(image(PHOTO) + end)} for end in (b"one", b"one", b"two")]
        fresh = "hit=1,join=0,miss=2,bypass=0"  # two of the three are the same
        for cache, expected in ((fresh, ["miss", "hit", "miss"]),
                                ("hit=3,join=0,miss=0,bypass=0", ["hit"] * 3)):
            reply = self.server.post("/v1/encode", {"items": items})
            self.assertEqual(reply.headers["X-Fovea-Cache"], cache)
            self.assertEqual([item["cache"] for item in reply.json()["data"]], expected)
        self.assertEqual(reply.headers["X-Fovea-Graph"], "hit=0,partial=0,miss=0")
        past = self.server.post("/v1/encode", {"items": items, "cache": "bypass"})
        self.assertEqual(past.headers["X-Fovea-Cache"], "hit=0,join=0,miss=0,bypass=3")
        self.assertNotIn("cache", past.json()["data"][0])
        self.assertIn(past.json()["data"][0]["graph"], ("hit", "miss"))

    def test_a_form_with_files(self):
        boundary = "xyz"
        body = b""
        for name in IMAGES:
            body += (f"--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; "
                     f"filename=\"{name}\"\r\n\r\n").encode() + image(name) + b"\r\n"
        body += (f"--{boundary}\r\nContent-Disposition: form-data; name=\"options\"\r\n\r\n"
                 '{"output": {"format": "safetensors", "dtype": "float32"}}\r\n'
                 f"--{boundary}--\r\n").encode()
        reply = self.server.post("/v1/encode", body,
                                 {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        self.assertEqual(reply.status, 200, reply.body)
        got = tensors_of(reply.body)
        for i in range(len(IMAGES)):
            self.assertEqual(got[f"item_{i}"], self.expected["float32"][f"item_{i}"])

    def test_64_clients_with_mixed_sizes(self):
        order = [random.Random(7).randrange(len(IMAGES)) for _ in range(256)]

        def one_client(client):
            wrong = 0
            for item in order[client::64]:
                reply = self.server.encode(image(IMAGES[item]),
                                           "output.format=raw&output.dtype=float32",
                                           {"Connection": "close"})
                wrong += reply.status != 200 or reply.body != self.rows("float32", item)
            return wrong

        self.assertEqual(sum(in_parallel(64, one_client)), 0)


if __name__ == "__main__":
    main()
