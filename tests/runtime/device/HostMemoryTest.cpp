//===- HostMemoryTest.cpp - how much memory a process may use --------------===//

#include "runtime/device/HostMemory.h"
#include "tests/runtime/TestSupport.h"

namespace tessera {
namespace {

using test::ScratchFolder;

TEST(HostMemory, IsTheMachinesOrWhatAGroupAllows) {
  ScratchFolder scratch;
  uint64_t machine = hostMemoryPerRank(1, scratch.root()); // without /proc and /sys
  EXPECT_GT(machine, uint64_t{1} << 26);
  auto bytesWith = [&](const std::string &group) {
    test::writeFile(scratch.path("proc/self/cgroup"), group);
    return hostMemoryPerRank(1, scratch.root());
  };
  EXPECT_EQ(hostMemoryPerRank(4, scratch.root()), machine / 4);
  std::string v2 = scratch.path("sys/fs/cgroup"), v1 = v2 + "/memory";
  test::writeFile(v2 + "/job/step/memory.max", "max\n");
  EXPECT_EQ(bytesWith("0::/job/step\n"), machine);
  test::writeFile(v2 + "/job/memory.max", "50000000\n"); // of the group around it
  EXPECT_EQ(bytesWith("0::/job/step\n"), 50000000u);
  test::writeFile(v2 + "/job/step/memory.max", "40000000\n");
  EXPECT_EQ(bytesWith("0::/job/step\n"), 40000000u);
  EXPECT_EQ(bytesWith("0::/elsewhere\n"), machine);
  test::writeFile(v2 + "/memory.max", "30000000\n"); // a container that sees only its own group
  EXPECT_EQ(bytesWith("0::/../../docker/1\n"), 30000000u);
  test::writeFile(v1 + "/job/memory.limit_in_bytes", "20000000\n");
  EXPECT_EQ(bytesWith("5:cpu:/job\n4:memory:/job\n"), 20000000u);
  for (const char *text : {"", ":", "::", "nonsense\n", "4:memory\n", "0::\n", "0::/\n"})
    EXPECT_LE(bytesWith(text), machine) << text;
}

} // namespace
} // namespace tessera
