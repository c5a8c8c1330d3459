# Cross build for Linux on AArch64, with Debian's gcc-aarch64-linux-gnu: cmake --preset arm64
#
# PRONY_ARM64_ROOT (variable or environment) is an arm64 system that has the libraries; without it, libraries are those of Debian's
# multiarch (dpkg --add-architecture arm64). Tests run under qemu-aarch64-static, which reads QEMU_CPU and QEMU_LD_PREFIX.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
find_program(PRN_CROSS_COMPILER aarch64-linux-gnu-gcc REQUIRED)
mark_as_advanced(PRN_CROSS_COMPILER)
if(NOT CMAKE_C_COMPILER)
  set(CMAKE_C_COMPILER ${PRN_CROSS_COMPILER})
endif()

if(NOT PRONY_ARM64_ROOT)
  set(PRONY_ARM64_ROOT "$ENV{PRONY_ARM64_ROOT}")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PRONY_ARM64_ROOT)
set(prn_emulated_root /usr/aarch64-linux-gnu)
if(PRONY_ARM64_ROOT)
  set(CMAKE_SYSROOT ${PRONY_ARM64_ROOT})
  set(prn_emulated_root ${PRONY_ARM64_ROOT})
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
  # The system's libraries find each other's there.
  set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${PRONY_ARM64_ROOT}/usr/lib/aarch64-linux-gnu")
  set(CMAKE_SHARED_LINKER_FLAGS_INIT ${CMAKE_EXE_LINKER_FLAGS_INIT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

find_program(PRN_EMULATOR NAMES qemu-aarch64-static qemu-aarch64)
mark_as_advanced(PRN_EMULATOR)
if(PRN_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PRN_EMULATOR};-L;${prn_emulated_root})
endif()
