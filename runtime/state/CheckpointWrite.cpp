//===- CheckpointWrite.cpp - writes checkpoints and exports ----------------------===//

#include "runtime/state/Checkpoint.h"

#include "runtime/base/Guard.h"
#include "runtime/base/Log.h"
#include "runtime/state/FiniteState.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>

namespace fs = std::filesystem;

namespace tessera {

/// Writes a file per rank of this process.
static Result<std::vector<ManifestFile>> writeRanks(const std::string &folder, const CheckpointInfo &info,
                                                    const std::vector<RankState> &ranks, int firstRank) {
  std::vector<ManifestFile> files;
  for (size_t index = 0; index < ranks.size(); ++index) {
    ManifestFile file;
    file.name = "rank-" + std::to_string(firstRank + static_cast<int>(index)) + ".safetensors";
    std::vector<SafetensorsTensor> tensors;
    for (const StateView &view : ranks[index]) {
      if (!view.saves || view.begin == view.end)
        continue;
      std::string key = toString(view.kind) + "/" + view.unit;
      file.pieces.push_back({key, view.unit, view.kind, view.begin, view.end});
      tensors.push_back({key, view.dtype, {view.end - view.begin}, {view.bytes()}});
    }
    TESSERA_ASSIGN_OR_RETURN(WrittenFile written, writeSafetensors(folder + "/" + file.name, tensors,
                                                                   {{"step", std::to_string(info.step)}}));
    file.bytes = written.bytes;
    file.hash = written.hash;
    files.push_back(std::move(file));
  }
  return files;
}

/// Writes the manifest over the files of all ranks, which must be there.
static Status writeManifest(const std::string &folder, const CheckpointInfo &info, const RankState &units,
                            std::vector<ManifestFile> files) {
  Manifest manifest;
  manifest.info = info;
  for (const StateView &view : units)
    manifest.units.push_back({view.unit, view.kind, view.dtype, view.elements, view.segments});
  for (const ManifestFile &file : files) {
    std::error_code error;
    if (fs::file_size(folder + "/" + file.name, error) != file.bytes || error)
      return TESSERA_ERROR(IoError, "'" + folder + "/" + file.name +
                                        "' was written by another process, but is not seen here: all hosts must see "
                                        "the same folder");
  }
  manifest.files = std::move(files);
  TESSERA_RETURN_IF_ERROR(writeFileAtomically(folder + "/" + manifestName, manifestToJson(manifest)));
  return syncDirectory(folder);
}

/// Every process writes its ranks into the root's folder, the root completes it.
static Status writeTogether(const CheckpointOptions &options, const CheckpointInfo &info,
                            const std::vector<RankState> &ranks, const std::string &name, fs::path &temporary) {
  const Peers &peers = options.peers;
  bool isRoot = peers.isRoot();
  Result<fs::path> made = isRoot ? makeTemporaryCheckpoint(options.folder, name) : fs::path();
  if (made.isOk())
    temporary = *made;
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> folders,
                           agree(peers, made.status(), temporary.filename().string()));

  auto files = writeRanks((fs::path(options.folder) / folders.front()).string(), info, ranks, peers.firstRank);
  Manifest mine;
  if (files.isOk())
    mine.files = *files;
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> parts, agree(peers, files.status(), manifestToJson(mine)));

  Status status;
  std::vector<ManifestFile> all;
  for (const std::string &part : parts) {
    if (!isRoot)
      break;
    auto read = manifestFromJson({reinterpret_cast<const uint8_t *>(part.data()), part.size()}, "files of a process");
    if (!read.isOk()) {
      status = read.status();
      break;
    }
    all.insert(all.end(), read->files.begin(), read->files.end());
  }
  if (isRoot && status.isOk())
    status = writeManifest(temporary.string(), info, ranks.front(), std::move(all));
  if (isRoot && status.isOk() && options.mayPublish)
    status = options.mayPublish();
  if (isRoot && status.isOk())
    status = publishCheckpoint(temporary, fs::path(options.folder) / name);
  if (isRoot && status.isOk() && options.isBest && options.isBest(info.step))
    if (Status named = makeBest(fs::path(options.folder) / name); !named.isOk())
      log::warn("{}", named.message());
  return agree(peers, status, "").status();
}

Status saveCheckpoint(const CheckpointOptions &options, const CheckpointInfo &info,
                      const std::vector<RankState> &ranks) {
  if (ranks.empty())
    return TESSERA_ERROR(Internal, "a checkpoint needs at least one rank");
  fs::path temporary;
  Status status = writeTogether(options, info, ranks, checkpointName(info.step), temporary);
  if (!status.isOk()) {
    std::error_code error;
    if (!temporary.empty())
      fs::remove_all(temporary, error);
    return status.withContext("checkpoint of step " + std::to_string(info.step) + " is not written");
  }
  if (options.peers.isRoot())
    removeOldCheckpoints(options.folder, options.keep, info.step);
  return Status::ok();
}

CheckpointWriter::~CheckpointWriter() {
  if (Status status = finish(); !status.isOk())
    log::error("{}", status.message());
}

