"""The table of cases: name, command, what must come of it, files. docs/security.md says what the
names stand for. MODEL is a checkpoint of 5 MB whose tower takes milliseconds; limits not named here
are 2 s of CPU time and 512 MiB above that model's memory, and nothing may be left in the folder."""
import json
import signal

import checkpoints as ck
import images
import videos
from case import (Case, answered, bounded, interrupted, interrupted_or_answered, misused,
                  refused)
from sandbox import after, send, shrink

MODEL = ck.golden_folder()
CONFIGS = MODEL.parents[2] / "bench" / "configs"
PHOTO = "MODEL/images/photo_180x180.jpg"
PHOTO_BYTES = (MODEL / "images" / "photo_180x180.jpg").read_bytes()
HUGE = str(2**63 - 1)
SMALL_STACK = 128 << 10  # as docs/security.md promises
ENCODE = "encode MODEL -o out.st --no-table "
VIDEO = ENCODE + "--video video.mkv "
JSONL = "bench mm-processor MODEL --dataset-name jsonl --dataset-path "
SERVE = "serve MODEL --device cpu --port 0 "
RANDOM = "bench mm-processor MODEL --num-warmups 0 "


def text(value):
    return json.dumps(value)


IDLE = Case("idle", ENCODE + PHOTO, answered())

FOREIGN_CODE = [
    Case("D1.library_in_folder", "version", answered("fovea"),
         {name: "no library" for name in ("libpng16.so.16", "libturbojpeg.so.0", "libwebp.so.7",
                                          "libstdc++.so.6", "libc.so.6")}),
    Case("D2.plugin_above_folder", "env", answered(), {
        "lib/fovea/libfovea_video.so": "no plugin", "lib/fovea/libfovea_cuda.so": "no plugin",
        "e/lib/fovea/libfovea_video.so": "no plugin", "e/work/fovea": "not this one"},
        folder="e/work", by_name=True, unsaid=("file too short", "invalid ELF", "e/lib/fovea")),
    Case("D3.locale_with_grouping", "host locale MODEL out.st", answered("1200 items")),
]

