# Installation: libraries, header, pkg-config file, CMake package, command, schemas of the documents it writes.

set(prn_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/prony)
file(GLOB prn_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h)
install(FILES ${prn_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
file(GLOB prn_schemas CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/schemas/*.schema.json)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/valgrind.supp DESTINATION ${CMAKE_INSTALL_DATADIR}/prony)
install(FILES ${prn_schemas} DESTINATION ${CMAKE_INSTALL_DATADIR}/prony/schemas)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/plots ${PROJECT_SOURCE_DIR}/docs/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/prony)
if(TARGET prony_command)
  install(TARGETS prony_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# The pages keep their folders, so their links, README.md's included, lead where they lead in the sources.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN "*.c" PATTERN "*.webp" PATTERN "*.schema.json")
if(TARGET prony_mpi)
  install(TARGETS prony_mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Manual pages and completion scripts, which the command writes from its own tables. A cross-compiled command needs an
# emulator for that.
set(prn_run_command "$<TARGET_FILE:prony_command>")
if(CMAKE_CROSSCOMPILING AND CMAKE_CROSSCOMPILING_EMULATOR)
  set(prn_run_command "${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:prony_command>")
endif()
if(TARGET prony_command AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  set(prn_manual ${PROJECT_BINARY_DIR}/manual)
  add_custom_command(TARGET prony_command POST_BUILD
    COMMAND ${CMAKE_COMMAND} "-DPRONY=${prn_run_command}" -DOUT=${prn_manual}
            -P ${PROJECT_SOURCE_DIR}/cmake/manual.cmake VERBATIM)
  install(DIRECTORY ${prn_manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${prn_manual}/prony.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME prony)
  install(FILES ${prn_manual}/_prony DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${prn_manual}/prony.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

if(NOT prn_shared_unwanted)
  install(TARGETS prony EXPORT pronySharedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT pronySharedTargets NAMESPACE prony:: DESTINATION ${prn_package_dir})
endif()
if(NOT prn_static_unwanted)
  # Its users link what it stands on.
  set(prn_static_links "${PRN_PRIVATE_LIBS}")
  separate_arguments(prn_static_links)
  install(TARGETS prony_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
string(STRIP "${PRN_PRIVATE_LIBS}" PRN_PRIVATE_LIBS)

file(RELATIVE_PATH prn_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prn_pc_prefix "${prn_pc_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/prony.pc.in ${PROJECT_BINARY_DIR}/prony.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/prony.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/pronyConfig.cmake.in ${PROJECT_BINARY_DIR}/pronyConfig.cmake
  INSTALL_DESTINATION ${prn_package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pronyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pronyConfig.cmake ${PROJECT_BINARY_DIR}/pronyConfigVersion.cmake
  DESTINATION ${prn_package_dir})
