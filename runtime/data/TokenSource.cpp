//===- TokenSource.cpp - files as one long row of tokens -------------------------===//

#include "runtime/data/TokenSource.h"

#include "runtime/base/Log.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace tessera {

static constexpr size_t maxMappings = 256;
static constexpr size_t headerBytes = 1024; // llm.c: 256 words

static bool isTextEnding(const std::string &ending) {
  return ending == ".txt" || ending == ".json" || ending == ".jsonl";
}

Result<std::unique_ptr<TokenSource>> TokenSource::open(const std::string &path, const DataOptions &options) {
  std::unique_ptr<TokenSource> source(new TokenSource);
  source->name = path;
  source->textField = options.textField;
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return TESSERA_ERROR(NotFound, "no data at '" + path + "': no such file or directory");
  if (fs::is_directory(status))
    TESSERA_RETURN_IF_ERROR(source->addFolder(path, options));
  else
    TESSERA_RETURN_IF_ERROR(source->addPath(path, options));
  return source;
}

Status TokenSource::addFolder(const std::string &path, const DataOptions &options) {
  std::vector<std::string> texts, bins;
  size_t others = 0;
  std::error_code error;
  fs::recursive_directory_iterator iterator(path, error), end;
  while (!error && iterator != end) {
    if (iterator->is_regular_file(error)) {
      std::string ending = iterator->path().extension().string();
      if (isTextEnding(ending))
        texts.push_back(iterator->path().string());
      else if (ending == ".bin")
        bins.push_back(iterator->path().string());
      else
        ++others;
    }
    iterator.increment(error);
  }
  if (error)
    return TESSERA_ERROR(IoError, "cannot read folder '" + path + "': " + error.message());
  if (texts.empty() && bins.empty())
    return TESSERA_ERROR(InvalidArgument, "folder '" + path + "' has no .txt, .json, .jsonl or .bin file" +
                                              (others ? " (" + std::to_string(others) + " other files)" : ""));
  if (!texts.empty() && !bins.empty())
    return TESSERA_ERROR(InvalidArgument, "folder '" + path + "' has both token files ('" + bins.front() +
                                              "') and text ('" + texts.front() + "')");
  if (others > 0)
    log::info("data '{}': {} files are not .txt, .json, .jsonl or .bin and are not read", path, others);
  std::vector<std::string> &paths = texts.empty() ? bins : texts;
  std::sort(paths.begin(), paths.end());
  for (const std::string &file : paths)
    TESSERA_RETURN_IF_ERROR(addPath(file, options));
  return Status::ok();
}

Status TokenSource::addPath(const std::string &path, const DataOptions &options) {
  auto file = static_cast<uint32_t>(files.size());
  std::error_code error;
  uint64_t bytes = fs::file_size(path, error);
  if (error)
    return TESSERA_ERROR(IoError, "cannot read '" + path + "': " + error.message());
  files.push_back({path, bytes, nullptr});
  std::string ending = fs::path(path).extension().string();
  text = isTextEnding(ending);
  if (ending == ".bin")
    return addTokens(file, options);
  if (ending == ".txt")
    return addText(file);
  if (ending == ".json")
    return addJson(file, options);
  if (ending == ".jsonl")
    return addJsonLines(file, options);
  return TESSERA_ERROR(InvalidArgument, "data '" + path +
                                            "' has an unknown ending, expected .txt, .json, .jsonl, .bin, "
                                            ".npz or .safetensors");
}

void TokenSource::addSegment(Segment segment) {
  if (segment.count == 0)
    return;
  segment.begin = total;
  total += segment.count;
  segments.push_back(segment);
}

