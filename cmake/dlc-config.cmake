# find_package(dlc) defines dlc::dlcrt and dlc::dlcrt_static (the runtime), dlc::libdlc (the compiler), dlc::dlc (the program) and
# dlc_add_model(). An installation made with DLC_RUNTIME_ONLY has the runtime alone.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/dlc-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/dlc-add-model.cmake)
