# Installation. Files find each other by relative paths, so the folder can be moved: the program looks for libdlc.so beside itself,
# in ../lib and in ../CMAKE_INSTALL_LIBDIR.
install(TARGETS ${installed} EXPORT dlc-targets
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
option(DLC_INSTALL_VGPU "install the GPU in software: dlc/vgpu/libcuda.so.1 beside the libraries" ON)
if(DLC_INSTALL_VGPU AND NOT DLC_RUNTIME_ONLY)
    install(TARGETS vgpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/dlc/vgpu)
endif()
if(DLC_TRITON AND NOT DLC_RUNTIME_ONLY)
    install(TARGETS triton_dlc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/dlc/triton/dlc)
endif()
install(DIRECTORY include/dlc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT dlc-targets NAMESPACE dlc:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dlc)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dlc-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/dlc-config.cmake cmake/dlc-add-model.cmake ${PROJECT_BINARY_DIR}/dlc-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dlc)

# pkg-config: paths relative to the .pc file's own.
file(RELATIVE_PATH DLC_PREFIX /root/${CMAKE_INSTALL_LIBDIR}/pkgconfig /root)
string(REGEX REPLACE "/$" "" DLC_PREFIX ${DLC_PREFIX})
set(packages dlcrt)
if(NOT DLC_RUNTIME_ONLY)
    list(APPEND packages dlc)
endif()
foreach(package ${packages})
    configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(FILES README.md CHANGELOG.md LICENSE SECURITY.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES serving/triton/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/serving/triton)
install(FILES python/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/python)

# The manual page and what shells complete, printed by the program itself; not in a cross build, where it does not run.
if(NOT DLC_RUNTIME_ONLY AND NOT CMAKE_CROSSCOMPILING AND NOT DLC_SANITIZE)
    set(printed)
    foreach(row "man|man|man/man1|dlc.1" "completion bash|bash|bash-completion/completions|dlc"
            "completion zsh|zsh|zsh/site-functions|_dlc" "completion fish|fish|fish/vendor_completions.d|dlc.fish")
        string(REPLACE "|" ";" row ${row})
        list(GET row 0 words)
        list(GET row 1 kind)
        list(GET row 2 folder)
        list(GET row 3 name)
        separate_arguments(words)
        set(file ${PROJECT_BINARY_DIR}/printed/${kind}/${name})
        add_custom_command(OUTPUT ${file} COMMAND dlc ${words} > ${file} DEPENDS dlc VERBATIM)
        file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/printed/${kind})
        install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
        list(APPEND printed ${file})
    endforeach()
    add_custom_target(dlc_printed ALL DEPENDS ${printed})
endif()

if(PROJECT_IS_TOP_LEVEL)
    include(cmake/package.cmake)
endif()
