//===- GpuKernel.h - one kernel as code of a GPU thread ---------*- C++ -*-===//
//
// Maps a planned kernel to blocks and threads, with the intrinsics of NVIDIA GPUs. A thread computes a vector of
// consecutive elements, whose loads LLVM joins to accesses of 16 bytes; a row is reduced by one warp or one block,
// which hold it in registers if it fits, a column by the rows of a block. Every order of summation is fixed by the
// shapes, so that two runs are equal.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_GPUKERNEL_H
#define TESSERA_PASSES_LOWER_CODEGEN_GPUKERNEL_H

#include "passes/lower/codegen/KernelEmitter.h"

namespace tessera::codegen {

/// Threads that run in step.
inline constexpr int64_t kWarp = 32;

/// How a kernel is launched: blocks of `threadsX` x `threadsY` threads.
struct GpuLaunch {
  int64_t blocks = 1;
  int64_t threadsX = 1, threadsY = 1;
  /// Where threads hold much: so many blocks are to fit a multiprocessor, and rather no more than registers in memory.
  /// 0: no such wish.
  int64_t blocksAtOnce = 0;
};

struct GpuKernelOptions {
  /// Address space of shared memory; 0 where a block's threads are emulated on a CPU.
  unsigned sharedAddressSpace = 3;
  /// Bytes to which the address of each buffer (inputs, then outputs) is a multiple; 16 if the list is empty.
  llvm::SmallVector<int64_t> alignments;
};

/// Emits the kernel as `func.func @symbol(ptr…)`, one pointer a buffer: inputs, then outputs.
class GpuKernelEmitter : public KernelEmitter {
public:
  /// `plan` is rearranged for the GPU and must outlive the emitter.
  GpuKernelEmitter(const KernelBody &body, KernelPlan &plan, ConstantTables &tables, mlir::Location loc,
                   GpuKernelOptions options);

  mlir::FailureOr<GpuLaunch> emit(mlir::ModuleOp module, llvm::StringRef symbol, std::string &why);

  Scalar reduced(mlir::Operation *op) override;
  std::optional<Scalar> held(mlir::Value input, const Index &linear) override;

private:
  /// One of the positions of a row that a thread takes: where it is, and whether it is inside the row.
  struct Round {
    mlir::Value number;
    /// Null if it always is.
    mlir::Value isInside;
    /// Values of the strided digits, once made.
    llvm::SmallVector<mlir::Value> digits;
  };
  /// A maximum, and the sum of exp(x - maximum) over the same x, which one pass over a row computes together.
  struct Online {
    mlir::Operation *top, *sum;
    /// x at the positions of one vector.
    Values values;
  };
  /// A tile in shared memory, of lines.
  struct Tile {
    mlir::Type element;
    mlir::Value array;
    int64_t pitch;
  };
  /// One of the vectors of a tile that a thread takes: its line and its place in the line (i32), and whether it is
  /// inside of the tensor; null if it always is.
  struct TileVector {
    mlir::Value line, place, isInside;
  };
  /// The first row and column (i32) of a block's tile, and how many there are of both.
  struct TileOrigin {
    mlir::Value row, column;
    int64_t rows, columns;
  };
  void emitElementwise();
  void emitTiles();
  Tile makeTile(mlir::Type element);
  int64_t crossWidth(mlir::Type element) const;
  void forTileVectors(int64_t width, bool alongRow, llvm::function_ref<void(const TileVector &, unsigned)> body);
  mlir::Value tilePlace(const Tile &tile, mlir::Value line, mlir::Value place, int64_t lines);
  mlir::Value rowPlace(const Index &index, const TileVector &vector);
  void loadTile(const TileRead &read, const Tile &tile);
  void computeTile(llvm::ArrayRef<Tile> results);
  void storeTile(size_t result, const Tile &tile);
  void emitRow();
  void emitColumn();
  void storeRowResults();
  void emitBlocks();
  void exchangeColumns(Accumulator &accumulator, mlir::Value line, int64_t lines, mlir::Value firstColumn,
                       mlir::Value stores);
  void storeAcross(size_t result, const Tile &tile, llvm::function_ref<void(mlir::Value)> setColumns);
  void emitRowColumns();
  void storeColumnSums(llvm::MutableArrayRef<Round> rounds);
  void emitTable();
  /// Merges the passes of a maximum and of a sum that needs it, where a row is read again in each pass.
  void joinPasses();
  Online *onlineOf(const Accumulator &accumulator);
  mlir::Value operandOf(const Accumulator &accumulator);
  void emitOnline(unsigned pass, Values &carried);
  mlir::Value rescaled(mlir::Value sum, mlir::Value top, mlir::Value newTop);
  size_t offsetOf(unsigned pass, mlir::Operation *reduction) const;
  /// The loop over the set bits of a mask; the value is the mask that is left, followed by what is carried.
  mlir::ValueRange openBits(mlir::Value bits, mlir::ValueRange carried);
  Values closeBits(mlir::ValueRange carried);
  mlir::Value ballot(mlir::Value condition);
  /// The digit values of a round at the current level.
  void setRound(Round &round);
  Values joinWarps(Values parts, mlir::ValueRange sums, mlir::Value takes, mlir::Value exchange);
  llvm::SmallVector<Round> makeRounds(mlir::Value first, int64_t step, int64_t count);
  Values emitRounds(unsigned pass, llvm::MutableArrayRef<Round> rounds, Values carried);
  Values carriedOf(unsigned pass);
  void storeColumns();
  /// Sums that a thread holds of a reduction, and which one the position being emitted adds to.
  size_t slots(const Accumulator &accumulator) const;
  size_t slotOf(const Accumulator &accumulator) const;
  Values emitInner(unsigned pass, mlir::Value first, int64_t step, mlir::Value limit, int64_t count, Values carried);
  void emitVector(unsigned pass, size_t position, Values &carried, llvm::SmallVectorImpl<Pending> &pending);
  void storeVector(llvm::ArrayRef<Pending> pending);
  void makeAccumulators();