COST = [
    Case("D4.frames_of_64_megapixels", VIDEO + "--decode-deadline 1000", bounded(),
         {"video.mkv": lambda: videos.large_frames(8000, 16)}),
    Case("D4.folder_of_large_frames", ENCODE + "--video frames --decode-deadline 1000",
         bounded(), {f"frames/{i}.png": lambda: images.png(8000, 8000) for i in range(6)}),
    Case("D4.many_frames_of_1080p", VIDEO + "--fps 10", answered(),
         {"video.mkv": lambda: videos.skipped_frames(120, 68, 160, 100)}, cpu=12),
    Case("D4.mp4_of_20_million_samples", VIDEO, refused("video.mkv", "samples"),
         {"video.mkv": lambda: videos.mp4_of_samples(20000000)}),
    Case("D4.mp4_of_a_long_fragment", VIDEO, refused("video.mkv", "samples"),
         {"video.mkv": lambda: videos.mp4_of_fragments(20000000)}),
    Case("D4.mp4_of_samples_that_are_not_there", VIDEO, refused("video.mkv", "cannot be decoded"),
         {"video.mkv": lambda: videos.mp4_of_samples(900000)}),
    Case("D4.mp4_of_endless_tables", VIDEO, refused("video.mkv"),
         {"video.mkv": lambda: videos.mp4_of_endless_tables(60000)}),
    Case("D4.packets_that_cannot_be_decoded", VIDEO, refused("video.mkv", "cannot be decoded"),
         {"video.mkv": lambda: videos.of_pngs(64, 64, [b"no PNG"] * 100000)}),
    Case("D5.frames_grow", VIDEO + "--damaged-frames refuse", refused("video.mkv", "64x64"),
         {"video.mkv": lambda: videos.growing_frames(16000, 4)}),
    Case("D5.all_frames_grow", VIDEO + "--damaged-frames refuse", refused("video.mkv", "64x64"),
         {"video.mkv": lambda: videos.growing_frames(8000, 12)}),
    Case("D5.frames_that_grow_are_skipped", VIDEO, answered(),
         {"video.mkv": lambda: videos.growing_frames(16000, 4)}),
    Case("D6.jpeg_of_499_scans", ENCODE + "bomb.jpg --max-pixels 100000", refused("bomb.jpg"),
         {"bomb.jpg": lambda: images.progressive_jpeg(4000, 4000, scans=499)}),
    Case("D6.jpeg_of_499_large_scans", ENCODE + "bomb.jpg --max-pixels 100000", refused("bomb.jpg"),
         {"bomb.jpg": lambda: images.progressive_jpeg(13377, 13377, scans=499, complete=False)}),
    Case("D6.jpeg_of_three_components", ENCODE + "bomb.jpg --max-pixels 100000",
         refused("bomb.jpg"),
         {"bomb.jpg": lambda: images.progressive_jpeg(13377, 13377, 3, 498, complete=False)}),
    Case("D6.jpeg_under_a_deadline", ENCODE + "bomb.jpg --max-pixels 100000 --decode-deadline 300",
         refused("bomb.jpg"), {"bomb.jpg": lambda: images.progressive_jpeg(6000, 6000, scans=90)}),
    Case("D6.cmyk_jpeg_of_1_KB", ENCODE + "a.jpg a.jpg --max-pixels 100000", refused("a.jpg"),
         {"a.jpg": lambda: images.progressive_jpeg(13377, 13377, 4, complete=False)}),
    Case("D6.png_with_surplus_data", ENCODE + "bomb.png", bounded(),
         {"bomb.png": lambda: images.png(1, 1, surplus=8 << 30)}),
    Case("D6.png_interlaced", ENCODE + "bomb.png --max-pixels 100000", refused("bomb.png"),
         {"bomb.png": lambda: images.png(13377, 13377, "rgba", interlaced=True)}),
    Case("D6.png_largest", ENCODE + "bomb.png --max-pixels 100000", refused("bomb.png"),
         {"bomb.png": lambda: images.png(13377, 13377, "rgb")}),
    Case("D6.webp_of_38_bytes", ENCODE + "bomb.webp --max-pixels 100000", refused("bomb.webp"),
         {"bomb.webp": lambda: images.webp(16383, 10922)}),
    Case("D6.webp_of_transforms", ENCODE + "bomb.webp --max-pixels 100000", refused("bomb.webp"),
         {"bomb.webp": lambda: images.webp_of_transforms(16383, 16383)}),
    Case("D6.webp_of_many_images", ENCODE + "bomb.webp --max-pixels 100000", refused("bomb.webp"),
         {"bomb.webp": lambda: images.webp_of_images(100)}),
    Case("D6.webp_of_65536_codes", ENCODE + "bomb.webp --max-pixels 100000", refused("bomb.webp"),
         {"bomb.webp": lambda: images.webp_of_codes(1024, 65536)}),
    Case("D6.webp_of_2600_codes", ENCODE + "a.webp --max-pixels 100000", answered(),
         {"a.webp": lambda: images.webp_of_codes(1024, 2600)}),
    Case("D6.webp_of_one_small_frame", ENCODE + "bomb.webp --max-pixels 100000",
         refused("bomb.webp"), {"bomb.webp": lambda: images.webp_animation(13000, 13000, 64, 64)}),
    Case("D6.bmp_of_62_bytes", ENCODE + "bomb.bmp", refused("bomb.bmp", "ends in row 0"),
         {"bomb.bmp": lambda: images.bmp(11000, 11000)}),
    Case("D6.bmp_of_skipped_rows", ENCODE + "bomb.bmp --max-pixels 100000", answered(),
         {"bomb.bmp": lambda: images.bmp_of_skips(9000, 9000)}),
    Case("D6.bmp_of_large_sides", ENCODE + "bomb.bmp", refused("bomb.bmp", "sides of at most"),
         {"bomb.bmp": lambda: images.bmp(0x7FFFFFFF, 0x7FFFFFFF)}),
    Case("D6.gif_of_40_bytes", ENCODE + "bomb.gif", refused("bomb.gif", "decode GIF"),
         {"bomb.gif": lambda: images.gif((11000, 11000), (11000, 11000))}),
    Case("D6.gif_of_one_small_frame", ENCODE + "bomb.gif --max-pixels 100000", bounded(),
         {"bomb.gif": lambda: images.gif((8000, 8000), (1, 1), b"\x44\1")}),
    Case("D6.gif_of_a_large_frame", ENCODE + "bomb.gif", refused("bomb.gif", "pixels, got 65535 x 65535"),
         {"bomb.gif": lambda: images.gif((1, 1), (65535, 65535))}),
    Case("D6.gif_of_a_million_pieces", ENCODE + "bomb.gif", bounded(),
         {"bomb.gif": lambda: images.gif_of_pieces(1000000)}),
    Case("D6.tiff_of_130_bytes", ENCODE + "bomb.tiff", refused("bomb.tiff", "decode TIFF"),
         {"bomb.tiff": lambda: images.tiff_image(9000, 9000)}),
    Case("D6.tiff_of_one_tile", ENCODE + "bomb.tiff", refused("bomb.tiff", "bytes to decode"),
         {"bomb.tiff": lambda: images.tiff_image(1, 1, f273=None, f278=None, f279=None, f322=65520,
                                                 f323=65520, f324=8, f325=100)}),
    Case("D6.tiff_of_many_samples", ENCODE + "bomb.tiff", refused("bomb.tiff", "not supported"),
         {"bomb.tiff": lambda: images.tiff_image(100, 100, f277=65535)}),
    Case("D6.tiff_of_four_billion_rows", ENCODE + "bomb.tiff", refused("bomb.tiff"),
         {"bomb.tiff": lambda: images.tiff_image(1, 0xFFFFFFFF, f278=1)}),
    Case("D6.tiff_of_equal_strips", ENCODE + "bomb.tiff --max-pixels 100000", answered(),
         {"bomb.tiff": lambda: images.tiff_of_equal_strips(4000, 100)}),
    Case("D6.tiff_of_60000_fields", ENCODE + "bomb.tiff", bounded(),
         {"bomb.tiff": lambda: images.tiff_of_fields(60000)}),
    Case("D6.avif_of_300_bytes", ENCODE + "bomb.avif", refused("bomb.avif", "decode AVIF"),
         {"bomb.avif": lambda: images.avif(4000, 4000)}),
    Case("D6.avif_of_many_pixels", ENCODE + "bomb.avif", refused("bomb.avif", "bytes to decode"),
         {"bomb.avif": lambda: images.avif(11585, 11585)}),
    Case("D6.avif_of_large_sides", ENCODE + "bomb.avif", refused("bomb.avif"),
         {"bomb.avif": lambda: images.avif(0x7FFFFFFF, 2)}),
    Case("D6.heic_without_pixels", ENCODE + "bomb.heic", refused("bomb.heic"),
         {"bomb.heic": lambda: images.heic(4000, 4000)}),
    Case("D6.heic_of_many_pixels", ENCODE + "bomb.heic", refused("bomb.heic", "bytes to decode"),
         {"bomb.heic": lambda: images.heic(11585, 11585)}),
    Case("D6.heic_of_large_sides", ENCODE + "bomb.heic", refused("bomb.heic"),
         {"bomb.heic": lambda: images.heic(0x7FFFFFFF, 2)}),
    Case("D6.heic_of_items_with_the_same_bytes", ENCODE + "bomb.heic", refused("bomb.heic", "HEIC items of"),
         {"bomb.heic": lambda: images.heic(64, 64, items=1000, data=bytes(1 << 20))}),
    Case("D6.heic_of_a_grid_of_itself", ENCODE + "bomb.heic", refused("bomb.heic", "grid made of grid"),
         {"bomb.heic": lambda: images.heic(64, 64, kind=b"grid", made_of=(1,) * 4, data=b"\0\0\1\1\0\x40\0\x40")}),
    Case("D6.heic_of_many_extents", ENCODE + "bomb.heic", refused("bomb.heic", "HEIC items of"),
         {"bomb.heic": lambda: images.heic_of_extents(65535, 65535)}),
    Case("D6.limit_of_item_bytes", ENCODE + "a.png --max-item-bytes 1000000", refused("a.png"),
         {"a.png": lambda: images.png(2000, 2000)}),
    Case("D6.one_bomb_is_one_error", ENCODE + f"bomb.webp {PHOTO} --on-error skip", answered(),
         {"bomb.webp": lambda: images.webp(16383, 10922)}),
    Case("D6.png_of_large_texts", ENCODE + "bomb.png", refused("bomb.png", "metadata"),
         {"bomb.png": lambda: images.png_of_texts(20000, 1 << 20)}),
    Case("D6.png_of_many_texts", ENCODE + "bomb.png", refused("bomb.png", "metadata"),
         {"bomb.png": lambda: images.png_of_texts(500000, 1)}),
    Case("D13.resized_to_a_gigapixel", ENCODE + "a.png --min-pixels 1000000000 "
         "--max-pixels 1000000000", refused("a.png"),
         {"a.png": lambda: images.png(64, 64)}),
    Case("D13.gigapixel_of_the_checkpoint", "encode m -o out.st a.png", refused("a.png"),
         {"a.png": lambda: images.png(64, 64), "m": ck.with_config(
             MODEL, "preprocessor_config.json",
             size={"longest_edge": 2**40, "shortest_edge": 2**40})}),
    Case("D13.padded_to_a_square", f"encode {MODEL.parent / 'step3_vl'} -o out.st a.png",
         refused("a.png", "square"), {"a.png": lambda: images.png(31, 16384)}),
    Case("W1.deadline_of_a_tower", ENCODE + "a.png --deadline 1", refused("deadline"),
         {"a.png": lambda: images.png(3000, 3000)}, cpu=4),  # two threads for a second, and loading
    Case("W1.deadline_of_a_video", VIDEO + "--deadline 1", refused("deadline"),
         {"video.mkv": lambda: videos.skipped_frames(120, 68, 20000, 10)}, cpu=4),
    Case("W1.decode_deadline_of_a_video", VIDEO + "--decode-deadline 500", refused("video.mkv"),
         {"video.mkv": lambda: videos.skipped_frames(120, 68, 20000, 10)}),
    Case("W1.ctrl_c_while_loading", f"encode {CONFIGS / 'qwen3_vl_2b'} --load-format dummy "
         "-o out.st " + PHOTO, interrupted(), cpu=4, memory=8192,
         meanwhile=after(0.5, send(signal.SIGINT))),
    Case("W1.ctrl_c_in_a_list", ENCODE + "@list", interrupted(),
         {"a.png": lambda: images.png(64, 64), "list": "a.png\n" * 1000000}, cpu=4,
         meanwhile=after(0.4, send(signal.SIGINT))),
    Case("W1.ctrl_c_in_an_image", ENCODE + "a.jpg " * 20 + "--max-pixels 100000", interrupted(),
         {"a.jpg": lambda: images.progressive_jpeg(6000, 6000, scans=50)}, cpu=4,
         meanwhile=after(0.5, send(signal.SIGINT))),
    Case("W1.ctrl_c_in_a_decode_process", ENCODE + "a.jpg " * 20 + "--max-pixels 100000 "
         "--decode-processes 1", interrupted(),
         {"a.jpg": lambda: images.progressive_jpeg(6000, 6000, scans=50)}, cpu=4,
         meanwhile=after(0.5, send(signal.SIGINT))),
    Case("W1.ctrl_c_in_replays", "verify MODEL", interrupted(), cpu=4, memory=1024,
         meanwhile=after(1, send(signal.SIGINT))),
    Case("W1.ctrl_c_while_writing", ENCODE + PHOTO, interrupted(), slow_calls=True,
         environment={"SLOW_RENAME": "1"}, meanwhile=after(0.7, send(signal.SIGINT))),
    Case("W1.ctrl_c_in_the_tower", ENCODE + "a.png", interrupted(),
         {"a.png": lambda: images.png(3000, 3000)}, cpu=4, meanwhile=after(1, send(signal.SIGINT))),
    Case("W1.ctrl_c_in_a_video", VIDEO, interrupted(),
         {"video.mkv": lambda: videos.skipped_frames(120, 68, 20000, 10)}, cpu=4,
         meanwhile=after(1, send(signal.SIGINT))),
    Case("W2.limit_of_patches", ENCODE + "a.png --max-patches-per-item 16384",
         refused("a.png", "patches", "16384"), {"a.png": lambda: images.png(10000, 10000)}),
    Case("W2.kilobytes_to_169_megapixels", ENCODE + "a.png", refused("a.png"),
         {"a.png": lambda: images.png(13000, 13000)}),
    Case("W2.largest_image_of_the_processor", ENCODE + "a.png --deadline 1", refused("deadline"),
         {"a.png": lambda: images.png(4096, 4096)}, cpu=4, memory=768),  # 65,536 patches
    Case("W3.many_large_images", ENCODE + "@list --threads 2 --deadline 2", refused("deadline"),
         {"a.png": lambda: images.png(3000, 3000), "list": "a.png\n" * 40}, cpu=6),
    Case("W3.many_large_videos", ENCODE.replace("MODEL", "m") + "--video video.mkv " * 12
         + "--threads 2 --deadline 3", refused("deadline"), {
             "video.mkv": lambda: videos.large_frames(1250, 16), "m": ck.with_config(
                 MODEL, "video_preprocessor_config.json", max_video_tokens=24576,
                 size={"longest_edge": 25165824, "shortest_edge": 4096})}, cpu=8),
    Case("W3.decoding_threads", ENCODE + "a.png a.png a.png a.png --threads 4 --max-pixels 100000",
         answered(), {"a.png": lambda: images.png(10000, 10000)}, cpu=6),
    Case("W6.bomb_in_a_decode_process", ENCODE + f"bomb.webp {PHOTO} --on-error skip "
         "--decode-processes 1", answered(), {"bomb.webp": lambda: images.webp(16383, 10922)}),
    Case("W6.deadline_in_a_decode_process", VIDEO + "--decode-processes 1 --decode-deadline 500",
         refused("video.mkv"), {"video.mkv": lambda: videos.skipped_frames(120, 68, 20000, 10)}),
]

