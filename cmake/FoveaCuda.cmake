# Decides once whether the GPU backend is built. Result: FOVEA_HAS_CUDA.
set(FOVEA_HAS_CUDA OFF)
if(NOT FOVEA_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Every GPU since Ampere, and PTX for those to come. With 90 in the list, kernels with Hopper's
    # warp-group instructions are built, too.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90-real 100-real 120-real 80-virtual)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(FOVEA_HAS_CUDA ON)
    # cuDNN's attention can be chosen where its headers describe it; the library is loaded at run
    # time, when it is asked for.
    find_path(FOVEA_CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(FOVEA_CUDNN_INCLUDE_DIR)
      include(CheckCXXSourceCompiles)
      set(CMAKE_REQUIRED_INCLUDES ${FOVEA_CUDNN_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
      check_cxx_source_compiles("#include <cudnn_graph.h>
        int main() { return CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC; }" FOVEA_HAS_CUDNN_ATTENTION)
      unset(CMAKE_REQUIRED_INCLUDES)
    endif()
  elseif(FOVEA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FOVEA_CUDA=ON but no CUDA compiler was found")
  endif()
endif()
message(STATUS "fovea: CUDA backend ${FOVEA_HAS_CUDA} (FOVEA_CUDA=${FOVEA_CUDA})")
