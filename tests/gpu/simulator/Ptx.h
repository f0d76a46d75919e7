//===- Ptx.h - PTX, decoded for the simulator's interpreter -----------------===//
//
// A warp executes an instruction for all its threads at once, on arrays of 32 values per register. Threads that branch
// apart run as groups, lowest address first, and become one group where they meet.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_PTX_H
#define TESSERA_TESTS_GPU_SIMULATOR_PTX_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::sim {

/// Errors of CUDA's driver that a kernel's access to memory ends in.
inline constexpr int illegalAddress = 700, misaligned = 716;

inline constexpr int warpSize = 32;
inline constexpr uint32_t everyLane = ~0u;

struct Warp;
struct Instruction;
using Execute = void (*)(Warp &, const Instruction &, uint32_t lanes);

enum class Kind : uint8_t { Compute, Branch, Return, Barrier, Together /*all threads of the warp take part*/ };

struct Instruction {
  Execute execute = nullptr;
  Kind kind = Kind::Compute;
  bool isGuarded = false, isGuardNegated = false;
  bool hasWideAddress = true; ///< the register of the address has 64 bits
  uint8_t count = 0;          ///< of `vector`
  uint8_t choice = 0;         ///< a variant within `execute`
  uint32_t guard = 0;
  uint32_t d = 0, a = 0, b = 0, c = 0, e = 0; ///< offsets in the warp's registers
  uint32_t vector[4] = {};
  std::vector<uint32_t> registers; ///< of an operation on matrices, in the order of its operands
  int64_t offset = 0;
  uint32_t target = 0; ///< of a branch
  uint32_t cache = 0;  ///< slot of the allocation that was met last
  uint32_t line = 0;   ///< in the text
};

struct Parameter {
  uint32_t offset = 0, bytes = 0;
};

/// A register that is filled before a kernel starts: a constant, or the address of a module's variable.
struct Constant {
  uint32_t offset = 0, bytes = 0;
  uint64_t value = 0;
  int variable = -1; ///< index in Module.variables; its address is added
};

enum class Special : uint8_t { TidX, TidY, TidZ, NtidX, NtidY, NtidZ, CtaX, CtaY, CtaZ, NctaX, NctaY, NctaZ, Lane };

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0, registerBytes = 0, sharedBytes = 0, localBytes = 0;
  uint32_t maxThreads = 1024;
  std::vector<Constant> constants;
  std::vector<std::pair<Special, uint32_t>> specials;
  uint32_t caches = 0;
};

struct Variable {
  std::string name;
  uint32_t bytes = 0, alignment = 1;
  std::vector<uint8_t> data; ///< of its beginning, the rest is zero
};

struct Module {
  std::string target; ///< "sm_90"
  std::vector<Variable> variables;
  std::map<std::string, Kernel, std::less<>> kernels;
};

/// Throws std::runtime_error that names the line and the instruction that is not known.
Module parsePtx(std::string_view text);

/// What execution was ended by; `code` is the driver's.
struct KernelFault : std::runtime_error {
  KernelFault(int code, const std::string &what) : std::runtime_error(what), code(code) {}
  int code;
};

/// Memory that a kernel may touch at [begin, end); it lies at address + shift in this process.
struct Window {
  uint64_t begin = 1, end = 0;
  int64_t shift = 0;
};

class AddressSpace {
public:
  virtual ~AddressSpace() = default;
  /// The window that holds the address; empty if none does.
  virtual Window find(uint64_t address) const = 0;
};

struct Launch {
  const Kernel *kernel = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t dynamicShared = 0;
  std::vector<std::byte> parameters;
  std::vector<uint64_t> variableAddresses; ///< by index in Module.variables
  bool findsRaces = false;
};

/// Runs all blocks, in an order that the generator chooses, and so the warps of a block between barriers. Throws
/// KernelFault.
void runKernel(const Launch &launch, const AddressSpace &memory, std::mt19937_64 &random);

// --- Between decoding and execution -------------------------------------------------

/// The text of an instruction, taken apart.
struct Mnemonic {
  std::string name;
  std::vector<std::string> modifiers;
  bool take(std::string_view modifier);
};

/// The function of an instruction that works on registers only; null if it is not known. Operands are in order.
Execute selectArithmetic(Mnemonic &mnemonic, Instruction &instruction);
Execute selectConversion(Mnemonic &mnemonic);
Execute selectPredicate(Mnemonic &mnemonic, Instruction &instruction, const std::string &type);
/// ld and st: `registerBytes` is the width of the registers.
Execute selectMemory(Mnemonic &mnemonic, Instruction &instruction, uint32_t registerBytes);
/// mma and ldmatrix, of instruction.registers, and cp.async.
Execute selectMatrix(Mnemonic &mnemonic, Instruction &instruction);
/// Bytes of a type's name without the dot; 0 for pred, -1 if it is none.
int typeBytes(std::string_view type);

/// A block of threads while it runs.
struct Block {
  const Launch *launch = nullptr;
  const AddressSpace *memory = nullptr;
  uint32_t index[3] = {};
  std::vector<std::byte> shared;
  std::vector<Window> windows; ///< by Instruction.cache
  uint32_t epoch = 1;          ///< barriers passed
  struct Shadow {
    uint32_t writeEpoch = 0, readEpoch = 0;
    uint16_t writer = 0, reader = 0;
    bool hasManyReaders = false;
  };
  std::vector<Shadow> shadows; ///< of each byte of shared memory, if races are to be found
};

struct Group {
  uint32_t at = 0, lanes = 0;
  bool waits = false; ///< for all others of its warp
};

/// A copy to shared memory that has been started.
struct AsyncCopy {
  int lane = 0;
  uint32_t group = 0; ///< of those that its thread commits
  uint64_t to = 0;
  uint32_t bytes = 0, read = 0;
  const std::byte *from = nullptr;
};

struct Warp {
  template <typename T> T *at(uint32_t offset) { return reinterpret_cast<T *>(registers + offset); }
  uint32_t &predicate(uint32_t offset) { return *at<uint32_t>(offset); }
  uint64_t address(const Instruction &instruction, int lane) {
    uint64_t base = instruction.hasWideAddress ? at<uint64_t>(instruction.a)[lane] : at<uint32_t>(instruction.a)[lane];
    return base + static_cast<uint64_t>(instruction.offset);
  }
  std::byte *global(uint64_t address, uint32_t bytes, const Instruction &instruction);
  std::byte *local(uint64_t address, uint32_t bytes, const Instruction &instruction, int lane);
  std::byte *shared(uint64_t address, uint32_t bytes, const Instruction &instruction, int lane, bool writes);
  const std::byte *parameter(uint64_t address, uint32_t bytes, const Instruction &instruction);
  [[noreturn]] void fail(int code, const std::string &what, const Instruction &instruction);
  uint32_t threadOf(int lane) const { return first + static_cast<uint32_t>(lane); }

  Block *block = nullptr;
  std::byte *registers = nullptr;
  std::byte *locals = nullptr;
  uint32_t first = 0; ///< number of its first thread
  uint32_t alive = 0; ///< lanes that have not ended
  bool atBarrier = false;
  std::vector<Group> groups;
  std::vector<AsyncCopy> copies;
  uint32_t committed[warpSize] = {}; ///< groups of copies, by thread
};

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_PTX_H
