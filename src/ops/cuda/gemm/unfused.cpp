#include "ops/cuda/gemm/unfused.h"

#include <algorithm>

#include "core/check.h"

namespace fovea::cuda {

namespace {

/// Moves the operands of a GEMM and of its activation `rows` rows down.
void advance(Gemm& gemm, ActivationWork& work, std::int64_t rows) {
  gemm.x += rows * gemm.in_features * kBf16Bytes;
  work.residual += rows * work.residual_stride * kBf16Bytes;
  work.out += rows * work.out_stride * kBf16Bytes;
  work.first_row += rows;
}

}  // namespace

Gemm plain_gemm(Gemm gemm) {
  gemm.activation = ops::Activation::kNone;
  gemm.residual = nullptr;
  return gemm;
}

void run_unfused(CudaStream& stream, const Gemm& gemm, int num_sms,
                 const std::function<void(const Gemm&)>& run_plain) {
  Gemm plain = plain_gemm(gemm);
  ActivationWork work{.activation = gemm.activation,
                      .in = gemm.out,
                      .in_stride = gemm.out_stride,
                      .residual = gemm.residual,
                      .residual_stride = gemm.residual != nullptr ? gemm.out_features : 0,
                      .out = gemm.out,
                      .out_stride = gemm.out_stride,
                      .first_row = 0,
                      .rows = gemm.rows,
                      .cols = gemm.out_features,
                      .live = gemm.live};
  if (gemm.residual != gemm.out) {
    run_plain(plain);
    return launch_activation(stream, work, num_sms);
  }
  // The GEMM must not overwrite the residual that is added to it, so it goes through scratch in
  // pieces.
  const auto scratch = stream.own_scratch();
  const std::int64_t piece =
      static_cast<std::int64_t>(scratch.size()) / kBf16Bytes / gemm.out_features;
  FOVEA_CHECK(piece > 0, kUnsupported, "linear: ", gemm.out_features,
              " columns are too many for an activation with a residual in place");
  plain.out = scratch.data();
  plain.out_stride = gemm.out_features;
  plain.live = nullptr;  // counts rows of the whole
  work.in = scratch.data();
  work.in_stride = gemm.out_features;
  for (std::int64_t left = gemm.rows; left > 0; left -= plain.rows) {
    plain.rows = std::min(piece, left);
    work.rows = plain.rows;
    run_plain(plain);
    launch_activation(stream, work, num_sms);
    advance(plain, work, plain.rows);
  }
}

}  // namespace fovea::cuda
