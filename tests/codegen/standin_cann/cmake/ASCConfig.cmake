# A stand-in for CANN's operator CMake modules: the functions that exported projects call, each of which notes
# its arguments in ${CMAKE_BINARY_DIR}/calls.txt. Host libraries are really built, as C++11, with the driver.
set(STANDIN ${CMAKE_CURRENT_LIST_DIR}/..)
set(ASCEND_AUTOGEN_PATH ${CMAKE_BINARY_DIR}/autogen)
file(WRITE ${CMAKE_BINARY_DIR}/calls.txt "${ASCEND_COMPUTE_UNIT} ${vendor_name}\n")

function(note)
  string(REPLACE ";" " " LINE "${ARGN}")
  string(REPLACE "${CMAKE_SOURCE_DIR}" "." LINE "${LINE}")
  file(APPEND ${CMAKE_BINARY_DIR}/calls.txt "${LINE}\n")
endfunction()

function(npu_op_package)
  note(npu_op_package ${ARGN})
  add_custom_target(binary)
  set(CPACK_GENERATOR TGZ)
  include(CPack)  # has the target package
endfunction()

function(npu_op_package_add)
  note(npu_op_package_add ${ARGN})
endfunction()

function(npu_op_code_gen)
  note(npu_op_code_gen ${ARGN})
  file(WRITE ${ASCEND_AUTOGEN_PATH}/op_proto.cc "")
  file(WRITE ${ASCEND_AUTOGEN_PATH}/aclnn_standin.cpp "")
endfunction()

function(npu_op_library NAME KIND)
  note(npu_op_library ${NAME} ${KIND} ${ARGN})
  set(DRIVER)
  if(NOT KIND STREQUAL ACLNN)
    set(DRIVER ${STANDIN}/driver.cpp)
  endif()
  add_library(${NAME} SHARED ${ARGN} ${DRIVER})
  target_include_directories(${NAME} PRIVATE ${STANDIN})
  target_compile_options(${NAME} PRIVATE -O0 -std=c++11 -Wall -Wextra -Wno-missing-field-initializers
                         -Wno-unused-parameter -Werror)
  add_dependencies(binary ${NAME})
endfunction()

function(npu_op_kernel_options)
  note(npu_op_kernel_options ${ARGN})
endfunction()

function(npu_op_kernel_sources)
  note(npu_op_kernel_sources ${ARGN})
endfunction()

function(npu_op_kernel_library)
  note(npu_op_kernel_library ${ARGN})
endfunction()
