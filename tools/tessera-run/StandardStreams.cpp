//===- StandardStreams.cpp - a run goes on where nobody reads its output ---===//

#include "tools/tessera-run/StandardStreams.h"

#include "runtime/base/Log.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace tessera {

/// All bytes are taken, whether or not they can be written: the stream never fails.
static ssize_t writeOrDrop(void *, const char *data, size_t bytes) {
  static bool isGone = false; // calls for one stream take turns
  for (size_t done = 0; done < bytes && !isGone;) {
    ssize_t step = ::write(STDOUT_FILENO, data + done, bytes - done);
    if (step >= 0) {
      done += static_cast<size_t>(step);
    } else if (errno == EAGAIN) { // whoever shares the stream may have made it so
      pollfd entry = {STDOUT_FILENO, POLLOUT, 0};
      ::poll(&entry, 1, 1000);
    } else if (errno != EINTR) {
      isGone = true;
      log::warn("cannot write progress to stdout: {}; the run goes on without", std::strerror(errno));
    }
  }
  return static_cast<ssize_t>(bytes);
}

void guardStandardStreams() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", O_RDWR)); // takes the lowest free number, which is this one
  cookie_io_functions_t functions = {};
  functions.write = writeOrDrop;
  if (FILE *stream = ::fopencookie(nullptr, "w", functions)) {
    if (::isatty(STDOUT_FILENO))
      std::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
    stdout = stream;
  }
}

} // namespace tessera
