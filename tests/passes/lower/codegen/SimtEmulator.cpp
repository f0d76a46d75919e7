//===- SimtEmulator.cpp - GPU kernels on a CPU, for tests -----------------===//

#include "SimtEmulator.h"

#include "passes/lower/codegen/GpuMathFunctions.h"
#include "tests/gpu/simulator/Approximations.h"
#include "tests/gpu/simulator/Numbers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"

#include <dlfcn.h>
#include <ucontext.h>
#include <vector>

using namespace mlir;

namespace tessera::test {

// --- The intrinsics as calls ----------------------------------------------------------

namespace {
enum Entry {
  BlockX,
  ThreadX,
  ThreadY,
  Barrier,
  Shuffle,
  Ballot,
  Exp2,
  Reciprocal,
  ToE4M3,
  ToE5M2,
  FromE4M3,
  FromE5M2,
  NumEntries
};
} // namespace

static Value call(OpBuilder &builder, Location loc, Entry entry, Type result, ValueRange operands) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto array = LLVM::LLVMArrayType::get(pointer, NumEntries);
  Value table = LLVM::AddressOfOp::create(builder, loc, pointer, "emulator");
  Value slot = LLVM::GEPOp::create(builder, loc, pointer, array, table, ArrayRef<LLVM::GEPArg>{0, entry});
  Value function = LLVM::LoadOp::create(builder, loc, pointer, slot);
  SmallVector<Type> types(operands.getTypes());
  Type returned = result ? result : LLVM::LLVMVoidType::get(builder.getContext());
  SmallVector<Value> all = {function};
  llvm::append_range(all, operands);
  auto made = LLVM::CallOp::create(builder, loc, LLVM::LLVMFunctionType::get(returned, types), all);
  return result ? made.getResult() : Value();
}

void useEmulator(ModuleOp module) {
  OpBuilder builder(module.getContext());
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), word = builder.getI32Type();
  module.walk([&](Operation *op) {
    builder.setInsertionPoint(op);
    Location loc = op->getLoc();
    auto replace = [&](Entry entry) { op->replaceAllUsesWith(ValueRange{call(builder, loc, entry, word, {})}); };
    if (isa<NVVM::BlockIdXOp>(op)) {
      replace(BlockX);
    } else if (isa<NVVM::ThreadIdXOp>(op)) {
      replace(ThreadX);
    } else if (isa<NVVM::ThreadIdYOp>(op)) {
      replace(ThreadY);
    } else if (isa<NVVM::Barrier0Op>(op)) {
      call(builder, loc, Barrier, {}, {});
    } else if (auto shuffle = dyn_cast<NVVM::ShflOp>(op)) {
      Type type = shuffle.getVal().getType();
      Value bits = LLVM::BitcastOp::create(builder, loc, word, shuffle.getVal());
      Value got = call(builder, loc, Shuffle, word, {bits, shuffle.getOffset()});
      op->replaceAllUsesWith(ValueRange{LLVM::BitcastOp::create(builder, loc, type, got)});
    } else if (auto vote = dyn_cast<NVVM::VoteSyncOp>(op)) {
      Value hit = LLVM::ZExtOp::create(builder, loc, word, vote.getPred());
      op->replaceAllUsesWith(ValueRange{call(builder, loc, Ballot, word, hit)});
    } else if (auto narrow = dyn_cast<NVVM::ConvertF32x2ToF8x2Op>(op)) {
      Entry entry = isa<Float8E4M3FNType>(narrow.getDstTy()) ? ToE4M3 : ToE5M2;
      op->replaceAllUsesWith(
          ValueRange{call(builder, loc, entry, builder.getI16Type(), {narrow.getA(), narrow.getB()})});
    } else if (auto widen = dyn_cast<NVVM::ConvertF8x2ToF16x2Op>(op)) {
      Entry entry = isa<Float8E4M3FNType>(widen.getSrcType()) ? FromE4M3 : FromE5M2;
      Value bits = LLVM::BitcastOp::create(builder, loc, builder.getI16Type(), widen.getSrc());
      Value halves = call(builder, loc, entry, word, bits);
      op->replaceAllUsesWith(ValueRange{LLVM::BitcastOp::create(builder, loc, op->getResult(0).getType(), halves)});
    } else if (auto unit = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
      Entry entry = unit.getIntrin() == codegen::kExp2Intrinsic ? Exp2 : Reciprocal;
      op->replaceAllUsesWith(ValueRange{call(builder, loc, entry, unit.getType(0), unit.getArgs())});
    } else {
      return;
    }
    op->erase();
  });
  SmallVector<func::FuncOp> kernels(module.getOps<func::FuncOp>());
  for (func::FuncOp kernel : kernels) {
    // Its name may be one of the C library's.
    kernel->setAttr("llvm.linkage", LLVM::LinkageAttr::get(builder.getContext(), LLVM::Linkage::Internal));
    // Emulated, all buffers are whatever the test gives.
    for (unsigned number = 0; number < kernel.getNumArguments(); ++number)
      kernel.setArgAttrs(number, ArrayRef<NamedAttribute>{});
    builder.setInsertionPointToEnd(module.getBody());
    auto twin = func::FuncOp::create(builder, kernel.getLoc(), ("emulated_" + kernel.getSymName()).str(),
                                     builder.getFunctionType({pointer}, {}));
    Block *entry = twin.addEntryBlock();
    builder.setInsertionPointToEnd(entry);
    SmallVector<Value> pointers;
    for (unsigned number = 0; number < kernel.getNumArguments(); ++number) {
      Value slot = LLVM::GEPOp::create(builder, kernel.getLoc(), pointer, pointer, entry->getArgument(0),
                                       ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
      pointers.push_back(LLVM::LoadOp::create(builder, kernel.getLoc(), pointer, slot));
    }
    func::CallOp::create(builder, kernel.getLoc(), kernel, pointers);
    func::ReturnOp::create(builder, kernel.getLoc());
  }
  builder.setInsertionPointToStart(module.getBody());
  auto array = LLVM::LLVMArrayType::get(pointer, NumEntries);
  auto table = LLVM::GlobalOp::create(builder, module.getLoc(), array, /*isConstant=*/false, LLVM::Linkage::External,
                                      "emulator", Attribute());
  builder.createBlock(&table.getInitializerRegion());
  LLVM::ReturnOp::create(builder, module.getLoc(), LLVM::ZeroOp::create(builder, module.getLoc(), array).getResult());
}

