//===- SegmentsTest.cpp - compiler and runtime agree on parts -------------===//
//
// Which elements of a parameter a rank along model axes has: the compiler lays
// them out, the runtime initialises, reads and writes them.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Segments.h"
#include "runtime/state/ParameterSegment.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera;

namespace {

TEST(Segments, PartsAreTheSameForCompilerAndRuntime) {
  MLIRContext context;
  context.loadDialect<train::TrainDialect>();
  Builder builder(&context);
  for (SmallVector<int64_t> shape : {SmallVector<int64_t>{12}, {6, 4}, {3, 12}, {2, 6, 5}, {4, 1, 6, 2}})
    for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
      for (int64_t parts : {1, 2, 3, 6}) {
        if (shape[dim] % parts != 0)
          continue;
        train::PlacementAttr placement;
        if (parts > 1)
          placement = train::PlacementAttr::get(&context, dim, builder.getStrArrayAttr({"tp"}), parts);
        auto segment = train::SegmentAttr::get(&context, builder.getStringAttr("w"), 7, shape, StringAttr(), placement);
        EXPECT_EQ(segment.getParts(), parts);
        EXPECT_EQ(segment.getNumElements() * parts, llvm::product_of(shape));
        for (int64_t part = 0; part < parts; ++part) {
          ParameterSegment stored{"w", {shape.begin(), shape.end()}, 7, segment.getNumElements(), {}, {}};
          if (parts > 1)
            stored.part = {dim, parts, part};
          EXPECT_EQ(elementsOfPart(stored.shape, stored.part), segment.getNumElements());
          int64_t next = 7;
          Status status = stored.forEachRun(7, stored.end(), [&](const ElementRun &run) {
            EXPECT_EQ(run.inUnit, next);
            for (int64_t i = 0; i < run.count; ++i)
              EXPECT_EQ(segment.getParameterElement(part, next + i - 7), run.inParameter + i);
            next += run.count;
            return Status::ok();
          });
          EXPECT_TRUE(status.isOk());
          EXPECT_EQ(next, stored.end());
        }
      }
}

} // namespace
