//===- Roles.h - what each tensor of a model is -----------------*- C++ -*-===//
//
// Decides which tensors of a file are trained, which are frozen and which are
// constants. The decision is the user's (flags), the exporter's (the record, the
// graph signature), or follows from the op that reads the tensor; never from
// the tensor's values, and never from its name alone. What nobody has decided
// is an error that lists the tensors and the flags.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_ROLES_H
#define TESSERA_FRONTENDS_COMMON_ROLES_H

#include "compiler/dialect/train/NamePattern.h"
#include "frontends/Frontend.h"
#include "frontends/common/Record.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::frontend {

enum class Role {
  Parameter, ///< trained
  Frozen,    ///< a parameter without gradient
  Buffer,    ///< computed by the module's code: a constant where its data is small and there, else frozen
  Statistic, ///< running mean or variance of a batch normalisation
  Constant,
  Uncertain,
};

struct Decision {
  Role role;
  std::string reason; ///< who decided, in a few words
};

/// What torch.export's graph signature calls a tensor.
enum class SignatureKind { Parameter, Buffer, Constant };

/// A node that reads a tensor of the file, and the module that it belongs to.
struct Reader {
  std::string node, scope;
};

class Roles {
public:
  using Shapes = llvm::StringMap<llvm::SmallVector<int64_t>>;

  /// `loc` is the file's, for diagnostics.
  Roles(const ImportOptions &options, mlir::Location loc) : options(options), loc(loc) {}

  /// Reads the flags. Emits errors. It comes first.
  mlir::LogicalResult readFlags();
  /// What the file says. Where there is a record, no signature is asked.
  void setRecord(ModelRecord read) { record = std::move(read); }
  void setSignature(llvm::StringMap<SignatureKind> read) { signature = std::move(read); }
  /// Notes that a node reads a tensor. All are noted before the first decision.
  void addReader(llvm::StringRef tensor, Reader reader) { readers[tensor].push_back(std::move(reader)); }
  /// Notes that a tensor is a running mean or variance.
  void addStatistic(llvm::StringRef tensor) { statistics.insert(tensor); }

  /// Which flags name a tensor. Each tensor is asked for, so that a flag that matches nothing is found.
  struct Flags {
    bool parameter, constant, frozen;
  };
  Flags match(llvm::StringRef name);
  /// What a tensor that the graph reads is.
  Decision decide(llvm::StringRef name, mlir::RankedTensorType type);
  /// Checks all decisions together: uncertain tensors, recorded parameters that are missing or have other shapes,
  /// parameters that several modules share without anybody having said so, flags that match nothing or change nothing.
  /// Emits errors.
  /// `shapes`: of all tensors of the file, by name.
  mlir::LogicalResult check(const Shapes &shapes);

  const std::optional<ModelRecord> &getRecord() const { return record; }
  bool isRead(llvm::StringRef name) const { return readers.contains(name); }
  /// The row of a table whose lookups take no gradient.
  std::optional<int64_t> paddingOf(llvm::StringRef name);
  /// Whether a batch normalisation uses the batch's statistics. `asWritten`: its node is in training form. Nothing: the
  /// inference form, which exporters also write for modules in training mode, and neither flag nor record says more.
  std::optional<bool> isNormalisedByBatch(llvm::StringRef runningMean, bool asWritten) const;

private:
  /// What --parameters, --constants or --frozen was given.
  struct Flag {
    train::NamePattern pattern;
    bool isHeeded = false;                                     ///< some tensor that it matches became what it says
    std::optional<std::pair<std::string, Decision>> overruled; ///< the first that became something else
  };

  mlir::InFlightDiagnostic error() { return mlir::emitError(loc); }
  mlir::LogicalResult addFlag(const char *name, const std::string &text, std::optional<Flag> &flag);
  mlir::LogicalResult addPadding(llvm::StringRef text);
  Decision decideBy(Flags flags, llvm::StringRef name, mlir::RankedTensorType type);
  void recordEffect(Flags flags, llvm::StringRef name, const Decision &decision);
  mlir::LogicalResult checkUncertain();
  mlir::LogicalResult checkRecorded(const Shapes &shapes);
  mlir::LogicalResult checkShared();
  mlir::LogicalResult checkFlags();
  mlir::LogicalResult checkTied(llvm::ArrayRef<llvm::StringRef> all);
  mlir::LogicalResult checkPadding(llvm::ArrayRef<llvm::StringRef> all);

  const ImportOptions &options;
  mlir::Location loc;
  std::optional<Flag> parameters, constants, frozen;
  std::optional<train::NamePattern> tied;
  std::vector<std::pair<train::NamePattern, int64_t>> padding;
  std::optional<ModelRecord> record;
  llvm::StringMap<SignatureKind> signature;
  llvm::StringSet<> statistics; ///< running means and variances
  llvm::StringMap<std::vector<Reader>> readers;
  std::vector<std::string> names;              ///< of all tensors that flags have seen
  std::vector<std::string> overridden;         ///< trained or not against the record
  std::vector<std::string> uncertain, trained; ///< in the order of `decide`
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_ROLES_H
