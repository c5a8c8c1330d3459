# The command `prony`: bench/, the embedded default model, and the hooks that count heap calls.

# Hooks cannot stand beside a sanitizer's own, and lean on entry points of the GNU C library.
add_library(prony_heap_hooks OBJECT ${PROJECT_SOURCE_DIR}/bench/process/heap_hooks.c)
target_include_directories(prony_heap_hooks PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(prony_heap_hooks PRIVATE -fno-builtin)

set(prn_embedded ${PROJECT_SOURCE_DIR}/models/digits.onnx ${PROJECT_SOURCE_DIR}/models/digits_images.npy
    ${PROJECT_SOURCE_DIR}/models/digits_labels.npy)
add_library(prony_embedded OBJECT ${PROJECT_SOURCE_DIR}/bench/embedded.S)
target_include_directories(prony_embedded PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(prony_embedded PRIVATE "-Wa,-I${PROJECT_SOURCE_DIR}/models")
set_source_files_properties(${PROJECT_SOURCE_DIR}/bench/embedded.S PROPERTIES OBJECT_DEPENDS "${prn_embedded}")

# SQLite keeps histories (bench/history/), libmicrohttpd serves (bench/serve/). Both are loaded, none is linked.
set(prn_command_definitions "")
set(prn_command_includes "")
set(prn_command_versions "")
if(PRONY_SQLITE)
  set(prn_command_definitions PRN_HAVE_SQLITE=1 PRN_SQLITE_NAME="${prn_sqlite_name}")
  set(prn_command_includes ${PRONY_SQLITE_INCLUDE_DIR})
  list(APPEND prn_command_versions "sqlite ${prn_sqlite_version}")
endif()

if(PRONY_OPENCL)
  list(APPEND prn_command_versions "opencl")
endif()

file(GLOB_RECURSE prn_bench CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
list(FILTER prn_bench EXCLUDE REGEX "/heap_hooks\\.c$|/bench/cluster/")
# The service: libmicrohttpd's parts are bench/serve/http_*.c and those that need a service. prony-mpi has none of it.
file(GLOB prn_serve CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/serve/*.c)
list(FILTER prn_bench EXCLUDE REGEX "/bench/serve/|/commands/serve\\.c$")
set(prn_serve_sources ${PROJECT_SOURCE_DIR}/bench/commands/serve.c)
if(PRONY_MICROHTTPD)
  set(prn_serve_assembly ${PROJECT_SOURCE_DIR}/bench/serve/serve_assets.S)
  file(GLOB prn_serve_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/serve/live.*)
  set_source_files_properties(${prn_serve_assembly} PROPERTIES
    COMPILE_OPTIONS "-Wa,-I${PROJECT_SOURCE_DIR}/bench/serve;-Wa,-I${PROJECT_SOURCE_DIR}/profiler/exporters/html"
    OBJECT_DEPENDS "${prn_serve_files};${PROJECT_SOURCE_DIR}/profiler/exporters/html/page.css")
  list(APPEND prn_serve_sources ${prn_serve} ${prn_serve_assembly})
  list(APPEND prn_command_versions "libmicrohttpd ${prn_microhttpd_version}")
endif()
add_executable(prony_command ${prn_bench} ${prn_serve_sources} $<TARGET_OBJECTS:prony_heap_hooks> $<TARGET_OBJECTS:prony_embedded>)
target_include_directories(prony_command PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(prony_command SYSTEM PRIVATE ${prn_command_includes})
target_link_libraries(prony_command PRIVATE prony_static m ${CMAKE_DL_LIBS})
target_compile_definitions(prony_command PRIVATE ${prn_command_definitions})
target_compile_options(prony_command PRIVATE "$<$<COMPILE_LANGUAGE:C>:${prn_scalar_loops}>")
if(PRONY_MICROHTTPD)
  target_include_directories(prony_command SYSTEM PRIVATE ${PRONY_MICROHTTPD_INCLUDE_DIR})
  target_compile_definitions(prony_command PRIVATE PRN_HAVE_MICROHTTPD=1 PRN_MICROHTTPD_NAME="${prn_microhttpd_name}")
endif()
if(prn_command_versions)
  list(JOIN prn_command_versions ", " prn_command_versions)
  target_compile_definitions(prony_command PRIVATE PRN_COMMAND_LIBRARIES="${prn_command_versions}")
endif()
set_target_properties(prony_command PROPERTIES OUTPUT_NAME prony)