INPUTS = [
    Case("D7.request_100000_deep", JSONL + "r.jsonl", refused("r.jsonl"),
         {"r.jsonl": '{"image": ' + "[" * 100000 + "]" * 100000 + "}"}),
    Case("D7.compilation_config_deep", ENCODE + PHOTO + " --compilation-config "
         + "[" * 50000 + "]" * 50000, misused("--compilation-config")),
    Case("D7.item_limits_deep", RANDOM + "--num-prompts 1 --random-mm-limit-mm-per-prompt "
         + '\'{"image": ' + "[" * 50000 + "]" * 50000 + "}\'",
         misused("--random-mm-limit-mm-per-prompt")),
    Case("D7.requests_without_end", JSONL + "/dev/zero", refused("/dev/zero")),
    Case("D7.a_request_of_64_MB", JSONL + "r.jsonl", refused("r.jsonl"),
         {"r.jsonl": lambda: '{"image": "' + "a" * (64 << 20) + '"}'}),
    Case("D8.items_without_paths", "host no_paths MODEL", answered("3 refused")),
    Case("D9.checkpoint_shrinks", ENCODE.replace("MODEL", "m") + PHOTO,
         bounded(), {"m": ck.with_config(MODEL)}, slow_calls=True,
         environment={"SLOW_MAP_BYTES": "1000000"},
         meanwhile=after(0.6, shrink("m/model.safetensors"))),
    Case("D9.pixel_values_shrink", ENCODE + "--pixel-values p.safetensors",
         bounded(), {"p.safetensors": ck.pixel_values(64, 1536)}, slow_calls=True,
         environment={"SLOW_MAP_BYTES": "300000"}, meanwhile=after(0.6, shrink("p.safetensors"))),
    Case("D14.list_is_a_pipe", ENCODE + "@pipe", refused("pipe"), {"pipe": ck.fifo()}),
    Case("D14.list_is_a_device", ENCODE + "@/dev/zero", refused("/dev/zero")),
    Case("D14.sizes_are_a_pipe", "plan MODEL --sizes @pipe", refused("pipe"), {"pipe": ck.fifo()}),
    Case("D14.sizes_are_a_device", "plan MODEL --sizes @/dev/zero", refused("/dev/zero")),
    Case("D14.requests_are_a_pipe", JSONL + "pipe", refused("pipe"), {"pipe": ck.fifo()}),
    Case("D14.image_is_a_pipe", ENCODE + "pipe", refused("pipe"), {"pipe": ck.fifo()}),
    Case("D14.list_names_itself", ENCODE + "@list", refused("@list"), {"list": "@list\n"}),
    Case("D14.list_of_patterns", ENCODE + "@list", refused("list:1001", "d/0*"),
         {**{f"d/{i}": "" for i in range(1000)}, "list": "d/0*\n" * 5000}),
    Case("W7.other_files_of_the_machine", ENCODE + "../../../../../../etc/passwd",
         refused("etc/passwd"), unsaid=("root:",)),
    Case("W7.link_out_of_the_folder", ENCODE + "a.png", refused("a.png"),
         {"a.png": ck.link("/etc/passwd")}, unsaid=("root:",)),
]

