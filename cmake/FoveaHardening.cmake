# Flags that turn some memory errors into an end of the program, for code that parses what strangers
# made. They change no result.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_cxx_compiler_flag(-fcf-protection FOVEA_HAS_CF_PROTECTION)  # of x86

set(fovea_fortify_level 3)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  set(fovea_fortify_level 2)
endif()

# fovea_harden(<target>)
# Release builds check copies into buffers of known size, the stack and indirect jumps; sanitizers
# check more. All builds map nothing writable and executable, and resolve symbols before they start.
function(fovea_harden target)
  set(is_release $<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>)
  set(options -fstack-protector-strong $<$<BOOL:${FOVEA_HAS_CF_PROTECTION}>:-fcf-protection>)
  if(NOT FOVEA_SANITIZE)
    list(APPEND options -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fovea_fortify_level})
  endif()
  target_compile_options(${target} PRIVATE "$<${is_release}:${options}>")
  target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
endfunction()
