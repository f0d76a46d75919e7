//===- CallBuilder.h - builds or evaluates the ops of a file ----*- C++ -*-===//
//
// A call whose inputs are all known is evaluated, once for all that are equal;
// any other becomes ops of the function. What a hostile file can make us do is
// limited.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_CALLBUILDER_H
#define TESSERA_FRONTENDS_COMMON_CALLBUILDER_H

#include "frontends/common/Call.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::frontend {

class CallBuilder {
public:
  using Handler = llvm::function_ref<mlir::LogicalResult()>;

  /// Sets the outputs of a call, by its handler, which builds with `call.b`: in a scratch block that is evaluated, or
  /// in the function. A handler may be called several times. `key` names what is called with which attributes. If it
  /// fails, the reason is the call's, and nothing of it is left in the function.
  mlir::LogicalResult run(Call &call, llvm::function_ref<std::string()> key, Handler handler);

  /// The first constant of this type and value, so that equal computations on equal constants are found again.
  Constant intern(Constant constant);

  /// Whether the handler that runs computes one row of a result, whose dimension 0 has then the size 1, instead of what
  /// the file says.
  bool isOfOneRow() const { return ofOneRow; }

private:
  bool evaluateCall(Call &call, Handler handler);
  std::vector<Entry> evaluateRows(Call &call, Handler handler, int64_t count);
  mlir::LogicalResult evaluateOrBuild(Call &call, llvm::function_ref<std::string()> key, Handler handler);
  void countBuilt(const Call &call, mlir::Block::iterator first);

  llvm::StringMap<Constant> interned; ///< by type and hash of the value
  /// Large constants that the function has already; each is kept, so that its address stays its own.
  llvm::DenseMap<const HostTensor *, std::pair<Constant, mlir::Value>> shared;
  /// Evaluated calls by op, attributes and inputs; the inputs are kept so that their addresses stay theirs.
  struct Evaluated {
    std::vector<Entry> inputs, outputs;
  };
  llvm::StringMap<Evaluated> evaluated;
  int64_t work = 0, builtOps = 0, builtConstants = 0;
  bool ofOneRow = false;
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_CALLBUILDER_H
