// Gathers on GPUs, by NCCL loaded at run time, beside those in host memory.
#include <dlfcn.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "fovea/communicator.h"
#include "ranks/transport/socket.h"

namespace fovea {

namespace ranks {
namespace {

// The part of NCCL's C interface that is used, declared here so that a build needs none of NCCL.
// Source: NCCL 2.28.9, nccl.h; what is used has been the same since 2.18.

struct NcclComm;  ///< ncclComm_t points to it

/// ncclUniqueId: rank 0 makes one for every group.
struct NcclUniqueId {
  std::array<char, 128> bytes;
};

/// ncclResult_t, which has many names for failures.
enum class NcclResult : int { kSuccess = 0, kInProgress = 7 };

/// ncclConfig_t as of version 2.18. Later versions take what an older size and version say; the
/// padding at its end is a member of later ones, so it is "undefined", too.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;  ///< calls return at once
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int padding = INT_MIN;
};

constexpr const char* kFile = "libnccl.so.2";
constexpr int kOldest = 21800;

/// Loads NCCL from where the system's loader looks, which is not the working folder.
void* open_library() {
  (void)setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/1);
  // RTLD_NODELETE: it has threads and exit handlers of its own.
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) return handle;
  const char* const reason = dlerror();
  throw Error(ErrorCode::kUnsupported,
              cat("NCCL cannot be loaded (", reason != nullptr ? reason : kFile,
                  "); install it or put its folder into LD_LIBRARY_PATH"));
}

template <class Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  FOVEA_CHECK(function != nullptr, kUnsupported, kFile, " has no ", name);
}

/// The functions of NCCL. The library (200 MB) is loaded when the first of these objects is made,
/// and stays.
struct NcclLibrary {
  /// Sets NCCL_NVLS_ENABLE=0 first: NVLink multicast can put GPUs that others share out of service.
  /// @throws Error(kUnsupported) with the file and the reason if NCCL is missing or too old.
  NcclLibrary() {
    void* const handle = open_library();
    find(handle, "ncclGetVersion", get_version);
    find(handle, "ncclGetUniqueId", get_unique_id);
    find(handle, "ncclCommInitRankConfig", init);
    find(handle, "ncclAllGather", all_gather);
    find(handle, "ncclCommCuDevice", get_device);
    find(handle, "ncclCommGetAsyncError", get_async_error);
    find(handle, "ncclCommFinalize", finalize);
    find(handle, "ncclCommDestroy", destroy);
    find(handle, "ncclCommAbort", abort);
    find(handle, "ncclGetErrorString", get_error_string);
    find(handle, "ncclGetLastError", get_last_error);
    int version = 0;
    (void)get_version(&version);
    FOVEA_CHECK(version >= kOldest, kUnsupported, kFile, " must be version 2.18 or newer, got ",
                version / 10000, ".", version / 100 % 100);
  }

  /// Bytes as an ncclDataType_t.
  static constexpr int kBytes = 0;

  int (*get_version)(int* version);
  NcclResult (*get_unique_id)(NcclUniqueId* id);
  NcclResult (*init)(NcclComm** comm, int size, NcclUniqueId id, int rank, NcclConfig* config);
  NcclResult (*all_gather)(const void* mine, void* all, std::size_t count, int type, NcclComm* comm,
                           void* stream);
  NcclResult (*get_device)(const NcclComm* comm, int* gpu);
  NcclResult (*get_async_error)(NcclComm* comm, NcclResult* result);
  NcclResult (*finalize)(NcclComm* comm);
  NcclResult (*destroy)(NcclComm* comm);
  NcclResult (*abort)(NcclComm* comm);
  const char* (*get_error_string)(NcclResult result);
  const char* (*get_last_error)(NcclComm* comm);

  /// "NCCL: <call> failed: <NCCL's words>".
  [[nodiscard]] std::string describe(const char* call, NcclResult result, NcclComm* comm) const {
    const char* const words = get_last_error(comm);
    return cat("NCCL: ", call, " failed: ", get_error_string(result),
               words != nullptr && *words != '\0' ? ": " : "", words != nullptr ? words : "");
  }
};

constexpr std::chrono::microseconds kPollInterval{100};  // of what NCCL does in the background

