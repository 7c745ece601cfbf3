# find_package(dlc) defines dlc::dlcrt and dlc::dlcrt_static (the runtime), dlc::libdlc (the compiler) and dlc::dlc (the program).
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/dlc-targets.cmake)
