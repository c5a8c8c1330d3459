# Writes the header with the build's facts; leaves it alone when nothing changed. Run at build time.
set(COMMIT "")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE_DIR} rev-parse HEAD OUTPUT_VARIABLE COMMIT
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE_DIR} diff --quiet HEAD RESULT_VARIABLE changed
                  OUTPUT_QUIET ERROR_QUIET)
  if(COMMIT AND changed EQUAL 1)
    string(APPEND COMMIT "-dirty")
  endif()
endif()
string(REPLACE ";" "; " LEFT_OUT "${LEFT_OUT}")
foreach(name COMPILER FLAGS BUILD_TYPE COMMIT LEFT_OUT)
  string(REPLACE "\\" "\\\\" ${name} "${${name}}")
  string(REPLACE "\"" "\\\"" ${name} "${${name}}")
endforeach()
set(text "/* Facts of this build, written by cmake/build_info.cmake. An empty string: not known. */
#ifndef PRN_BUILD_INFO_H
#define PRN_BUILD_INFO_H

#define PRN_BUILD_COMPILER \"${COMPILER}\"
#define PRN_BUILD_FLAGS \"${FLAGS}\"
#define PRN_BUILD_TYPE \"${BUILD_TYPE}\"
#define PRN_BUILD_LEFT_OUT \"${LEFT_OUT}\"
#define PRN_BUILD_GIT_COMMIT \"${COMMIT}\"

#endif
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
