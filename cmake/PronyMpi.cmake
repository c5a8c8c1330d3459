# prony-mpi: the command's files and bench/cluster/, with MPI. Neither the library nor `prony` links MPI.
# MPI_C_COMPILER chooses among several: -DMPI_C_COMPILER=mpicc.mpich

set(PRONY_MPI AUTO CACHE STRING "Build prony-mpi: ON, OFF, or AUTO (where MPI is)")
if(NOT PRONY_MPI OR (PRONY_SANITIZE AND PRONY_MPI STREQUAL "AUTO"))
  return()
endif()
find_package(MPI COMPONENTS C QUIET)
if(NOT MPI_C_FOUND)
  if(PRONY_MPI STREQUAL "AUTO")
    message(STATUS "No prony-mpi: MPI is missing (Debian: libopenmpi-dev openmpi-bin, or mpich)")
    return()
  endif()
  message(FATAL_ERROR "prony-mpi cannot be built: MPI is missing (Debian: libopenmpi-dev openmpi-bin, or mpich). To build without it: -DPRONY_MPI=OFF")
endif()
message(STATUS "prony-mpi: ${MPI_C_COMPILER}")

file(GLOB prn_cluster CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/cluster/*.c)
set(prn_mpi_bench ${prn_bench})
list(FILTER prn_mpi_bench EXCLUDE REGEX "/main\\.c$")
add_executable(prony_mpi ${prn_mpi_bench} ${prn_cluster} $<TARGET_OBJECTS:prony_heap_hooks> $<TARGET_OBJECTS:prony_embedded>)
target_include_directories(prony_mpi PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(prony_mpi PRIVATE prony_static m MPI::MPI_C)
set_target_properties(prony_mpi PROPERTIES OUTPUT_NAME prony-mpi)
