//===- GemmLayout.cpp - a strided product as cuBLASLt sees it ---------------===//

#include "runtime/device/cuda/GemmLayout.h"

#include <algorithm>
#include <string>

namespace tessera::cuda {
namespace {

/// The transpose of the matrix of the two innermost dimensions, as what cuBLASLt reads.
Result<MatrixLayout> transposed(const TensorView &view, const char *name) {
  size_t rank = view.shape.size();
  int64_t rows = view.shape[rank - 2], columns = view.shape[rank - 1];
  int64_t rowStride = view.strides[rank - 2], columnStride = view.strides[rank - 1];
  if (columnStride == 1 || columns == 1)
    if (rows == 1 || rowStride >= columns) // in memory: `columns` x `rows`, column-major
      return MatrixLayout{columns, rows, rows == 1 ? columns : rowStride, false, 0};
  if (rowStride == 1 || rows == 1)
    if (columns == 1 || columnStride >= rows)
      return MatrixLayout{rows, columns, columns == 1 ? rows : columnStride, true, 0};
  return TESSERA_ERROR(Unsupported, std::string("operand ") + name + " has strides " + std::to_string(rowStride) +
                                        ", " + std::to_string(columnStride) + ", which cuBLASLt cannot read");
}

int64_t batchStride(const TensorView &view, size_t dim) { return view.shape[dim] == 1 ? 0 : view.strides[dim]; }

} // namespace

Result<GemmLayout> gemmLayout(const TensorView &a, const TensorView &b, const TensorView &c) {
  GemmLayout layout;
  TESSERA_ASSIGN_OR_RETURN(layout.first, transposed(b, "b"));
  TESSERA_ASSIGN_OR_RETURN(layout.second, transposed(a, "a"));
  TESSERA_ASSIGN_OR_RETURN(layout.target, transposed(c, "c"));
  if (layout.target.isTransposed)
    return TESSERA_ERROR(Unsupported, "operand c is column-major, which cuBLASLt cannot write");
  for (size_t dim = 0; dim + 2 < c.shape.size(); ++dim) {
    if (c.shape[dim] == 1)
      continue;
    GemmLoop loop{c.shape[dim], batchStride(a, dim), batchStride(b, dim), c.strides[dim]};
    std::vector<GemmLoop> &loops = layout.loops;
    // Neighbours that are one loop for all operands become one.
    if (!loops.empty() && loops.back().a == loop.a * loop.size && loops.back().b == loop.b * loop.size &&
        loops.back().c == loop.c * loop.size)
      loops.back() = {loops.back().size * loop.size, loop.a, loop.b, loop.c};
    else
      loops.push_back(loop);
  }
  // A batch that only the rows have is more rows: columns of aᵀ and cᵀ.
  while (!layout.loops.empty()) {
    const GemmLoop &loop = layout.loops.back();
    if (loop.b != 0 || layout.second.isTransposed || loop.a != layout.second.leading * layout.second.columns ||
        loop.c != layout.target.leading * layout.target.columns)
      break;
    layout.second.columns *= loop.size;
    layout.target.columns *= loop.size;
    layout.loops.pop_back();
  }
  if (!layout.loops.empty()) {
    const GemmLoop &inner = layout.loops.back();
    layout.batch = inner.size;
    layout.first.batchStride = inner.b;
    layout.second.batchStride = inner.a;
    layout.target.batchStride = inner.c;
    layout.loops.pop_back();
  }
  return layout;
}

Result<EpilogueLayout> epilogueLayout(artifact::Epilogue epilogue, const GemmLayout &product) {
  EpilogueLayout layout;
  const std::string name = artifact::EnumNameEpilogue(epilogue);
  if (product.batch != 1 || !product.loops.empty())
    return TESSERA_ERROR(Unsupported, "epilogue " + name + " of a batch of products");
  // The library's first operand is b, so that what is summed of b belongs to its first.
  if (sumsOperand(epilogue))
    layout.sum = epilogue == artifact::Epilogue::BiasGradA ? EpilogueLayout::Sum::Second : EpilogueLayout::Sum::First;
  if (takesBias(epilogue) || givesBiasGrad(epilogue))
    layout.biasElements = layout.sum == EpilogueLayout::Sum::Second ? product.target.columns : product.target.rows;
  if (takesPreActivation(epilogue) || givesPreActivation(epilogue)) {
    layout.auxLeading = product.target.rows;
    if (layout.auxLeading % 8 != 0)
      return TESSERA_ERROR(Unsupported, "epilogue " + name + " of " + std::to_string(layout.auxLeading) +
                                            " columns: cuBLASLt needs a multiple of 8");
  }
  return layout;
}

} // namespace tessera::cuda
