//===- OverlapTest.cpp - which products run beside collectives ------------------===//

#include "runtime/device/cuda/Overlap.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

using artifact::CollectiveKind;

/// A program written down instruction by instruction.
class Listing {
public:
  template <typename T> void add(T operation, int stream = 0) { list.push_back(make(std::move(operation), stream)); }
  void product() { add(artifact::GemmT()); }
  void collective(CollectiveKind kind, int stream) {
    artifact::CollectiveT made;
    made.kind = kind;
    add(std::move(made), stream);
  }
  void record(uint32_t event, int stream) {
    artifact::RecordT made;
    made.event = event;
    add(std::move(made), stream);
  }
  void wait(uint32_t event, int stream = 0) {
    artifact::WaitT made;
    made.event = event;
    add(std::move(made), stream);
  }
  /// What was added since becomes a loop's body.
  void repeatFrom(size_t first) {
    artifact::RepeatT made;
    made.count = 2;
    for (size_t index = first; index < list.size(); ++index)
      made.body.push_back(std::move(list[index]));
    list.resize(first);
    add(std::move(made));
  }
  size_t size() const { return list.size(); }

  /// For each product in order whether it runs beside a collective.
  std::string answers(bool withGathers = false) {
    artifact::PackageT package;
    package.programs.push_back(std::make_unique<artifact::ProgramT>());
    package.programs[0]->instructions = std::move(list);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(artifact::Package::Pack(builder, &package));
    const auto *read = flatbuffers::GetRoot<artifact::Package>(builder.GetBufferPointer());
    auto beside = productsBesideCollectives(*read, withGathers);
    std::string text;
    append(*read->programs()->Get(0)->instructions(), beside, text);
    return text;
  }

private:
  using Set = std::unordered_set<const artifact::Instruction *>;
  static void append(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> &all, const Set &beside,
                     std::string &text) {
    for (const artifact::Instruction *each : all) {
      if (const artifact::Repeat *repeat = each->operation_as_Repeat())
        append(*repeat->body(), beside, text);
      else if (each->operation_as_Gemm())
        text += beside.contains(each) ? 'b' : '-';
    }
  }
  template <typename T> static std::unique_ptr<artifact::InstructionT> make(T operation, int stream) {
    auto made = std::make_unique<artifact::InstructionT>();
    made->operation.Set(std::move(operation));
    made->stream = static_cast<uint8_t>(stream);
    return made;
  }

  std::vector<std::unique_ptr<artifact::InstructionT>> list;
};

TEST(Overlap, ProductsFromTheStartToTheWait) {
  Listing listing;
  listing.product();
  listing.collective(CollectiveKind::ReduceScatter, 2);
  listing.record(0, 2);
  listing.product();
  listing.wait(0);
  listing.product();
  EXPECT_EQ(listing.answers(), "-b-");
}

TEST(Overlap, EachCollectiveHasItsOwnEnd) {
  Listing listing;
  listing.collective(CollectiveKind::ReduceScatter, 2);
  listing.record(0, 2);
  listing.collective(CollectiveKind::AllReduce, 2);
  listing.record(1, 2);
  listing.wait(0);
  listing.product(); // the second one still runs
  listing.wait(1);
  listing.product();
  EXPECT_EQ(listing.answers(), "b-");
}

TEST(Overlap, NotBesideGathersAndOnesOfTheirOwnStream) {
  Listing listing;
  listing.collective(CollectiveKind::AllGather, 1);
  listing.collective(CollectiveKind::AllReduce, 0);
  listing.product();
  EXPECT_EQ(listing.answers(), "-");
}

TEST(Overlap, BesideGathersThatTakeMultiprocessors) {
  Listing listing;
  listing.collective(CollectiveKind::AllGather, 1);
  listing.record(0, 1);
  listing.product();
  listing.wait(0);
  listing.product();
  EXPECT_EQ(listing.answers(/*withGathers=*/true), "b-");
}

TEST(Overlap, WaitsOfOtherStreamsEndNothing) {
  Listing listing;
  listing.collective(CollectiveKind::AllToAll, 2);
  listing.record(0, 2);
  listing.wait(0, 1);
  listing.product();
  EXPECT_EQ(listing.answers(), "b");
}

TEST(Overlap, LoopsToo) {
  Listing listing;
  const size_t first = listing.size();
  listing.collective(CollectiveKind::ReduceScatter, 2);
  listing.record(0, 2);
  listing.product();
  listing.wait(0);
  listing.repeatFrom(first);
  listing.product();
  EXPECT_EQ(listing.answers(), "b-");
}

} // namespace
} // namespace tessera::cuda
