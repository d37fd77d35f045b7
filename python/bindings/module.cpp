// The module fovea_encoder._native: what the package is built on. Uses the public headers only.
#include <nanobind/nanobind.h>

#include "embedding.h"
#include "engine.h"
#include "errors.h"
#include "fovea/version.h"
#include "hub.h"
#include "media.h"
#include "memory.h"

NB_MODULE(_native, module) {
  // At the end of a process modules still hold engines and embeddings; that is no news.
  nanobind::set_leak_warnings(false);
  module.def("version", &fovea::version, "Version of the library.");
  fovea::python::translate_errors();
  fovea::python::bind_embedding(module);
  fovea::python::bind_engine(module);
  fovea::python::bind_hub(module);
  fovea::python::bind_media(module);
  fovea::python::bind_memory(module);
}
