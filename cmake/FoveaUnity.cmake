# With FOVEA_UNITY_BUILD, the sources that a target has in one folder are compiled as one unit: headers
# are parsed, and templates instantiated, once per folder. So no two sources of a folder may define the
# same name in an unnamed namespace. CMake leaves out sources with options of their own, such as the
# units of instruction sets.

# fovea_unity(<target> [MOST <number>] [ALONE <file>...])
# MOST bounds the sources of a unit. ALONE are sources whose names clash with those of others.
# Sources may be added to the target until the end of its CMakeLists.txt.
function(fovea_unity target)
  if(FOVEA_UNITY_BUILD)
    cmake_parse_arguments(arg "" "MOST" "ALONE" ${ARGN})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
      FOVEA_UNITY_MOST "${arg_MOST}" FOVEA_UNITY_ALONE "${arg_ALONE}")
    # GCC takes what a unit includes for headers, whose classes had better not hold unnamed ones.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL fovea_group_by_folder ${target})")
  endif()
endfunction()

function(fovea_group_by_folder target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(most ${target} FOVEA_UNITY_MOST)
  get_target_property(alone ${target} FOVEA_UNITY_ALONE)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  if(alone)
    list(REMOVE_ITEM sources ${alone})
  endif()
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} unit)
    if(most)
      math(EXPR part "0${${unit}_sources} / ${most}")
      math(EXPR ${unit}_sources "0${${unit}_sources} + 1")
      string(APPEND unit _${part})
    endif()
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${unit})
  endforeach()
endfunction()
