//===- PtxMatrixTest.cpp - matrices of a warp by the PTX ISA ------------------===//

#include "PtxBody.h"

#include "Numbers.h"

#include <cuda.h>
#include <gtest/gtest.h>

namespace tessera::sim {
namespace {

/// Of thread `lane`, where element i of a fragment lies (PTX ISA, "Matrix Fragments for mma.m16n8k16").
struct Place {
  int row, column;
};
Place placeInA(int lane, int i) {
  const bool isUpper = i < 2 || (i >= 4 && i < 6);
  return {lane / 4 + (isUpper ? 0 : 8), lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
}
Place placeInB(int lane, int i) { return {lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8), lane / 4}; }
Place placeInC(int lane, int i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}; }

/// Small whole numbers, whose sums are exact.
int inA(int row, int k) { return (row * 5 + k * 3) % 11 - 5; }
int inB(int k, int column) { return (k * 7 + column * 2) % 13 - 6; }
int inC(int row, int column) { return row * 8 + column; }

template <typename Format> void checkProduct(const std::string &type) {
  constexpr int words = 16;
  OneBuffer buffer(32 * words);
  auto bits = [](int number) { return static_cast<uint32_t>(Format::narrow(static_cast<double>(number))); };
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t *mine = &buffer.data[static_cast<size_t>(lane * words)];
    for (int i = 0; i < 8; ++i)
      mine[i / 2] |= bits(inA(placeInA(lane, i).row, placeInA(lane, i).column)) << (i % 2 * 16);
    for (int i = 0; i < 4; ++i)
      mine[4 + i / 2] |= bits(inB(placeInB(lane, i).row, placeInB(lane, i).column)) << (i % 2 * 16);
    for (int i = 0; i < 4; ++i)
      mine[8 + i] = std::bit_cast<uint32_t>(static_cast<float>(inC(placeInC(lane, i).row, placeInC(lane, i).column)));
  }
  runBody("mul.wide.u32 %rd2, %r1, 64; add.s64 %rd2, %rd1, %rd2;"
          "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd2]; ld.global.v2.b32 {%r14, %r15}, [%rd2+16];"
          "ld.global.v4.b32 {%r16, %r17, %r18, %r19}, [%rd2+32];"
          "mma.sync.aligned.m16n8k16.row.col.f32." +
              type + "." + type +
              ".f32 {%r16, %r17, %r18, %r19}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r16, %r17, %r18, %r19};"
              "st.global.v4.b32 [%rd2+48], {%r16, %r17, %r18, %r19};",
          buffer, 32);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const Place at = placeInC(lane, i);
      int sum = inC(at.row, at.column);
      for (int k = 0; k < 16; ++k)
        sum += inA(at.row, k) * inB(k, at.column);
      EXPECT_EQ(std::bit_cast<float>(buffer.data[static_cast<size_t>(lane * words + 12 + i)]), static_cast<float>(sum))
          << type << ", thread " << lane << ", element " << i;
    }
}

TEST(SimulatedMatrix, MultipliesByTheFragmentsOfThePtxIsa) {
  checkProduct<Bf16>("bf16");
  checkProduct<F16>("f16");
}

