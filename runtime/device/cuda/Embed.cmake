# Makes a C++ file of a PTX file: INPUT, OUTPUT, SYMBOL. Lines become string literals, which the compiler joins.
file(READ "${INPUT}" text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE "${OUTPUT}" "namespace tessera::cuda {\nextern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = \"${text}\";\n}\n")
