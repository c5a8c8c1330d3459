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
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
# Without prony-mpi, so that the package depends on no MPI.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};prony;Unspecified;/")
include(CPack)
