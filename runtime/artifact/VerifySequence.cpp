//===- VerifySequence.cpp - checks what is said of sequence axes -----------===//

#include "runtime/artifact/VerifyContext.h"

#include <cmath>

namespace tessera {

static Status verifyWay(const artifact::AttentionWay &way) {
  const std::string what = "attention '" + way.name()->str() + "'";
  if (!std::isfinite(way.step_seconds()) || way.step_seconds() < 0)
    return bad(what, "a step takes " + std::to_string(way.step_seconds()) + " seconds");
  const bool isKnownToFail = way.error() && way.error()->size() > 0;
  if (isKnownToFail && (way.fits() || way.step_seconds() > 0 || way.bytes() > 0 || way.host_bytes() > 0))
    return bad(what, "cannot be, and has numbers of a step");
  return Status::ok();
}

Status verifySequence(const VerifyContext &context) {
  const artifact::SequenceChoice *choice = context.package.sequence();
  if (!choice)
    return Status::ok();
  const std::string what = "choice of attention";
  const auto *axes = context.package.mesh();
  bool isSplit = false;
  for (uint32_t index = 0; index < sizeOf(axes); ++index)
    isSplit |= axes->Get(index)->role() == artifact::AxisRole::Sequence && axes->Get(index)->size() > 1;
  if (!isSplit)
    return bad(what, "the mesh has no sequence axis larger than 1");
  if (!isKnown(choice->reason()) || !isKnown(choice->order()) || !isKnown(choice->order_reason()))
    return bad(what, "unknown reason or order");
  const bool isAsked = choice->reason() == artifact::AttentionReason::Asked;
  if (isAsked != (sizeOf(choice->ways()) == 0))
    return bad(what, isAsked ? "it was asked for, and ways were compared" : "there are no ways to choose from");
  constexpr size_t mostWays = 64;
  if (sizeOf(choice->ways()) > mostWays)
    return bad(what, std::to_string(sizeOf(choice->ways())) + " ways, expected at most " + std::to_string(mostWays));
  const artifact::AttentionWay *taken = nullptr;
  for (uint32_t index = 0; index < sizeOf(choice->ways()); ++index) {
    const artifact::AttentionWay &way = *choice->ways()->Get(index);
    TESSERA_RETURN_IF_ERROR(verifyWay(way));
    for (uint32_t other = 0; other < index; ++other)
      if (choice->ways()->Get(other)->name()->string_view() == way.name()->string_view())
        return bad(what, "'" + way.name()->str() + "' occurs twice");
    if (way.name()->string_view() == choice->attention()->string_view())
      taken = &way;
  }
  if (!isAsked && (!taken || (taken->error() && taken->error()->size() > 0) ||
                   taken->fits() != (choice->reason() == artifact::AttentionReason::Fastest)))
    return bad(what, "'" + choice->attention()->str() + "' is not what was found to be best");
  return Status::ok();
}

} // namespace tessera
