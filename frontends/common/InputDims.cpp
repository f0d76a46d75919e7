//===- InputDims.cpp - sizes and roles of the inputs' dimensions ----------===//

#include "frontends/common/InputDims.h"

#include "compiler/dialect/train/NamePattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::frontend {

using train::DimRole;

static StringRef countedBy(DimRole role) { return role == DimRole::Sample ? "samples" : "positions"; }
static StringRef flagOf(DimRole role) { return role == DimRole::Sample ? "--batch" : "--seq"; }

SmallVector<int64_t> InputDims::Input::shape() const {
  return llvm::to_vector(llvm::map_range(dims, [](const Dim &dim) { return dim.size; }));
}

bool InputDims::Input::has(DimRole role) const {
  return llvm::any_of(dims, [&](const Dim &dim) { return dim.role == role; });
}

void InputDims::add(StringRef name, ArrayRef<FileDim> dims) {
  Input &input = inputs.emplace_back();
  input.name = name.str();
  for (const FileDim &dim : dims)
    input.dims.push_back({dim});
}

/// Whether --dim binds the dimension.
bool InputDims::isSymbolBound(const Dim &dim) const {
  return !dim.file.size && options.dims.count(dim.file.symbol) > 0;
}

int64_t InputDims::wantedFor(DimRole role) const {
  return role == DimRole::Sample ? options.batch : role == DimRole::Position ? options.sequence : 0;
}

/// --dim must bind something.
LogicalResult InputDims::checkSymbols() {
  for (const auto &[name, size] : options.dims) {
    auto isNamed = [&, &name = name](const Dim &dim) { return !dim.file.size && dim.file.symbol == name; };
    if (llvm::any_of(inputs, [&](const Input &input) { return llvm::any_of(input.dims, isNamed); }))
      continue;
    llvm::SetVector<StringRef> known;
    for (const Input &input : inputs)
      for (const Dim &dim : input.dims)
        if (!dim.file.size && !dim.file.symbol.empty())
          known.insert(dim.file.symbol);
    const StringRef flag = name == "batch"                       ? "; --batch binds what counts samples"
                           : name == "seq" || name == "sequence" ? "; --seq binds what counts positions"
                                                                 : "";
    return error() << "--dim: no input has a symbolic dimension '" << name << "'" << flag
                   << train::nearestNames(name, known.getArrayRef());
  }
  return success();
}

/// "<input>:<dimension>=<batch|sequence|none>[,…]"; a name may have colons itself.
LogicalResult InputDims::readFlag(StringRef flag) {
  const auto parts = flag.substr(0, flag.find('=')).rsplit(':');
  const StringRef name = parts.first, list = flag.contains('=') ? flag.drop_front(name.size() + 1) : parts.second;
  auto *input = llvm::find_if(inputs, [&](const Input &input) { return input.name == name; });
  if (input == inputs.end())
    return error() << "--dim-role " << flag << ": the model has no input '" << name << "'"
                   << train::nearestNames(
                          name, llvm::map_to_vector(inputs, [](const Input &each) -> StringRef { return each.name; }));
  SmallVector<StringRef> entries;
  list.split(entries, ',');
  for (StringRef entry : entries) {
    auto [number, word] = entry.split('=');
    unsigned dim = 0;
    const bool isRole = word == "batch" || word == "sequence" || word == "none";
    if (number.getAsInteger(10, dim) || !isRole)
      return error() << "--dim-role: expected <input>:<dimension>=<batch|sequence|none>[,…], got '" << flag << "'";
    if (dim >= input->dims.size())
      return error() << "--dim-role " << flag << ": input '" << name << "' has " << input->dims.size()
                     << " dimensions, counted from 0";
    Dim &named = input->dims[dim];
    if (named.isGiven)
      return error() << "--dim-role " << flag << ": dimension " << dim << " of '" << name << "' is named twice";
    named.role = word == "batch" ? DimRole::Sample : word == "sequence" ? DimRole::Position : DimRole::None;
    named.isKnown = named.isGiven = true;
  }
  return success();
}