  /// Reduces over the lanes of a warp, then over the warps of a block; every thread gets the result.
  Values reduceWarp(const Accumulator &accumulator, Values values);
  Values reduceBlock(const Accumulator &accumulator, Values values, int64_t warps);
  /// Several at once, behind one barrier. In a loop `place` is that of the round's own half of shared memory, so that
  /// no warp writes what another still reads.
  llvm::SmallVector<Values> reduceBlock(llvm::ArrayRef<const Accumulator *> reduced, llvm::SmallVector<Values> values,
                                        int64_t warps, mlir::Value place);
  /// Reduces over the threads of a block with equal x.
  Values reduceDown(const Accumulator &accumulator, Values values);
  mlir::Value shuffle(mlir::Value value, int lanes);
  mlir::Value shared(mlir::Type type, int64_t elements);
  void barrier();

  /// Opens `if (condition)` one level deeper.
  void openGuard(mlir::Value condition);
  void closeGuard();
  mlir::Value i32(int64_t value) { return constant(value, builder.getI32Type()); }
  mlir::Value wide(mlir::Value value);
  /// Sets the digits at the current level from their number in the mixed-radix space that they span.
  void setDigits(llvm::ArrayRef<unsigned> digits, mlir::Value number);
  int64_t product(llvm::ArrayRef<unsigned> digits) const;

  KernelPlan &arranged;
  GpuKernelOptions options;
  GpuLaunch launch;
  llvm::SmallVector<Online> online;
  std::string symbol;
  mlir::ModuleOp module;
  mlir::Value block, threadX, threadY; // i32
  /// The level at which a row or column is known.
  unsigned rowLevel = 0;
  /// Column kernels: the digit of the columns that one thread takes together, if there are several.
  std::optional<unsigned> columnDigit;
  /// Row-column kernels: rounds of a row, of each of which a thread has sums of columns. Kernels of blocks: rows that a
  /// thread has a part of.
  size_t heldRounds = 1;
  /// Inner digits whose loops are flattened, and those that are unrolled.
  llvm::SmallVector<unsigned> strided, unrolled;
  unsigned sharedArrays = 0;
  int64_t sharedBytes = 0;
  /// Tile kernels: the block's tile, those of `plan.tiles->reads`, and the thread's vector in them.
  TileOrigin origin;
  llvm::SmallVector<Tile> readTiles;
  TileVector ownVector;
};

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_GPUKERNEL_H
