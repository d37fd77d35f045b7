#pragma once

// PTX instructions without a CUDA C++ intrinsic, one per function.

#include <cstdint>

namespace fovea::cuda::ptx {

/// Address of a shared-memory object as instructions take it.
__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// 2^x, flushing denormals; what exp2f is without its range fix-up.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// exp(x) = 2^(kLog2E x)
inline constexpr float kLog2E = 1.4426950408889634f;

/// 1 / x, flushing denormals: zero from 2^126 on.
__device__ inline float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// tanh(x) with a relative error of up to 2^-11.
__device__ inline float tanh_fast(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Copies 16 bytes from global to shared memory in the background; writes zeros if !valid, and does
/// not read then.
__device__ inline void copy_async(std::uint32_t shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}
/// Closes a group of copy_async calls of this thread.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most kPending groups of this thread are under way.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Four 8 x 8 bf16 matrices whose rows lie at the addresses given by lanes 0-7, 8-15, 16-23, 24-31;
/// lane l receives row l / 4, columns 2 (l % 4) and the next, of each.
__device__ inline void load_matrices(std::uint32_t shared, std::uint32_t (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared)
               : "memory");
}
/// As load_matrices, but each matrix is transposed on the way.
__device__ inline void load_matrices_transposed(std::uint32_t shared, std::uint32_t (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared)
               : "memory");
}

/// Two matrices whose rows lie at the addresses given by lanes 0-7 and 8-15, as load_matrices.
__device__ inline void load_two_matrices(std::uint32_t shared, std::uint32_t (&m)[2]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(m[0]), "=r"(m[1])
               : "r"(shared)
               : "memory");
}
/// Writes what load_two_matrices reads.
__device__ inline void store_two_matrices(std::uint32_t shared, const std::uint32_t (&m)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared), "r"(m[0]),
               "r"(m[1])
               : "memory");
}
/// The transposed of an 8 x 8 bf16 matrix, of which lane l holds row l / 4, columns 2 (l % 4) and
/// the next. For a whole warp.
__device__ inline std::uint32_t transpose(std::uint32_t matrix) {
  std::uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(matrix));
  return transposed;
}
/// Writes two bytes to shared memory; the address is a multiple of 2.
__device__ inline void store_shared(std::uint32_t shared, std::uint16_t value) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(shared), "h"(value) : "memory");
}
/// 16 bytes of shared memory; the address is a multiple of 16.
__device__ inline void load_shared(std::uint32_t shared, std::uint32_t (&words)[4]) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared)
               : "memory");
}

/// d[16 x 8] += a[16 x 16] b[16 x 8] over one warp: bf16 operands, f32 sums.
__device__ inline void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A barrier in shared memory that counts arrivals and completes one phase after another.
__device__ inline void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives when all copy_async calls made by this thread so far have completed; does not wait.
__device__ inline void barrier_arrive_after_copies(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
/// Arrives, and makes the phase wait for `bytes` that copy_bulk will copy.
__device__ inline void barrier_arrive_expecting(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Copies contiguous bytes from global to shared memory in the background, and counts them on a
/// barrier when they have arrived. Both addresses and the size are multiples of 16.
__device__ inline void copy_bulk(std::uint32_t shared, const void* global, int bytes,
                                 std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared),
      "l"(global), "r"(bytes), "r"(barrier)
      : "memory");
}
/// Waits until the phase with the given parity has completed.
__device__ inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Barrier number `id` (1 to 15) among `threads` threads: wait for all, or only be counted.
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Makes ordinary stores to shared memory visible to WGMMA and TMA.
__device__ inline void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Sets the registers per thread of the calling warp group; the difference comes from, or returns
/// to, the pool of its CTA.
template <int kRegisters>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace fovea::cuda::ptx
