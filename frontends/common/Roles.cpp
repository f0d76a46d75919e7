//===- Roles.cpp - what each tensor of a model is -------------------------===//

#include "frontends/common/Roles.h"

#include "frontends/common/Shape.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::frontend {

namespace {
/// Names under which exporters and common model code keep tensors that are not trained. Only a hint in a message.
bool looksLikeBuffer(StringRef name) {
  static const llvm::Regex pattern("(^|[._/])(inv_freq|original_inv_freq|cos_cached|sin_cached|cos_cache|sin_cache|"
                                   "freqs_cis|freqs_cos|freqs_sin|causal_mask|masked_bias|attn_mask|position_ids)$|"
                                   "lifted_tensor");
  return pattern.match(name);
}

/// Names that exporters make up for tensors that they computed, such as the transposed weight of a tied head. A hint.
bool looksFolded(StringRef name) {
  static const llvm::Regex pattern("^(val_[0-9]+|onnx::.*)$");
  return pattern.match(name);
}

/// How many tensors an error lists before it says how many more there are.
constexpr size_t kListed = 40;

/// The scopes of the readers, each once, in order.
SmallVector<StringRef> scopesOf(ArrayRef<Reader> readers) {
  llvm::SetVector<StringRef, SmallVector<StringRef>> scopes;
  for (const Reader &reader : readers)
    scopes.insert(reader.scope);
  return scopes.takeVector();
}

std::string listOf(ArrayRef<StringRef> names, size_t most) {
  std::string text;
  for (StringRef name : names.take_front(most))
    text += (text.empty() ? "'" : ", '") + (name.empty() ? StringRef("the model") : name).str() + "'";
  return names.size() > most ? text + ", …" : text;
}
} // namespace

LogicalResult Roles::addFlag(const char *name, const std::string &text, std::optional<Flag> &flag) {
  if (text.empty())
    return success();
  llvm::Regex regex(text);
  std::string why;
  if (!regex.isValid(why))
    return error() << name << ": '" << text << "' is not a regular expression: " << why;
  flag.emplace(Flag{name, text, std::move(regex)});
  return success();
}

LogicalResult Roles::readFlags() {
  if (failed(addFlag("--parameters", options.parameters, parameters)) ||
      failed(addFlag("--constants", options.constants, constants)) ||
      failed(addFlag("--frozen", options.frozen, frozen)) || failed(addFlag("--tied", options.tied, tied)))
    return failure();
  for (const std::string &text : options.paddingIdx) {
    auto [pattern, row] = StringRef(text).rsplit('=');
    int64_t index = 0;
    std::optional<Flag> flag;
    if (pattern.empty() || row.getAsInteger(10, index) || index < 0)
      return error() << "--padding-idx: expected <regex>=<row>, got '" << text << "'";
    if (failed(addFlag("--padding-idx", pattern.str(), flag)))
      return failure();
    padding.emplace_back(std::move(*flag), index);
  }
  return success();
}

Roles::Flags Roles::match(StringRef name) {
  anyTensor = true;
  auto matches = [&](std::optional<Flag> &flag) { return flag && flag->match(name); };
  (void)matches(tied);
  for (auto &[flag, row] : padding)
    (void)flag.match(name);
  return {matches(parameters), matches(constants), matches(frozen)};
}

Decision Roles::decide(StringRef name, RankedTensorType type) {
  const auto [isParameter, isConstant, isFrozen] = match(name);
  auto trains = [&](const char *reason) {
    trained.push_back(name.str());
    return Decision{Role::Parameter, reason};
  };
  const RecordedTensor *recorded = record ? record->find(name) : nullptr;
  const bool wasTrained = recorded && recorded->isParameter && recorded->trained;
  if (record && isa<FloatType>(type.getElementType()) &&
      (wasTrained ? isConstant : isParameter && !isConstant && !isFrozen && !statistics.contains(name)))
    overridden.push_back(name.str());
  // Integers take no gradient, and what has no elements has nothing to train.
  if (!isa<FloatType>(type.getElementType()))
    return {Role::Constant, "integers or booleans"};
  if (type.getNumElements() == 0)
    return {Role::Constant, "has no elements"};
  if (isConstant)
    return {Role::Constant, "--constants"};
  if (isFrozen)
    return {Role::Frozen, "--frozen"};
  if (statistics.contains(name))
    return {Role::Statistic, "statistics of a batch normalisation"};
  if (isParameter)
    return trains("--parameters");
  if (record) {
    const RecordedTensor *tensor = record->find(name);
    if (!tensor)
      return {Role::Constant, "a number in the module's code"};
    if (!tensor->isParameter)
      return {Role::Buffer, "a buffer of the module"};
    return tensor->trained ? trains("a parameter of the module") : Decision{Role::Frozen, "requires_grad is False"};
  }
  if (auto kind = signature.find(name); kind != signature.end())
    switch (kind->second) {
    case SignatureKind::Parameter:
      return trains("a parameter in the exporter's signature");
    case SignatureKind::Buffer:
      return {Role::Buffer, "a buffer in the exporter's signature"};
    case SignatureKind::Constant:
      return {Role::Constant, "a constant in the exporter's signature"};
    }
  uncertain.push_back(name.str());
  return {Role::Uncertain, ""};
}

