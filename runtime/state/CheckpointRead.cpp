//===- CheckpointRead.cpp - resumes from a checkpoint into any layout -----------===//
//
// Everything is checked before the first byte of state changes: files against size and hash, ranges for completeness,
// parameters for name, role, shape and type. Then each rank copies what it holds, segment by segment.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/Checkpoint.h"
#include "runtime/state/Init.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

namespace {

using UnitKey = std::pair<StateKind, std::string>;

/// One open checkpoint.
class CheckpointReader {
public:
  static Result<CheckpointReader> open(const std::string &folder);

  const CheckpointInfo &info() const { return manifest.info; }
  Status check(const RankState &views) const;
  /// Errors: a file that has changed since it was compared with its hash; the state is then undefined.
  Status copyInto(const RankState &views) const;

private:
  struct Piece {
    int64_t begin, end;
    ByteRange bytes;
  };
  struct Location {
    const ManifestUnit *unit;
    const ParameterSegment *segment;
  };

  Status addParameters();
  using Readers = std::map<const Piece *, PieceReader>;
  /// Copies one run of a parameter from whatever parts of it and pieces of their units hold it.
  Status copyRun(const StateView &view, const std::vector<Location> &sources, const ElementRun &run,
                 Readers &readers) const;
  /// Copies what a stored unit has from `stored` on to the view's element `to`. `isOne`: as of PieceReader.
  Status copyFrom(const ManifestUnit &unit, int64_t stored, const StateView &view, int64_t to, int64_t count,
                  Readers &readers, bool isOne) const;

  Status openFiles();
  Status addPiece(const ManifestPiece &piece, const SafetensorsFile &file);
  Status checkComplete();
  Status corrupt(const std::string &reason) const {
    return TESSERA_ERROR(DataLoss, "checkpoint '" + folder + "' is corrupted: " + reason);
  }

  std::string folder;
  Manifest manifest;
  std::vector<InputFile> files;
  std::map<UnitKey, const ManifestUnit *> units;
  std::map<UnitKey, std::vector<Piece>> pieces;
  std::map<UnitKey, std::vector<Location>> parameters; ///< By role and parameter name: its parts.
};

} // namespace

Result<CheckpointReader> CheckpointReader::open(const std::string &path) {
  CheckpointReader reader;
  TESSERA_ASSIGN_OR_RETURN(reader.folder, findCheckpoint(path));
  TESSERA_ASSIGN_OR_RETURN(reader.manifest, readManifest(reader.folder + "/" + manifestName));
  for (const ManifestUnit &unit : reader.manifest.units) {
    if (!reader.units.emplace(UnitKey{unit.kind, unit.unit}, &unit).second)
      return reader.corrupt("unit '" + unit.unit + "' appears twice");
  }
  TESSERA_RETURN_IF_ERROR(reader.addParameters());
  TESSERA_RETURN_IF_ERROR(reader.openFiles());
  TESSERA_RETURN_IF_ERROR(reader.checkComplete());
  return reader;
}

/// Each parameter is there once: all of its parts, which are those of one way to split it.
Status CheckpointReader::addParameters() {
  for (const ManifestUnit &unit : manifest.units)
    for (const ParameterSegment &segment : unit.segments)
      parameters[{unit.kind, segment.name}].push_back({&unit, &segment});
  for (auto &[key, parts] : parameters) {
    std::vector<ShapedPart> listed;
    std::set<DataType> types;
    for (const Location &location : parts) {
      listed.push_back({location.segment->shape, location.segment->part});
      types.insert(location.unit->dtype);
    }
    std::string problem = checkParts(listed);
    if (problem.empty() && types.size() > 1)
      problem = "has parts of several types";
    if (!problem.empty())
      return corrupt("parameter '" + key.second + "' " + problem);
  }
  return Status::ok();
}

