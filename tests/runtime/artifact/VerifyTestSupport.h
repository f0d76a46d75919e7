//===- VerifyTestSupport.h - what tests of the checks share ------------------===//

#ifndef TESSERA_TESTS_RUNTIME_ARTIFACT_VERIFYTESTSUPPORT_H
#define TESSERA_TESTS_RUNTIME_ARTIFACT_VERIFYTESTSUPPORT_H

#include "tests/runtime/ArtifactBuilder.h"
#include "tests/runtime/TestSupport.h"

#include <gtest/gtest.h>

namespace tessera::test {

/// The artifact is refused, for a reason that has `part`.
inline void expectError(const ArtifactBuilder &builder, const std::string &part) {
  Status status = builder.build().status();
  ASSERT_FALSE(status.isOk()) << "expected: " << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_ARTIFACT_VERIFYTESTSUPPORT_H
