//===- Check.cpp - assertions that the interpreter evaluates --------------===//

#include "compiler/interp/Check.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace tessera::check;

#include "compiler/interp/CheckDialect.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/interp/CheckOps.cpp.inc"

void CheckDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/interp/CheckOps.cpp.inc"
      >();
}

bool tessera::check::isClose(double actual, double expected, double rtol, double atol) {
  if (std::isnan(actual) || std::isnan(expected))
    return std::isnan(actual) && std::isnan(expected);
  if (std::isinf(actual) || std::isinf(expected))
    return actual == expected;
  return std::fabs(actual - expected) <= atol + rtol * std::fabs(expected);
}

/// 0.0 and -0.0 differ; all NaNs are equal.
static bool isSame(double actual, double expected) {
  if (std::isnan(actual) || std::isnan(expected))
    return std::isnan(actual) && std::isnan(expected);
  return llvm::bit_cast<uint64_t>(actual) == llvm::bit_cast<uint64_t>(expected);
}

static std::string print(const tessera::interp::Tensor &tensor, int64_t index) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (tensor.isFloat())
    os << llvm::format("%.9g", tensor.at(index));
  else
    os << tensor.intAt(index);
  return text;
}

LogicalResult tessera::check::evaluate(Operation *op, const interp::Tensor &actual, const interp::Tensor &expected,
                                       int64_t rank) {
  auto close = dyn_cast<ExpectCloseOp>(op);
  int64_t wrong = 0, firstWrong = -1;
  for (int64_t i = 0, end = actual.size(); i < end; ++i) {
    bool holds = false;
    if (close)
      holds =
          isClose(actual.at(i), expected.at(i), close.getRtol().convertToDouble(), close.getAtol().convertToDouble());
    else
      holds = actual.isFloat() ? isSame(actual.at(i), expected.at(i)) : actual.intAt(i) == expected.intAt(i);
    if (!holds && wrong++ == 0)
      firstWrong = i;
  }
  if (wrong == 0)
    return success();
  return op->emitOpError("failed on rank ")
         << rank << " at " << interp::printIndex(interp::delinearize(firstWrong, actual.getShape())) << ": got "
         << print(actual, firstWrong) << ", expected " << print(expected, firstWrong) << " (" << wrong << " of "
         << actual.size() << " elements differ)";
}
