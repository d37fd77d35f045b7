#pragma once

/// Marks what a shared build of the library makes visible.
#if defined(FOVEA_SHARED)
#define FOVEA_API __attribute__((visibility("default")))
#else
#define FOVEA_API
#endif
