# Before cpack packs: a .deb has its manual page compressed, and beside its documents a changelog in Debian's form and the licence by name.
if(CPACK_GENERATOR STREQUAL "DEB")
    set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
    set(doc ${share}/doc/${CPACK_PACKAGE_NAME})
    string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH's, if it is set
    file(WRITE ${doc}/changelog "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}: CHANGELOG.md says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
    file(STRINGS ${CPACK_RESOURCE_FILE_LICENSE} lines REGEX .)
    set(exceptions)
    foreach(line IN LISTS lines)
        if(line MATCHES "LLVM Exceptions to the Apache" OR exceptions)
            string(APPEND exceptions " ${line}\n")
        endif()
    endforeach()
    file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ${CPACK_PACKAGE_NAME}

Files: *
Copyright: 2026 dlc's authors
License: Apache-2.0 with LLVM exceptions
 The Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0; beside it:
 .
${exceptions}")
    execute_process(COMMAND gzip -9nf ${doc}/changelog ${share}/man/man1/dlc.1 COMMAND_ERROR_IS_FATAL ANY)
endif()