/// What --dim-role says of a dimension holds for all of its symbol: in the same input whatever it is, in others if it
/// counts something.
LogicalResult InputDims::readFlags() {
  for (const std::string &flag : options.dimRoles)
    if (failed(readFlag(flag)))
      return failure();
  for (Input &input : inputs) {
    for (Dim &dim : input.dims) {
      if (dim.isGiven || dim.file.size || dim.file.symbol.empty())
        continue;
      const Dim *same = llvm::find_if(input.dims, [&](const Dim &other) {
        return other.isGiven && !other.file.size && other.file.symbol == dim.file.symbol;
      });
      if (same == input.dims.end())
        continue;
      dim.role = same->role;
      dim.isKnown = dim.isGiven = true;
    }
    for (size_t dim = 0; dim < input.dims.size(); ++dim)
      if (input.dims[dim].isGiven && input.dims[dim].role != DimRole::None && failed(addSymbol(input, dim)))
        return failure();
  }
  return success();
}

/// What one dimension of a symbol counts, all do.
LogicalResult InputDims::addSymbol(const Input &input, size_t dim) {
  const Dim &found = input.dims[dim];
  if (found.file.size || found.file.symbol.empty())
    return success();
  const std::string where = "dimension " + std::to_string(dim) + " of '" + input.name + "'";
  auto [entry, isNew] = symbols.try_emplace(found.file.symbol, Symbol{found.role, where, found.isGiven});
  if (isNew || entry->second.role == found.role)
    return success();
  return error() << "'" << found.file.symbol << "' counts " << countedBy(entry->second.role) << " as "
                 << entry->second.where << " and " << countedBy(found.role) << " as " << where
                 << "; say what the dimensions of '" << input.name << "' count with --dim-role " << input.name
                 << ":<dimension>=<batch|sequence|none>, or, if the example of the export had as many samples as "
                    "positions, export it with another number of samples";
}

/// Without a word about it, --batch binds dimension 0 and --seq dimension 1, unless --dim-role says of another
/// dimension that it does.
LogicalResult InputDims::assignByPlace(Input &input) {
  for (auto [place, dim] : llvm::enumerate(input.dims)) {
    const DimRole role = place == 0 ? DimRole::Sample : DimRole::Position;
    if (place > 1 || dim.isKnown || isSymbolBound(dim) || input.has(role))
      continue;
    if (std::optional<int64_t> fixed = dim.file.size) {
      // A size that the file has, and --seq says as well.
      if (role == DimRole::Position && *fixed == wantedFor(role))
        dim.role = role;
      continue;
    }
    auto known = symbols.find(dim.file.symbol);
    if (wantedFor(role) == 0 || (known != symbols.end() && known->second.isGiven))
      continue;
    dim.role = role;
    dim.isKnown = true;
    if (failed(addSymbol(input, place)))
      return failure();
  }
  return success();
}

LogicalResult InputDims::assignSizes(Input &input) {
  for (auto [place, dim] : llvm::enumerate(input.dims)) {
    const int64_t wanted = wantedFor(dim.role);
    if (std::optional<int64_t> fixed = dim.file.size) {
      dim.size = *fixed;
      if (dim.size < 1)
        return error() << "input '" << input.name << "' has size " << dim.size << " in dimension " << place
                       << ", expected at least 1";
      if (wanted > 0 && wanted != dim.size)
        return error() << "input '" << input.name << "' has the fixed size " << dim.size << " in dimension " << place
                       << ", got " << flagOf(dim.role) << " " << wanted
                       << "; export the model with a symbolic dimension";
      continue;
    }
    const std::string &symbol = dim.file.symbol;
    if (isSymbolBound(dim)) {
      dim.size = options.dims.at(symbol);
      if (dim.size < 1)
        return error() << "dimension '" << symbol << "' is bound to " << dim.size << ", expected at least 1";
      if (wanted > 0 && wanted != dim.size)
        return error() << "dimension " << place << " of input '" << input.name << "' is bound to " << dim.size
                       << " by --dim " << symbol << " and to " << wanted << " by " << flagOf(dim.role);
      continue;
    }
    dim.size = wanted;
    if (wanted > 0)
      continue;
    InFlightDiagnostic diagnostic = error();
    diagnostic << "input '" << input.name << "' has an unknown size in dimension " << place;
    if (!symbol.empty())
      diagnostic << "; bind it with --dim " << symbol << "=<size>";
    const DimRole byPlace = place == 0 ? DimRole::Sample : place == 1 ? DimRole::Position : DimRole::None;
    if (const DimRole role = dim.isKnown ? dim.role : byPlace; role != DimRole::None)
      diagnostic << (symbol.empty() ? "; bind it with " : " or ") << flagOf(role) << " <size>";
    return diagnostic;
  }
  return success();
}

