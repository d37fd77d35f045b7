"""Rows that are found elsewhere than in a reply: in a folder, under a key, and in memory of a GPU."""
import os
import subprocess
import tempfile
import unittest

from served import MODEL, PATIENCE, PROGRAM, Served, data_url, encoded_by_program, main, read, tensors_of

FOLDER = os.path.join(MODEL, "video_frames")
CLIP = os.path.join(MODEL, "..", "..", "media", "videos", "ramp_h264.mp4")


def has_videos():
    environment = subprocess.run([PROGRAM, "env"], capture_output=True, text=True, check=True).stdout
    return "libfovea_video.so)" in environment


def frames_url():
    frames = [data_url(read(os.path.join(FOLDER, name))) for name in sorted(os.listdir(FOLDER))]
    return "data:video/jpeg;base64," + ",".join(frame.split(",")[1] for frame in frames)


def part(url, uuid):
    return {"type": "video_url", "video_url": {"url": url}, "uuid": uuid}


class PublishedVideos(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.server = Served("--ec-dir", cls.folder, "--ec-model-id", "org/m")
        cls.addClassCleanup(cls.server.close)

    def publish(self, *parts, **options):
        reply = self.server.post("/v1/chat/completions", {
            "model": "m", "messages": [{"role": "user", "content": list(parts)}], **options})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["ec_transfer_params"]

    def expected(self, path, *flags):
        with tempfile.TemporaryDirectory() as out:
            return encoded_by_program([], "bfloat16", out, "--video", path, *flags)["item_0"]

    def published(self, key):
        """The rows in the folder, which are those of the route, too."""
        file = tensors_of(read(os.path.join(self.folder, key, "encoder_cache.safetensors")))
        fetched = self.server.get("/v1/cache/" + key)
        self.assertEqual(tensors_of(fetched.body), file)
        return file["ec_cache"]

    def test_frames_are_found_under_their_uuid(self):
        params = self.publish(part(frames_url(), "frames"))
        self.assertEqual(self.published("frames"), self.expected(FOLDER))
        self.assertEqual(params["frames"]["modality"], "video")
        self.assertEqual(params["frames"]["metadata"]["timestamps"], [0.25, 1.25, 2.25])

    @unittest.skipUnless(has_videos(), "built without the video plugin")
    def test_containers_are_found_under_their_uuids(self):
        url = data_url(read(CLIP), "video/mp4")
        params = self.publish(part(url, "clip"), part(frames_url(), "beside"))
        self.assertEqual(self.published("clip"), self.expected(CLIP))
        self.assertEqual(self.published("beside"), self.expected(FOLDER))
        self.assertEqual(params["clip"]["fovea"]["rows"], self.expected(CLIP)[1][0])
        self.assertEqual([params[key]["item_indices"] for key in ("clip", "beside")], [[0], [1]])

    @unittest.skipUnless(has_videos(), "built without the video plugin")
    def test_the_rate_of_a_request_has_a_name_of_its_own(self):
        url = data_url(read(CLIP), "video/mp4")
        expected = self.expected(CLIP, "--fps", "8")
        params = self.publish(part(url, "fast"), media_io_kwargs={"video": {"fps": 8}})
        digest = params["fast"]["fovea"]["identifier"]
        self.assertEqual(self.published(digest), expected)
        self.assertEqual(self.published("fast"), expected)


class LentRows(unittest.TestCase):
    def test_a_cpu_has_none_to_lend(self):
        for flags in ([], ["--encoder-device-cache-size", "1Mi"]):
            with Served("--lend-rows", "4", *flags, wait=False) as server:
                self.assertEqual(server.process.wait(PATIENCE), 1)
                self.assertIn("from memory of a GPU, and this engine is on cpu", server.text_of_log())

    def test_none_are_lent_unless_the_server_is_asked_to(self):
        with Served() as server:
            reply = server.post("/v1/cache/lend", {"keys": ["a"]})
            self.assertEqual((reply.status, reply.code()), (405, "method_not_allowed"))
            self.assertNotIn("/v1/cache/lend", server.get("/openapi.json").json()["paths"])


if __name__ == "__main__":
    main()
