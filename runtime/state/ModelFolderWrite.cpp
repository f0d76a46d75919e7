//===- ModelFolderWrite.cpp - writes folders of models ------------------------===//

#include "runtime/base/File.h"
#include "runtime/base/Log.h"
#include "runtime/state/ModelFolder.h"
#include "runtime/state/Safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/file.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace tessera {

namespace {
/// A file that several processes write to, each to its own places.
class SharedFile {
public:
  SharedFile(std::string path, int flags) : name(std::move(path)) {
    constexpr mode_t readable = 0644;
    descriptor = ::open(name.c_str(), flags | O_CLOEXEC, readable);
    openError = errno;
  }
  ~SharedFile() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  SharedFile(const SharedFile &) = delete;
  SharedFile &operator=(const SharedFile &) = delete;

  Status check() const { return descriptor >= 0 ? Status::ok() : systemError("open", name, openError); }
  /// Takes the bytes on the disk that the file will have: a full disk is known before anything is written.
  Status reserve(uint64_t bytes) const {
    const int error = bytes == 0 ? 0 : ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
    return error == 0 ? Status::ok() : systemError("reserve " + std::to_string(bytes) + " bytes for", name, error);
  }
  Status write(uint64_t at, const void *bytes, size_t count) const {
    const auto *from = static_cast<const uint8_t *>(bytes);
    for (size_t done = 0; done < count;) {
      const ssize_t written = ::pwrite(descriptor, from + done, count - done, static_cast<off_t>(at + done));
      if (written < 0 && errno != EINTR)
        return systemError("write", name, errno);
      done += written > 0 ? written : 0;
    }
    return Status::ok();
  }
  /// For this process, as long as the file is open.
  void lock() const { ::flock(descriptor, LOCK_EX | LOCK_NB); }
  Status finish() const { return ::fsync(descriptor) == 0 ? Status::ok() : systemError("write", name, errno); }

private:
  std::string name;
  int descriptor = -1, openError = 0;
};

/// Elements that lie side by side in a file, gathered into larger writes.
class Writer {
public:
  explicit Writer(const SharedFile &file) : file(file) {}

  /// The bytes at `at` of the file, to be filled.
  Result<uint8_t *> append(uint64_t at, size_t count) {
    if (at != begin + bytes.size() || bytes.size() + count > most)
      TESSERA_RETURN_IF_ERROR(flush());
    if (bytes.empty())
      begin = at;
    bytes.resize(bytes.size() + count);
    return bytes.data() + bytes.size() - count;
  }
  Status flush() {
    TESSERA_RETURN_IF_ERROR(file.write(begin, bytes.data(), bytes.size()));
    bytes.clear();
    return Status::ok();
  }

private:
  static constexpr size_t most = size_t{4} << 20;
  const SharedFile &file;
  std::vector<uint8_t> bytes;
  uint64_t begin = 0;
};

/// Writes what the ranks of this process hold.
class RankWriter {
public:
  RankWriter(const ModelFolderPlan &plan, const std::string &folder, const std::vector<AdapterProduct> &products)
      : plan(plan) {
    for (const PlannedFile &file : plan.files())
      files.push_back(std::make_unique<SharedFile>(folder + "/" + file.name, O_WRONLY));
    for (const AdapterProduct &product : products)
      byParameter.emplace(product.parameter(), &product);
  }

  Status write(const std::vector<RankState> &ranks, StateRole role) {
    for (const auto &file : files)
      TESSERA_RETURN_IF_ERROR(file->check());
    for (const RankState &rank : ranks)
      for (const StateView &view : rank) {
        const bool isWanted = view.kind == role || view.kind == StateRole::Frozen || view.kind == StateRole::Buffer;
        for (const ParameterSegment &segment : view.segments)
          if (isWanted && view.saves)
            for (const ModelFolderPlan::Place &place : plan.placesOf(segment.name))
              TESSERA_RETURN_IF_ERROR(writePiece(view, segment, place).withContext("parameter '" + segment.name + "'"));
      }
    for (const auto &file : files)
      TESSERA_RETURN_IF_ERROR(file->finish());
    return Status::ok();
  }

private:
  /// Elements of a view that lie side by side in a tensor, too.
  struct Run {
    int64_t inTensor, inUnit, inParameter, count;
  };