/// A group whose end ends what NCCL does: its kernels wait for ranks that are gone.
class NcclRanks final : public Communicator {
 public:
  explicit NcclRanks(std::unique_ptr<Communicator> host) : host_(std::move(host)) {
    on_all_ranks([&] { library_.emplace(); });
    NcclUniqueId id{};
    on_all_ranks([&] {
      if (rank() == 0) check("ncclGetUniqueId", library_->get_unique_id(&id));
    });
    std::vector<NcclUniqueId> ids(static_cast<std::size_t>(size()));
    host_->all_gather(std::as_bytes(std::span(&id, 1)), std::as_writable_bytes(std::span(ids)));
    on_all_ranks([&] { connect(ids.front()); });
  }
  ~NcclRanks() override { disconnect(); }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  [[nodiscard]] int rank() const noexcept override { return host_->rank(); }
  [[nodiscard]] int size() const noexcept override { return host_->size(); }
  [[nodiscard]] std::chrono::milliseconds time_limit() const noexcept override {
    return host_->time_limit();
  }
  void all_gather_pieces(std::size_t bytes, const GatherPieces& pieces) override {
    host_->all_gather_pieces(bytes, pieces);
  }
  [[nodiscard]] std::optional<int> gather_device() const noexcept override { return gpu_; }
  void all_gather_on_device(const void* mine, void* all, std::size_t bytes, void* stream) override;
  void raise() noexcept override { host_->raise(); }
  [[nodiscard]] std::stop_token raised() const override { return host_->raised(); }
  [[nodiscard]] std::stop_token ended() const override { return host_->ended(); }
  void abort(const Error& error) override { host_->abort(error); }

 private:
  void on_all_ranks(const std::function<void()>& work);
  void connect(const NcclUniqueId& id);
  void disconnect() noexcept;
  void drop() noexcept;
  /// Waits until NCCL has done what it was asked for. @param result what it answered at once.
  /// @throws Error(kDevice), Error(kDeadline), Error(kUnavailable) if the group ends.
  void finish(const char* call, NcclResult result);
  void check(const char* call, NcclResult result) const {
    if (result != NcclResult::kSuccess)
      throw Error(ErrorCode::kDevice, library_->describe(call, result, comm_));
  }

  std::unique_ptr<Communicator> host_;
  std::optional<NcclLibrary> library_;
  std::mutex mutex_;          // guards comm_
  NcclComm* comm_ = nullptr;  // null: not connected, or no more
  int gpu_ = 0;               // of comm_
  std::optional<std::stop_callback<std::function<void()>>> on_end_;  // last: it uses the rest
};

void NcclRanks::on_all_ranks(const std::function<void()>& work) {
  std::optional<Error> failure;
  try {
    work();
  } catch (const Error& error) {
    failure = error;
  }
  const std::optional<Error> first = agree(*host_, failure);
  if (!first) return;
  disconnect();
  throw Error(*first);
}

void NcclRanks::connect(const NcclUniqueId& id) {
  NcclConfig config;
  const NcclResult result = library_->init(&comm_, size(), id, rank(), &config);
  on_end_.emplace(host_->ended(), [this] { drop(); });
  finish("ncclCommInitRankConfig", result);
  check("ncclCommCuDevice", library_->get_device(comm_, &gpu_));
}

void NcclRanks::finish(const char* call, NcclResult result) {
  const Clock::time_point deadline = Clock::now() + time_limit();
  while (result == NcclResult::kInProgress) {
    std::this_thread::sleep_for(kPollInterval);
    const std::lock_guard lock(mutex_);
    FOVEA_CHECK(comm_ != nullptr, kUnavailable, "the group has ended");
    FOVEA_CHECK(Clock::now() < deadline, kDeadline, "NCCL: ", call, " took more than ",
                time_limit().count(), " ms");
    check(call, library_->get_async_error(comm_, &result));
  }
  check(call, result);
}

void NcclRanks::all_gather_on_device(const void* mine, void* all, std::size_t bytes,
                                     void* stream) try {
  NcclResult result = NcclResult::kSuccess;
  {
    const std::lock_guard lock(mutex_);
    FOVEA_CHECK(comm_ != nullptr, kUnavailable, "the group has ended");
    result = library_->all_gather(mine, all, bytes, NcclLibrary::kBytes, comm_, stream);
  }
  finish("ncclAllGather", result);
} catch (const Error& error) {
  host_->abort(error);  // throws what ended the group, if something has
}

void NcclRanks::drop() noexcept {
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr) (void)library_->abort(std::exchange(comm_, nullptr));
}

void NcclRanks::disconnect() noexcept {
  on_end_.reset();
  if (comm_ == nullptr) return;
  try {
    if (!ended().stop_requested()) {
      finish("ncclCommFinalize", library_->finalize(comm_));
      (void)library_->destroy(std::exchange(comm_, nullptr));
    }
  } catch (const Error&) {  // NOLINT: a destructor has no caller to report to
  }
  drop();
}

}  // namespace
}  // namespace ranks

std::unique_ptr<Communicator> add_nccl(std::unique_ptr<Communicator> ranks) try {
  return std::make_unique<ranks::NcclRanks>(std::move(ranks));
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
