//===- WeightPieceTest.cpp - elements of a parameter that a file has elsewhere ----===//

#include "runtime/artifact/WeightPiece.h"
#include "tests/runtime/TestSupport.h"

#include <map>
#include <random>

namespace tessera {
namespace {

/// Every element of the parameter in [first, last) and the element of the tensor that it is, one by one.
std::map<int64_t, int64_t> elementsOf(const WeightPiece &piece, int64_t first, int64_t last) {
  std::map<int64_t, int64_t> found;
  std::vector<int64_t> turn(piece.sizes.size(), 0);
  for (int64_t count = 0; count < piece.elements(); ++count) {
    int64_t inParameter = piece.offset, inTensor = piece.tensorOffset;
    for (size_t loop = 0; loop < turn.size(); ++loop) {
      inParameter += turn[loop] * piece.strides[loop];
      inTensor += turn[loop] * piece.tensorStrides[loop];
    }
    if (inParameter >= first && inParameter < last)
      found[inParameter] = inTensor;
    for (size_t loop = turn.size(); loop-- > 0 && ++turn[loop] == piece.sizes[loop];)
      turn[loop] = 0;
  }
  return found;
}

std::map<int64_t, int64_t> runsOf(const WeightPiece &piece, int64_t first, int64_t last) {
  std::map<int64_t, int64_t> found;
  EXPECT_TRUE(piece
                  .forEachRun(first, last,
                              [&](const PieceRun &run) {
                                for (int64_t i = 0; i < run.count; ++i)
                                  EXPECT_TRUE(found.emplace(run.inParameter + i, run.inTensor + i).second);
                                return Status::ok();
                              })
                  .isOk());
  return found;
}

TEST(WeightPiece, RunsAreAllElementsOfARange) {
  std::mt19937 random(1);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int trial = 0; trial < 400; ++trial) {
    // Loops over both, in the order of the parameter's strides; the tensor's are in any order.
    WeightPiece piece;
    piece.tensor = "t";
    const int64_t loops = pick(1, 4);
    std::vector<int64_t> order;
    for (int64_t loop = 0; loop < loops; ++loop) {
      piece.sizes.push_back(pick(1, 4));
      order.push_back(loop);
    }
    std::shuffle(order.begin(), order.end(), random);
    piece.strides.assign(loops, 0);
    piece.tensorStrides.assign(loops, 0);
    int64_t own = 1, other = 1;
    for (int64_t loop = loops; loop-- > 0;) {
      own *= pick(1, 2);
      piece.strides[loop] = own;
      own *= piece.sizes[loop];
    }
    for (int64_t loop : order) {
      other *= pick(1, 2);
      piece.tensorStrides[loop] = other;
      other *= piece.sizes[loop];
    }
    piece.offset = pick(0, 5);
    piece.tensorOffset = pick(0, 5);
    piece.shape = {other + piece.tensorOffset};
    const int64_t elements = own + piece.offset;
    ASSERT_EQ(piece.check(elements), "") << trial;
    const int64_t first = pick(0, elements), last = pick(first, elements);
    EXPECT_EQ(runsOf(piece, first, last), elementsOf(piece, first, last)) << trial;
    EXPECT_EQ(runsOf(piece, 0, elements), elementsOf(piece, 0, elements)) << trial;
  }
}

TEST(WeightPiece, WholeTensors) {
  const WeightPiece whole = WeightPiece::whole("t", {3, 4});
  EXPECT_EQ(whole.check(12), "");
  EXPECT_TRUE(whole.isWhole({3, 4}));
  EXPECT_FALSE(whole.isWhole({4, 3}));
  EXPECT_EQ(whole.runLength(), 12);
  EXPECT_EQ(WeightPiece::whole("scalar", {}).elements(), 1);
  EXPECT_TRUE(runsOf(WeightPiece::whole("empty", {0, 3}), 0, 0).empty());
  const WeightPiece transposed{"t", {4, 3}, {3, 4}, 0, {4, 1}, 0, {1, 3}};
  EXPECT_EQ(transposed.check(12), "");
  EXPECT_EQ(transposed.runLength(), 1);
  EXPECT_FALSE(transposed.isWhole({3, 4}));
}

TEST(WeightPiece, WhatIsNoPiece) {
  const WeightPiece good{"t", {4, 3}, {3, 4}, 0, {4, 1}, 0, {1, 3}};
  auto changed = [&](auto change) {
    WeightPiece piece = good;
    change(piece);
    return piece.check(12);
  };
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.sizes.clear(); }), "has no loops, or more than 12");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.sizes[0] = 0; }), "has loops of an impossible size");
  EXPECT_EQ(changed([](WeightPiece &piece) {
              piece.sizes = {INT64_MAX, INT64_MAX};
            }),
            "has loops of an impossible size");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.shape = {-1}; }), "is of a tensor of an impossible shape");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.strides = {1}; }), "has not one stride for each loop");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.offset = -1; }), "begins before the parameter");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.tensorOffset = -1; }), "begins before the tensor");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.offset = 1; }), "ends outside the parameter");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.tensorOffset = 1; }), "ends outside the tensor");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.strides[0] = 3; }), "has an element of the parameter twice");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.tensorStrides[1] = 0; }), "has an element of the tensor twice");
  EXPECT_EQ(changed([](WeightPiece &piece) { piece.strides[0] = INT64_MAX; }), "ends outside the parameter");
}

} // namespace
} // namespace tessera