  Status writePiece(const StateView &view, const ParameterSegment &segment, const ModelFolderPlan::Place &place) {
    auto [begin, end] = overlap(view, segment);
    std::vector<Run> runs;
    TESSERA_RETURN_IF_ERROR(segment.forEachRun(begin, end, [&](const ElementRun &run) {
      return place.piece.forEachRun(run.inParameter, run.inParameter + run.count, [&](const PieceRun &piece) {
        runs.push_back(
            {piece.inTensor, run.inUnit + (piece.inParameter - run.inParameter), piece.inParameter, piece.count});
        return Status::ok();
      });
    }));
    std::sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) { return a.inTensor < b.inTensor; });
    const PlannedTensor &tensor = plan.files()[place.file].tensors[place.tensor];
    Writer writer(*files[place.file]);
    const auto product = byParameter.find(segment.name);
    for (const Run &run : runs)
      TESSERA_RETURN_IF_ERROR(
          writeRun(view, run, tensor, writer, product == byParameter.end() ? nullptr : product->second));
    return writer.flush();
  }

  Status writeRun(const StateView &view, const Run &run, const PlannedTensor &tensor, Writer &writer,
                  const AdapterProduct *product) {
    constexpr int64_t block = 1 << 18;
    const size_t width = elementBytes(*tensor.dtype);
    for (int64_t done = 0; done < run.count; done += block) {
      const int64_t here = std::min(run.count - done, block);
      const uint8_t *source = view.data + (run.inUnit + done - view.begin) * elementBytes(view.dtype);
      DataType dtype = view.dtype;
      if (product) {
        sums.resize(here);
        TESSERA_RETURN_IF_ERROR(convertElements(dtype, source, DataType::F64, sums.data(), here));
        product->addTo(sums, run.inParameter + done);
        source = reinterpret_cast<const uint8_t *>(sums.data());
        dtype = DataType::F64;
      }
      TESSERA_ASSIGN_OR_RETURN(uint8_t * place,
                               writer.append(tensor.begin + (run.inTensor + done) * width, here * width));
      TESSERA_RETURN_IF_ERROR(convertElements(dtype, source, *tensor.dtype, place, here, run.inTensor + done));
    }
    return Status::ok();
  }

  const ModelFolderPlan &plan;
  std::vector<std::unique_ptr<SharedFile>> files;
  std::map<std::string, const AdapterProduct *> byParameter;
  std::vector<double> sums;
};
} // namespace

/// Tensors that stay as they are in the folder that is followed.
static Status copyTensors(const ModelFolderPlan &plan, const std::string &folder) {
  constexpr uint64_t block = uint64_t{4} << 20;
  for (const auto &[number, index] : plan.copies()) {
    const PlannedFile &file = plan.files()[number];
    const PlannedTensor &tensor = file.tensors[index];
    SharedFile target(folder + "/" + file.name, O_WRONLY);
    TESSERA_RETURN_IF_ERROR(target.check());
    const uint64_t from = tensor.sourceDtype ? elementBytes(*tensor.sourceDtype) : 1,
                   to = tensor.dtype ? elementBytes(*tensor.dtype) : 1;
    std::vector<uint8_t> bytes, converted;
    for (uint64_t at = 0; at < tensor.source.size(); at += block) {
      bytes.resize(std::min(block, tensor.source.size() - at));
      TESSERA_RETURN_IF_ERROR(tensor.source.read(at, bytes.data(), bytes.size()));
      if (tensor.sourceDtype == tensor.dtype) {
        TESSERA_RETURN_IF_ERROR(target.write(tensor.begin + at, bytes.data(), bytes.size()));
        continue;
      }
      converted.resize(bytes.size() / from * to);
      TESSERA_RETURN_IF_ERROR(convertElements(*tensor.sourceDtype, bytes.data(), *tensor.dtype, converted.data(),
                                              static_cast<int64_t>(bytes.size() / from)));
      TESSERA_RETURN_IF_ERROR(target.write(tensor.begin + at / from * to, converted.data(), converted.size()));
    }
  }
  return Status::ok();
}

/// The files with their headers and their sizes.
static Status makeFiles(const ModelFolderPlan &plan, const std::string &folder) {
  for (const PlannedFile &file : plan.files()) {
    SharedFile made(folder + "/" + file.name, O_WRONLY | O_CREAT | O_EXCL);
    TESSERA_RETURN_IF_ERROR(made.check());
    TESSERA_RETURN_IF_ERROR(made.reserve(file.bytes));
    TESSERA_RETURN_IF_ERROR(made.write(0, file.header.data(), file.header.size()));
    TESSERA_RETURN_IF_ERROR(made.finish());
  }
  return copyTensors(plan, folder);
}

static Status writeIndex(const ModelFolderPlan &plan, const std::string &folder) {
  nlohmann::ordered_json index;
  uint64_t total = 0;
  std::map<std::string, std::string> fileOf;
  for (const PlannedFile &file : plan.files())
    for (const PlannedTensor &tensor : file.tensors) {
      fileOf[tensor.name] = file.name;
      total += tensor.bytes;
    }
  index["metadata"]["total_size"] = total;
  index["weight_map"] = fileOf;
  return writeFileAtomically(folder + "/model.safetensors.index.json", index.dump(2) + "\n");
}

