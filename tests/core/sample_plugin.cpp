// A shared object for plugin_test.cpp: says in the environment that its code has run.
#include <cstdlib>

#include "fovea/tower/core/plugin_note.h"

namespace {

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr fovea::PluginNote kNote{
    .build = {.kind = {'s', 'a', 'm', 'p', 'l', 'e'}, .interface_number = 7}};

[[gnu::constructor]] void leave_a_trace() { setenv("FOVEA_TEST_PLUGIN_RAN", "1", 1); }

}  // namespace

extern "C" __attribute__((visibility("default"))) int answer() { return 42; }
