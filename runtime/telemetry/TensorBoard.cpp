//===- TensorBoard.cpp - scalars as TensorBoard event files ----------------===//

#include "runtime/telemetry/TensorBoard.h"

#include "runtime/base/File.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace tessera {

uint32_t crc32c(const std::string &data) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0);
      made[byte] = value;
    }
    return made;
  }();
  uint32_t crc = 0xffffffffu;
  for (char byte : data)
    crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

namespace {

template <typename T> std::string bytesOf(T value) {
  return {reinterpret_cast<const char *>(&value), sizeof(value)}; // little endian, as this runtime's machines are
}

/// Stored sums are rotated and shifted, so that the sum of a record that holds sums is not degenerate.
std::string maskedCrc(const std::string &data) {
  uint32_t crc = crc32c(data);
  return bytesOf(((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7)
    text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

enum WireType { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
std::string key(int field, WireType type) { return varint(static_cast<uint64_t>(field) << 3 | type); }
std::string bytesField(int field, const std::string &value) { return key(field, Bytes) + varint(value.size()) + value; }

// Fields of tensorflow's Event: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
std::string eventHead(int64_t step) {
  double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return key(1, Fixed64) + bytesOf(now) + key(2, Varint) + varint(static_cast<uint64_t>(step));
}

/// Of Summary: value 1; of Value: tag 1, simple_value 2.
std::string scalar(const std::string &tag, double value) {
  return bytesField(1, bytesField(1, tag) + key(2, Fixed32) + bytesOf(static_cast<float>(value)));
}

} // namespace

Result<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::open(const std::string &folder,
                                                                   std::optional<int64_t> resumeStep) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return systemError("create", folder, error.value());
  // What a run that begins anew in its folder has written before does not count either.
  if (!resumeStep && !std::filesystem::is_empty(folder, error) && !error)
    resumeStep = 0;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  auto now = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  std::string path = folder + "/events.out.tfevents." + std::to_string(now.count()) + "." + host + "." +
                     std::to_string(::getpid()) + ".0";
  std::FILE *file = std::fopen(path.c_str(), "we");
  if (!file)
    return systemError("write", path, errno);
  std::unique_ptr<TensorBoardWriter> writer(new TensorBoardWriter(path, file));
  TESSERA_RETURN_IF_ERROR(writer->writeRecord(eventHead(0) + bytesField(3, "brain.Event:2")));
  if (resumeStep) // SessionLog: status 1 = START
    TESSERA_RETURN_IF_ERROR(
        writer->writeRecord(eventHead(*resumeStep + 1) + bytesField(7, key(1, Varint) + varint(1))));
  return writer;
}

TensorBoardWriter::~TensorBoardWriter() { std::fclose(file); }

Status TensorBoardWriter::writeRecord(const std::string &event) {
  std::string length = bytesOf(static_cast<uint64_t>(event.size()));
  std::string record = length + maskedCrc(length) + event + maskedCrc(event);
  if (std::fwrite(record.data(), 1, record.size(), file) != record.size() || std::fflush(file) != 0)
    return systemError("write", name, errno);
  return Status::ok();
}

Status TensorBoardWriter::write(const StepMetrics &metrics, const MemorySummary &memory) {
  std::string summary = scalar("train/loss", metrics.loss);
  auto add = [&](const char *tag, std::optional<double> value) {
    if (value)
      summary += scalar(tag, *value);
  };
  add("train/grad_norm", metrics.gradNorm);
  add("train/lr", metrics.learningRate);
  add("speed/tokens_per_second", metrics.tokensPerSecond());
  add("speed/samples_per_second", metrics.samplesPerSecond());
  add("speed/mfu", metrics.mfu());
  add("time/step_seconds", metrics.seconds);
  add("time/compute_seconds", metrics.computeSeconds);
  add("time/data_wait_seconds", metrics.dataWaitSeconds);
  add("time/exposed_communication_seconds", metrics.exposedCommunicationSeconds);
  add("time/hidden_communication_seconds", metrics.hiddenCommunicationSeconds);
  add("time/host_seconds", metrics.hostSeconds);
  add("time/launcher_cpu_seconds", metrics.launcherSeconds);
  add("memory/planned_per_rank", static_cast<double>(memory.plan.arenaBytes));
  add("memory/rss", static_cast<double>(metrics.process.resident));
  return writeRecord(eventHead(metrics.step) + bytesField(5, summary));
}

Status TensorBoardWriter::write(const EvaluationMetrics &metrics) {
  std::string summary = scalar("eval/loss", metrics.loss);
  if (metrics.perplexity)
    summary += scalar("eval/perplexity", *metrics.perplexity);
  for (const auto &[name, value] : metrics.others)
    summary += scalar("eval/" + name, value);
  summary += scalar("eval/seconds", metrics.seconds);
  return writeRecord(eventHead(metrics.step) + bytesField(5, summary));
}

} // namespace tessera
