//===- WeightMap.cpp - where files have parameters ------------------------===//

#include "compiler/dialect/train/Train.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tessera::train {

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult WeightPieceAttr::verify(EmitError emitError, StringAttr tensor, DenseI64ArrayAttr shape,
                                      ArrayRef<int64_t> sizes, int64_t offset, ArrayRef<int64_t> strides,
                                      int64_t tensorOffset, ArrayRef<int64_t> tensorStrides) {
  // train.piece_c1
  if (sizes.empty() || sizes.size() != strides.size() || sizes.size() != tensorStrides.size())
    return emitError() << "the piece of '" << tensor.getValue()
                       << "': expected one stride of the parameter and of the tensor for each loop";
  // train.piece_c2
  auto isNegative = [](int64_t number) { return number < 0; };
  if (offset < 0 || tensorOffset < 0 || llvm::any_of(shape.asArrayRef(), isNegative) ||
      llvm::any_of(strides, isNegative) || llvm::any_of(tensorStrides, isNegative) ||
      llvm::any_of(sizes, [](int64_t size) { return size < 1; }))
    return emitError() << "the piece of '" << tensor.getValue()
                       << "': expected sizes of at least 1 and nothing that is negative";
  return success();
}

LogicalResult StoredParameterAttr::verify(EmitError emitError, StringAttr name, ArrayAttr pieces, ArrayAttr others) {
  // train.stored_c1
  if (!llvm::all_of(pieces, llvm::IsaPred<WeightPieceAttr>) || !llvm::all_of(others, llvm::IsaPred<StringAttr>))
    return emitError() << "'" << name.getValue()
                       << "': expected pieces that are #train.piece and others that are names";
  return success();
}

LogicalResult WeightMapAttr::verify(EmitError emitError, StringAttr, StringAttr, ArrayAttr parameters, ArrayAttr unread,
                                    StringAttr) {
  // train.weight_map_c1
  if (!llvm::all_of(parameters, llvm::IsaPred<StoredParameterAttr>) || !llvm::all_of(unread, llvm::IsaPred<StringAttr>))
    return emitError() << "expected parameters that are #train.stored and unread tensors that are names";
  // train.weight_map_c2
  llvm::StringSet<> seen;
  for (auto stored : parameters.getAsRange<StoredParameterAttr>())
    if (!seen.insert(stored.getName().getValue()).second)
      return emitError() << "'" << stored.getName().getValue() << "' is there twice";
  return success();
}

} // namespace tessera::train