/// --batch and --seq that bind nothing must at least agree with what the file fixes.
LogicalResult InputDims::checkUnused() {
  for (DimRole role : {DimRole::Sample, DimRole::Position}) {
    const size_t place = role == DimRole::Sample ? 0 : 1;
    if (wantedFor(role) == 0 || llvm::any_of(inputs, [&](const Input &input) { return input.has(role); }))
      continue;
    for (const Input &input : inputs)
      if (place < input.dims.size() && !input.dims[place].isKnown && !isSymbolBound(input.dims[place]) &&
          input.dims[place].size != wantedFor(role))
        return error() << "input '" << input.name << "' has the fixed size " << input.dims[place].size
                       << " in dimension " << place << ", got " << flagOf(role) << " " << wantedFor(role)
                       << "; export the model with a symbolic dimension";
  }
  return success();
}

/// All count the same number of samples. Of an input that does not say, dimension 0 does if it is as large.
LogicalResult InputDims::assumeSamples() {
  const Input *first = nullptr;
  int64_t batch = 0;
  for (const Input &input : inputs)
    for (auto [place, dim] : llvm::enumerate(input.dims)) {
      if (dim.role != DimRole::Sample)
        continue;
      if (first && batch != dim.size)
        return error() << "input '" << input.name << "' has " << dim.size << " samples in dimension " << place
                       << ", input '" << first->name << "' has " << batch;
      first = &input;
      batch = dim.size;
    }
  for (Input &input : inputs) {
    if (input.dims.empty() || input.has(DimRole::Sample) || input.dims.front().isKnown)
      continue;
    if (batch == 0)
      batch = options.batch > 0 ? options.batch : input.dims.front().size;
    if (input.dims.front().size != batch)
      continue;
    input.dims.front().role = DimRole::Sample;
    emitRemark(loc) << "dimension 0 of input '" << input.name
                    << "' is assumed to count samples, as it is as large as the batch; --dim-role " << input.name
                    << ":0=none says otherwise";
  }
  return success();
}

LogicalResult InputDims::resolve() {
  if (failed(checkSymbols()) || failed(readFlags()))
    return failure();
  for (Input &input : inputs)
    if (failed(assignByPlace(input)))
      return failure();
  for (Input &input : inputs) {
    for (Dim &dim : input.dims)
      if (auto found = symbols.find(dim.file.symbol); !dim.isKnown && found != symbols.end()) {
        dim.role = found->second.role;
        dim.isKnown = true;
      }
    if (input.isGiven() && llvm::count_if(input.dims, [](const Dim &dim) { return dim.role == DimRole::Sample; }) > 1)
      return error() << "--dim-role: input '" << input.name << "' has two dimensions that count samples";
    if (failed(assignSizes(input)))
      return failure();
  }
  if (failed(checkUnused()))
    return failure();
  isAnyKnown = llvm::any_of(
      inputs, [](const Input &input) { return llvm::any_of(input.dims, [](const Dim &dim) { return dim.isKnown; }); });
  return isAnyKnown ? assumeSamples() : success();
}

train::DimsAttr InputDims::getAttr(const Input &input) const {
  if (!isAnyKnown)
    return {};
  SmallVector<DimRole> roles;
  for (const Dim &dim : input.dims)
    roles.push_back(dim.role);
  return train::DimsAttr::get(loc.getContext(), roles);
}

} // namespace tessera::frontend
