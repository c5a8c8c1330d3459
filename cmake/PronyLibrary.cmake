# The library: every source is compiled once, position-independent, for libprony.so and libprony.a alike.

set(prn_folders base loaders ops engine profiler quantize evaluate api)
set(prn_sources "")
foreach(folder IN LISTS prn_folders)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  list(APPEND prn_sources ${found})
endforeach()
set(prn_simd_sources ${prn_sources})
list(FILTER prn_simd_sources INCLUDE REGEX "/(base|ops)/.*_simd\\.c$")
list(FILTER prn_sources EXCLUDE REGEX "/(base|ops)/.*_simd\\.c$")
set(prn_op_sources ${prn_sources})
list(FILTER prn_op_sources INCLUDE REGEX "/ops/.*\\.c$")

# Which compiler, which flags, which commit: reports say so. The commit is looked up at every build.
set(prn_generated ${PROJECT_BINARY_DIR}/generated)
string(TOUPPER "${CMAKE_BUILD_TYPE}" prn_config)
string(STRIP "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${prn_config}}" prn_flags)
if(PRONY_SANITIZE)
  string(APPEND prn_flags " -fsanitize=${PRONY_SANITIZE}")
endif()
add_custom_target(prony_build_info
  COMMAND ${CMAKE_COMMAND} "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${prn_generated}/prn_build_info.h"
          "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}" "-DFLAGS=${prn_flags}"
          "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}" "-DLEFT_OUT=${PRN_LEFT_OUT}" -P ${PROJECT_SOURCE_DIR}/cmake/build_info.cmake
  BYPRODUCTS ${prn_generated}/prn_build_info.h
  COMMENT "Recording build information" VERBATIM)

add_library(prony_internal INTERFACE)
target_include_directories(prony_internal INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${prn_generated})
target_link_libraries(prony_internal INTERFACE prony_dependencies)

# Kernels: optimised harder, and without errno and floating-point traps, which nothing reads and which stop
# vectorisation. Neither changes a result.
set(prn_kernel_options -fno-math-errno -fno-trapping-math)
if(CMAKE_BUILD_TYPE MATCHES "^Rel" AND NOT PRONY_SANITIZE)
  list(PREPEND prn_kernel_options -O3)
endif()
# gcc 13 and later split multiplications from additions in chains of 256 bits, and not of 512: that would be slower on AVX2, and other bits than on
# AVX-512, which fp32-strict does not allow.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND PRN_ARCHITECTURE STREQUAL x86_64)
  list(APPEND prn_kernel_options --param=avoid-fma-max-bits=0)
endif()
set_source_files_properties(${prn_op_sources} PROPERTIES COMPILE_OPTIONS "${prn_kernel_options}")

# Operators and what they are made of keep their vectors; the others need none.
if(prn_scalar_loops)
  set(prn_other_sources ${prn_sources})
  list(FILTER prn_other_sources EXCLUDE REGEX "/(base|ops)/.*\\.c$")
  set_property(SOURCE ${prn_other_sources} APPEND PROPERTY COMPILE_OPTIONS ${prn_scalar_loops})
endif()

# Chains of operations on several vectors, in turns: gcc leaves them one after another on x86 unless it is told.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/ops/kernels/vector/vec_simd.c APPEND PROPERTY COMPILE_OPTIONS -fschedule-insns)
endif()

# libFuzzer finds its way by coverage; the kernels that are compiled per instruction set only compute.
if(PRONY_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID MATCHES "Clang")
  set_property(SOURCE ${prn_sources} APPEND PROPERTY COMPILE_OPTIONS -fsanitize=fuzzer-no-link)
endif()