LogicalResult Roles::checkUncertain() {
  if (uncertain.empty())
    return success();
  InFlightDiagnostic diagnostic = error();
  diagnostic
      << "the file does not say which of its tensors are trained: " << uncertain.size()
      << (uncertain.size() == 1 ? " tensor is" : " tensors are")
      << " not certain; say which with --parameters <regex>, --constants <regex> and --frozen <regex>, or export "
         "with python -m tessera export, which writes it into the file";
  bool buffers = false, folded = false;
  for (const std::string &name : ArrayRef(uncertain).take_front(kListed)) {
    Diagnostic &note = diagnostic.attachNote(loc);
    note << "'" << name << "'";
    if (auto found = readers.find(name); found != readers.end())
      note << ", read by node '" << found->second.front().node << "'"
           << (found->second.size() > 1 ? " and others" : "");
    if (looksLikeBuffer(name))
      note << " (its name is one that buffers often have)";
    else if (looksFolded(name))
      note << " (its name is one that exporters give to what they folded or merged)";
  }
  for (const std::string &name : uncertain)
    buffers |= looksLikeBuffer(name), folded |= looksFolded(name);
  if (uncertain.size() > kListed)
    diagnostic.attachNote(loc) << "and " << uncertain.size() - kListed << " more";
  if (folded)
    diagnostic.attachNote(loc) << "what was folded is no longer tied to what it was made of: export without folding";
  else
    diagnostic.attachNote(loc) << "if all of them are trained: --parameters ."
                               << (buffers ? "; those that match --constants are not" : "");
  return diagnostic;
}

LogicalResult Roles::checkRecorded(const Shapes &shapes) {
  if (!record)
    return success();
  SmallVector<std::string> problems;
  for (const RecordedTensor &tensor : record->tensors) {
    const auto found = shapes.find(tensor.name);
    const bool isThere = found != shapes.end();
    const std::string what = (tensor.isParameter ? "parameter '" : "buffer '") + tensor.name + "' ";
    if (isThere && tensor.shape != found->second)
      problems.push_back(what + "has shape " + shapeText(found->second) + " in the graph and " +
                         shapeText(tensor.shape) + " in the module");
    else if (tensor.isParameter && !tensor.unused && !isThere)
      problems.push_back(what + "is not in the graph: it was merged with another, folded or renamed");
    else if (tensor.isParameter && !tensor.unused && !isRead(tensor.name))
      problems.push_back(what + "is read by no node: something computed from it was folded");
  }
  if (problems.empty())
    return success();
  InFlightDiagnostic diagnostic = error();
  diagnostic << "the graph and the module that it was exported from"
             << (record->exporter.empty() ? "" : " (" + record->exporter + ")") << " have different tensors";
  for (const std::string &problem : ArrayRef(problems).take_front(kListed))
    diagnostic.attachNote(loc) << problem;
  if (problems.size() > kListed)
    diagnostic.attachNote(loc) << "and " << problems.size() - kListed << " more";
  return diagnostic;
}

/// Exporters that optimise merge tensors of equal value, such as the weights of all fresh norms, into one. A record
/// vouches for what is shared; without one, the user has to.
LogicalResult Roles::checkShared() {
  if (record)
    return success();
  SmallVector<std::pair<StringRef, SmallVector<StringRef>>> shared;
  for (StringRef name : trained)
    if (SmallVector<StringRef> scopes = scopesOf(readers[name]); scopes.size() > 1 && !(tied && tied->match(name)))
      shared.emplace_back(name, std::move(scopes));
  if (shared.empty())
    return success();
  InFlightDiagnostic diagnostic = error();
  diagnostic
      << shared.size() << " of " << trained.size() << " parameters "
      << (shared.size() == 1 ? "is read in several modules: it was" : "are read in several modules: they were")
      << " tied by the model, or equal parameters were merged by the exporter, and trained they would stay equal; "
         "pass --tied <regex> for those that are tied, or export with python -m tessera export (for "
         "torch.onnx.export: optimize=False, training mode)";
  for (auto &[name, scopes] : ArrayRef(shared).take_front(kListed))
    diagnostic.attachNote(loc) << "'" << name << "' is read by " << readers[name].size() << " nodes in "
                               << scopes.size() << " modules: " << listOf(scopes, 4);
  if (shared.size() > kListed)
    diagnostic.attachNote(loc) << "and " << shared.size() - kListed << " more";
  return diagnostic;
}

LogicalResult Roles::checkFlags() {
  SmallVector<Flag *> flags;
  for (std::optional<Flag> *flag : {&parameters, &constants, &frozen, &tied})
    if (*flag)
      flags.push_back(&**flag);
  for (auto &[flag, row] : padding)
    flags.push_back(&flag);
  for (Flag *flag : flags)
    if (!flag->matched && anyTensor)
      return error() << flag->name << ": no tensor matches '" << flag->text << "'";
  return success();
}

LogicalResult Roles::check(const Shapes &shapes) {
  if (failed(checkRecorded(shapes)) || failed(checkUncertain()))
    return failure();
  if (failed(checkShared()) || failed(checkFlags()))
    return failure();
  if (!overridden.empty())
    emitWarning(loc) << "flags contradict the file's record of what is trained for " << overridden.size()
                     << (overridden.size() == 1 ? " tensor: " : " tensors: ")
                     << listOf(SmallVector<StringRef>(overridden.begin(), overridden.end()), 5);
  return success();
}

std::optional<int64_t> Roles::paddingOf(StringRef name) {
  for (auto &[flag, row] : padding)
    if (flag.match(name))
      return row;
  const RecordedTensor *tensor = record ? record->find(name) : nullptr;
  return tensor ? tensor->paddingIdx : std::nullopt;
}

std::optional<bool> Roles::isNormalisedByBatch(StringRef runningMean, bool asWritten) const {
  if (!options.batchNorm.empty() && (!asWritten || options.batchNorm == "inference"))
    return options.batchNorm == "train";
  if (record)
    if (auto found = record->batchNorms.find(runningMean); found != record->batchNorms.end())
      return found->second;
  return asWritten ? std::optional(true) : std::nullopt;
}

} // namespace tessera::frontend
