//===- PositionTest.cpp - compiler, interpreter and runtime agree ---------===//
//
// On which part of a split dimension a rank has, on meshes of all orders of axes.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/interp/Shards.h"
#include "runtime/artifact/Mesh.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera;

namespace {

TEST(Position, IsTheSameForCompilerInterpreterAndRuntime) {
  MLIRContext context;
  context.loadDialect<dist::DistDialect>();
  Builder builder(&context);
  std::vector<Mesh::Axis> axes = {{"replicate", 2}, {"seq", 3}, {"shard", 2}};
  auto less = [](const Mesh::Axis &a, const Mesh::Axis &b) { return a.name < b.name; };
  do {
    Mesh runtime{axes};
    SmallVector<StringRef> names;
    SmallVector<int64_t> sizes;
    for (const Mesh::Axis &axis : axes) {
      names.push_back(axis.name);
      sizes.push_back(axis.size);
    }
    auto mesh = dist::MeshAttr::get(&context, builder.getStrArrayAttr(names), sizes);
    for (unsigned chosen = 0; chosen < 8; ++chosen) {
      std::vector<std::string> group;
      SmallVector<StringRef> split;
      for (unsigned axis = 0; axis < 3; ++axis)
        if (chosen >> axis & 1) {
          group.push_back(axes[axis].name);
          split.push_back(axes[axis].name);
        }
      for (bool reversed : {false, true}) {
        if (reversed) {
          std::reverse(group.begin(), group.end());
          std::reverse(split.begin(), split.end());
        }
        ArrayAttr named = builder.getStrArrayAttr(split);
        for (int rank = 0; rank < 12; ++rank)
          EXPECT_EQ(interp::partOf(mesh, named, rank), runtime.positionInGroup(group, rank));
        for (const auto &members : interp::groupsOf(mesh, named))
          for (auto [position, rank] : llvm::enumerate(members)) {
            EXPECT_EQ(runtime.positionInGroup(group, static_cast<int>(rank)), static_cast<int64_t>(position));
            EXPECT_EQ(runtime.groupMembers(group, static_cast<int>(rank))[position], rank);
          }
      }
    }
  } while (std::next_permutation(axes.begin(), axes.end(), less));
}

} // namespace
