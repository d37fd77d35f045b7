# With FOVEA_UNITY_BUILD, several sources of a target are compiled as one unit: headers are parsed, and
# templates instantiated, once for all of them. So none of these may define a name that another one
# has in the same unnamed namespace. CMake leaves out sources with options of their own, such as the
# units of instruction sets.

# fovea_unity(<target> [MOST <bytes>] [ALONE <file>...])
# The sources of a folder make a unit. With MOST, folders do not matter: sources are put together in
# their order until they have as many bytes, so that all units take about the same time. ALONE are
# sources whose names clash with those of others.
# Sources may be added to the target until the end of its CMakeLists.txt.
function(fovea_unity target)
  if(FOVEA_UNITY_BUILD)
    cmake_parse_arguments(arg "" "MOST" "ALONE" ${ARGN})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
      FOVEA_UNITY_MOST "${arg_MOST}" FOVEA_UNITY_ALONE "${arg_ALONE}")
    # GCC takes what a unit includes for headers, whose classes had better not hold unnamed ones.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL fovea_make_units ${target})")
  endif()
endfunction()

function(fovea_make_units target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(most ${target} FOVEA_UNITY_MOST)
  get_target_property(alone ${target} FOVEA_UNITY_ALONE)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  if(alone)
    list(REMOVE_ITEM sources ${alone})
  endif()
  set(part 0)
  set(filled 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    if(most)
      file(SIZE ${source} bytes)
      math(EXPR filled "${filled} + ${bytes}")
      if(filled GREATER most)
        math(EXPR part "${part} + 1")
        set(filled ${bytes})
      endif()
      set(unit ${part})
    else()
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(MAKE_C_IDENTIFIER ${folder} unit)
    endif()
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${unit})
  endforeach()
endfunction()
