#pragma once

#include "fovea/engine.h"
#include "fovea/options.h"

namespace fovea {

// Whether options hold values that their table (fovea/option_table.h) knows: flags and Python see
// to that by themselves, a host in C++ may have computed any number. Each function throws
// Error(kInvalidArgument), which names the option.

/// Requires whole numbers and times from 0 up to what the table says, and enumerators that have a
/// name. Numbers that may be absent, and lists of them, are checked where the model is known.
void check_values(const EngineOptions& options);

/// The same for the options of a call.
void check_values(const EncodeOptions& options);

}  // namespace fovea
