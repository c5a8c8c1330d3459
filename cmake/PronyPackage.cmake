# `cpack -G DEB` makes one .deb of everything that is installed; what it depends on is read from the libraries it uses.

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME prony)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Prony developers <prony@localhost>")
set(CPACK_PACKAGE_VENDOR Prony)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ONNX inference engine that measures itself")
set(CPACK_PACKAGE_DESCRIPTION "Runs an ONNX model and shows where its time and memory go: for the whole model,
for each layer as it was written, and for each kernel as it was executed, with
the analytic cost beside every measured figure.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
if(PRONY_OPENBLAS) # any build of OpenBLAS would do for the name of the library, but not for Prony
  set(CPACK_DEBIAN_PACKAGE_DEPENDS libopenblas0-openmp)
endif()
# dpkg-shlibdeps knows this machine's libraries alone. In a cross build the packages of the libraries come from the database of the
# system that holds them, and none is taken from an older version than the one it was built with.
if(CMAKE_CROSSCOMPILING AND PRN_ARCHITECTURE STREQUAL arm64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
  set(prn_package_libraries ${PRONY_CJSON_LIBRARY} ${PRONY_PNG_LIBRARY} ${PRONY_JPEG_LIBRARY} ${PRONY_ZLIB_LIBRARY} libc.so.6)
  if(PRONY_OPENMP)
    list(APPEND prn_package_libraries libgomp.so.1)
  endif()
  find_program(PRN_DPKG_QUERY dpkg-query)
  mark_as_advanced(PRN_DPKG_QUERY)
  foreach(library IN LISTS prn_package_libraries)
    get_filename_component(library ${library} REALPATH)
    get_filename_component(library ${library} NAME)
    execute_process(COMMAND ${PRN_DPKG_QUERY} --admindir=${PRONY_ARM64_ROOT}/var/lib/dpkg -S "*/aarch64-linux-gnu/${library}"
                    OUTPUT_VARIABLE prn_owner ERROR_QUIET)
    string(REGEX MATCH "^[a-z0-9.+-]+" prn_owner "${prn_owner}")
    if(prn_owner)
      execute_process(COMMAND ${PRN_DPKG_QUERY} --admindir=${PRONY_ARM64_ROOT}/var/lib/dpkg -W -f "\${Version}" ${prn_owner}:arm64
                      OUTPUT_VARIABLE prn_owner_version ERROR_QUIET)
      string(REGEX REPLACE "-.*$" "" prn_owner_version "${prn_owner_version}")
      list(APPEND prn_package_depends "${prn_owner} (>= ${prn_owner_version})")
    endif()
  endforeach()
  if(CPACK_DEBIAN_PACKAGE_DEPENDS)
    list(APPEND prn_package_depends ${CPACK_DEBIAN_PACKAGE_DEPENDS})
  endif()
  list(REMOVE_DUPLICATES prn_package_depends)
  list(JOIN prn_package_depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
endif()
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
# Without prony-mpi, so that the package depends on no MPI.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};prony;Unspecified;/")
include(CPack)
