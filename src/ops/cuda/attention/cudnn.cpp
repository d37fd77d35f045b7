// Attention by cuDNN: one operation of its graph interface, the layout of packed qkv described by
// strides, sequences by offsets and lengths on the device.
#include "ops/cuda/attention/cudnn.h"

#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "device/cuda/cudnn_library.h"
#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/operands.h"

namespace fovea::cuda {

namespace {

/// Names of the tensors in a plan.
enum TensorId : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kScale,
  kLengthsOfQ,
  kLengthsOfK,
  kOffsetsInQkv,
  kOffsetsInOut,
};

constexpr std::int64_t kElementBytes = 2;  // bf16

using Dims = std::array<std::int64_t, 4>;  // [sequence, head, row, dim]

/// What a plan is built for.
struct PlanKey {
  std::int64_t num_seqs;    ///< a power of two
  std::int64_t max_seqlen;  ///< a power of two
  std::int64_t num_heads;
  std::int64_t head_dim;
  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};

std::int64_t round_up_to_power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

PlanKey key_of(const AttentionWork& work) {
  return {.num_seqs = round_up_to_power_of_two(work.max_seqs),
          .max_seqlen = round_up_to_power_of_two(work.max_seqlen),
          .num_heads = work.num_heads,
          .head_dim = work.head_dim};
}

CudnnDescriptor make_tensor(const CudnnLibrary& library, TensorId id, cudnnDataType_t type,
                            const Dims& dims, const Dims& strides,
                            const CudnnDescriptor* offsets = nullptr) {
  CudnnDescriptor tensor(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{id});
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(dims));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{type == CUDNN_DATA_BFLOAT16 ? 16 : 4});
  if (offsets != nullptr) tensor.set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, *offsets);
  if (id == kScale) tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  tensor.finalize();
  return tensor;
}

/// out = softmax(scale q k^T) v inside every sequence.
CudnnDescriptor make_operation(const CudnnLibrary& library, const PlanKey& key) {
  const std::int64_t width = key.num_heads * key.head_dim;
  const auto integers = [&](TensorId id, std::int64_t count) {
    return make_tensor(library, id, CUDNN_DATA_INT32, {count, 1, 1, 1}, {1, 1, 1, 1});
  };
  const CudnnDescriptor in_qkv = integers(kOffsetsInQkv, key.num_seqs + 1);
  const CudnnDescriptor in_out = integers(kOffsetsInOut, key.num_seqs + 1);
  const auto rows = [&](TensorId id, std::int64_t row_width, const CudnnDescriptor& offsets) {
    return make_tensor(library, id, CUDNN_DATA_BFLOAT16,
                       {key.num_seqs, key.num_heads, key.max_seqlen, key.head_dim},
                       {key.max_seqlen * row_width, key.head_dim, row_width, 1}, &offsets);
  };
  CudnnDescriptor operation(library, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, rows(kQ, 3 * width, in_qkv));
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, rows(kK, 3 * width, in_qkv));
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, rows(kV, 3 * width, in_qkv));
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, rows(kOut, width, in_out));
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC,
                make_tensor(library, kScale, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}));
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, integers(kLengthsOfQ, key.num_seqs));
  operation.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, integers(kLengthsOfK, key.num_seqs));
  operation.finalize();
  return operation;
}

/// The configurations that cuDNN proposes for a graph, best first.
std::vector<CudnnDescriptor> propose(const CudnnLibrary& library, const CudnnDescriptor& graph) {
  constexpr std::size_t kMost = 8;
  CudnnDescriptor heuristics(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  heuristics.finalize();
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::size_t i = 0; i < kMost; ++i) {
    configs.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configs.back().get());
  }
  std::int64_t found = 0;
  library.check(library.get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, &found, handles.data()),
                "cudnnBackendGetAttribute");
  while (configs.size() > static_cast<std::size_t>(found)) configs.pop_back();
  return configs;
}

/// An execution plan and the scratch it needs.
struct Plan {
  CudnnDescriptor config;
  CudnnDescriptor execution;
  std::size_t scratch_bytes;
};

