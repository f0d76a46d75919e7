#include "compiler/interfaces/IndexMapping.h"

using namespace mlir;

namespace tessera {

IndexMappingOpInterface asStaticView(Operation *op) {
  auto view = dyn_cast<IndexMappingOpInterface>(op);
  return view && view.isStatic() && !view.isIdentity() ? view : nullptr;
}

} // namespace tessera