// --- The threads of a block --------------------------------------------------------------

namespace {

constexpr int kWarp = 32;

/// One block: its threads run in turn, each until it has to wait for others.
class Block {
public:
  enum class Wait { None, Block, Shuffle, Ballot };
  struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    Wait wait = Wait::None;
    bool isDone = false;
    uint32_t value = 0, lane = 0; ///< what it gives and gets, and for a shuffle the lane to ask
  };

  Block(void (*kernel)(void *const *), void *const *buffers, const codegen::GpuLaunch &launch, int64_t number)
      : kernel(kernel), buffers(buffers), launch(launch), number(number) {}

  std::string run();
  void yield(Wait wait) {
    threads[current].wait = wait;
    swapcontext(&threads[current].context, &scheduler);
  }

  void (*kernel)(void *const *);
  void *const *buffers;
  const codegen::GpuLaunch &launch;
  int64_t number;
  std::vector<Thread> threads;
  size_t current = 0;
  ucontext_t scheduler;

private:
  std::string meet(size_t begin, size_t end, Wait wait);
};

Block *running;

void enter() {
  running->kernel(running->buffers);
  running->threads[running->current].isDone = true;
  swapcontext(&running->threads[running->current].context, &running->scheduler);
}

/// Lets a group go on that waits together.
std::string Block::meet(size_t begin, size_t end, Wait wait) {
  uint32_t ballot = 0;
  std::vector<uint32_t> values;
  for (size_t thread = begin; thread < end; ++thread) {
    if (threads[thread].isDone || threads[thread].wait != wait)
      return "threads " + std::to_string(begin) + " and " + std::to_string(thread) + " of block " +
             std::to_string(number) + " do not meet";
    values.push_back(threads[thread].value);
    ballot |= (threads[thread].value & 1) << ((thread - begin) % kWarp);
  }
  for (size_t thread = begin; thread < end; ++thread) {
    if (wait == Wait::Shuffle)
      threads[thread].value = values[threads[thread].lane];
    else if (wait == Wait::Ballot)
      threads[thread].value = ballot;
    threads[thread].wait = Wait::None;
  }
  return {};
}

/// Apart from `run`, where nothing may live in registers across getcontext, which compilers take to return twice.
[[gnu::noinline]] void makeReady(ucontext_t &context, std::vector<char> &stack) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack.data();
  context.uc_stack.ss_size = stack.size();
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
}