/// XXH3 of the whole file, read block by block.
static Result<uint64_t> hashOf(const InputFile &file) {
  constexpr uint64_t blockBytes = uint64_t{4} << 20;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  std::vector<uint8_t> block(std::min(blockBytes, file.size()));
  for (uint64_t done = 0; done < file.size(); done += block.size()) {
    size_t count = std::min<uint64_t>(block.size(), file.size() - done);
    TESSERA_RETURN_IF_ERROR(file.read(done, block.data(), count));
    XXH3_64bits_update(&state, block.data(), count);
  }
  return XXH3_64bits_digest(&state);
}

Status CheckpointReader::openFiles() {
  for (const ManifestFile &listed : manifest.files) {
    std::string path = folder + "/" + listed.name;
    TESSERA_ASSIGN_OR_RETURN(InputFile raw, InputFile::open(path));
    if (raw.size() != listed.bytes)
      return corrupt("'" + listed.name + "' has " + std::to_string(raw.size()) + " bytes, expected " +
                     std::to_string(listed.bytes));
    TESSERA_ASSIGN_OR_RETURN(uint64_t hash, hashOf(raw));
    if (hash != listed.hash)
      return corrupt("the content of '" + listed.name + "' does not match its hash");
    TESSERA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(raw));
    for (const ManifestPiece &piece : listed.pieces)
      TESSERA_RETURN_IF_ERROR(addPiece(piece, file));
    files.push_back(std::move(raw));
  }
  return Status::ok();
}

Status CheckpointReader::addPiece(const ManifestPiece &piece, const SafetensorsFile &file) {
  auto unit = units.find({piece.kind, piece.unit});
  const SafetensorsEntry *entry = file.find(piece.key);
  if (unit == units.end() || !entry || piece.end > unit->second->elements ||
      entry->elements != piece.end - piece.begin || entry->dtype != unit->second->dtype)
    return corrupt("tensor '" + piece.key + "' of '" + file.path() + "' is missing or not what the manifest says");
  pieces[{piece.kind, piece.unit}].push_back({piece.begin, piece.end, entry->bytes});
  return Status::ok();
}

Status CheckpointReader::checkComplete() {
  for (auto &[key, unit] : units) {
    std::vector<Piece> &parts = pieces[key];
    std::sort(parts.begin(), parts.end(), [](const Piece &a, const Piece &b) { return a.begin < b.begin; });
    int64_t covered = 0;
    for (const Piece &part : parts) {
      if (part.begin != covered)
        break;
      covered = part.end;
    }
    if (covered != unit->elements)
      return corrupt("elements from " + std::to_string(covered) + " on of unit '" + unit->unit + "' (" +
                     toString(unit->kind) + ") are missing or stored twice");
  }
  return Status::ok();
}

Status CheckpointReader::check(const RankState &views) const {
  std::vector<std::string> problems;
  std::map<UnitKey, bool> wanted;
  for (const StateView &view : views)
    for (const ParameterSegment *parameter : parametersOf(view)) {
      std::string name = "'" + parameter->name + "' (" + toString(view.kind) + ")";
      wanted[{view.kind, parameter->name}] = true;
      auto found = parameters.find({view.kind, parameter->name});
      if (found == parameters.end())
        problems.push_back(name + " is not in the checkpoint");
      else if (const Location &stored = found->second.front(); stored.segment->shape != parameter->shape)
        problems.push_back(name + " has shape " + shapeToString(stored.segment->shape) + ", expected " +
                           shapeToString(parameter->shape));
      else if (stored.unit->dtype != view.dtype)
        problems.push_back(name + " has type " + std::string(safetensorsName(stored.unit->dtype)) + ", expected " +
                           std::string(safetensorsName(view.dtype)));
    }
  for (const auto &[key, location] : parameters)
    if (!wanted.count(key))
      problems.push_back("'" + key.second + "' (" + toString(key.first) + ") is not in the program");
  if (problems.empty())
    return Status::ok();
  constexpr size_t shown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), shown); ++i)
    text += (i ? "; " : "") + problems[i];
  if (problems.size() > shown)
    text += "; and " + std::to_string(problems.size() - shown) + " more";
  return TESSERA_ERROR(InvalidArgument, "checkpoint '" + folder + "' does not fit the program: " + text);
}

