# Stops with the version that is needed where a compiler is too old.
set(DRAMA3_OLDEST_GNU 12.0)
set(DRAMA3_OLDEST_CLANG 14.0)
foreach(compiler IN ITEMS GNU Clang)
  string(TOUPPER "DRAMA3_OLDEST_${compiler}" oldest)
  if(CMAKE_CXX_COMPILER_ID STREQUAL compiler AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS ${oldest})
    message(FATAL_ERROR "C++ compiler: expected ${compiler} ${${oldest}} or newer, got ${CMAKE_CXX_COMPILER_VERSION} "
      "(${CMAKE_CXX_COMPILER}); set CMAKE_CXX_COMPILER to a newer one")
  endif()
endforeach()
