# MLIR 22 as Debian packages it, and the functions that build compiler libraries and tools on it.
# Compiler libraries are plain static archives; executables link the MLIR and LLVM dylibs exactly once
# (mixing libMLIRFoo.a with libMLIR.so would duplicate registries).

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
find_package(LLD REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/lld)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
set(LLVM_RUNTIME_OUTPUT_INTDIR "${PROJECT_BINARY_DIR}/bin")
set(LLVM_LIBRARY_OUTPUT_INTDIR "${PROJECT_BINARY_DIR}/lib")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(TESSERA_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
# mlir-tblgen takes its search path from the directory property.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

# tessera_tablegen(target td-file OUT flags...): one generated file beside its source directory in the build tree.
# The .td file's name is given relative to the current source directory.
macro(tessera_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${ARGN})
endmacro()

# Every generated header must exist before any compiler source is compiled.
add_custom_target(tessera-generated)

function(tessera_mlir_options target)
  tessera_common_options(${target})
  target_include_directories(${target} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${TESSERA_LLVM_DEFINITIONS})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>) # -O3 takes a sixth longer to compile (171 s and 145 s of Train.cpp and nine others)
  add_dependencies(${target} tessera-generated)
endfunction()

# tessera_compiler_library(name SOURCES ... LINK ... [EXCEPTIONS]): compiler code, without exceptions unless asked.
function(tessera_compiler_library target)
  cmake_parse_arguments(ARG "EXCEPTIONS" "" "SOURCES;LINK" ${ARGN})
  add_library(${target} STATIC ${ARG_SOURCES})
  tessera_mlir_options(${target})
  if(NOT ARG_EXCEPTIONS)
    target_compile_options(${target} PRIVATE -fno-exceptions)
  endif()
  target_link_libraries(${target} PUBLIC ${ARG_LINK})
endfunction()

# tessera_compiler_executable(name SOURCES ... LINK ...)
function(tessera_compiler_executable target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  tessera_mlir_options(${target})
  target_link_libraries(${target} PRIVATE ${ARG_LINK} MLIR LLVM)
  if(TESSERA_SANITIZE MATCHES "address")
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tools/cmake/AsanOptions.cpp")
  endif()
endfunction()