Status TokenSource::addTokens(uint32_t file, const DataOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(ByteSpan bytes, bytesOf(file));
  const std::string &path = files[file].path;
  uint32_t header[3] = {};
  if (bytes.size() >= headerBytes)
    std::memcpy(header, bytes.data(), sizeof(header));
  // llm.c's token files: GPT-2 (uint16) and Llama 3 (uint32).
  bool isGpt2 = header[0] == 20240520, isLlama3 = header[0] == 20240801;
  if (isGpt2 || isLlama3) {
    uint32_t version = isGpt2 ? 1 : 7, width = isGpt2 ? 2 : 4;
    if (header[1] != version)
      return TESSERA_ERROR(Unsupported, "token file '" + path + "' has version " + std::to_string(header[1]) +
                                            ", expected " + std::to_string(version));
    uint64_t stored = (bytes.size() - headerBytes) / width;
    if (header[2] > stored)
      return TESSERA_ERROR(DataLoss, "token file '" + path + "' says it has " + std::to_string(header[2]) +
                                         " tokens, but there are " + std::to_string(stored) + " (truncated?)");
    addSegment(
        {0, header[2], isGpt2 ? Kind::Words16 : Kind::Words32, file, headerBytes, uint64_t{header[2]} * width, 1});
    return Status::ok();
  }
  int width = options.tokenBytes ? options.tokenBytes : 2;
  if (width != 2 && width != 4)
    return TESSERA_ERROR(InvalidArgument, "tokens of " + std::to_string(width) + " bytes, expected 2 or 4");
  if (bytes.size() % width != 0)
    return TESSERA_ERROR(DataLoss, "token file '" + path + "' has " + std::to_string(bytes.size()) +
                                       " bytes, expected a multiple of " + std::to_string(width));
  addSegment({0, bytes.size() / width, width == 2 ? Kind::Words16 : Kind::Words32, file, 0, bytes.size(), 1});
  return Status::ok();
}

Status TokenSource::addText(uint32_t file) {
  uint64_t bytes = files[file].bytes;
  if (bytes > 0)
    addSegment({0, bytes + 1, Kind::Bytes, file, 0, bytes, 1});
  return Status::ok();
}

Status TokenSource::addJson(uint32_t file, const DataOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(ByteSpan bytes, bytesOf(file));
  std::vector<std::string> texts;
  std::string problem;
  if (!jsonTexts(bytes, options.textField, texts, problem))
    return TESSERA_ERROR(InvalidArgument, "'" + files[file].path + "': " + problem);
  for (size_t i = 0; i < texts.size(); ++i) {
    addSegment({0, texts[i].size() + 1, Kind::Memory, file, documents.size(), texts[i].size(), i + 1});
    documents.push_back(std::move(texts[i]));
  }
  return Status::ok();
}

Status TokenSource::addJsonLines(uint32_t file, const DataOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(ByteSpan bytes, bytesOf(file));
  const char *data = reinterpret_cast<const char *>(bytes.data()), *end = data + bytes.size();
  uint64_t number = 0;
  std::string line, problem;
  for (const char *begin = data; begin < end; ++number) {
    const char *stop = std::find(begin, end, '\n');
    if (std::any_of(begin, stop, [](char c) { return c != ' ' && c != '\t' && c != '\r'; })) {
      if (!jsonText(begin, stop, options.textField, line, problem))
        return TESSERA_ERROR(InvalidArgument,
                             "'" + files[file].path + "': line " + std::to_string(number + 1) + " " + problem);
      addSegment({0, line.size() + 1, Kind::JsonLine, file, static_cast<uint64_t>(begin - data),
                  static_cast<uint64_t>(stop - begin), number + 1});
    }
    begin = stop == end ? end : stop + 1;
  }
  return Status::ok();
}

Result<ByteSpan> TokenSource::bytesOf(uint32_t index) {
  File &file = files[index];
  if (!file.mapping) {
    if (mappedFiles.size() >= maxMappings) {
      files[mappedFiles.front()].mapping.reset();
      mappedFiles.pop_front();
    }
    TESSERA_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(file.path));
    if (mapped.bytes().size() != file.bytes)
      return TESSERA_ERROR(DataLoss, "'" + file.path + "' has changed since it was opened");
    file.mapping = std::make_unique<MappedFile>(std::move(mapped));
    mappedFiles.push_back(index);
  }
  return file.mapping->bytes();
}

const TokenSource::Segment &TokenSource::segmentAt(uint64_t position) const {
  auto after = std::upper_bound(segments.begin(), segments.end(), position,
                                [](uint64_t value, const Segment &segment) { return value < segment.begin; });
  return *std::prev(after);
}

