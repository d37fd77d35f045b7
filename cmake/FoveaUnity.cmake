# With FOVEA_UNITY_BUILD, the sources that a target has in one folder are compiled as one unit: headers
# are parsed, and templates instantiated, once per folder. So no two sources of a folder may define the
# same name in an unnamed namespace. CMake leaves out sources with options of their own, such as the
# leaves for vector instructions.

# fovea_unity(<target>)
# For what is installed. Sources may be added to the target until the end of its CMakeLists.txt.
function(fovea_unity target)
  if(FOVEA_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # GCC takes what a unit includes for headers, whose classes had better not hold unnamed ones.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL fovea_group_by_folder ${target})")
  endif()
endfunction()

function(fovea_group_by_folder target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} unit)
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${unit})
  endforeach()
endfunction()