std::string torchName(DataType dtype) {
  return dtype == DataType::BF16  ? "bfloat16"
         : dtype == DataType::F16 ? "float16"
         : dtype == DataType::F64 ? "float64"
                                  : "float32";
}

/// Whether a file is part of what describes a model: not its weights in some form, nor what a training left.
static bool isDescription(const fs::path &path) {
  const std::string name = path.filename().string(), kind = path.extension().string();
  for (const char *licence : {"LICENSE", "LICENCE", "NOTICE", "USE_POLICY"})
    if (name.starts_with(licence))
      return true;
  if (name.ends_with(".index.json") || name == "adapter_config.json" || name == "trainer_state.json" || name[0] == '.')
    return false;
  static const std::set<std::string> kinds = {".json", ".jinja",    ".txt", ".model",
                                              ".py",   ".tiktoken", ".spm", ".vocab"};
  return kinds.count(kind) > 0;
}

/// Configuration, tokenizer and code, with the type of the weights as it is now.
static Status copyDescription(const ModelFolderOptions &options, const std::string &folder) {
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(options.like, error)) {
    std::error_code ignored;
    if (!isDescription(entry.path()) || !entry.is_regular_file(ignored))
      continue;
    const std::string target = folder + "/" + entry.path().filename().string();
    TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> content, readWholeFile(entry.path().string()));
    std::string text(content.begin(), content.end());
    if (options.dtype && entry.path().filename() == "config.json") {
      auto config = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (config.is_object()) {
        config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = torchName(*options.dtype);
        if (config.contains("dtype"))
          config["dtype"] = torchName(*options.dtype);
        text = config.dump(2) + "\n";
      }
    }
    TESSERA_RETURN_IF_ERROR(writeFileAtomically(target, text));
  }
  return error ? TESSERA_ERROR(IoError, "cannot read folder '" + options.like + "': " + error.message()) : Status::ok();
}

/// Marks a folder that is being written; the lock goes with the process.
constexpr std::string_view markName = ".writing";

/// Removes what processes that were killed have left beside the folder. What others are writing is locked.
static void removeLeftOvers(const std::string &folder) {
  const fs::path path = absolutePath(folder);
  const std::string prefix = path.filename().string() + ".tmp-";
  std::error_code error;
  for (fs::directory_iterator entry(path.parent_path(), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with(prefix) || !isTemporaryName(name) || !fs::exists(entry->path() / markName, ignored))
      continue;
    const int mark = ::open((entry->path() / markName).c_str(), O_RDWR | O_CLOEXEC);
    if (mark >= 0 && ::flock(mark, LOCK_EX | LOCK_NB) == 0)
      fs::remove_all(entry->path(), ignored);
    if (mark >= 0)
      ::close(mark);
  }
}

static Status writeTogether(const ModelFolderOptions &options, const ModelFolderPlan &plan,
                            const std::vector<RankState> &ranks, StateRole role,
                            const std::vector<AdapterProduct> &products, std::string &temporary) {
  const bool isRoot = options.peers.isRoot();
  Status status;
  std::optional<SharedFile> mark;
  if (isRoot) {
    removeLeftOvers(options.folder);
    temporary = temporaryName(absolutePath(options.folder).string());
    std::error_code error;
    if (!fs::create_directory(temporary, error)) {
      status = systemError("make folder", temporary, error.value());
    } else {
      mark.emplace((fs::path(temporary) / markName).string(), O_RDWR | O_CREAT);
      status = mark->check();
      if (status.isOk()) {
        mark->lock();
        status = makeFiles(plan, temporary);
      }
    }
  }
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> folders, agree(options.peers, status, temporary));
  status = RankWriter(plan, folders.front(), products).write(ranks, role);
  TESSERA_RETURN_IF_ERROR(agree(options.peers, status, "").status());
  if (isRoot) {
    if (plan.hasIndex())
      status = writeIndex(plan, temporary);
    if (status.isOk())
      status = copyDescription(options, temporary);
    if (status.isOk() && options.mayPublish)
      status = options.mayPublish();
    if (status.isOk())
      status = publishFolder(temporary, options.folder);
    // Last: a folder without its name would not be known as left over.
    std::error_code error;
    fs::remove(fs::path(status.isOk() ? options.folder : temporary) / markName, error);
  }
  return agree(options.peers, status, "").status();
}

Status writeModelFolder(const ModelFolderOptions &options, const ModelFolderPlan &plan,
                        const std::vector<RankState> &ranks, StateRole role,
                        const std::vector<AdapterProduct> &products) {
  std::string temporary;
  Status status = writeTogether(options, plan, ranks, role, products, temporary);
  std::error_code error;
  if (!status.isOk() && !temporary.empty())
    fs::remove_all(temporary, error);
  return status.isOk() ? status : std::move(status).withContext("'" + options.folder + "' is not written");
}

} // namespace tessera
