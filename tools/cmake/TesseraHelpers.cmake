# Functions that every directory uses: one library or tool, with the project's warnings and sanitizers.

function(tessera_common_options target)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -Werror=return-type
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> # false alarms of GCC 12 on std::string
    # GCC takes what a unity source includes for headers, and warns of members of types that are local to them.
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>)
  if(TESSERA_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${TESSERA_SANITIZE})
  endif()
endfunction()

# tessera_no_undefined(target): what a shared library needs is in it or in what it links; clang's sanitizers are in the executable.
function(tessera_no_undefined target)
  if(NOT (TESSERA_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

# tessera_install(target component): a tool goes to bin, a plugin to lib; libraries are looked for beside them, and where
# they were when they were linked. The component is `runtime`, which has no LLVM in it, or `compiler`.
function(tessera_install target component)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${target} COMPONENT ${component} RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
  add_dependencies(tessera-tools ${target})
endfunction()

# tessera_runtime_library(name SOURCES ... LINK ...): never sees an MLIR or LLVM header.
function(tessera_runtime_library target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${target} STATIC ${ARG_SOURCES})
  tessera_common_options(${target})
  target_link_libraries(${target} PUBLIC ${ARG_LINK})
endfunction()
