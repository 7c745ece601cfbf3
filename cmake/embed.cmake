# cmake -D FILE=… -D NAME=… -D TYPE=… -D HEADER=… -D OUTPUT=… -P embed.cmake: writes a C file that holds a file's bytes, a zero behind them
# and, as NAME_bytes, their number.
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"\n_Alignas(8) const ${TYPE} ${NAME}[] = {${bytes}0};\nconst size_t ${NAME}_bytes = sizeof ${NAME} - 1;\n")
