# cmake -DRUN=program;argument;... -DSTATUS=2 -DERROR=regex -P expect.cmake
# The program must exit with STATUS, and what it writes to its standard error must match.
execute_process(COMMAND ${RUN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(NOT status STREQUAL STATUS)
    message(FATAL_ERROR "exit status ${status}, not ${STATUS}\n${output}${error}")
endif()
if(NOT error MATCHES "${ERROR}")
    message(FATAL_ERROR "the standard error does not match ${ERROR}\n${error}")
endif()
