# Installs tools, library, headers, package files, pages, the embedded voice and the licence.
include(CMakePackageConfigHelpers)

set(DRAMA3_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/drama3")
target_include_directories(drama3 INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS drama3 EXPORT drama3Targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(DRAMA3_TOOLS)
  install(TARGETS ${DRAMA3_TOOLS} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(FILES lib/engine/engine.h "${PROJECT_BINARY_DIR}/generated/drama3/version.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/drama3")

install(EXPORT drama3Targets NAMESPACE drama3:: DESTINATION "${DRAMA3_PACKAGE_DIR}")
configure_package_config_file(cmake/drama3Config.cmake.in "${PROJECT_BINARY_DIR}/drama3Config.cmake"
  INSTALL_DESTINATION "${DRAMA3_PACKAGE_DIR}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/drama3ConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/drama3Config.cmake" "${PROJECT_BINARY_DIR}/drama3ConfigVersion.cmake"
  DESTINATION "${DRAMA3_PACKAGE_DIR}")

# Paths of drama3.pc are relative to its own place, so that the tree can be moved.
file(RELATIVE_PATH DRAMA3_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" DRAMA3_PC_PREFIX "${DRAMA3_PC_PREFIX}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  message(FATAL_ERROR "CMAKE_INSTALL_LIBDIR: expected a path below the prefix, got ${CMAKE_INSTALL_LIBDIR}")
endif()
# Libraries by name, not by Requires.private: --static would then ask for the static libraries behind them too.
list(JOIN HWY_LDFLAGS " " DRAMA3_PC_LIBRARIES)
foreach(flags IN ITEMS "${PCRE2_LDFLAGS}" "${UTF8PROC_LDFLAGS}" "${ZIP_LDFLAGS}" "${SNDFILE_LDFLAGS}" -lcrypto)
  list(JOIN flags " " flags)
  string(APPEND DRAMA3_PC_LIBRARIES " ${flags}")
endforeach()
if(DRAMA3_WITH_CUDA)
  string(APPEND DRAMA3_PC_LIBRARIES " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
configure_file(cmake/drama3.pc.in "${PROJECT_BINARY_DIR}/drama3.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/drama3.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

foreach(tool IN LISTS DRAMA3_TOOLS)
  set(pages "${PROJECT_BINARY_DIR}/apps/pages")
  install(FILES "${pages}/man1/${tool}.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${pages}/bash/${tool}" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${pages}/zsh/_${tool}" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${pages}/fish/${tool}.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endforeach()
install(FILES corpus/corpus.json DESTINATION "${CMAKE_INSTALL_DATADIR}/drama3")
install(DIRECTORY corpus/baselines DESTINATION "${CMAKE_INSTALL_DATADIR}/drama3" OPTIONAL)
if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/corpus/voice-mini")
  install(DIRECTORY corpus/voice-mini DESTINATION "${CMAKE_INSTALL_DATADIR}/drama3")
endif()
install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
