# Installation: headers, library, program, plugins and the package configuration, so that a project
# elsewhere needs two lines (examples/find_package):
#   find_package(fovea 0.1 REQUIRED)
#   target_link_libraries(app PRIVATE fovea::fovea)
include(CMakePackageConfigHelpers)
set(fovea_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)

# COMPONENT: the package that a file goes into (cmake/FoveaPackages.cmake).
install(TARGETS fovea EXPORT foveaTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT core NAMELINK_COMPONENT dev
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)

# The program finds a shared libfovea and plugins relative to itself, so an install tree can be moved
# (cmake/FoveaLayout.cmake).
if(TARGET fovea_cli)
  install(TARGETS fovea_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT core)
endif()

# Optional shared objects that the library opens at run time. The program's target builds those for
# images and video; the GPU plugin, which takes minutes, is one of its own.
foreach(plugin fovea_cuda fovea_video ${FOVEA_IMAGE_PLUGINS})
  if(TARGET ${plugin})
    string(REPLACE fovea_ "" component ${plugin})
    install(TARGETS ${plugin}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fovea COMPONENT ${component})
  endif()
endforeach()
if(TARGET fovea_cli)
  foreach(plugin fovea_video ${FOVEA_IMAGE_PLUGINS})
    if(TARGET ${plugin})
      add_dependencies(fovea_cli ${plugin})
    endif()
  endforeach()
endif()

# The program that decodes for the library, found as plugins are.
install(TARGETS fovea_decoder RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/fovea COMPONENT core)
if(TARGET fovea_cli)
  add_dependencies(fovea_cli fovea_decoder)
endif()

configure_package_config_file(
  cmake/foveaConfig.cmake.in ${PROJECT_BINARY_DIR}/foveaConfig.cmake
  INSTALL_DESTINATION ${fovea_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/foveaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/foveaConfig.cmake ${PROJECT_BINARY_DIR}/foveaConfigVersion.cmake
  DESTINATION ${fovea_package_dir} COMPONENT dev)
install(EXPORT foveaTargets NAMESPACE fovea:: DESTINATION ${fovea_package_dir} COMPONENT dev)

# The server as a service of systemd.
if(TARGET fovea_serve)
  install(FILES packaging/fovea.service DESTINATION lib/systemd/system COMPONENT server)
endif()
