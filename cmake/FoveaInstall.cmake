# Installation: headers, library, program, plugins and the package configuration, so that a project
# elsewhere needs two lines (examples/find_package):
#   find_package(fovea 0.1 REQUIRED)
#   target_link_libraries(app PRIVATE fovea::fovea)
include(CMakePackageConfigHelpers)
set(fovea_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)

install(TARGETS fovea EXPORT foveaTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The program finds a shared libfovea and plugins relative to itself, so an install tree can be moved
# (cmake/FoveaLayout.cmake).
if(TARGET fovea_cli)
  install(TARGETS fovea_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Optional shared objects that the library opens at run time, built with the program.
foreach(plugin fovea_cuda fovea_video)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fovea)
    if(TARGET fovea_cli)
      add_dependencies(fovea_cli ${plugin})
    endif()
  endif()
endforeach()

# The program that decodes for the library, found as plugins are.
install(TARGETS fovea_decoder RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/fovea)
if(TARGET fovea_cli)
  add_dependencies(fovea_cli fovea_decoder)
endif()

configure_package_config_file(
  cmake/foveaConfig.cmake.in ${PROJECT_BINARY_DIR}/foveaConfig.cmake
  INSTALL_DESTINATION ${fovea_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/foveaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/foveaConfig.cmake ${PROJECT_BINARY_DIR}/foveaConfigVersion.cmake
  DESTINATION ${fovea_package_dir})
install(EXPORT foveaTargets NAMESPACE fovea:: DESTINATION ${fovea_package_dir})
