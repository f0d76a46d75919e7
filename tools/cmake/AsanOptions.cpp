//===- AsanOptions.cpp - defaults of AddressSanitizer beside libLLVM -------===//
//
// Linked into every executable that uses LLVM's library, which is not
// instrumented: LLVM's containers and allocators cross between its code and
// ours, so neither the state of a container nor manual poisoning can be
// believed. ASAN_OPTIONS in the environment adds to these.
//
//===----------------------------------------------------------------------===//

extern "C" const char *__asan_default_options() { return "detect_container_overflow=0:allow_user_poisoning=0"; }