Status CheckpointReader::copyFrom(const ManifestUnit &unit, int64_t stored, const StateView &view, int64_t to,
                                  int64_t count, Readers &readers, bool isOne) const {
  const auto width = static_cast<int64_t>(elementBytes(view.dtype));
  const std::vector<Piece> &parts = pieces.at({view.kind, unit.unit}); // one behind the other
  auto piece = std::upper_bound(parts.begin(), parts.end(), stored,
                                [](int64_t element, const Piece &part) { return element < part.end; });
  for (; piece != parts.end() && piece->begin < stored + count; ++piece) {
    const int64_t from = std::max(stored, piece->begin), end = std::min(stored + count, piece->end);
    if (from < end)
      TESSERA_RETURN_IF_ERROR(readers.try_emplace(&*piece, piece->bytes, isOne)
                                  .first->second.read((from - piece->begin) * width,
                                                      view.data + (to + (from - stored) - view.begin) * width,
                                                      (end - from) * width));
  }
  return Status::ok();
}

Status CheckpointReader::copyRun(const StateView &view, const std::vector<Location> &sources, const ElementRun &run,
                                 Readers &readers) const {
  for (const Location &source : sources) {
    auto copy = [&](const ElementRun &stored) {
      return copyFrom(*source.unit, stored.inUnit, view, run.inUnit + (stored.inParameter - run.inParameter),
                      stored.count, readers, /*isOne=*/false);
    };
    TESSERA_RETURN_IF_ERROR(source.segment->forEachRunOf(run.inParameter, run.inParameter + run.count, copy));
  }
  return Status::ok();
}

Status CheckpointReader::copyInto(const RankState &views) const {
  clearState(views);
  for (const StateView &view : views) {
    for (const ParameterSegment &segment : view.segments) {
      const std::vector<Location> &sources = parameters.at({view.kind, segment.name});
      auto [begin, end] = overlap(view, segment);
      if (begin >= end)
        continue;
      Readers readers;
      // The same part, as on the same mesh, lies in one piece there, too.
      auto same = std::find_if(sources.begin(), sources.end(),
                               [&](const Location &source) { return source.segment->part == segment.part; });
      if (same != sources.end()) {
        TESSERA_RETURN_IF_ERROR(copyFrom(*same->unit, same->segment->offset + (begin - segment.offset), view, begin,
                                         end - begin, readers,
                                         /*isOne=*/true));
        continue;
      }
      TESSERA_RETURN_IF_ERROR(
          segment.forEachRun(begin, end, [&](const ElementRun &run) { return copyRun(view, sources, run, readers); }));
    }
  }
  for (const InputFile &file : files)
    TESSERA_RETURN_IF_ERROR(file.checkUnchanged());
  return Status::ok();
}

Status checkCheckpoint(const std::string &folder) { return CheckpointReader::open(folder).status(); }

Result<std::string> identityOfCheckpoint(const std::string &folder) {
  TESSERA_ASSIGN_OR_RETURN(Manifest manifest, readManifest(folder + "/" + manifestName));
  std::string text = manifestToJson(manifest);
  return "step " + std::to_string(manifest.info.step) + ", manifest " +
         fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

Result<CheckpointInfo> loadCheckpoint(const std::string &path, const std::vector<RankState> &ranks) {
  TESSERA_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::open(path));
  for (const RankState &views : ranks)
    TESSERA_RETURN_IF_ERROR(reader.check(views));
  for (const RankState &views : ranks)
    TESSERA_RETURN_IF_ERROR(reader.copyInto(views));
  return reader.info();
}

} // namespace tessera
