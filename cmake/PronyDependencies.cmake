# Finds the libraries Prony stands on. Result: the interface target prony_dependencies, and PRN_PRIVATE_LIBS for the
# pkg-config file.

add_library(prony_dependencies INTERFACE)
set(PRN_PRIVATE_LIBS "")

function(prn_use_library path)
  target_link_libraries(prony_dependencies INTERFACE ${path})
  set(PRN_PRIVATE_LIBS "${PRN_PRIVATE_LIBS} ${path}" PARENT_SCOPE)
endfunction()

# cJSON reads reports back.
find_path(PRONY_CJSON_INCLUDE_DIR cjson/cJSON.h)
find_library(PRONY_CJSON_LIBRARY cjson)
mark_as_advanced(PRONY_CJSON_INCLUDE_DIR PRONY_CJSON_LIBRARY)
if(NOT PRONY_CJSON_INCLUDE_DIR OR NOT PRONY_CJSON_LIBRARY)
  message(FATAL_ERROR "cJSON is missing (Debian: libcjson-dev)")
endif()
target_include_directories(prony_dependencies SYSTEM INTERFACE ${PRONY_CJSON_INCLUDE_DIR})
prn_use_library(${PRONY_CJSON_LIBRARY})

# oneDNN's own CMake package asks for OpenCL headers that nothing here needs, so header and library are looked up.
if(PRONY_ONEDNN)
  find_path(PRONY_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl_version.h)
  find_library(PRONY_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(PRONY_ONEDNN_INCLUDE_DIR PRONY_ONEDNN_LIBRARY)
  if(NOT PRONY_ONEDNN_INCLUDE_DIR OR NOT PRONY_ONEDNN_LIBRARY)
    message(FATAL_ERROR "oneDNN is missing (Debian: libdnnl-dev). -DPRONY_ONEDNN=OFF builds without it.")
  endif()
  set(prn_dnnl_version "")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${PRONY_ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h line REGEX "define DNNL_VERSION_${part} ")
    string(REGEX REPLACE "^.*DNNL_VERSION_${part} +([0-9]+).*$" "\\1" number "${line}")
    list(APPEND prn_dnnl_version ${number})
  endforeach()
  list(JOIN prn_dnnl_version "." prn_dnnl_version)
  if(prn_dnnl_version VERSION_LESS 2.6 OR prn_dnnl_version VERSION_GREATER_EQUAL 2.8)
    message(FATAL_ERROR "oneDNN ${prn_dnnl_version} (${PRONY_ONEDNN_LIBRARY}) cannot be used: Prony is written for "
                        "oneDNN 2.6 and 2.7. -DPRONY_ONEDNN=OFF builds without it.")
  endif()
  message(STATUS "oneDNN ${prn_dnnl_version}: ${PRONY_ONEDNN_LIBRARY}")
  target_include_directories(prony_dependencies SYSTEM INTERFACE ${PRONY_ONEDNN_INCLUDE_DIR})
  target_compile_definitions(prony_dependencies INTERFACE PRN_HAVE_DNNL=1)
  prn_use_library(${PRONY_ONEDNN_LIBRARY})
endif()

# Debian keeps OpenBLAS's builds apart in folders, and lets its alternatives system choose one for the bare name. The
# OpenMP build is taken by path, so that another choice changes nothing. It is not linked: ops/vendor/blas.c loads it when it is
# needed, and says why.
if(PRONY_OPENBLAS)
  find_path(PRONY_OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-openmp
            ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas)
  find_library(PRONY_OPENBLAS_LIBRARY NAMES openblaso openblas PATH_SUFFIXES openblas-openmp)
  mark_as_advanced(PRONY_OPENBLAS_INCLUDE_DIR PRONY_OPENBLAS_LIBRARY)
  if(NOT PRONY_OPENBLAS_INCLUDE_DIR OR NOT PRONY_OPENBLAS_LIBRARY)
    message(FATAL_ERROR "The OpenMP build of OpenBLAS is missing (Debian: libopenblas-openmp-dev). "
                        "-DPRONY_OPENBLAS=OFF builds without it.")
  endif()
  message(STATUS "OpenBLAS: ${PRONY_OPENBLAS_LIBRARY}")
  target_include_directories(prony_dependencies SYSTEM INTERFACE ${PRONY_OPENBLAS_INCLUDE_DIR})
  target_compile_definitions(prony_dependencies INTERFACE PRN_HAVE_OPENBLAS=1)
  execute_process(COMMAND ${CMAKE_READELF} -d ${PRONY_OPENBLAS_LIBRARY} OUTPUT_VARIABLE prn_blas_dynamic ERROR_QUIET)
  if(NOT prn_blas_dynamic MATCHES "\\(SONAME\\)[^[]*\\[([^]]+)\\]")
    message(FATAL_ERROR "${PRONY_OPENBLAS_LIBRARY} is no shared library (${CMAKE_READELF} finds no SONAME). "
                        "-DPRONY_OPENBLAS_LIBRARY names one, -DPRONY_OPENBLAS=OFF builds without it.")
  endif()
  set(prn_blas_name ${CMAKE_MATCH_1})
  get_filename_component(prn_blas_dir ${PRONY_OPENBLAS_LIBRARY} DIRECTORY)
  target_compile_definitions(prony_dependencies INTERFACE PRN_OPENBLAS_FOLDER="${prn_blas_dir}"
                             PRN_OPENBLAS_NAME="${prn_blas_name}")
  foreach(library IN LISTS CMAKE_DL_LIBS)
    prn_use_library(-l${library})
  endforeach()
endif()

if(PRONY_OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS C)
  target_compile_options(prony_dependencies INTERFACE $<$<COMPILE_LANGUAGE:C>:${OpenMP_C_FLAGS}>)
  target_compile_definitions(prony_dependencies INTERFACE PRN_HAVE_OPENMP=1)
  foreach(library IN LISTS OpenMP_C_LIBRARIES)
    prn_use_library(${library})
  endforeach()
endif()

# Image files and compressed arrays: what is missing is left out, and the message of whoever needs it says so.
function(prn_use_optional option name header library package)
  if(NOT ${option})
    return()
  endif()
  find_path(${option}_INCLUDE_DIR ${header})
  find_library(${option}_LIBRARY ${library})
  mark_as_advanced(${option}_INCLUDE_DIR ${option}_LIBRARY)
  if(NOT ${option}_INCLUDE_DIR OR NOT ${option}_LIBRARY)
    message(WARNING "${name} is missing (Debian: ${package}): Prony is built without it. -D${option}=OFF says that this is "
                    "intended.")
    return()
  endif()
  message(STATUS "${name}: ${${option}_LIBRARY}")
  string(REPLACE "PRONY_" "PRN_HAVE_" definition ${option})
  target_include_directories(prony_dependencies SYSTEM INTERFACE ${${option}_INCLUDE_DIR})
  target_compile_definitions(prony_dependencies INTERFACE ${definition}=1)
  prn_use_library(${${option}_LIBRARY})
  set(PRN_PRIVATE_LIBS "${PRN_PRIVATE_LIBS}" PARENT_SCOPE)
endfunction()
prn_use_optional(PRONY_PNG libpng png.h png libpng-dev)
prn_use_optional(PRONY_JPEG libjpeg jpeglib.h jpeg libjpeg-dev)
prn_use_optional(PRONY_ZLIB zlib zlib.h z zlib1g-dev)

# Chart.js is no library to link: its file becomes a part of every HTML report.
set(PRN_CHART_LIBRARY "")
if(PRONY_CHARTS)
  find_file(PRONY_CHARTJS_FILE NAMES chart.umd.min.js chart.umd.js chart.min.js PATHS /usr/share/javascript
            PATH_SUFFIXES chart.js NO_DEFAULT_PATH)
  mark_as_advanced(PRONY_CHARTJS_FILE)
  if(PRONY_CHARTJS_FILE)
    set(PRN_CHART_LIBRARY ${PRONY_CHARTJS_FILE})
    message(STATUS "Chart.js: ${PRONY_CHARTJS_FILE}")
  else()
    message(WARNING "Chart.js is missing (Debian: libjs-chart.js): HTML reports will have tables, but no charts. "
                    "-DPRONY_CHARTJS_FILE names the file, -DPRONY_CHARTS=OFF builds without it.")
  endif()
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
prn_use_library(-pthread)
prn_use_library(-lm)
