//===- VerifyAttentionTest.cpp - each check of attention -------------------===//

#include "tests/runtime/artifact/VerifyTestSupport.h"

namespace tessera {
namespace {

using artifact::DataType;
using test::ArtifactBuilder;
using test::expectError;

TEST(Verify, AttentionShapes) {
  ArtifactBuilder builder;
  artifact::AttentionT attention;
  attention.q = builder.buffer({2, 4, 10, 8});
  attention.k = builder.buffer({2, 2, 12, 8});
  attention.v = builder.buffer({2, 2, 12, 6});
  attention.out = builder.buffer({2, 4, 10, 6});
  attention.lse = builder.buffer({2, 4, 10});
  attention.mask = static_cast<int32_t>(builder.buffer({2, 1, 1, 12}, DataType::Bool));
  uint32_t threeHeads = builder.buffer({2, 3, 10, 8}), longMask = builder.buffer({2, 1, 1, 13}, DataType::Bool);
  auto &stored = builder.add(attention);
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.q = threeHeads;
  expectError(builder, "3 heads in 2 groups");
  stored.q = attention.q;
  stored.mask = static_cast<int32_t>(longMask);
  expectError(builder, "mask of shape [2, 1, 1, 13] for scores [2, 4, 10, 12]");
  stored.mask = attention.mask;
  stored.lse = attention.q;
  expectError(builder, "operand lse has 4 dimensions, expected 3");
}

TEST(Verify, AttentionRangesOfKeys) {
  ArtifactBuilder builder;
  artifact::AttentionT attention;
  attention.q = builder.buffer({2, 4, 10, 8}, DataType::BF16);
  attention.k = builder.buffer({2, 2, 12, 8}, DataType::BF16);
  attention.v = builder.buffer({2, 2, 12, 6}, DataType::BF16);
  attention.out = builder.buffer({2, 4, 10, 6}); // f32, in which it is added up
  attention.lse = builder.buffer({2, 4, 10});
  attention.causal = true;
  attention.window = 3;
  attention.begin = static_cast<int32_t>(builder.buffer({1, 10}, DataType::I64));
  attention.end = static_cast<int32_t>(builder.buffer({2, 10}, DataType::I64));
  auto bound = [&](std::vector<int64_t> shape, DataType dtype) {
    return static_cast<int32_t>(builder.buffer(std::move(shape), dtype));
  };
  const int32_t narrow = bound({2, 10}, DataType::I32), flat = bound({10}, DataType::I64),
                threeSamples = bound({3, 10}, DataType::I64), ofKeys = bound({2, 12}, DataType::I64),
                spread =
                    static_cast<int32_t>(builder.view(builder.buffer({2, 10, 2}, DataType::I64), {2, 10}, {20, 2})),
                beyond = 1000;
  const uint32_t wideQ = builder.buffer({2, 4, 10, 8}), wideK = builder.buffer({2, 2, 12, 8}),
                 wideV = builder.buffer({2, 2, 12, 6}), narrowOut = builder.buffer({2, 4, 10, 6}, DataType::BF16);
  auto &stored = builder.add(attention);
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  for (int32_t artifact::AttentionT::*side : {&artifact::AttentionT::begin, &artifact::AttentionT::end}) {
    stored.*side = -1;
    expectError(builder, "one end of the keys that are seen, expected both or none");
    stored.*side = narrow;
    expectError(builder, "operand begin or end is of type I32, expected I64");
    stored.*side = beyond;
    expectError(builder, "1000");
    for (int32_t misshapen : {flat, threeSamples, ofKeys, spread}) {
      stored.*side = misshapen;
      expectError(builder, "begin or end of shape");
    }
    stored.*side = attention.*side;
  }
  stored.causal = false;
  expectError(builder, "a window of 3 keys, expected 0, or more beside causal");
  stored.window = 0;
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.causal = true;
  stored.window = -1;
  expectError(builder, "a window of -1 keys");
  stored.window = 3;
  stored.out = narrowOut;
  EXPECT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.q = wideQ;
  stored.k = wideK;
  stored.v = wideV;
  expectError(builder, "operand out is of type BF16, expected F32");
}

TEST(Verify, AttentionGradNeedsTwoNumbersPerRow) {
  ArtifactBuilder builder;
  artifact::AttentionGradT attention;
  attention.q = builder.buffer({2, 4, 10, 8});
  attention.k = builder.buffer({2, 2, 12, 8});
  attention.v = builder.buffer({2, 2, 12, 6});
  attention.out = builder.buffer({2, 4, 10, 6});
  attention.lse = builder.buffer({2, 4, 10});
  attention.dout = builder.buffer({2, 4, 10, 6});
  attention.dq = builder.buffer({2, 4, 10, 8});
  attention.dk = builder.buffer({2, 2, 12, 8});
  attention.dv = builder.buffer({2, 2, 12, 6});
  attention.workspace = static_cast<int32_t>(builder.buffer({2, 2, 4, 10}));
  uint32_t one = builder.buffer({1, 2, 4, 10}),
           spread = builder.view(builder.buffer({320}), {2, 2, 4, 10}, {160, 80, 20, 2});
  auto &stored = builder.add(attention);
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.workspace = static_cast<int32_t>(one);
  expectError(builder, "workspace");
  stored.workspace = static_cast<int32_t>(spread);
  expectError(builder, "workspace is not contiguous");
}

TEST(Verify, AttentionGradRangesOfKeys) {
  ArtifactBuilder builder;
  artifact::AttentionGradT attention;
  attention.q = builder.buffer({2, 4, 10, 8}, DataType::BF16);
  attention.k = builder.buffer({2, 2, 12, 8}, DataType::BF16);
  attention.v = builder.buffer({2, 2, 12, 6}, DataType::BF16);
  attention.out = builder.buffer({2, 4, 10, 6});
  attention.lse = builder.buffer({2, 4, 10});
  attention.dout = builder.buffer({2, 4, 10, 6}, DataType::BF16);
  attention.dq = builder.buffer({2, 4, 10, 8});
  attention.dk = builder.buffer({2, 2, 12, 8}, DataType::BF16);
  attention.dv = builder.buffer({2, 2, 12, 6});
  attention.begin = attention.end = static_cast<int32_t>(builder.buffer({1, 10}, DataType::I64));
  attention.partial = true;
  const uint32_t wideDout = builder.buffer({2, 4, 10, 6});
  auto &stored = builder.add(attention);
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  stored.end = -1;
  expectError(builder, "one end of the keys that are seen, expected both or none");
  stored.end = attention.end;
  stored.window = 4;
  expectError(builder, "a window of 4 keys, expected 0, or more beside causal");
  stored.window = 0;
  stored.dout = wideDout;
  expectError(builder, "operand dout is of type F32, expected BF16");
}

} // namespace
} // namespace tessera