Plan build_plan(const CudnnLibrary& library, cudnnHandle_t handle, const PlanKey& key) {
  const CudnnDescriptor operation = make_operation(library, key);
  CudnnDescriptor graph(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  std::string reason = "it proposes none";
  for (CudnnDescriptor& config : propose(library, graph)) {
    CudnnDescriptor execution(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    execution.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
    execution.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    try {
      execution.finalize();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      reason = error.what();
      continue;  // the next one may be supported
    }
    const auto scratch = execution.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    return {std::move(config), std::move(execution), static_cast<std::size_t>(scratch)};
  }
  throw Error(ErrorCode::kUnsupported,
              cat("attention cudnn: cuDNN ", library.version(), " has no engine for ",
                  key.num_heads, " heads of ", key.head_dim, " on this GPU: ", reason));
}

/// Where the parts of the workspace begin: lengths, both kinds of offsets, scratch of the plan.
struct WorkspaceLayout {
  explicit WorkspaceLayout(const PlanKey& key) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t integers = static_cast<std::size_t>(key.num_seqs + 1) * sizeof(std::int32_t);
    const std::size_t part = (integers + kAlignment - 1) / kAlignment * kAlignment;
    offsets_in_qkv = part;
    offsets_in_out = 2 * part;
    scratch = 3 * part;
  }
  std::size_t offsets_in_qkv;
  std::size_t offsets_in_out;
  std::size_t scratch;
};

}  // namespace

struct CudnnAttention::Impl {
  explicit Impl(int gpu) : device_index(gpu) {
    const DeviceGuard guard(device_index);
    library.check(library.create(&handle), "cudnnCreate");
  }
  ~Impl() {
    try {
      const DeviceGuard guard(device_index);
      plans.clear();
      (void)library.destroy(handle);
    } catch (const Error&) {
      // The GPU is lost, and the handle with it.
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Call with the mutex held.
  const Plan& plan(const PlanKey& key) {
    const auto known = plans.find(key);
    if (known != plans.end()) return known->second;
    const DeviceGuard guard(device_index);  // a plan is compiled for the current GPU
    return plans.emplace(key, build_plan(library, handle, key)).first->second;
  }

  int device_index;
  CudnnLibrary library;
  std::mutex mutex;  // guards the handle, which belongs to one thread at a time, and the plans
  cudnnHandle_t handle = nullptr;
  std::map<PlanKey, Plan> plans;
};

CudnnAttention::CudnnAttention(int device_index) : impl_(std::make_unique<Impl>(device_index)) {}

CudnnAttention::~CudnnAttention() = default;

std::string CudnnAttention::software() { return cat("cuDNN ", CudnnLibrary().version()); }

bool CudnnAttention::accepts(const AttentionWork& work) {
  constexpr std::int64_t kMostElements = INT32_MAX;  // offsets are counted in 32 bits
  return work.keep != 0 && work.flip == 0 && is_aligned(work.qkv, 16) && is_aligned(work.out, 16) &&
         std::int64_t{3} * work.rows * work.num_heads * work.head_dim <= kMostElements;
}

std::size_t CudnnAttention::workspace_bytes(const AttentionWork& work) const {
  const PlanKey key = key_of(work);
  const std::scoped_lock lock(impl_->mutex);
  return WorkspaceLayout(key).scratch + impl_->plan(key).scratch_bytes;
}

void CudnnAttention::run(CudaStream& stream, const AttentionWork& work, int num_sms) const {
  const DeviceGuard guard(stream.device_index());
  const PlanKey key = key_of(work);
  const WorkspaceLayout layout(key);
  std::byte* const memory = work.workspace;
  const auto integers = [&](std::size_t at) {
    return reinterpret_cast<std::int32_t*>(memory + at);
  };
  launch_attention_offsets(stream, work,
                           {.lengths = integers(0),
                            .qkv = integers(layout.offsets_in_qkv),
                            .out = integers(layout.offsets_in_out),
                            .num_seqs = static_cast<int>(key.num_seqs)},
                           num_sms);

  const std::int64_t part_bytes = std::int64_t{work.num_heads} * work.head_dim * kElementBytes;
  float scale = work.scale;
  constexpr std::array<std::int64_t, 9> kIds{
      kQ, kK, kV, kOut, kScale, kLengthsOfQ, kLengthsOfK, kOffsetsInQkv, kOffsetsInOut};
  const std::array<void*, kIds.size()> addresses{work.qkv,
                                                 work.qkv + part_bytes,
                                                 work.qkv + 2 * part_bytes,
                                                 work.out,
                                                 &scale,
                                                 memory,
                                                 memory,
                                                 memory + layout.offsets_in_qkv,
                                                 memory + layout.offsets_in_out};
  void* const scratch = memory + layout.scratch;
  const CudnnLibrary& library = impl_->library;
  CudnnDescriptor arguments(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(kIds));
  arguments.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(addresses));
  arguments.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(&scratch, 1));
  arguments.finalize();
  const std::scoped_lock lock(impl_->mutex);
  const Plan& plan = impl_->plan(key);
  library.check(library.set_stream(impl_->handle, stream.handle()), "cudnnSetStream");
  library.check(library.execute(impl_->handle, plan.execution.get(), arguments.get()),
                "cudnnBackendExecute");
}

}  // namespace fovea::cuda