# The files of an HTML report.
set(prn_html_assembly ${PROJECT_SOURCE_DIR}/profiler/exporters/html_assets.S)
file(GLOB prn_html_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/profiler/exporters/html/*)
set_source_files_properties(${prn_html_assembly} PROPERTIES
  COMPILE_OPTIONS "-Wa,-I${PROJECT_SOURCE_DIR}/profiler/exporters/html" OBJECT_DEPENDS "${prn_html_files}")

# The sources of OpenCL kernels.
set(prn_opencl_assembly "")
if(PRONY_OPENCL)
  set(prn_opencl_assembly ${PROJECT_SOURCE_DIR}/ops/vendor/opencl/opencl_sources.S)
  file(GLOB prn_opencl_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ops/vendor/opencl/kernels/*.cl)
  set_source_files_properties(${prn_opencl_assembly} PROPERTIES
    COMPILE_OPTIONS "${prn_kernel_options};-Wa,-I${PROJECT_SOURCE_DIR}/ops/vendor/opencl/kernels" OBJECT_DEPENDS "${prn_opencl_files}")
endif()

add_library(prony_objects OBJECT ${prn_sources} ${prn_html_assembly} ${prn_opencl_assembly})
target_link_libraries(prony_objects PRIVATE prony_internal)
add_dependencies(prony_objects prony_build_info)
set(prn_objects $<TARGET_OBJECTS:prony_objects>)

# Sources that are compiled once per instruction set; ops picks one of the results at run time.
# Which boxes are suppressed, and float64 numbers, must not depend on whether the instruction set multiplies and adds at once; nor what is
# interpolated, as no multiplication is the slow part of that.
set_source_files_properties(${PROJECT_SOURCE_DIR}/ops/vision/nms_simd.c ${PROJECT_SOURCE_DIR}/ops/math/tanh_simd.c
                            ${PROJECT_SOURCE_DIR}/ops/vision/resize_simd.c ${PROJECT_SOURCE_DIR}/ops/vision/grid_sample_simd.c
                            PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
# Files that multiply bytes and bfloat16 numbers are also compiled with the extensions for that.
set(prn_dot_sources ${prn_simd_sources})
list(FILTER prn_dot_sources INCLUDE REGEX "_dot_simd\\.c$")
if(prn_simd_sources)
  foreach(isa IN LISTS prn_simd_variants prn_simd_dot_variants)
    if(isa IN_LIST prn_simd_dot_variants)
      add_library(prony_simd_${isa} OBJECT ${prn_dot_sources})
    else()
      add_library(prony_simd_${isa} OBJECT ${prn_simd_sources})
    endif()
    target_link_libraries(prony_simd_${isa} PRIVATE prony_internal)
    target_compile_definitions(prony_simd_${isa} PRIVATE PRN_SIMD=${isa})
    target_compile_options(prony_simd_${isa} PRIVATE ${prn_kernel_options})
    target_compile_options(prony_simd_${isa} PRIVATE ${prn_simd_${isa}_options})
    list(APPEND prn_objects $<TARGET_OBJECTS:prony_simd_${isa}>)
  endforeach()
endif()

set(prn_shared_unwanted FALSE)
set(prn_static_unwanted FALSE)
if(DEFINED BUILD_SHARED_LIBS)
  if(BUILD_SHARED_LIBS)
    set(prn_static_unwanted TRUE)
  else()
    set(prn_shared_unwanted TRUE)
  endif()
endif()

# The command and the tests link the static library, so it exists in every build.
add_library(prony_static STATIC ${prn_objects})
add_library(prony::prony_static ALIAS prony_static)
set_target_properties(prony_static PROPERTIES OUTPUT_NAME prony)
target_link_libraries(prony_static PRIVATE prony_dependencies)
set(prn_libraries prony_static)

if(NOT prn_shared_unwanted)
  add_library(prony SHARED ${prn_objects})
  add_library(prony::prony ALIAS prony)
  set(prn_exports ${PROJECT_SOURCE_DIR}/cmake/prony.map)
  target_link_libraries(prony PRIVATE prony_dependencies)
  target_link_options(prony PRIVATE -Wl,--version-script=${prn_exports})
  if(NOT PRONY_SANITIZE)
    target_link_options(prony PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(prony PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                        LINK_DEPENDS ${prn_exports})
  list(APPEND prn_libraries prony)
endif()
foreach(library IN LISTS prn_libraries)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
