//===- SimulatorTest.cpp - the simulator notices what it is there for ---------===//

#include "PtxBody.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace tessera::sim {
namespace {

// --- Kernels ----------------------------------------------------------------------

/// What a body leaves in %r5, of one thread.
uint32_t resultOf(const std::string &body) {
  OneBuffer buffer(1);
  runBody(body + "st.global.b32 [%rd1], %r5;", buffer, 1);
  return buffer.data[0];
}

TEST(Simulator, FindsRacesInSharedMemory) {
  // Each thread reads what another one has written.
  std::string write = "st.shared.b32 [%r2], %r1;", read = "xor.b32 %r3, %r2, 128; ld.shared.b32 %r4, [%r3];";
  EXPECT_EQ(faultOf(write + "bar.sync 0;" + read).first, 0);
  EXPECT_NE(faultOf(write + read).second.find("race: thread"), std::string::npos);
  EXPECT_NE(faultOf(write + "bar.sync 0;" + read + write).second.find("race: thread"), std::string::npos);
  // Threads may have neighbouring bytes.
  EXPECT_EQ(faultOf("sub.s32 %r3, %r2, %r1; sub.s32 %r3, %r3, %r1; sub.s32 %r3, %r3, %r1; st.shared.b8 [%r3], %rs1; "
                    "ld.shared.b8 %rs2, [%r3];")
                .first,
            0);
}

TEST(Simulator, ChecksAddresses) {
  EXPECT_EQ(faultOf("ld.global.b32 %r3, [%rd2];").first, 0);
  EXPECT_EQ(faultOf("ld.global.b32 %r3, [%rd2+4];").first, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faultOf("st.global.b32 [%rd2+-4], %r3;").first, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faultOf("ld.global.v2.b32 {%r3, %r4}, [%rd2];", 2).first, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(faultOf("ld.shared.b32 %r3, [%r2+4];").first, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(Simulator, RefusesWaitingInDivergentCode) {
  std::string half = "setp.lt.u32 %p1, %r1, 16;";
  EXPECT_EQ(faultOf(half + "@%p1 bar.sync 0;").first, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(faultOf(half + "@%p1 bra $A; bar.sync 0; bra $B; $A: bar.sync 0; $B:").first, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(faultOf(half + "@%p1 bra $A; add.s32 %r3, %r1, 1; $A: bar.sync 0;").first, 0);
}

TEST(Simulator, NamesWhatItDoesNotKnow) {
  for (const char *unknown : {"wgmma.fence.sync.aligned;", "add.rz.f32 %r3, %r4, %r5;", "ld.weak.b32 %r3, [%rd1];"})
    try {
      faultOf(unknown);
      FAIL() << unknown;
    } catch (const std::runtime_error &error) {
      EXPECT_NE(std::string(error.what()).find("unknown instruction"), std::string::npos) << error.what();
    }
}

TEST(Simulator, RoundsAsThePtxSays) {
  auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  // Halfway between two bf16: to the even one.
  EXPECT_EQ(resultOf("mov.b32 %r3, 0f3F808000; cvt.rn.bf16.f32 %rs1, %r3; cvt.u32.u16 %r5, %rs1;"), 0x3f80U);
  EXPECT_EQ(resultOf("mov.b32 %r3, 0f3F818000; cvt.rn.bf16.f32 %rs1, %r3; cvt.u32.u16 %r5, %rs1;"), 0x3f82U);
  EXPECT_EQ(resultOf("mov.b32 %r3, 0f3F800001; fma.rm.f32 %r5, %r3, %r3, 0f00000000;"), 0x3f800002U);
  EXPECT_EQ(resultOf("mov.b32 %r3, 0f7FC00000; max.f32 %r5, %r3, 0f40000000;"), bits(2));
  EXPECT_EQ(resultOf("mov.b32 %r3, 0f7FC00000; max.NaN.f32 %r5, %r3, 0f40000000;"), bits(std::nanf("")));
  EXPECT_EQ(resultOf("mov.b32 %r3, 0fC0200000; cvt.rni.s32.f32 %r5, %r3;"), static_cast<uint32_t>(-2));
  EXPECT_EQ(resultOf("mov.b32 %r3, 0f7F800000; cvt.rzi.s32.f32 %r5, %r3;"), 0x7fffffffU);
  EXPECT_EQ(resultOf("mov.b16 %rs1, 16320; mov.b32 %r3, 0f3F000000; fma.rn.f32.bf16 %r5, %rs1, %rs1, %r3;"),
            bits(2.75F));
  EXPECT_EQ(resultOf("mov.b16 %rs1, 16320; mov.b32 %r3, 0f3F000000; sub.rn.f32.bf16 %r5, %rs1, %r3;"), bits(1));
  // 0xffffffff * 2 + 3 = 0x2_00000001
  EXPECT_EQ(resultOf("mov.b32 %r3, -1; mad.lo.cc.u32 %r4, %r3, 2, 3; madc.hi.u32 %r5, %r3, 2, 0;"), 2U);
}

TEST(Simulator, ConvertsTwo8BitFloats) {
  auto narrowed = [](const std::string &format, const std::string &a, const std::string &b) {
    return resultOf("mov.b32 %r3, " + a + "; mov.b32 %r4, " + b + "; cvt.rn.satfinite." + format +
                    ".f32 %rs1, %r3, %r4; cvt.u32.u16 %r5, %rs1;");
  };
  // The first operand is above. 464 is half way between 448, the largest number, and 480; infinities saturate.
  EXPECT_EQ(narrowed("e4m3x2", "0f3F800000", "0fBF800000"), 0x38b8U);
  EXPECT_EQ(narrowed("e4m3x2", "0f43E80001", "0fFF800000"), 0x7efeU);
  EXPECT_EQ(narrowed("e4m3x2", "0f7FC00000", "0fFFC00000"), 0x7f7fU);
  // Half of the smallest number is a tie, one and a half of it goes to two.
  EXPECT_EQ(narrowed("e4m3x2", "0f3A800000", "0f3B400000"), 0x0002U);
  EXPECT_EQ(narrowed("e4m3x2", "0f3A800001", "0f3C7FFFFF"), 0x0108U);
  EXPECT_EQ(narrowed("e5m2x2", "0f47700000", "0f7F800000"), 0x7b7bU);
  EXPECT_EQ(narrowed("e5m2x2", "0f37000000", "0fB7C00000"), 0x0082U);
  auto widened = [](const std::string &format, int bits) {
    return resultOf("mov.b16 %rs1, " + std::to_string(bits) + "; cvt.rn.f16x2." + format + " %r5, %rs1;");
  };
  EXPECT_EQ(widened("e4m3x2", 0x38b8), 0x3c00bc00U);
  EXPECT_EQ(widened("e4m3x2", 0x017e), 0x18005f00U);
  EXPECT_EQ(widened("e5m2x2", 0x7cfc), 0x7c00fc00U);
  EXPECT_EQ(widened("e5m2x2", 0x017b), 0x01007b00U);
  EXPECT_EQ(widened("e4m3x2", 0x7fff), 0x7fff7fffU);
}

TEST(Simulator, StoresVectorsOfNumbersAndRegisters) {
  for (const auto &[parts, bytes] : {std::pair("{%rs1, 7}", 0x0705U), {"{7, %rs1}", 0x0507U}, {"{3, 7}", 0x0703U}}) {
    OneBuffer buffer(1);
    runBody(std::string("mov.b16 %rs1, 5; st.global.v2.b8 [%rd1], ") + parts + ";", buffer, 1);
    EXPECT_EQ(buffer.data[0], bytes) << parts;
  }
}

TEST(Simulator, ComparesNarrowFloats) {
  auto met = [](const std::string &how, const std::string &a, const std::string &b) {
    return resultOf("mov.b16 %rs1, " + a + "; mov.b16 %rs2, " + b + "; setp." + how +
                    " %p1, %rs1, %rs2; selp.b32 %r5, 1, 0, %p1;") == 1;
  };
  const std::string one = "0x3f80", minusTwo = "0xc000", nan = "0x7fc0", zero = "0x0000", minusZero = "0x8000";
  EXPECT_TRUE(met("lt.bf16", minusTwo, one));
  EXPECT_FALSE(met("gt.bf16", minusTwo, one));
  EXPECT_TRUE(met("eq.bf16", zero, minusZero));
  EXPECT_FALSE(met("le.bf16", nan, one));
  EXPECT_TRUE(met("leu.bf16", nan, one));
  EXPECT_TRUE(met("neu.bf16", nan, nan));
  EXPECT_TRUE(met("nan.bf16", nan, one));
  EXPECT_TRUE(met("lt.f16", "0xfbff", "0x0001")); // -65504 and the smallest subnormal number
  EXPECT_FALSE(met("ne.f16", "0x3c00", "0x3c00"));
}

TEST(Simulator, InexactUnitsErrAsMuchAsIsDocumented) {
  auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  auto apart = [&](const char *instruction, float argument, float exact) {
    std::string body = "mov.b32 %r3, " + std::to_string(bits(argument)) + "; " + instruction + " %r5, %r3;";
    return std::abs(static_cast<int64_t>(resultOf(body)) - static_cast<int64_t>(bits(exact)));
  };
  EXPECT_EQ(apart("ex2.approx.ftz.f32", 0.375F, std::exp2(0.375F)), 2);
  EXPECT_EQ(apart("rcp.approx.ftz.f32", 3, 1 / 3.0F), 1);
  EXPECT_EQ(apart("lg2.approx.f32", 1, 0x1p-22F) % 0x80000000, 0); // of 0, with either sign
  // What the tables name is exact, and subnormal results are flushed.
  EXPECT_EQ(apart("ex2.approx.ftz.f32", 0, 1), 0);
  EXPECT_EQ(apart("ex2.approx.ftz.f32", -130, 0), 0);
  EXPECT_EQ(apart("rcp.approx.ftz.f32", 0x1p127F, 0), 0);
}

TEST(Simulator, ExtractsFieldsOfBits) {
  auto field = [](const std::string &type, const std::string &number, const std::string &place) {
    const bool isWide = type.substr(1) == "64";
    const std::string d = isWide ? "%rd4" : "%r5", a = isWide ? "%rd3" : "%r3", width = isWide ? "b64 " : "b32 ";
    return resultOf("mov." + width + a + ", " + number + "; bfe." + type + " " + d + ", " + a + ", " + place + ";" +
                    (isWide ? " shr.u64 %rd4, %rd4, 16; cvt.u32.u64 %r5, %rd4;" : ""));
  };
  EXPECT_EQ(field("u32", "0xc0", "4, 4"), 0xcU);
  EXPECT_EQ(field("s32", "0xc0", "4, 4"), 0xfffffffcU);
  EXPECT_EQ(field("s32", "0xc0", "4, 3"), 0xfffffffcU);
  EXPECT_EQ(field("s32", "0xc0", "5, 1"), 0U);
  EXPECT_EQ(field("s32", "0xc0", "6, 1"), 0xffffffffU);
  EXPECT_EQ(field("s32", "0xc0", "6, 0"), 0U);
  EXPECT_EQ(field("s32", "0x80000000", "28, 32"), 0xfffffff8U);
  EXPECT_EQ(field("s32", "0x80000000", "40, 2"), 0xffffffffU);
  EXPECT_EQ(field("u32", "0x80000000", "40, 2"), 0U);
  // Bits 16 to 47 of the result are looked at.
  EXPECT_EQ(field("s64", "4", "2, 1"), 0xffffffffU);
  EXPECT_EQ(field("s64", "8", "2, 1"), 0U);
  EXPECT_EQ(field("u64", "0x123456789abcdef0", "8, 40"), 0x56789aU);
}

TEST(Simulator, ThreadsTellEachOtherInWarps) {
  OneBuffer buffer(64);
  runBody("shfl.sync.bfly.b32 %r3, %r1, 16, 31, -1; st.global.b32 [%rd2], %r3;", buffer);
  for (uint32_t thread = 0; thread < 64; ++thread)
    EXPECT_EQ(buffer.data[thread], thread ^ 16);
}

// --- The driver -------------------------------------------------------------------

class Driver : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    for (CUstream *stream : {&first, &second})
      ASSERT_EQ(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&memory, 1024), CUDA_SUCCESS);
  }
  void TearDown() override {
    cuMemFree(memory);
    cuEventDestroy(event);
    cuStreamDestroy(first);
    cuStreamDestroy(second);
    cuDevicePrimaryCtxRelease(0);
  }

  CUcontext context = nullptr;
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
};

TEST_F(Driver, KeepsTheHostOutOfDeviceMemory) { EXPECT_DEATH(*reinterpret_cast<volatile int *>(memory) = 1, ""); }

TEST_F(Driver, NoticesUseAfterFree) {
  CUdeviceptr freed = 0;
  ASSERT_EQ(cuMemAlloc(&freed, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(freed, 0, 64, first), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyAsync(memory, freed, 64, first), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyAsync(memory, memory + 1000, 64, first), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Driver, KnowsTheParametersOfKernels) {
  const char *code = ".version 8.0\n.target sm_90\n.address_size 64\n"
                     ".visible .entry k(.param .u32 a, .param .u64 b)\n{\nret;\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, code), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
  size_t offset = 1, bytes = 0;
  EXPECT_EQ(cuFuncGetParamInfo(function, 0, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(std::pair(offset, bytes), std::pair(size_t{0}, size_t{4}));
  EXPECT_EQ(cuFuncGetParamInfo(function, 1, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(std::pair(offset, bytes), std::pair(size_t{8}, size_t{8}));
  EXPECT_EQ(cuFuncGetParamInfo(function, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

TEST_F(Driver, EndsCapturesByTheRules) {
  auto begin = [&] { ASSERT_EQ(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS); };
  auto fork = [&] {
    ASSERT_EQ(cuEventRecord(event, first), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8Async(memory, 0, 64, second), CUDA_SUCCESS);
  };
  // Work of another stream that the first one does not wait for.
  begin();
  fork();
  EXPECT_EQ(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  // The same, joined.
  begin();
  fork();
  ASSERT_EQ(cuEventRecord(event, second), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(first, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamEndCapture(first, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  // Calls that wait, and memory.
  begin();
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAlloc(&other, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // An event of outside.
  ASSERT_EQ(cuEventRecord(event, second), CUDA_SUCCESS);
  begin();
  EXPECT_EQ(cuStreamWaitEvent(first, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Driver, CountsPrioritiesOnlyWhereAsked) {
  CUstream urgent = nullptr;
  ASSERT_EQ(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -1), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(memory, 0, 64, first), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, first), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(urgent, event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(memory, 0, 64, urgent), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, urgent), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(first, event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(first, &graph), CUDA_SUCCESS);
  auto told = [&](unsigned long long flags) {
    CUgraphExec made = nullptr;
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuGraphInstantiate(&made, graph, flags), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecDestroy(made), CUDA_SUCCESS);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(told(0).find("several priorities"), std::string::npos);
  EXPECT_EQ(told(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY), "");
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(urgent), CUDA_SUCCESS);
}

} // namespace
} // namespace tessera::sim
