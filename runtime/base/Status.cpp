//===- Status.cpp - errors as values ---------------------------------------===//

#include "runtime/base/Status.h"

namespace tessera {

std::string_view toString(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidArgument:
    return "invalid argument";
  case StatusCode::NotFound:
    return "not found";
  case StatusCode::DataLoss:
    return "data loss";
  case StatusCode::Unsupported:
    return "unsupported";
  case StatusCode::Exhausted:
    return "exhausted";
  case StatusCode::Aborted:
    return "aborted";
  case StatusCode::IoError:
    return "i/o error";
  case StatusCode::Internal:
    return "internal error";
  }
  return "unknown";
}

const std::string &Status::message() const {
  static const std::string none;
  return detail ? detail->message : none;
}

Status Status::withContext(std::string_view context) const {
  if (isOk())
    return *this;
  return Status(detail->code, std::string(context) + ": " + detail->message, detail->file, detail->line);
}

std::string Status::toString() const {
  if (isOk())
    return "ok";
  std::string text = detail->message;
  if (detail->code == StatusCode::Internal)
    text = "internal error: " + text + " (" + detail->file + ":" + std::to_string(detail->line) + ")";
  return text;
}

std::ostream &operator<<(std::ostream &stream, const Status &status) { return stream << status.toString(); }

} // namespace tessera
