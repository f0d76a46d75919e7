//===- Guard.h - exceptions of libraries end here --------------------------===//
//
// The runtime itself throws nothing, but the standard library does where the system gives no memory or no thread. What
// runs on a thread of its own is guarded, so that such a failure ends the run like any other: with one message.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_GUARD_H
#define TESSERA_RUNTIME_BASE_GUARD_H

#include "runtime/base/Status.h"

#include <exception>
#include <new>
#include <system_error>

namespace tessera {

/// What `body` returns (a Status or a Result), or the exception it threw as an error.
template <typename Body> auto guarded(Body &&body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return TESSERA_ERROR(Exhausted, "out of memory");
  } catch (const std::system_error &error) {
    return TESSERA_ERROR(IoError, std::string("the system refused: ") + error.what());
  } catch (const std::exception &error) {
    return TESSERA_ERROR(Internal, std::string("unexpected exception: ") + error.what());
  }
}

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_GUARD_H
