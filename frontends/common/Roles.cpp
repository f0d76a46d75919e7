//===- Roles.cpp - what each tensor of a model is -------------------------===//

#include "frontends/common/Roles.h"

#include "frontends/common/Shape.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tessera::frontend {

namespace {
/// Names under which exporters and common model code keep tensors that are not trained. Only a hint in a message.
bool looksLikeBuffer(StringRef name) {
  static constexpr llvm::StringLiteral kEnds[] = {"inv_freq",    "cos_cached",  "sin_cached", "cos_cache",
                                                  "sin_cache",   "freqs_cis",   "freqs_cos",  "freqs_sin",
                                                  "causal_mask", "masked_bias", "attn_mask",  "position_ids"};
  return name.contains("lifted_tensor") || llvm::any_of(kEnds, [&](StringRef end) {
           StringRef before = name;
           return before.consume_back(end) && (before.empty() || StringRef("._/").contains(before.back()));
         });
}

/// Names that exporters make up for tensors that they computed, such as the transposed weight of a tied head. A hint.
bool looksFolded(StringRef name) {
  return name.starts_with("onnx::") ||
         (name.consume_front("val_") && !name.empty() && llvm::all_of(name, [](char c) { return llvm::isDigit(c); }));
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

/// What a role is called in messages.
static StringRef wordOf(Role role) {
  switch (role) {
  case Role::Parameter:
    return "trained";
  case Role::Frozen:
    return "frozen";
  case Role::Buffer:
    return "a buffer";
  case Role::Statistic:
    return "a statistic";
  case Role::Constant:
    return "a constant";
  case Role::Uncertain:
    return "not certain";
  }
  llvm_unreachable("unknown role");
}

LogicalResult Roles::addFlag(const char *name, const std::string &text, std::optional<Flag> &flag) {
  std::optional<train::NamePattern> pattern;
  if (failed(train::NamePattern::read(loc, name, text, pattern)))
    return failure();
  if (pattern)
    flag.emplace(Flag{std::move(*pattern), false, std::nullopt});
  return success();
}

LogicalResult Roles::addPadding(StringRef text) {
  auto [pattern, row] = text.rsplit('=');
  int64_t index = 0;
  if (pattern.empty() || row.getAsInteger(10, index) || index < 0)
    return error() << "--padding-idx: expected <regex>=<row>, got '" << text << "'";
  FailureOr<train::NamePattern> parsed = train::NamePattern::parse(loc, "--padding-idx", pattern);
  if (succeeded(parsed))
    padding.emplace_back(std::move(*parsed), index);
  return parsed;
}

LogicalResult Roles::readFlags() {
  if (failed(addFlag("--parameters", options.parameters, parameters)) ||
      failed(addFlag("--constants", options.constants, constants)) ||
      failed(addFlag("--frozen", options.frozen, frozen)) ||
      failed(train::NamePattern::read(loc, "--tied", options.tied, tied)))
    return failure();
  return success(
      llvm::all_of(options.paddingIdx, [&](const std::string &text) { return succeeded(addPadding(text)); }));
}

Roles::Flags Roles::match(StringRef name) {
  names.push_back(name.str());
  auto matches = [&](const std::optional<Flag> &flag) { return flag && flag->pattern.match(name); };
  return {matches(parameters), matches(constants), matches(frozen)};
}

Decision Roles::decide(StringRef name, RankedTensorType type) {
  const Flags flags = match(name);
  Decision decision = decideBy(flags, name, type);
  recordEffect(flags, name, decision);
  return decision;
}

/// Notes whether the flags that name a tensor had their way. What takes no gradient anyhow is as good as frozen.
void Roles::recordEffect(Flags flags, StringRef name, const Decision &decision) {
  auto note = [&](std::optional<Flag> &flag, bool matches, bool isHeeded) {
    if (!matches)
      return;
    flag->isHeeded |= isHeeded;
    if (!isHeeded && !flag->overruled)
      flag->overruled.emplace(name, decision);
  };
  const bool isConstant = decision.role == Role::Constant;
  note(parameters, flags.parameter, decision.role == Role::Parameter);
  note(constants, flags.constant, isConstant);
  note(frozen, flags.frozen, decision.role == Role::Frozen || (isConstant && !flags.constant));
}

Decision Roles::decideBy(Flags flags, StringRef name, RankedTensorType type) {
  const auto [isParameter, isConstant, isFrozen] = flags;
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

/// A flag that names no tensor, or of whose tensors none became what it says, is a mistake.
LogicalResult Roles::checkFlags() {
  if (names.empty())
    return success();
  const SmallVector<StringRef> all(names.begin(), names.end());
  for (const std::optional<Flag> *flag : {&parameters, &constants, &frozen}) {
    if (!*flag)
      continue;
    const train::NamePattern &pattern = (*flag)->pattern;
    if (failed(pattern.expectMatch(loc, "tensor", all)))
      return failure();
    const auto &overruled = (*flag)->overruled;
    if (!(*flag)->isHeeded && overruled)
      return error() << pattern.getFlag() << ": '" << pattern.getText() << "' changes nothing: '" << overruled->first
                     << "', which it matches, is " << wordOf(overruled->second.role) << " (" << overruled->second.reason
                     << ")";
  }
  return failure(failed(checkTied(all)) || failed(checkPadding(all)));
}

/// What names all tensors allows whatever is shared; what names some says that they are.
LogicalResult Roles::checkTied(ArrayRef<StringRef> all) {
  if (!tied)
    return success();
  if (failed(tied->expectMatch(loc, "tensor", all)))
    return failure();
  auto isNamed = [&](StringRef name) { return tied->match(name); };
  if (record || llvm::all_of(all, isNamed) || llvm::any_of(readers, [&](const auto &entry) {
        return scopesOf(entry.second).size() > 1 && isNamed(entry.first());
      }))
    return success();
  return error() << "--tied: no tensor that matches '" << tied->getText() << "' is read in several modules";
}

LogicalResult Roles::checkPadding(ArrayRef<StringRef> all) {
  for (const auto &[pattern, row] : padding)
    if (failed(pattern.expectMatch(loc, "tensor", all)))
      return failure();
  for (StringRef name : all) {
    const RecordedTensor *recorded = record ? record->find(name) : nullptr;
    std::optional<int64_t> given;
    for (const auto &[pattern, row] : padding) {
      if (!pattern.match(name))
        continue;
      if (given && *given != row)
        return error() << "--padding-idx: '" << name << "' has row " << *given << " and, by '" << pattern.getText()
                       << "', row " << row;
      if (!given && recorded && recorded->paddingIdx && *recorded->paddingIdx != row)
        emitWarning(loc) << "--padding-idx: row " << row << " of '" << name << "' instead of row "
                         << *recorded->paddingIdx << ", as the file's record says";
      given = row;
    }
  }
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
  for (const auto &[pattern, row] : padding)
    if (pattern.match(name))
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