CHECKPOINTS = [
    Case("D10.name_of_a_megabyte", "inspect m", refused("model.safetensors"), {
        "m": ck.with_weights(MODEL, lambda _: ck.safetensors(
            {"n" * 1000000: {"dtype": "F32", "shape": [0] * 2000, "data_offsets": [0, 0]}}))}),
    Case("D10.name_of_40_megabytes", "inspect m", refused("model.safetensors"), {
        "m": ck.with_weights(MODEL, lambda _: ck.safetensors(
            {"n" * 40000000: {"dtype": "F32", "shape": [0] * 1000, "data_offsets": [0, 0]}}))}),
    Case("D10.many_tensors", "inspect m", refused("model.safetensors"), {
        "m": ck.with_weights(MODEL, lambda _: ck.safetensors(
            {f"t{i}": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]} for i in range(100000)},
            b"\0"))}),
    Case("D10.pixel_values", ENCODE + "--pixel-values p.safetensors", refused("p.safetensors"), {
        "p.safetensors": lambda: ck.safetensors(
            {"n" * 1000000: {"dtype": "F32", "shape": [0] * 2000, "data_offsets": [0, 0]}})}),
    Case("D11.plan_a_million_levels", "plan m --sizes 64x64",
         refused("deepstack_visual_indexes"), {"m": ck.with_config(
             MODEL, vision_config__deepstack_visual_indexes=[0] * 1000000)}),
    Case("D11.inspect_a_million_levels", "inspect m --load-format dummy",
         refused("deepstack_visual_indexes"), {"m": ck.with_config(
             MODEL, vision_config__deepstack_visual_indexes=[0] * 1000000)}),
    Case("D12.a_level_three_times", ENCODE.replace("MODEL", "m") + PHOTO,
         refused("deepstack_visual_indexes"),
         {"m": ck.with_config(MODEL, vision_config__deepstack_visual_indexes=[3, 3, 3])}),
    Case("D15.checkpoint_of_a_giant", ENCODE.replace("MODEL", "m") + PHOTO + " --load-format dummy",
         refused(), {"m": ck.with_config(MODEL, vision_config__hidden_size=2**20,
                                         vision_config__intermediate_size=2**30)}),
    Case("D15.host_asks_for_too_much", "host too_much MODEL", answered("7 refused")),
    Case("D19.tensor_of_rank_9", "inspect m", refused("merger.norm.weight", "9"),
         {"m": ck.with_tensor(MODEL, "model.visual.merger.norm.weight", [1] * 8 + [144])}),
    Case("D19.directory_is_named", "inspect m", refused("m", "vision"), {
        "m": ck.with_weights(MODEL, lambda _: ck.safetensors({}))}),
    Case("D20.rope_theta_zero", "inspect m", refused("rope_theta"),
         {"m": ck.with_config(MODEL, vision_config__rope_parameters__rope_theta=0)}),
    Case("D20.rope_theta_tiny", "inspect m", refused("rope_theta"),
         {"m": ck.with_config(MODEL, vision_config__rope_parameters__rope_theta=1e-308)}),
    Case("D20.denormal_weights", "host denormal m", answered("rows of zeros"),
         {"m": ck.with_weights(MODEL, ck.denormal)}),
    Case("D21.tensor_name_of_20_MB", "inspect m", refused("model.safetensors"), {
        "m": ck.with_weights(MODEL, lambda _: ck.safetensors(
            {"n" * 20000000: {"dtype": "F32", "shape": [1], "data_offsets": [0, 0]}}))}),
    Case("D21.architecture_of_100_KB", "inspect m", refused("architecture"),
         {"m": ck.with_config(MODEL, architectures=["A" * 100000], model_type="B" * 100000)}),
]

