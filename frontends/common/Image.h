//===- Image.h - elements that move between space and channels -*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_IMAGE_H
#define TESSERA_FRONTENDS_COMMON_IMAGE_H

#include "frontends/common/Window.h"

namespace tessera::frontend {

/// [N, C*r*r, H, W] to [N, C, H*r, W*r]; the channels of a block are the last ones that count.
mlir::Value blocksToSpace(train::Build &b, mlir::Value x, int64_t block);
/// The reverse: [N, C, H*r, W*r] to [N, C*r*r, H, W].
mlir::Value spaceToBlocks(train::Build &b, mlir::Value x, int64_t block);

/// Counts the windows of an image's blocks, of which every other number is set; fails where they do not fit, or cannot
/// be written out.
bool countBlocks(Call &n, Window &w);
/// [N, C*K…, L…] to images [N, C, spatial…]: the sum of the blocks that cover an element. Fails with the call's reason.
mlir::FailureOr<mlir::Value> foldImage(Call &n, mlir::Value x, const Window &w);
/// The reverse: what each block sees, [N, C*K…, L…].
mlir::Value unfoldImage(train::Build &b, mlir::Value x, const Window &w);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_IMAGE_H