std::string Block::run() {
  threads.resize(launch.threadsX * launch.threadsY);
  for (Thread &thread : threads) {
    thread.stack.resize(64 << 10);
    makeReady(thread.context, thread.stack);
  }
  running = this;
  while (true) {
    bool isActive = false;
    for (current = 0; current < threads.size(); ++current) {
      if (threads[current].isDone || threads[current].wait != Wait::None)
        continue;
      isActive = true;
      swapcontext(&scheduler, &threads[current].context);
    }
    if (isActive)
      continue;
    // All wait or are done. Warps first; the block's barrier is met when no warp can go on.
    bool wentOn = false, isBlock = false;
    for (size_t begin = 0; begin < threads.size(); begin += kWarp) {
      const Thread &first = threads[begin];
      if (first.isDone)
        continue;
      isBlock |= first.wait == Wait::Block;
      if (first.wait == Wait::Shuffle || first.wait == Wait::Ballot) {
        if (std::string error = meet(begin, std::min(begin + kWarp, threads.size()), first.wait); !error.empty())
          return error;
        wentOn = true;
      }
    }
    if (wentOn)
      continue;
    if (!isBlock)
      break;
    if (std::string error = meet(0, threads.size(), Wait::Block); !error.empty())
      return error;
  }
  for (const Thread &thread : threads)
    if (!thread.isDone)
      return "a thread of block " + std::to_string(number) + " waits for others that are done";
  return {};
}

uint32_t blockX() { return static_cast<uint32_t>(running->number); }
uint32_t threadX() { return static_cast<uint32_t>(running->current % running->launch.threadsX); }
uint32_t threadY() { return static_cast<uint32_t>(running->current / running->launch.threadsX); }
void barrier() { running->yield(Block::Wait::Block); }
uint32_t shuffle(uint32_t value, uint32_t lanes) {
  size_t self = running->current;
  running->threads[self].value = value;
  running->threads[self].lane = (self % kWarp) ^ lanes;
  running->yield(Block::Wait::Shuffle);
  return running->threads[self].value;
}
uint32_t ballot(uint32_t hit) {
  size_t self = running->current;
  running->threads[self].value = hit;
  running->yield(Block::Wait::Ballot);
  return running->threads[self].value;
}

uint32_t unitsSeed;
float exp2Unit(float x) { return sim::approximation(sim::Unit::Exp2, x, /*flushes=*/true, unitsSeed); }
float reciprocalUnit(float x) { return sim::approximation(sim::Unit::Reciprocal, x, /*flushes=*/true, unitsSeed); }
template <typename Format> uint16_t toFloat8(float high, float low) { return sim::narrowPair<Format>(high, low); }
template <typename Format> uint32_t fromFloat8(uint16_t bits) { return sim::widenPair<Format>(bits); }

} // namespace

bool connectEmulator(void *library, uint32_t seed) {
  unitsSeed = seed;
  auto **table = static_cast<void **>(dlsym(library, "emulator"));
  if (!table)
    return false;
  table[BlockX] = reinterpret_cast<void *>(blockX);
  table[ThreadX] = reinterpret_cast<void *>(threadX);
  table[ThreadY] = reinterpret_cast<void *>(threadY);
  table[Barrier] = reinterpret_cast<void *>(barrier);
  table[Shuffle] = reinterpret_cast<void *>(shuffle);
  table[Exp2] = reinterpret_cast<void *>(exp2Unit);
  table[Reciprocal] = reinterpret_cast<void *>(reciprocalUnit);
  table[ToE4M3] = reinterpret_cast<void *>(toFloat8<sim::E4M3>);
  table[ToE5M2] = reinterpret_cast<void *>(toFloat8<sim::E5M2>);
  table[FromE4M3] = reinterpret_cast<void *>(fromFloat8<sim::E4M3>);
  table[FromE5M2] = reinterpret_cast<void *>(fromFloat8<sim::E5M2>);
  table[Ballot] = reinterpret_cast<void *>(ballot);
  return true;
}

std::string emulate(void (*kernel)(void *const *), void *const *buffers, const codegen::GpuLaunch &launch) {
  if (launch.threadsX * launch.threadsY > 1024)
    return "more than 1024 threads in a block";
  if (launch.threadsX * launch.threadsY % kWarp != 0)
    return "a block of " + std::to_string(launch.threadsX) + " x " + std::to_string(launch.threadsY) +
           " threads is not of whole warps";
  for (int64_t number = 0; number < launch.blocks; ++number) {
    Block block(kernel, buffers, launch, number);
    if (std::string error = block.run(); !error.empty())
      return error;
  }
  return {};
}

} // namespace tessera::test
