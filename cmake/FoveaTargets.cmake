# How targets of this project are made: flags in one place, one internal library per room.

# What every target compiles with; never installed, never exported.
add_library(fovea_dev INTERFACE)
target_compile_features(fovea_dev INTERFACE cxx_std_20)
target_compile_options(fovea_dev INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wno-missing-field-initializers -fvisibility=hidden -fvisibility-inlines-hidden>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${FOVEA_WERROR}>>:-Werror>)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Where every processor has fused operations, compilers make them of products and sums; results are to
  # be those of the source.
  target_compile_options(fovea_dev INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees uninitialised members in copies of std::optional and overlaps in joins of strings
  # that are not there (GCC bugs 80635 and 105651). In vectors of bytes that grow it sees accesses
  # behind their end: those are printed, but do not stop a build.
  target_compile_options(fovea_dev INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-restrict -Wno-error=array-bounds
    -Wno-error=stringop-overflow -Wno-error=stringop-overread>)
endif()
if(FOVEA_SANITIZE)
  list(JOIN FOVEA_SANITIZE "," fovea_sanitizers)
  target_compile_options(fovea_dev INTERFACE -fsanitize=${fovea_sanitizers} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(fovea_dev INTERFACE -fsanitize=${fovea_sanitizers})
  if(FOVEA_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # By this g++ tells tests and libraries that they are sanitized; clang 14 has no such macro.
    target_compile_definitions(fovea_dev INTERFACE __SANITIZE_THREAD__=1)
    # Its runtime, which becomes part of a program, has an operator new, as have tests that count allocations.
    # The first one counts; other builds find what is really defined twice.
    target_link_options(fovea_dev INTERFACE -Wl,-z,muldefs)
  endif()
endif()
if(FOVEA_FUZZ)
  # Counts branches for the search of fuzz targets. Targets whose property FOVEA_NOT_FUZZED is on have code
  # that none of these runs, which compiles in two thirds of the time without the counters.
  target_compile_options(fovea_dev INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:FOVEA_NOT_FUZZED>>>:-fsanitize=fuzzer-no-link>)
endif()

# fovea_precompile(<target> <header>... | REUSE_FROM <other target>)
# With FOVEA_FAST_BUILD or FOVEA_UNITY_BUILD, the headers that most sources of the target include are
# precompiled, or those of a target with the same options are used. Each source includes what it
# needs all the same.
function(fovea_precompile target)
  if(FOVEA_FAST_BUILD OR FOVEA_UNITY_BUILD)
    set(scope PRIVATE)
    if(ARGV1 STREQUAL "REUSE_FROM")
      set(scope)
    endif()
    target_precompile_headers(${target} ${scope} ${ARGN})
  endif()
endfunction()

# fovea_room(<name> SOURCES <file>... [ROOMS <room>...] [LIBS <target>...]
#            [FAST <header>... | FAST REUSE_FROM <other target>])
# The sources of src/<name>, linked against the rooms below it. The installed library `fovea` is made
# of the objects of all rooms; tests link single rooms. FAST are rooms that spend little time in loops of
# their own: with FOVEA_FAST_BUILD they are compiled with -O1, and with headers as for fovea_precompile.
function(fovea_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;ROOMS;LIBS;FAST" ${ARGN})
  add_library(fovea_${name} STATIC ${arg_SOURCES})
  fovea_harden(fovea_${name})
  fovea_unity(fovea_${name})
  target_include_directories(fovea_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  list(TRANSFORM arg_ROOMS PREPEND fovea_)
  target_link_libraries(fovea_${name} PUBLIC ${arg_ROOMS} PRIVATE fovea_dev ${arg_LIBS})
  if(BUILD_SHARED_LIBS)
    target_compile_definitions(fovea_${name} PRIVATE FOVEA_SHARED)
  endif()
  if(arg_FAST AND FOVEA_FAST_BUILD)
    target_compile_options(fovea_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    fovea_precompile(fovea_${name} ${arg_FAST})
  endif()
  set_property(GLOBAL APPEND PROPERTY FOVEA_ROOMS fovea_${name})
  set_property(GLOBAL APPEND PROPERTY FOVEA_LIBS ${arg_LIBS})
endfunction()

# fovea_fast(<target> [<header>... | REUSE_FROM <other target>])
# For a target whose own speed does not matter: as fovea_precompile, and with FOVEA_FAST_BUILD it is not
# optimised.
function(fovea_fast target)
  if(ARGN)
    fovea_precompile(${target} ${ARGN})
  endif()
  if(FOVEA_FAST_BUILD)
    target_compile_options(${target} PRIVATE
      "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release,RelWithDebInfo>>:-O0;-U_FORTIFY_SOURCE>")
  endif()
endfunction()

# fovea_test(<name> SOURCES <file>... LINK <target>... [ALONE <file>...] [OPTIMIZED <file>...]
#            [LABELS <label>...] [SHARDS <number>])
# One GoogleTest executable fovea_test_<name>, whose cases ctest runs in equal parts (default: 1) as
# <name>.1, <name>.2, ..., programs of many parts first. Each is one process; tests/support/main.cpp bounds
# the time of a case, and records what became of it in the file of the part in the folder `cases` of the
# build folder. The target fovea_tests builds what the tests need, but for those with the label
# gpu-only, which are of no use without a GPU: fovea_gpu_tests builds these. The sources are compiled together as
# cmake/FoveaUnity.cmake says, but for those that are ALONE. OPTIMIZED are those whose loops take more
# time without optimisation than their compilation does with it.
function(fovea_test name)
  cmake_parse_arguments(arg "" "SHARDS" "SOURCES;LINK;ALONE;OPTIMIZED;LABELS" ${ARGN})
  set(target fovea_test_${name})
  add_executable(${target} ${arg_SOURCES})
  if("gpu-only" IN_LIST arg_LABELS)
    add_dependencies(fovea_gpu_tests ${target})
  else()
    add_dependencies(fovea_tests ${target})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE
    FOVEA_TEST_GOLDEN_DIR="${PROJECT_BINARY_DIR}/tests/golden"
    FOVEA_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE fovea_dev ${arg_LINK} fovea_test_main)
  set_target_properties(${target} PROPERTIES FOVEA_NOT_FUZZED ON)
  fovea_fast(${target} REUSE_FROM fovea_test_main)
  fovea_unity(${target} MOST 100000 ALONE ${arg_ALONE})
  if(FOVEA_FAST_BUILD AND arg_OPTIMIZED)
    set_property(SOURCE ${arg_OPTIMIZED} APPEND PROPERTY COMPILE_OPTIONS -O2)
    set_property(SOURCE ${arg_OPTIMIZED} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  endif()

  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  set(seconds 1800)
  if(CMAKE_CROSSCOMPILING)  # an emulator takes many times as long
    set(seconds 36000)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND ${target})
    # Tests ask for memory that no machine has; the allocators of sanitizers are to refuse, not to end.
    set_tests_properties(${name}.${shard} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${seconds} COST ${arg_SHARDS}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index};\
FOVEA_TEST_RECORD=${PROJECT_BINARY_DIR}/cases/${name}.${shard};ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=allocator_may_return_null=1")
  endforeach()
endfunction()

# fovea_fuzz(<name> SOURCES <file>... LINK <target>...)
# One fuzz target fovea_fuzz_<name> that defines LLVMFuzzerTestOneInput. The test fuzz.<name> (label
# fuzz-corpus) runs every file of tests/fuzz/corpus/<name>; search.<name> (label fuzz) then looks for
# new inputs for FOVEA_FUZZ_SECONDS, an environment variable whose default is the option of this
# name, and what it finds stays in the build folder. Needs FOVEA_FUZZ.
# The target fovea_fuzzers builds all of them.
function(fovea_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  add_executable(fovea_fuzz_${name} ${arg_SOURCES})
  target_include_directories(fovea_fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fovea_fuzz_${name} PRIVATE fovea_dev ${arg_LINK})
  if(NOT TARGET fovea_fuzzers)
    add_custom_target(fovea_fuzzers)
  endif()
  add_dependencies(fovea_fuzzers fovea_fuzz_${name})
  set(found ${CMAKE_CURRENT_BINARY_DIR}/found/${name})
  file(MAKE_DIRECTORY ${found})
  target_link_options(fovea_fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME fuzz.${name} COMMAND fovea_fuzz_${name} -runs=0 ${corpus})
  add_test(NAME search.${name}
    COMMAND sh -c "exec \"$0\" -max_total_time=\${FOVEA_FUZZ_SECONDS:-${FOVEA_FUZZ_SECONDS}} \"$@\""
    $<TARGET_FILE:fovea_fuzz_${name}> -timeout=20 -rss_limit_mb=2048 -artifact_prefix=${found}- ${found} ${corpus})
  set_tests_properties(search.${name} PROPERTIES LABELS fuzz TIMEOUT 86400)
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz-corpus TIMEOUT 300)
endfunction()
