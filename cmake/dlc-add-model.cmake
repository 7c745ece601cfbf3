# dlc_add_model(target model.onnx [NAME identifier] [TARGET targets] [OPTIONS option…])
#
# A library `target` with the model's code and weights: what links to it includes <identifier.h> and calls identifier_open and
# identifier_run. It is compiled when the project is built, and again when model.onnx changes; nothing but libc is needed to run it.
#   NAME     what the header and its functions are called; default: the target's name
#   TARGET   as `dlc compile --target`; default: the processor of this machine or, in a cross build, any of the kind built for
#   OPTIONS  further options of `dlc compile`
# The program is the project's own, an installed one's, or DLC_PROGRAM: in a cross build, one that runs on this machine.
function(dlc_add_model target model)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME;TARGET" "OPTIONS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "dlc_add_model(${target}): there are NAME, TARGET and OPTIONS, found: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_NAME)
        string(MAKE_C_IDENTIFIER ${target} arg_NAME)
    endif()
    if(NOT arg_TARGET)
        set(arg_TARGET native)
        if(CMAKE_CROSSCOMPILING)
            set(arg_TARGET x86-64-v2)
            if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
                set(arg_TARGET aarch64)
            endif()
        endif()
    endif()
    if(TARGET dlc::dlc AND NOT CMAKE_CROSSCOMPILING)
        set(program dlc::dlc)
    else()
        find_program(DLC_PROGRAM dlc)
        if(NOT DLC_PROGRAM)
            message(FATAL_ERROR "dlc_add_model(${target}): there is no program dlc that runs on this machine; set DLC_PROGRAM to it")
        endif()
        set(program ${DLC_PROGRAM})
    endif()
    get_filename_component(model ${model} ABSOLUTE)
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_model)
    set(files ${folder}/${arg_NAME}.a ${folder}/${arg_NAME}.h)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${files}
        COMMAND ${program} compile ${model} --emit a,h --name ${arg_NAME} -o ${folder}/${arg_NAME}.a --target ${arg_TARGET} ${arg_OPTIONS}
        DEPENDS ${model} ${program} VERBATIM COMMENT "Compiling ${model}")
    add_custom_target(${target}_files DEPENDS ${files})
    add_library(${target} INTERFACE)
    add_dependencies(${target} ${target}_files)
    target_include_directories(${target} INTERFACE ${folder})
    target_link_libraries(${target} INTERFACE ${folder}/${arg_NAME}.a dlc::dlcrt_static)
endfunction()
