# cmake -D FILE=… -D NAME=… -D HEADER=… -D OUTPUT=… -P embed.cmake: writes a C file that holds a file's bytes, and their number.
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"\n_Alignas(8) const unsigned char ${NAME}[] = {${bytes}};\nconst unsigned long ${NAME}_bytes = sizeof ${NAME};\n")
