//===- WeightMap.cpp - where files have parameters ------------------------===//

#include "frontends/pt2/WeightMap.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::pt2 {

static ArrayAttr stringsOf(Builder &builder, const std::vector<std::string> &strings) {
  return builder.getStrArrayAttr(llvm::to_vector_of<StringRef>(strings));
}

train::WeightMapAttr attributeOf(const WeightMap &map, MLIRContext &context) {
  Builder builder(&context);
  SmallVector<Attribute> parameters;
  for (const StoredParameter &stored : map.parameters) {
    SmallVector<Attribute> pieces;
    for (const WeightPiece &piece : stored.pieces)
      pieces.push_back(train::WeightPieceAttr::get(&context, builder.getStringAttr(piece.tensor),
                                                   builder.getDenseI64ArrayAttr(piece.shape), piece.sizes, piece.offset,
                                                   piece.strides, piece.tensorOffset, piece.tensorStrides));
    parameters.push_back(train::StoredParameterAttr::get(
        &context, builder.getStringAttr(stored.name), builder.getArrayAttr(pieces), stringsOf(builder, stored.others)));
  }
  return train::WeightMapAttr::get(&context, builder.getStringAttr(map.root), builder.getStringAttr(map.prefix),
                                   builder.getArrayAttr(parameters), stringsOf(builder, map.unread),
                                   builder.getStringAttr(map.refused));
}

} // namespace tessera::pt2
