# fovea_embed(<target> <file> <name>)
# Makes a file part of a target: as fovea::embedded::<name>, a std::string_view that its sources
# declare `extern const`. A change of the file is a reason to configure again.
function(fovea_embed target file name)
  cmake_path(ABSOLUTE_PATH file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
#include <string_view>

namespace fovea::embedded {
namespace {
constexpr char kBytesOf@name@[] = {
@bytes@};
}  // namespace

extern const std::string_view @name@;
constinit const std::string_view @name@(kBytesOf@name@, sizeof(kBytesOf@name@));
}  // namespace fovea::embedded
]])
  target_sources(${target} PRIVATE ${source})
endfunction()
