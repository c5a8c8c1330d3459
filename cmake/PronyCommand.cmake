# The command `prony`: bench/, the embedded default model, and the hooks that count heap calls.

# Hooks cannot stand beside a sanitizer's own, and lean on entry points of the GNU C library.
add_library(prony_heap_hooks OBJECT ${PROJECT_SOURCE_DIR}/bench/process/heap_hooks.c)
target_include_directories(prony_heap_hooks PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(prony_heap_hooks PRIVATE -fno-builtin)

set(prn_embedded ${PROJECT_SOURCE_DIR}/models/digits.onnx ${PROJECT_SOURCE_DIR}/models/digits_images.npy
    ${PROJECT_SOURCE_DIR}/models/digits_labels.npy)
add_library(prony_embedded OBJECT ${PROJECT_SOURCE_DIR}/bench/embedded.S)
target_compile_options(prony_embedded PRIVATE "-Wa,-I${PROJECT_SOURCE_DIR}/models")
set_source_files_properties(${PROJECT_SOURCE_DIR}/bench/embedded.S PROPERTIES OBJECT_DEPENDS "${prn_embedded}")

# SQLite keeps histories (bench/history/). The library does not link it.
set(prn_command_libraries "")
set(prn_command_definitions "")
if(PRONY_SQLITE)
  set(prn_command_libraries SQLite::SQLite3)
  set(prn_command_definitions PRN_HAVE_SQLITE=1 PRN_SQLITE_VERSION="${SQLite3_VERSION}")
endif()

file(GLOB_RECURSE prn_bench CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
list(FILTER prn_bench EXCLUDE REGEX "/heap_hooks\\.c$|/bench/cluster/")
add_executable(prony_command ${prn_bench} $<TARGET_OBJECTS:prony_heap_hooks> $<TARGET_OBJECTS:prony_embedded>)
target_include_directories(prony_command PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(prony_command PRIVATE prony_static m ${prn_command_libraries})
target_compile_definitions(prony_command PRIVATE ${prn_command_definitions})
set_target_properties(prony_command PROPERTIES OUTPUT_NAME prony)
