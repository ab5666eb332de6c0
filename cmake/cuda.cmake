# Decides whether CUDA is built, for which architectures, and defines drama3_add_cuda(target).
#
# DRAMA3_CUDA=AUTO builds it where nvcc is found, ON requires it, OFF leaves it out. CMAKE_CUDA_ARCHITECTURES
# and CUDAARCHS are obeyed; otherwise the usual list is cut to what the toolkit knows, the newest also as PTX.
set(DRAMA3_CUDA OFF CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set_property(CACHE DRAMA3_CUDA PROPERTY STRINGS AUTO ON OFF)
set(DRAMA3_WITH_CUDA OFF)
set(DRAMA3_OLDEST_CUDA 12.4)

if(NOT DRAMA3_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "DRAMA3_CUDA: expected AUTO, ON or OFF, got ${DRAMA3_CUDA}")
endif()

if(NOT DRAMA3_CUDA STREQUAL "OFF")
  if(CMAKE_CUDA_COMPILER)
    set(nvcc "${CMAKE_CUDA_COMPILER}")
  else()
    find_program(DRAMA3_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    set(nvcc "${DRAMA3_NVCC}")
  endif()
  if(nvcc)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
      execute_process(COMMAND "${nvcc}" --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
      set(newest "")
      set(list "")
      foreach(arch IN ITEMS 80 86 89 90 100 120 121)
        if(known MATCHES "compute_${arch}[^0-9a-z]")
          list(APPEND list "${arch}-real")
          set(newest ${arch})
        endif()
      endforeach()
      list(APPEND list "${newest}-virtual")
      set(CMAKE_CUDA_ARCHITECTURES "${list}")
    endif()
    set(CMAKE_CUDA_COMPILER "${nvcc}")
    enable_language(CUDA)
    # CMake 3.25.1 does not know that nvcc 12 and 13 take C++20.
    foreach(kind IN ITEMS STANDARD EXTENSION)
      if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
        set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
      endif()
    endforeach()
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS DRAMA3_OLDEST_CUDA)
      message(FATAL_ERROR "CUDA toolkit: expected ${DRAMA3_OLDEST_CUDA} or newer, got ${CMAKE_CUDA_COMPILER_VERSION} "
        "(${CMAKE_CUDA_COMPILER}); set CMAKE_CUDA_COMPILER to a newer nvcc or DRAMA3_CUDA=OFF")
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(DRAMA3_WITH_CUDA ON)
    set(DRAMA3_CUDA_TEXT "CUDA ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(DRAMA3_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DRAMA3_CUDA=ON: expected nvcc on the path, got none; set CMAKE_CUDA_COMPILER or use "
      "DRAMA3_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA backend: ${DRAMA3_WITH_CUDA} ${CMAKE_CUDA_ARCHITECTURES}")

# Adds the CUDA backend, or its stub, to a library target. Device code is an object library, so that the target
# itself stays C++ and whoever links it needs no CUDA compiler.
function(drama3_add_cuda target)
  if(NOT DRAMA3_WITH_CUDA)
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/kernels/cuda/cuda_absent.cc")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu" "${PROJECT_SOURCE_DIR}/kernels/cuda/*.cc")
  list(FILTER sources EXCLUDE REGEX "cuda_absent\\.cc$")
  add_library(drama3_cuda OBJECT ${sources})
  list(JOIN CMAKE_CUDA_ARCHITECTURES "," architectures)
  target_compile_definitions(drama3_cuda PRIVATE DRAMA3_CUDA_ARCHITECTURES="${architectures}")
  target_include_directories(drama3_cuda PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(drama3_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  # No contraction and no fast arithmetic: merged and single kernels must give the same bits.
  target_compile_options(drama3_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false$<SEMICOLON>--expt-relaxed-constexpr> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
    $<$<AND:$<BOOL:${DRAMA3_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)
  set_target_properties(drama3_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(drama3_cuda PRIVATE drama3_flags)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:drama3_cuda>)
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
endfunction()
