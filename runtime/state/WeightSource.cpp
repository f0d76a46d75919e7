//===- WeightSource.cpp - files that have parameters ---------------------------===//

#include "runtime/base/Fingerprint.h"
#include "runtime/base/ZipFile.h"
#include "runtime/state/ModelFolder.h"
#include "runtime/state/Safetensors.h"
#include "runtime/state/Weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace tessera {

Status WeightSource::addSafetensors(const std::string &path) {
  TESSERA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  for (const auto &[tensor, entry] : file.tensors()) {
    if (!entry.dtype)
      continue; // integers that programs do not have cannot be parameters
    if (!weights.emplace(tensor, WeightEntry{*entry.dtype, entry.shape, entry.bytes}).second)
      return TESSERA_ERROR(InvalidArgument,
                           fmt::format("tensor '{}' is in '{}' and in another file of '{}'", tensor, path, name));
  }
  return Status::ok();
}

Status WeightSource::addOnnx(const std::string &path) {
  others = true;
  return readOnnxInitializers(path, weights, storage);
}

Status WeightSource::addPt2(const std::string &path) {
  others = true;
  return readPt2Weights(path, weights, storage);
}

/// Whether a file that has another name begins as an ONNX model does (the number of its first field), and not as
/// safetensors, whose header follows eight bytes of length.
static bool isOnnx(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  uint8_t start[9];
  return file.isOk() && file->size() >= sizeof(start) && file->read(0, start, sizeof(start)).isOk() &&
         start[0] == 0x08 && start[8] != '{';
}

Result<std::unique_ptr<WeightSource>> WeightSource::open(const std::string &path) {
  std::unique_ptr<WeightSource> source(new WeightSource);
  source->name = path;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const bool isNamedSafetensors = fs::path(path).extension() == ".safetensors";
    if (fs::path(path).extension() == ".onnx" || (!isNamedSafetensors && isOnnx(path)))
      TESSERA_RETURN_IF_ERROR(source->addOnnx(path));
    else if (fs::path(path).extension() == ".pt2" || ZipFile::isZip(path))
      TESSERA_RETURN_IF_ERROR(source->addPt2(path));
    else
      TESSERA_RETURN_IF_ERROR(source->addSafetensors(path));
    return source;
  }
  TESSERA_RETURN_IF_ERROR(source->addFolder());
  return source;
}

Status WeightSource::addFolder() {
  TESSERA_ASSIGN_OR_RETURN(const ModelFiles files, findModelFiles(name));
  for (const auto &[file, tensors] : files) {
    const std::string path = name + "/" + file;
    TESSERA_RETURN_IF_ERROR(addSafetensors(path));
    for (const std::string &tensor : tensors)
      if (!weights.count(tensor))
        return TESSERA_ERROR(
            DataLoss, fmt::format("'{}' has no tensor '{}', which the folder's index says is there", path, tensor));
  }
  return Status::ok();
}

/// The entry of a tensor under one of its spellings; null if there is none.
const WeightEntry *WeightSource::find(const WeightMap &map, const std::string &tensor, std::string &spelling) const {
  for (const std::string &name : map.spellings(tensor))
    if (const auto found = weights.find(name); found != weights.end()) {
      spelling = name;
      return &found->second;
    }
  return nullptr;
}

/// Whether two tensors are the same. Errors: of reading.
static Result<bool> areEqual(const WeightEntry &one, const WeightEntry &other) {
  if (one.dtype != other.dtype || one.shape != other.shape || one.bytes.size() != other.bytes.size())
    return false;
  constexpr uint64_t block = 1 << 20;
  std::vector<uint8_t> left(block), right(block);
  for (uint64_t at = 0; at < one.bytes.size(); at += block) {
    const uint64_t count = std::min(block, one.bytes.size() - at);
    TESSERA_RETURN_IF_ERROR(one.bytes.read(at, left.data(), count));
    TESSERA_RETURN_IF_ERROR(other.bytes.read(at, right.data(), count));
    if (std::memcmp(left.data(), right.data(), count) != 0)
      return false;
  }
  return true;
}

/// Why a tensor is not the one that a piece is of.
static std::string misfit(const WeightPiece &piece, const std::string &spelling, const WeightEntry &entry) {
  if (!entry.hasValues())
    return entry.reason;
  return fmt::format("is made of '{}', which has shape {}, expected {}", spelling, shapeToString(entry.shape),
                     shapeToString(piece.shape));
}

