// Memory of other libraries for rows. Source: Python specification of DLPack, "Syntax for data
// interchange with DLPack" (a capsule "dltensor" holds a DLManagedTensor).
#include "tensors.h"

#include "fovea/dlpack.h"
#include "fovea/error.h"

namespace nb = nanobind;

namespace fovea::python {

std::vector<RowBlock> row_blocks(const nb::list& capsules, std::int64_t width,
                                 const std::string& list) {
  std::vector<RowBlock> blocks;
  blocks.reserve(capsules.size());
  for (const nb::handle capsule : capsules) {
    const std::string name = list + "[" + std::to_string(blocks.size()) + "]";
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor") == 0) {
      throw nb::type_error((name + ": __dlpack__() returned no capsule of a tensor").c_str());
    }
    const void* const tensor = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
    try {
      blocks.push_back(row_block(*static_cast<const DLManagedTensor*>(tensor), width));
    } catch (const Error& error) {
      throw Error(error.code(), name + ": " + error.what());
    }
  }
  return blocks;
}

}  // namespace fovea::python
