#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

class LogSink;

/// Element type of the rows handed to the caller.
enum class RowDType : std::uint8_t { kFloat32, kBFloat16, kFloat16 };

/// Which resize arithmetic the reference processor of a family uses (docs/preprocessing.md).
enum class ImageBackend : std::uint8_t {
  kModelDefault,  ///< what vLLM uses for the family
  kTorchvision,   ///< 16-bit fixed-point weights, as torchvision on CPU tensors
  kPillow,        ///< 22-bit fixed-point weights, as Pillow
};

/// Limits that are checked on file headers before pixels are allocated, on pixels that the caller
/// has decoded, and on sizes to be planned. Values above a limit are Error(kInvalidArgument). Files
/// of ordinary cameras and programs meet none of the defaults.
struct MediaLimits {
  std::int64_t max_image_pixels = 178'956'970;  ///< twice Pillow's warning level
  std::int64_t max_image_side_px = 65'535;
  std::size_t max_image_bytes = std::size_t{32} << 20;  ///< encoded
  /// Encoded, in memory or in a file, which is read piece by piece: a bound on time.
  std::size_t max_video_bytes = std::size_t{16} << 30;
  std::int64_t max_video_frames = 2'048;  ///< after sampling
  /// Pixels of a frame of a video, which is an image besides: max_image_pixels holds, too. 0: any.
  std::int64_t max_frame_pixels = 0;
  /// Pixels of all frames of a video together, after sampling and before resizing. 0: any.
  std::int64_t max_video_pixels = 0;
  /// Host memory that decoding an image, or one frame of a video, may take: known from its header.
  std::size_t max_item_bytes = std::size_t{384} << 20;
  /// Patches that an item may have after it was resized, all frames of a video together: a bound on
  /// time. 0: any number, within max_patches_at_once.
  std::int64_t max_patches_per_item = 0;
  /// Those of an item that is not cut, and of a temporal patch of a video that is (PackingPolicy),
  /// if max_patches_per_item is 0.
  std::int64_t max_patches_at_once = std::int64_t{1} << 20;
  /// Host memory that all decoding threads together may take; what does not fit waits. 0: 448 MiB,
  /// or 32 MiB per thread if that is more. At least max_item_bytes otherwise.
  std::size_t max_decode_bytes = 0;
  /// Time an item may take from the first byte read to resized pixels, Error(kDeadline) after it.
  /// 0: any.
  std::chrono::milliseconds decode_deadline{0};
};

/// Whose image loader is reproduced: what happens to EXIF orientation and to transparent pixels
/// (docs/preprocessing.md, "Media profiles").
enum class MediaProfile : std::uint8_t {
  kVllm,          ///< vLLM since 0.24: images turned upright, every transparency composited
  kVllm023,       ///< vLLM 0.23 and before: images as stored, only RGBA composited
  kTransformers,  ///< load_image of transformers: images turned upright, transparency ignored
  kSglang,        ///< SGLang: images as stored, transparency ignored
};

/// What happens to a video of whose chosen frames some cannot be read: a packet is damaged, or the
/// file is cut.
enum class DamagedFrames : std::uint8_t {
  kSkip,  ///< it is encoded from the others, as vLLM does, with a warning that names the lost ones
  kRefuse,  ///< it fails, Error(kCorruptData)
};

/// How encoded images and videos become RGB.
struct MediaOptions {
  MediaLimits limits;
  ImageBackend image_backend = ImageBackend::kModelDefault;
  MediaProfile profile = MediaProfile::kVllm;
  /// Red, green and blue under transparent pixels, for profiles that composite them.
  std::uint8_t background[3] = {255, 255, 255};
  /// Replace the limits of the checkpoint's processor for images, in its unit.
  std::optional<std::int64_t> min_pixels;
  std::optional<std::int64_t> max_pixels;
  /// Decodes a JPEG file at 1/2, 1/4 or 1/8 of its size where both sides of that are at least 1.75
  /// times those that it is resized to: less work, for rows that differ a little. Sizes and numbers
  /// of rows stay the same (docs/preprocessing.md, "Scaled decoding").
  bool jpeg_scaling = false;
  DamagedFrames damaged_frames = DamagedFrames::kSkip;
};

/// Largest token budget. Kernels count rows in 32 bits, and a token may stand for many patches.
inline constexpr std::int64_t kMaxTokenBudget = std::int64_t{1} << 24;

