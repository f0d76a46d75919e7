//===- MemoryPlanTest.cpp - bytes by class at the peak -----------------------------------===//

#include "runtime/telemetry/MemoryPlan.h"
#include "tests/runtime/ProgramFixture.h"
#include "tests/runtime/TestSupport.h"

namespace tessera {
namespace {

using artifact::MemoryClass;

TEST(MemoryPlan, FindsThePeakAndItsClasses) {
  auto artifact = test::makeArtifact();
  ASSERT_STATUS_OK(artifact);
  MemoryPlan plan = memoryPlan((*artifact)->package(), (*artifact)->training());
  auto at = [&](MemoryClass memoryClass) { return plan.bytesAtPeak[static_cast<size_t>(memoryClass)]; };
  EXPECT_EQ(plan.arenaBytes, 1024u);
  EXPECT_EQ(plan.peakBytes, 64u + 64 + 32 + 4 + 128 + 64);
  EXPECT_EQ(plan.peakInstruction, 4u); // where the gathered unit and the product are both live
  EXPECT_EQ(at(MemoryClass::Parameters), 64u);
  EXPECT_EQ(at(MemoryClass::Communication), 128u);
  EXPECT_EQ(at(MemoryClass::Activations), 64u);
}

TEST(MemoryPlan, SlotsThatTakeTurnsCountOnce) {
  artifact::PackageT package = test::makePackage();
  package.programs[0]->slots.clear();
  test::addSlot(package, "a", 1, 0, 100, MemoryClass::Activations, 0, 2);
  test::addSlot(package, "b", 1, 0, 100, MemoryClass::Activations, 3, 5);
  auto artifact = test::makeArtifact(package);
  ASSERT_STATUS_OK(artifact);
  MemoryPlan plan = memoryPlan((*artifact)->package(), (*artifact)->training());
  EXPECT_EQ(plan.peakBytes, 100u);
  EXPECT_EQ(plan.bytesInAll[static_cast<size_t>(MemoryClass::Activations)], 200u);
}

TEST(MemoryPlan, FormatsBytes) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.50 KiB");
  EXPECT_EQ(formatBytes(123456789), "117.7 MiB");
}

} // namespace
} // namespace tessera
