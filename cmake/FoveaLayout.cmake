# Where programs, libraries and plugins lie, the same in the build tree as in an installed one: plugins
# in lib/fovea beside the folder of the program (src/core/plugin/plugin.h).
#   fovea_program_to_lib   from the folder of the program to that of libraries, "../lib"
#   FOVEA_LIB_DIR          libraries of the build tree
file(RELATIVE_PATH fovea_program_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(FOVEA_LIB_DIR ${PROJECT_BINARY_DIR}/lib)

# Programs of the build tree are spread over folders: a link beside each leads to the libraries.
foreach(folder apps/cli tests/core examples bench)
  cmake_path(SET link NORMALIZE ${PROJECT_BINARY_DIR}/${folder}/${fovea_program_to_lib})
  cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${link} inside)
  if(inside AND NOT link STREQUAL FOVEA_LIB_DIR)
    cmake_path(GET link PARENT_PATH parent)
    file(MAKE_DIRECTORY ${FOVEA_LIB_DIR} ${parent})
    file(CREATE_LINK ${FOVEA_LIB_DIR} ${link} SYMBOLIC)
  endif()
endforeach()

# fovea_place(<target>)
# For what is installed. CMake would pad the search path of a build tree with empty entries, which
# the loader takes for the working folder, to make room for that of the installed tree. So both have
# the same: $ORIGIN/../lib in programs, and folders of libraries that are not the system's.
function(fovea_place target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${fovea_program_to_lib}")
  elseif(type STREQUAL MODULE_LIBRARY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${FOVEA_LIB_DIR}/fovea)
  else()
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${FOVEA_LIB_DIR})
  endif()
endfunction()