/// A matrix's row is what one thread writes; element [row][column] of matrix m is m * 64 + row * 8 + column.
std::vector<uint32_t> loaded(const std::string &modifiers, int count) {
  OneBuffer buffer(32 * 4);
  std::string body = "shl.b32 %r3, %r1, 3; add.s32 %r4, %r3, 1; shl.b32 %r4, %r4, 16; or.b32 %r4, %r4, %r3;";
  for (int word = 0; word < 4; ++word)
    body += "add.s32 %r" + std::to_string(10 + word) + ", %r4, " + std::to_string(word * 0x20002) + ";";
  body += "shl.b32 %r2, %r1, 4; add.s32 %r2, %r2, %r8; st.shared.v4.b32 [%r2], {%r10, %r11, %r12, %r13}; bar.sync 0;";
  std::string registers = "%r20";
  for (int matrix = 1; matrix < count; ++matrix)
    registers += ", %r" + std::to_string(20 + matrix);
  body += "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + modifiers + ".shared.b16 {" + registers +
          "}, [%r2]; shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd2, %r3; add.s64 %rd2, %rd1, %rd2;";
  for (int matrix = 0; matrix < count; ++matrix)
    body += "st.global.b32 [%rd2+" + std::to_string(4 * matrix) + "], %r" + std::to_string(20 + matrix) + ";";
  runBody(body, buffer, 32, 512);
  return buffer.data;
}

TEST(SimulatedMatrix, LoadsRowsAndTransposes) {
  for (int count : {1, 2, 4})
    for (bool isTransposed : {false, true}) {
      const std::vector<uint32_t> found = loaded(isTransposed ? ".trans" : "", count);
      for (int lane = 0; lane < 32; ++lane)
        for (int matrix = 0; matrix < count; ++matrix) {
          const int row = lane / 4, column = lane % 4 * 2, step = isTransposed ? 8 : 1;
          const int first = matrix * 64 + (isTransposed ? column * 8 + row : row * 8 + column);
          EXPECT_EQ(found[static_cast<size_t>(4 * lane + matrix)], static_cast<uint32_t>((first + step) << 16 | first))
              << count << isTransposed << ", thread " << lane;
        }
    }
}

TEST(SimulatedMatrix, WantsAllThreadsAndAlignedRows) {
  const std::string load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r4];";
  EXPECT_EQ(faultOf("mov.b32 %r4, %r8;" + load, 32).first, 0);
  EXPECT_EQ(faultOf("add.s32 %r4, %r8, 8;" + load, 32).first, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(faultOf("add.s32 %r4, %r8, 256;" + load, 32).first, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faultOf("mov.b32 %r4, %r8; setp.lt.u32 %p1, %r1, 16; @%p1 " + load, 32).first, CUDA_ERROR_LAUNCH_FAILED);
}

/// The first words of shared memory after a copy of the buffer {1, 2, 3, 4, 5, ...}.
std::vector<uint32_t> copied(const std::string &body) {
  OneBuffer buffer(16);
  for (uint32_t word = 0; word < 16; ++word)
    buffer.data[word] = word + 1;
  runBody(
      "mov.b32 %r5, %r8;" + body +
          "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r8]; ld.shared.v4.b32 {%r14, %r15, %r16, %r17}, [%r8+16];"
          "st.global.v4.b32 [%rd1], {%r10, %r11, %r12, %r13}; st.global.v4.b32 [%rd1+16], {%r14, %r15, %r16, %r17};",
      buffer, 1);
  buffer.data.resize(8);
  return buffer.data;
}

TEST(SimulatedMatrix, CopiesArriveWhenTheyAreWaitedFor) {
  using Words = std::vector<uint32_t>;
  constexpr uint32_t nobody = 0xffffffff;
  const std::string first = "cp.async.cg.shared.global [%r5], [%rd1], 16;",
                    second = "cp.async.ca.shared.global [%r5+16], [%rd1+16], 16, 4;", commit = "cp.async.commit_group;";
  const Words none(8, nobody), one = {1, 2, 3, 4, nobody, nobody, nobody, nobody}, both = {1, 2, 3, 4, 5, 0, 0, 0};
  EXPECT_EQ(copied(first + commit), none);
  EXPECT_EQ(copied(first + "cp.async.wait_group 0;"), none); // nobody committed it
  EXPECT_EQ(copied(first + commit + second + commit + "cp.async.wait_group 1;"), one);
  EXPECT_EQ(copied(first + commit + second + commit + "cp.async.wait_group 0;"), both);
  EXPECT_EQ(copied("mov.b32 %r3, 0; cp.async.cg.shared.global [%r5], [%rd1+4096], 16, %r3;" + commit + first + commit +
                   "cp.async.wait_group 0;"),
            one); // nothing is read
}

TEST(SimulatedMatrix, ChecksCopies) {
  EXPECT_EQ(faultOf("mov.b32 %r5, %r8; cp.async.cg.shared.global [%r5], [%rd1+4], 16;", 1).first,
            CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(faultOf("mov.b32 %r5, %r8; cp.async.cg.shared.global [%r5], [%rd1+256], 16;", 1).first,
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faultOf("mov.b32 %r5, %r8; cp.async.cg.shared.global [%r5+256], [%rd1], 16;", 1).first,
            CUDA_ERROR_ILLEGAL_ADDRESS);
  // Another thread reads what has arrived, but no barrier has told it.
  const std::string copy = "shl.b32 %r3, %r1, 4; add.s32 %r5, %r8, %r3; mov.b64 %rd3, %rd1;"
                           "cp.async.ca.shared.global [%r5], [%rd3], 16; cp.async.commit_group;"
                           "cp.async.wait_group 0;",
                    read = "xor.b32 %r3, %r3, 16; add.s32 %r6, %r8, %r3; ld.shared.b32 %r7, [%r6];";
  EXPECT_EQ(faultOf(copy + "bar.sync 0;" + read, 2).first, 0);
  EXPECT_NE(faultOf(copy + read, 2).second.find("race: thread"), std::string::npos);
}

TEST(SimulatedMatrix, PredicatesHaveConstants) {
  OneBuffer buffer(2);
  runBody("mov.pred %p1, -1; selp.b32 %r5, 7, 8, %p1; st.global.b32 [%rd1], %r5;"
          "mov.pred %p1, 0; selp.b32 %r5, 7, 8, %p1; st.global.b32 [%rd1+4], %r5;",
          buffer, 1);
  EXPECT_EQ(buffer.data, (std::vector<uint32_t>{7, 8}));
}

} // namespace
} // namespace tessera::sim