FLAGS = [
    Case("D15.num_prompts", RANDOM + "--num-prompts " + HUGE, misused("--num-prompts")),
    Case("D15.max_concurrency", RANDOM + "--num-prompts 200000 --max-concurrency 100000",
         misused("--max-concurrency")),
    Case("D16.token_budget", ENCODE + PHOTO + " --token-budgets " + HUGE,
         misused("--token-budgets")),
    Case("D16.token_budget_2_56", ENCODE + PHOTO + f" --token-budgets {2**56}",
         misused("--token-budgets")),
    Case("D16.items_per_batch", ENCODE + PHOTO + f" --max-items-per-batch {HUGE}",
         misused("--max-items-per-batch")),
    Case("D16.batched_tokens", f"inspect MODEL --max-num-batched-tokens {2**48}",
         misused("--max-num-batched-tokens")),
    Case("D16.repeat", f"bench throughput MODEL {PHOTO} --repeat {HUGE}", misused("--repeat"),
         unsaid=("inf", "nan")),
    Case("D16.patches", f"bench latency MODEL --patches {HUGE}", misused("--patches")),
    Case("D16.request_rate", RANDOM + "--num-prompts 2 --request-rate 1e-320",
         misused("--request-rate")),
    Case("D16.slow_request_rate", RANDOM + "--num-prompts 2 --request-rate 1e-12",
         misused("--request-rate")),
    Case("D17.killed_before_its_file_has_a_name", ENCODE + PHOTO, interrupted_or_answered(),
         slow_calls=True, environment={"SLOW_RENAME": "1"},
         meanwhile=after(1, send(signal.SIGTERM))),
    Case("D18.small_stack", ENCODE + PHOTO + " MODEL/images/noise_101x61.png --video "
         "MODEL/video_frames", answered(), stack=SMALL_STACK),
    Case("D20.help_to_a_full_disk", "encode --help", refused(), stdout="/dev/full"),
    Case("D20.version_to_a_full_disk", "--version", refused(), stdout="/dev/full"),
    Case("D20.device_number", ENCODE + PHOTO + " --device cuda:99999999999", misused("--device")),
    Case("D20.mixed_devices", ENCODE + PHOTO + " --device cpu,cuda", misused("--device")),
    Case("D20.65_devices", ENCODE + PHOTO + " --device " + ",".join(["cpu"] * 65),
         misused("--device")),
    Case("D20.control_characters", ENCODE + "'a\u009b2J\u202eb.png'", refused(".png")),
    Case("D20.threads", ENCODE + PHOTO + " --threads 10000", misused("--threads")),
    Case("D20.unknown_flag", "bench throughput MODEL --no-such-flag", misused("--no-such-flag")),
    Case("D21.compilation_config_of_120_KB", ENCODE + PHOTO + " --compilation-config "
         + "'{\"" + "k" * 120000 + "\": 1}'", misused("--compilation-config", "key of more than")),
    Case("D21.compilation_config_empty", ENCODE + PHOTO + " --compilation-config ''",
         misused("--compilation-config")),
]

