//===- Tensors.cpp - what became of a model's tensors ---------------------===//

#include "tools/tessera-compile/driver/Tensors.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace tessera {

namespace {
struct Count {
  int64_t tensors = 0;
  uint64_t elements = 0;

  void add(RankedTensorType type) {
    ++tensors;
    elements = llvm::SaturatingAdd<uint64_t>(elements, type.getNumElements());
  }
};

/// The tensors by role: from the importer's list, or from the arguments of a step that was written as IR.
std::array<Count, train::getMaxEnumValForTensorRole() + 1> countTensors(ModuleOp module, func::FuncOp step) {
  std::array<Count, train::getMaxEnumValForTensorRole() + 1> counts;
  if (auto tensors = module->getAttrOfType<ArrayAttr>(train::kTensors)) {
    for (auto info : tensors.getAsRange<train::TensorInfoAttr>())
      counts[static_cast<size_t>(info.getRole())].add(info.getType());
    return counts;
  }
  for (BlockArgument argument : step.getArguments()) {
    const std::optional<train::ArgRole> role = train::getArgRole(step, argument.getArgNumber());
    if (role == train::ArgRole::Buffer)
      counts[static_cast<size_t>(train::TensorRole::Buffer)].add(train::tensorType(argument));
    if (train::isParameter(role))
      counts[static_cast<size_t>(role == train::ArgRole::Param ? train::TensorRole::Param : train::TensorRole::Frozen)]
          .add(train::tensorType(argument));
  }
  return counts;
}

/// Elements of optimizer state, without the padding of units.
int64_t countState(func::FuncOp step) {
  llvm::StringMap<int64_t> elements; // of a unit's parameters
  for (unsigned index : train::getArgsWithRole(step, train::ArgRole::Param))
    for (train::SegmentAttr segment : train::getSegments(step, index))
      elements[train::getArgName(step, index)] += llvm::product_of(segment.getShape());
  int64_t state = 0;
  for (unsigned index : train::getArgsWithRole(step, train::ArgRole::State))
    state += elements.lookup(step.getArgAttrOfType<StringAttr>(index, train::kOf).getValue());
  return state;
}

/// "10,844,160"
std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}
} // namespace

void printTensorSummary(ModuleOp module, StringRef source, llvm::raw_ostream &os) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  const std::array<Count, train::getMaxEnumValForTensorRole() + 1> counts = countTensors(module, step);
  auto count = [&](train::TensorRole role) { return counts[static_cast<size_t>(role)]; };
  const Count trained = count(train::TensorRole::Param);
  os << llvm::sys::path::filename(source) << ": trains " << grouped(trained.elements) << " elements in "
     << trained.tensors << (trained.tensors == 1 ? " parameter" : " parameters");
  for (auto [role, what] : {std::pair(train::TensorRole::Frozen, "frozen"), {train::TensorRole::Constant, "constant"}})
    if (Count other = count(role); other.tensors > 0)
      os << "; " << grouped(other.elements) << " " << what << " in " << other.tensors;
    else
      os << "; none " << what;
  if (Count buffers = count(train::TensorRole::Buffer); buffers.tensors > 0)
    os << "; " << grouped(buffers.elements) << " in " << buffers.tensors
       << (buffers.tensors == 1 ? " buffer that changes" : " buffers that change");
  if (Count unused = count(train::TensorRole::Unused); unused.tensors > 0)
    os << "; " << unused.tensors << " unused";
  if (int64_t state = countState(step); state > 0)
    os << "; optimizer state " << grouped(state);
  os << "\n";
}

void printTensors(ModuleOp module, llvm::raw_ostream &os) {
  auto tensors = module->getAttrOfType<ArrayAttr>(train::kTensors);
  if (!tensors)
    return;
  size_t width = 0;
  for (auto info : tensors.getAsRange<train::TensorInfoAttr>())
    width = std::max(width, info.getName().size());
  for (auto info : tensors.getAsRange<train::TensorInfoAttr>())
    os << "  " << llvm::left_justify(train::stringifyTensorRole(info.getRole()), 9) << " "
       << llvm::left_justify(info.getName().getValue(), width) << "  " << info.getType() << "  "
       << info.getReason().getValue() << "\n";
}

} // namespace tessera
