# Debian packages: `cpack -G DEB` in a build folder makes one of each component.
#   fovea         program, server, decoder; a shared library if there is one
#   fovea-dev     library to link, headers, CMake package
#   fovea-server  unit of systemd
#   fovea-video   plugin that decodes video containers
#   fovea-gif     plugin of an image format; one for each that is built
#   fovea-cuda    plugin for GPUs; the CUDA libraries come from NVIDIA
set(FOVEA_PACKAGE_CONTACT "Fovea maintainers <fovea@localhost>" CACHE STRING "Maintainer of packages")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT ${FOVEA_PACKAGE_CONTACT})
set(CPACK_PACKAGE_VENDOR Fovea)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# fovea_package(<component> <name> <summary> [<other packages>...])
function(fovea_package component name summary)
  string(TOUPPER ${component} upper)
  list(JOIN ARGN ", " depends)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION ${summary} PARENT_SCOPE)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL "")
set(same_version "fovea (= ${PROJECT_VERSION})")
if(TARGET fovea_cli)
  fovea_package(core fovea "Program and server." ca-certificates)
endif()
if(BUILD_SHARED_LIBS)
  set(linked ${same_version})
else()  # cmake/foveaConfig.cmake.in looks for these
  set(linked libjpeg-dev libpng-dev libssl-dev libwebp-dev pkg-config zlib1g-dev)
  if(FOVEA_HAS_REDIS)
    list(APPEND linked libhiredis-dev)
  endif()
endif()
fovea_package(dev fovea-dev "Library and headers." ${linked})
if(TARGET fovea_serve)
  fovea_package(server fovea-server "Service of systemd." ${same_version})
endif()
if(TARGET fovea_video)
  fovea_package(video fovea-video "Decoder of videos." ${same_version})
endif()
foreach(plugin ${FOVEA_IMAGE_PLUGINS})
  string(REPLACE fovea_ "" kind ${plugin})
  string(TOUPPER ${kind} format)
  fovea_package(${kind} fovea-${kind} "Decoder of ${format} images." ${same_version})
endforeach()
if(TARGET fovea_cuda)
  # CUDA libraries are in no package that Debian knows.
  set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
  fovea_package(cuda fovea-cuda "Plugin for GPUs." ${same_version})
endif()
include(CPack)