LATER = [
    Case("N1.reference_out_of_the_hub_cache", "inspect --model a/b", misused("hub cache"),
         {"hub/models--a--b/refs/main": "../../../m", "hub/models--a--b/snapshots/x": "",
          "m": ck.with_config(MODEL)}, environment={"HF_HUB_CACHE": "hub"}),
    Case("N1.reference_is_a_pipe", "inspect --model a/b", misused("hub cache"),
         {"hub/models--a--b/refs/main": ck.fifo()}, environment={"HF_HUB_CACHE": "hub"}),
    Case("N1.name_out_of_the_hub_cache", "inspect --model a/..", refused("a/..")),
    Case("N2.exif_of_4_billion_entries", ENCODE + "a.jpg", answered(), {
        "a.jpg": lambda: images.exif_jpeg(PHOTO_BYTES, [(0x112, 3, 2**32 - 1, 2**32 - 16)])}),
    Case("N2.exif_points_at_itself", ENCODE + "a.jpg", answered(), {
        "a.jpg": lambda: images.exif_jpeg(PHOTO_BYTES, [(0x8769, 4, 1, 8)] * 3000)}),
    Case("N2.exif_orientation_65535", ENCODE + "a.jpg --media-profile transformers", answered(), {
        "a.jpg": lambda: images.exif_jpeg(PHOTO_BYTES, [(0x112, 3, 1, 65535)])}),
    Case("N3.pruning_rate_that_is_no_number", VIDEO + "--video-pruning-rate nan",
         misused("--video-pruning-rate")),
    Case("N3.pruning_rate_near_one", ENCODE + "--video MODEL/video_frames "
         "--video-pruning-rate 0.9999999999999999", answered()),
    Case("N4.budgets_of_an_unknown_path", ENCODE + PHOTO + " --token-budgets '{\"x\": [64]}'",
         misused("x")),
    Case("N4.20000_budgets", ENCODE + PHOTO + " --token-budgets " + ",".join(
        str(n) for n in range(1, 20001)), bounded(1, 2)),
    Case("N5.tiles_without_end", "plan m --sizes 65535x1,1x65535,4096x4096", bounded(), {
        "m": ck.with_config(MODEL.parent / "internvl_chat", max_dynamic_patch=2**31)}),
    Case("N5.a_million_blocks", "inspect m --load-format dummy", bounded(), {
        "m": ck.with_config(MODEL.parent / "qwen2_vl", vision_config__depth=10**6)}),
]