/// The four configuration fields of encoder graphs, named as in vLLM.
struct GraphOptions {
  bool cudagraph_mm_encoder = true;  ///< false: always eager
  std::vector<std::int64_t>
      encoder_cudagraph_token_budgets;  ///< each at most kMaxTokenBudget; empty: inferred
  /// Instead of that list one for every path named: these budgets, cut to whole units, and no
  /// others. A path that is not named has inferred ones.
  std::map<std::string, std::vector<std::int64_t>> encoder_cudagraph_path_token_budgets;
  std::int64_t encoder_cudagraph_max_vision_items_per_batch = 0;  ///< 0: inferred
  /// Attention sequences; absent: inferred; 0: no video.
  std::optional<std::int64_t> encoder_cudagraph_max_frames_per_batch;
};

/// How items are put together into sub-batches (docs/encoder_graphs.md).
enum class PackingPolicy : std::uint8_t {
  kGreedy,      ///< smallest first, apart where two budgets are less than one: vLLM since 0.32
  kGreedyFill,  ///< smallest first until the largest budget is full: vLLM until 0.31
  kCost,        ///< least total cost of the budgets chosen
  kUnits,       ///< budgets filled with temporal patches and tiles, of which items consist
};

/// Which attention kernel a GPU uses. The CPU has a single one.
enum class AttentionBackend : std::uint8_t {
  kAuto,         ///< the faster of Fovea's own kernels for each size
  kPortable,     ///< instructions of every GPU since Ampere
  kHopper,       ///< WGMMA, for the head dims it is compiled for
  kCudnn,        ///< cuDNN 9.15 or newer; attention with relative positions as kAuto
  kCudnnOrAuto,  ///< as kCudnn; where that cannot be used, kAuto with a warning
};

/// How a thread waits for a GPU.
enum class GpuWait : std::uint8_t {
  kAuto,   ///< kSpin; for a second kSleep when a spinning thread has lost its processor to others
  kSpin,   ///< asks again and again: the shortest wait where a processor is free
  kSleep,  ///< until the GPU's interrupt: leaves the processor to others, some 0.1 ms longer
};

/// Which rows of a video stay where some are dropped (docs/models/qwen3_vl.md, "Pruned videos").
enum class PruningMethod : std::uint8_t {
  kEvs,      ///< those that differ most from the frame before: efficient video sampling
  kVidCom2,  ///< those that are least like the means of their frame and of the video
};

/// How weights are kept on the device.
enum class Quantization : std::uint8_t {
  kNone,
  /// The GEMMs of all blocks but the first ones in E4M3, with a scale per row of weights and of
  /// activations (docs/quantization.md). Hopper only.
  kFp8,
  /// The GEMMs of all blocks in integers of 8 bits, likewise. CPU only.
  kInt8,
};

/// What the GEMMs of a tower multiply. Sums are float32, and on a CPU all the rest is, too.
enum class ComputeDType : std::uint8_t {
  /// bfloat16 on a GPU. On a CPU float32, but beside integers of 8 bits bfloat16 where that is
  /// faster.
  kAuto,
  kFloat32,  ///< CPU only
  /// Weights and rows rounded to bfloat16: faster than float32 with AMX and on an AMD CPU with
  /// AVX512-BF16, the same bits on all CPUs without AMX, and half of the weights' memory where a
  /// checkpoint is not bfloat16 itself (docs/quantization.md).
  kBFloat16,
};