std::vector<std::string> WeightSource::absentParts(const std::string &parameter) const {
  const auto found = absent.find(parameter);
  return found == absent.end() ? std::vector<std::string>() : found->second;
}

Result<std::optional<WeightSource::Found>>
WeightSource::findParameter(const WeightMap &map, const std::string &parameter, const std::vector<int64_t> &shape) {
  Found found{map.stored(parameter, shape), {}, {}};
  std::vector<std::string> missing;
  for (const WeightPiece &piece : found.stored.pieces)
    if (!find(map, piece.tensor, found.spellings.emplace_back()))
      missing.push_back(piece.tensor);
  for (const std::string &other : found.stored.others) {
    std::string spelling;
    const WeightEntry *entry = find(map, other, spelling);
    if (!entry || other == parameter)
      continue;
    if (!missing.empty()) { // under the other name, then
      missing.clear();
      found.stored.pieces = {WeightPiece::whole(other, shape)};
      found.spellings = {spelling};
      continue;
    }
    const WeightEntry &first = weights.at(found.spellings[0]);
    if (found.stored.pieces.size() != 1 || !first.hasValues() || !entry->hasValues() || &first == entry)
      continue;
    TESSERA_ASSIGN_OR_RETURN(const bool isSame, areEqual(first, *entry));
    if (!isSame)
      return TESSERA_ERROR(InvalidArgument,
                           fmt::format("'{}': the tensors '{}' and '{}' are one parameter of the model, and have "
                                       "different values here",
                                       name, found.spellings[0], spelling));
    found.copies.push_back(spelling);
  }
  if (missing.empty())
    return std::optional(std::move(found));
  if (missing.size() > 1 || missing[0] != parameter)
    absent[parameter] = std::move(missing);
  return std::optional<Found>();
}

WeightEntry WeightSource::join(Found &found, const std::vector<int64_t> &shape) const {
  const WeightEntry &first = weights.at(found.spellings[0]);
  std::vector<WeightPiece> &pieces = found.stored.pieces;
  if (pieces.size() == 1 && pieces[0].isWhole(shape))
    return first;
  WeightEntry entry{.dtype = first.dtype, .shape = shape};
  for (size_t i = 0; i < pieces.size(); ++i) {
    const WeightEntry &tensor = weights.at(found.spellings[i]);
    if (entry.hasValues() && (!tensor.hasValues() || tensor.shape != pieces[i].shape)) {
      entry.problem = tensor.hasValues() ? WeightProblem::Misshapen : tensor.problem;
      entry.reason = misfit(pieces[i], found.spellings[i], tensor);
    }
    entry.parts.push_back({std::move(pieces[i]), tensor.dtype, tensor.bytes});
  }
  return entry;
}

Status WeightSource::assemble(const WeightMap &map, const ModelTensors &parameters) {
  std::map<std::string, WeightEntry> made;
  std::set<std::string> used;
  size_t sameNames = 0;
  for (const auto &[parameter, tensor] : parameters) {
    const std::vector<int64_t> &shape = tensor.shape;
    sameNames += weights.count(parameter);
    TESSERA_ASSIGN_OR_RETURN(std::optional<Found> found, findParameter(map, parameter, shape));
    if (!found)
      continue;
    used.insert(found->spellings.begin(), found->spellings.end());
    used.insert(found->copies.begin(), found->copies.end());
    made.emplace(parameter, join(*found, shape));
  }
  if (sameNames > made.size()) { // a file of a run, or of the program
    absent.clear();
    return Status::ok();
  }
  for (const std::string &spelling : used)
    weights.erase(spelling);
  for (auto &[parameter, entry] : made)
    weights[parameter] = std::move(entry);
  return Status::ok();
}

Result<std::string> WeightSource::fingerprint() const {
  Fingerprint result;
  std::vector<ByteRange> contents;
  for (const auto &[tensor, entry] : weights) {
    result.add(tensor);
    result.add(static_cast<uint64_t>(entry.dtype));
    result.add(shapeToString(entry.shape));
    result.add(uint64_t{entry.checksum});
    contents.push_back(entry.bytes);
  }
  TESSERA_RETURN_IF_ERROR(result.addContent(contents, uint64_t{64} << 20));
  return result.text();
}

} // namespace tessera