# The server; what comes over its socket is in tests/serve/program.
SERVER = [
    Case("S3.keys_without_a_key", SERVE + "--api-key-file keys", refused("keys", "an API key"),
         {"keys": "# none yet\n\n"}),
    Case("S16.keys_are_a_pipe", SERVE + "--api-key-file pipe", refused("pipe"),
         {"pipe": ck.fifo()}),
    Case("S16.keys_are_a_device", SERVE + "--api-key-file /dev/zero", refused("/dev/zero")),
    Case("S16.certificate_is_a_pipe", SERVE + "--ssl-certfile pipe --ssl-keyfile pipe",
         refused("pipe"), {"pipe": ck.fifo()}),
    Case("S16.configuration_is_a_pipe", SERVE + "--config pipe", misused("pipe"),
         {"pipe": ck.fifo()}),
    Case("S16.configuration_is_a_device", SERVE + "--config /dev/zero", misused("/dev/zero")),
    Case("S1.wide_request", JSONL + "r.jsonl", bounded(1, 2),
         {"r.jsonl": '{"image":[' + "{}," * 300000 + "{}]}\n"}),
    Case("S15.deep_configuration", SERVE + "--config c.json", misused("c.json", "nested deeper"),
         {"c.json": '{"a":' * 100000 + "1" + "}" * 100000}),
    Case("S15.wide_configuration", SERVE + "--config c.json", misused("c.json", "more than"),
         {"c.json": '{"port":[' + "{}," * 300000 + "{}]}"}),
    Case("S15.configuration_of_a_gigabyte", SERVE + "--config c.json", misused("c.json", "at most"),
         {"c.json": ck.sparse(1 << 30)}),
]

CASES = FOREIGN_CODE + COST + INPUTS + CHECKPOINTS + FLAGS + LATER + SERVER
