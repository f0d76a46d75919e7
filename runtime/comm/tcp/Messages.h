//===- Messages.h - what processes say while they meet ---------------------===//
//
// Of fixed size, with numbers in the byte order of the machine: all ranks run the same native code.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_MESSAGES_H
#define TESSERA_RUNTIME_COMM_TCP_MESSAGES_H

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace tessera::tcp {

using Magic = std::array<char, 8>;
inline constexpr Magic magicOfRuns = {'t', 'e', 's', 's', 'e', 'r', 'a', '3'};

/// The first message on every connection, of the side that connects.
struct Hello {
  Magic magic = magicOfRuns;
  uint64_t token = 0; ///< of the run; 0 when a rank reports to rank 0
  int32_t rank = 0, numRanks = 0;
  int32_t link = 0; ///< number of the link, in the order of opening; of a report: the port where the rank listens
  int32_t reserved = 0;
};

/// Between rank 0 and another one, until all links are open.
struct Note {
  enum Kind : int32_t {
    Known,   ///< from rank 0: this rank has been heard
    Welcome, ///< from rank 0: all have come; the places of the ranks follow
    Ready,   ///< to rank 0: the links of this rank are open
    Begin,   ///< from rank 0: those of all ranks are
    End,     ///< both ways: this start-up is over, for the reason in `text`
  };
  Magic magic = magicOfRuns;
  int32_t kind = Known;
  int32_t signal = 0; ///< of End: the signal that asked a rank to end; 0: none
  uint64_t token = 0; ///< of Welcome
  char text[488] = "";

  static Note make(Kind kind, const std::string &text = "", int signal = 0) {
    Note note;
    note.kind = kind;
    note.signal = signal;
    std::strncpy(note.text, text.c_str(), sizeof(note.text) - 1);
    return note;
  }
};

/// Where a rank listens.
struct Place {
  char host[256] = ""; ///< an address, or a name, of which DNS allows 253 characters
  int32_t port = 0;
};

} // namespace tessera::tcp

#endif // TESSERA_RUNTIME_COMM_TCP_MESSAGES_H
