#pragma once

/// Everything of the public interface.
#include "fovea/atomic_file.h"
#include "fovea/cached_rows.h"
#include "fovea/call_bounds.h"
#include "fovea/diagnostics.h"
#include "fovea/dlpack.h"
#include "fovea/embedding.h"
#include "fovea/encoder_cache.h"
#include "fovea/engine.h"
#include "fovea/error.h"
#include "fovea/log.h"
#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/placeholder.h"
#include "fovea/row_block.h"
#include "fovea/stats.h"
#include "fovea/version.h"
