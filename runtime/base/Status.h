//===- Status.h - errors as values -----------------------------------------===//
//
// The runtime reports every failure as a `Status` (code, message, place in the source) or a `Result<T>`: no exceptions
// cross a library's border, and nothing below tools/ ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_STATUS_H
#define TESSERA_RUNTIME_BASE_STATUS_H

#include <cassert>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

enum class StatusCode {
  Ok,
  InvalidArgument, ///< The user asked for something impossible.
  NotFound,        ///< A file, tensor or name that does not exist.
  DataLoss,        ///< A file that is truncated, corrupted or inconsistent.
  Unsupported,     ///< Valid, but not implemented.
  Exhausted,       ///< Memory, disk space.
  Aborted,         ///< Another rank failed or stalled.
  IoError,         ///< The operating system refused.
  Internal,        ///< A bug.
};

std::string_view toString(StatusCode code);

/// Ok, or a code with a message: lower case, no full stop, naming the file and the cause.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message, const char *file = "", int line = 0)
      : detail(std::make_shared<Detail>(Detail{code, std::move(message), file, line})) {
    assert(code != StatusCode::Ok);
  }

  static Status ok() { return {}; }
  bool isOk() const { return !detail; }
  explicit operator bool() const = delete;

  StatusCode code() const { return detail ? detail->code : StatusCode::Ok; }
  const std::string &message() const;
  /// The same error with `context: ` before its message.
  Status withContext(std::string_view context) const;
  /// The message; for a bug (code Internal) also the place where it arose.
  std::string toString() const;
  const char *file() const { return detail ? detail->file : ""; }
  int line() const { return detail ? detail->line : 0; }

private:
  struct Detail {
    StatusCode code;
    std::string message;
    const char *file;
    int line;
  };
  std::shared_ptr<const Detail> detail;
};

std::ostream &operator<<(std::ostream &stream, const Status &status);

/// A value or the reason why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Status status) : error(std::move(status)) {
    assert(!error.isOk() && "a result without a value needs an error");
  }

  bool isOk() const { return content.has_value(); }
  const Status &status() const { return error; }
  T &operator*() & { return *content; }
  const T &operator*() const & { return *content; }
  T &&operator*() && { return std::move(*content); }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

private:
  Status error;
  std::optional<T> content;
};

} // namespace tessera

/// An error with its place: `return TESSERA_ERROR(NotFound, "no such file: " + path);`
#define TESSERA_ERROR(code, message) ::tessera::Status(::tessera::StatusCode::code, (message), __FILE__, __LINE__)

#define TESSERA_RETURN_IF_ERROR(expression)                                                                            \
  do {                                                                                                                 \
    if (::tessera::Status tesseraStatus_ = (expression); !tesseraStatus_.isOk())                                       \
      return tesseraStatus_;                                                                                           \
  } while (false)

#define TESSERA_CONCAT_INNER_(a, b) a##b
#define TESSERA_CONCAT_(a, b) TESSERA_CONCAT_INNER_(a, b)
#define TESSERA_ASSIGN_OR_RETURN_(temporary, target, expression)                                                       \
  auto temporary = (expression);                                                                                       \
  if (!temporary.isOk())                                                                                               \
    return temporary.status();                                                                                         \
  target = *std::move(temporary)
/// `TESSERA_ASSIGN_OR_RETURN(auto file, openFile(path));`
#define TESSERA_ASSIGN_OR_RETURN(target, expression)                                                                   \
  TESSERA_ASSIGN_OR_RETURN_(TESSERA_CONCAT_(tesseraResult_, __LINE__), target, expression)

#endif // TESSERA_RUNTIME_BASE_STATUS_H
