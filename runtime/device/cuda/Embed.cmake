# Makes a C++ file of a PTX file: INPUT, OUTPUT, SYMBOL. Lines become string literals, which the compiler joins.
# nvcc names the newest version of PTX that it knows, which a driver of an earlier minor release refuses: the kernels
# need no more than artifacts do, 8.0, and PTXAS is asked whether that is so.
file(READ "${INPUT}" text)
string(REGEX REPLACE "\n\\.version [0-9.]+\n" "\n.version 8.0\n" text "${text}")
file(WRITE "${OUTPUT}.ptx" "${text}")
execute_process(COMMAND "${PTXAS}" -arch=sm_80 -o /dev/null "${OUTPUT}.ptx" COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE "${OUTPUT}" "namespace tessera::cuda {\nextern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = \"${text}\";\n}\n")