Status CheckpointWriter::save(const CheckpointInfo &info, const std::vector<RankState> &ranks) {
  TESSERA_RETURN_IF_ERROR(finish());
  // The copy is made here, on the caller's thread: afterwards the originals may change.
  auto copies = std::make_shared<std::vector<RankState>>(ranks);
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  bool isFinite = true;
  Status copied;
  for (RankState &rank : *copies)
    for (StateView &view : rank) {
      if (!view.saves || !copied.isOk())
        continue;
      memory.emplace_back(new (std::nothrow) uint8_t[std::max<size_t>(view.localBytes(), 1)]);
      if (!memory.back()) {
        copied = TESSERA_ERROR(Exhausted, "checkpoint of step " + std::to_string(info.step) +
                                              " is not written: no memory for a copy of '" + view.unit + "' (" +
                                              std::to_string(view.localBytes()) + " bytes)");
        continue;
      }
      const uint64_t bad = copyAndCountNonFinite(memory.back().get(), view.bytes(), view.dtype);
      isFinite &= bad == 0 || view.kind == StateRole::Frozen;
      view.data = memory.back().get();
    }
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> problems,
                           agree(options.peers, copied, isFinite || !copied.isOk() ? "" : describeNonFinite(*copies)));
  for (const std::string &problem : problems)
    if (!problem.empty())
      return refuse(info, problem);
  thread = std::thread([this, info, copies, memory = std::move(memory)] {
    lastStatus = guarded([&] { return saveCheckpoint(options, info, *copies); });
    hasEnded = true;
  });
  return Status::ok();
}

Status CheckpointWriter::refuse(const CheckpointInfo &info, const std::string &problem) {
  Result<std::string> before = findCheckpoint(options.folder);
  const std::string text = "checkpoint of step " + std::to_string(info.step) + " is not written: " + problem + "; " +
                           (before.isOk() ? "the newest one is '" + *before + "'" : "there is none before it");
  if (options.isStrict)
    return TESSERA_ERROR(InvalidArgument, text);
  if (options.peers.isRoot() && !std::exchange(hasWarned, true))
    log::warn("{}", text);
  return Status::ok();
}

Status CheckpointWriter::finish() {
  if (thread.joinable())
    thread.join();
  hasEnded = false;
  return std::exchange(lastStatus, Status::ok());
}

namespace {
/// Bytes that hold the parameter's elements from `first` on.
struct HeldRun {
  int64_t first;
  ByteSpan bytes;
};
} // namespace

/// What the views hold of the parameters with this role, by name.
static std::map<std::string, std::vector<HeldRun>> collectRuns(const std::vector<RankState> &ranks, StateRole role) {
  std::map<std::string, std::vector<HeldRun>> runs;
  for (const RankState &rank : ranks)
    for (const StateView &view : rank) {
      if (view.kind != role || !view.saves)
        continue;
      const size_t width = elementBytes(view.dtype);
      for (const ParameterSegment &segment : view.segments) {
        auto [begin, end] = overlap(view, segment);
        (void)segment.forEachRun(begin, end, [&](const ElementRun &run) {
          runs[segment.name].push_back(
              {run.inParameter, ByteSpan(view.data + (run.inUnit - view.begin) * width, run.count * width)});
          return Status::ok();
        });
      }
    }
  for (auto &[name, list] : runs)
    std::stable_sort(list.begin(), list.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  return runs;
}

Result<std::vector<SafetensorsTensor>> gatherParameters(const std::vector<RankState> &ranks, StateRole role) {
  std::vector<SafetensorsTensor> tensors;
  if (ranks.empty())
    return tensors;
  auto runs = collectRuns(ranks, role);
  for (const StateView &unit : ranks.front()) {
    if (unit.kind != role)
      continue;
    for (const ParameterSegment *parameter : parametersOf(unit)) {
      SafetensorsTensor tensor{parameter->name, unit.dtype, parameter->shape, {}};
      int64_t position = 0;
      for (const HeldRun &run : runs[parameter->name])
        if (run.first == position && !run.bytes.empty()) {
          tensor.pieces.push_back(run.bytes);
          position += static_cast<int64_t>(run.bytes.size() / elementBytes(unit.dtype));
        }
      if (position != parameter->parameterElements())
        return TESSERA_ERROR(Internal, "the ranks given do not hold all of parameter '" + parameter->name + "'");
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

Result<std::vector<SafetensorsTensor>> gatherModel(const std::vector<RankState> &ranks, StateRole role) {
  TESSERA_ASSIGN_OR_RETURN(auto tensors, gatherParameters(ranks, role));
  for (StateRole other : {StateRole::Frozen, StateRole::Buffer}) {
    TESSERA_ASSIGN_OR_RETURN(auto more, gatherParameters(ranks, other));
    tensors.insert(tensors.end(), more.begin(), more.end());
  }
  return tensors;
}

Status exportParameters(const std::string &path, const std::vector<RankState> &ranks,
                        const std::map<std::string, std::string> &metadata, StateRole role) {
  TESSERA_ASSIGN_OR_RETURN(auto tensors, gatherModel(ranks, role));
  return writeSafetensors(path, tensors, metadata).status();
}

std::string averagePath(const std::string &path) {
  const fs::path file(path);
  return (file.parent_path() / (file.stem().string() + "-average" + file.extension().string())).string();
}

} // namespace tessera