Status TokenSource::read(uint64_t position, size_t count, uint32_t *target) {
  if (position > total || count > total - position)
    return TESSERA_ERROR(Internal, "tokens beyond the end of '" + name + "' were asked for");
  if (count == 0)
    return Status::ok();
  for (size_t index = &segmentAt(position) - segments.data(); count > 0; ++index) {
    const Segment &segment = segments[index];
    uint64_t first = position - segment.begin;
    size_t here = std::min<uint64_t>(count, segment.count - first);
    TESSERA_RETURN_IF_ERROR(readSegment(index, first, here, target));
    position += here;
    target += here;
    count -= here;
  }
  return Status::ok();
}

Status TokenSource::readSegment(size_t index, uint64_t first, size_t count, uint32_t *target) {
  const Segment &segment = segments[index];
  const uint8_t *bytes = nullptr;
  if (segment.kind == Kind::Memory) {
    bytes = reinterpret_cast<const uint8_t *>(documents[segment.offset].data());
  } else {
    TESSERA_ASSIGN_OR_RETURN(ByteSpan file, bytesOf(segment.file));
    bytes = file.data() + segment.offset;
  }
  if (segment.kind == Kind::Words32) {
    std::memcpy(target, bytes + first * 4, count * 4);
    return Status::ok();
  }
  if (segment.kind == Kind::Words16) {
    for (size_t i = 0; i < count; ++i)
      target[i] = bytes[2 * (first + i)] | bytes[2 * (first + i) + 1] << 8;
    return Status::ok();
  }
  uint64_t length = segment.count - 1;
  if (segment.kind == Kind::JsonLine) {
    if (cachedSegment != index) {
      std::string problem;
      const char *line = reinterpret_cast<const char *>(bytes);
      cachedSegment = SIZE_MAX;
      if (!jsonText(line, line + segment.length, textField, cachedLine, problem) || cachedLine.size() != length)
        return TESSERA_ERROR(DataLoss, "'" + files[segment.file].path + "' has changed since it was opened");
      cachedSegment = index;
    }
    bytes = reinterpret_cast<const uint8_t *>(cachedLine.data());
  }
  for (size_t i = 0; i < count; ++i)
    target[i] = first + i < length ? bytes[first + i] : 0;
  return Status::ok();
}

std::string TokenSource::describe(uint64_t position) const {
  if (position >= total)
    return "the end of '" + name + "'";
  const Segment &segment = segmentAt(position);
  std::string offset = std::to_string(position - segment.begin), path = "'" + files[segment.file].path + "'";
  if (segment.kind == Kind::Words16 || segment.kind == Kind::Words32)
    return "token " + offset + " of " + path;
  std::string place = segment.kind == Kind::Bytes      ? ""
                      : segment.kind == Kind::JsonLine ? "line " + std::to_string(segment.number) + " of "
                                                       : "item " + std::to_string(segment.number) + " of ";
  return "byte " + offset + " of " + place + path;
}

Result<double> TokenSource::unigramEntropy(uint64_t limit) {
  std::vector<uint64_t> counts(1 << 16);
  std::vector<uint32_t> buffer(1 << 16);
  // More tokens than that would be read before the first step: blocks at even distances stand for all.
  const uint64_t block = std::min<uint64_t>(buffer.size(), std::max<uint64_t>(limit, 1));
  const uint64_t blocks = total <= limit ? (total + block - 1) / block : std::max<uint64_t>(limit / block, 1);
  uint64_t count = 0;
  for (uint64_t index = 0; index < blocks; ++index) {
    uint64_t position = total <= limit ? index * block : index * ((total - block) / std::max<uint64_t>(blocks - 1, 1));
    size_t here = std::min<uint64_t>(block, total - position);
    TESSERA_RETURN_IF_ERROR(read(position, here, buffer.data()));
    for (size_t i = 0; i < here; ++i) {
      if (buffer[i] >= counts.size()) {
        if (buffer[i] >= 1u << 24)
          return TESSERA_ERROR(InvalidArgument, describe(position + i) + " is " + std::to_string(buffer[i]) +
                                                    ", more than any vocabulary");
        counts.resize(std::max<size_t>(buffer[i] + 1, 2 * counts.size()));
      }
      ++counts[buffer[i]];
    }
    count += here;
  }
  double entropy = 0;
  for (uint64_t occurrences : counts)
    if (occurrences > 0) {
      double probability = static_cast<double>(occurrences) / static_cast<double>(count);
      entropy -= probability * std::log(probability);
    }
  return entropy;
}

} // namespace tessera