/// Everything an Engine is built from. The defaults work.
struct EngineOptions {
  /// "auto", "cpu", "cuda", "cuda:<index>", or several names separated by commas: a replica of the
  /// tower on each, and the items of a batch are spread over them. All CPUs or all GPUs.
  std::string device = "auto";
  /// Number of replicas N: "cuda" then means the first N GPUs, "cpu" means N replicas that share
  /// the weights and divide the threads. 0: one per name in `device`.
  int data_parallel_size = 0;
  /// An image of at least so many patches is computed by all replicas together, where a call
  /// leaves the others nothing to do: each has a part of the rows, and of the heads in attention.
  /// Of replicas on CPUs, or on GPUs that NVLink connects, at most 8, that divide the heads of a
  /// tower whose rows meet in attention alone; others take whole images, however large. 0: all do
  /// (docs/ranks.md, "One image on several devices").
  std::int64_t team_patches = 3072;
  int num_threads = 0;  ///< CPU threads for math and decoding; 0: all that this process may use
  /// Decode images in so many processes of their own, and videos in as many: a file that crashes a
  /// decoder, or makes it hang or take all memory, costs its item (docs/decode_processes.md). Needs
  /// the program fovea-decoder, Error(kNotFound) without it. 0: decode in this process.
  int decode_processes = 0;
  bool dummy_weights =
      false;               ///< fills the tower with seeded random weights; needs config.json only
  std::uint64_t seed = 0;  ///< of dummy weights
  /// Instead of rows, the vector that the model itself makes of a whole image: one row for each
  /// (docs/models.md, "Vectors"). Error(kUnsupported) for families that make none.
  bool vectors = false;
  /// Vectors divided by their L2 norm. Error(kInvalidArgument) without `vectors`.
  bool normalize_vectors = false;
  std::int64_t max_num_batched_tokens = 8192;  ///< upper end of inferred token budgets
  MediaOptions media;
  GraphOptions graphs;
  PackingPolicy packing = PackingPolicy::kGreedy;
  /// Packed by units, those of a call that hold the same pixels on the same grid are encoded once,
  /// and their rows copied: the same bits.
  bool reuse_units = true;
  /// Shared library with a tower that is not one of Fovea's, for a checkpoint of any architecture
  /// (docs/own_tower.md). Its code runs in this process. Empty: the family of the checkpoint.
  std::string tower = {};
  /// Part q of the rows of a video that is dropped after the tower, 0 <= q < 1, by the method
  /// below. Videos then run without graphs. Error(kUnsupported) where the reference does not prune
  /// those of the model so.
  double video_pruning_rate = 0;
  PruningMethod video_pruning_method = PruningMethod::kEvs;
  /// Bytes of host memory for the rows of items that were encoded before, so that equal items are
  /// encoded once (docs/encoder_cache.md). Of an engine on GPUs the memory is pinned, and allocated
  /// at loading; of one on a CPU it grows as it fills. 0: no cache.
  std::int64_t encoder_cache_bytes = 0;
  /// Bytes of each device for such rows, allocated at loading: a hit does not leave the GPU. What
  /// there is no room for any more goes to the host memory above, if there is some. Of a CPU the
  /// device memory is host memory. 0: none.
  std::int64_t encoder_device_cache_size = 0;
  /// Where engines of several processes and machines share rows (docs/encoder_cache.md): a folder,
  /// or "redis://HOST:PORT/DB" of a Redis or Valkey server. The caches above ask it for what they
  /// do not have, and it gets what the engine encodes. Empty: nowhere. Error(kInvalidArgument)
  /// without one of these caches.
  std::string shared_rows = {};
  /// Bytes of all files in a folder of shared rows together.
  std::int64_t shared_rows_bytes = std::int64_t{64} << 30;
  /// How long a Redis server keeps rows after they were stored.
  std::int64_t shared_rows_seconds = std::int64_t{24} * 60 * 60;
  AttentionBackend attention = AttentionBackend::kAuto;
  Quantization quantization = Quantization::kNone;  ///< Error(kUnsupported) where it cannot run
  /// Error(kUnsupported) for float32 on a GPU. With kInt8 it holds for what stays without 8 bits.
  ComputeDType dtype_compute = ComputeDType::kAuto;
  GpuWait gpu_wait = GpuWait::kAuto;
  /// SMs of each GPU that the engine may occupy, so that others find the rest free: as many of them
  /// as the driver can set apart, on Hopper a multiple of 8. Graphs are captured for these SMs.
  /// GEMM and attention kernels are chosen for their number, so rows of two budgets may differ as
  /// those of two GPUs do. 0: all, or those of the green context that is current to the loading
  /// thread and outlives the engine. Error(kUnsupported) on a CPU, Error(kInvalidArgument) for more
  /// than there are or too few.
  int sm_budget = 0;
  /// On a GPU: times every graph after its capture and runs eagerly what is faster that way.
  bool measure_graphs = true;
  /// Folder in which measurements on a GPU are kept for the next process: the times above, and the
  /// fastest algorithm of each GEMM. Created when there is something to write; a folder that cannot
  /// be written is a warning. Empty: everything is measured at every start.
  std::string cache_dir;
  LogSink* log = nullptr;  ///< must outlive the engine; null: silence
};

}  // namespace fovea
