# cmake -DPROGRAM=reweight -DDATA=examples/data -DWORK=directory -P test_reweight.cmake
# Tests what reweight prints for files and for its standard input, how it refuses input, and which files it leaves.
cmake_minimum_required(VERSION 3.14)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(in "${WORK}/in")

# run(ARGUMENT...): reweight's exit status, standard output and standard error go to `status`, `output` and `error`.
macro(run)
    execute_process(COMMAND "${PROGRAM}" ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
    string(REPLACE "\r\n" "\n" output "${output}") # Windows
    string(REPLACE "\r\n" "\n" error "${error}")
endmacro()

# gives(INPUT OUTPUT ARGUMENT...): a file that holds INPUT is read without a word of complaint and OUTPUT is printed.
function(gives input expected)
    file(WRITE "${in}" "${input}")
    run(${ARGN} "${in}")
    if(NOT status STREQUAL "0" OR NOT output STREQUAL expected OR NOT error STREQUAL "")
        message(SEND_ERROR "${ARGN} on \"${input}\"\nprints \"${output}\"\n   not \"${expected}\"\n${status} ${error}")
    endif()
endfunction()

# refuses(REGEX ARGUMENT...): exit status 2, nothing printed, and one line on the standard error that matches.
function(refuses regex)
    run(${ARGN})
    if(NOT status STREQUAL "2" OR NOT output STREQUAL "" OR NOT error MATCHES "^reweight: [^\n]*${regex}[^\n]*\n$")
        message(SEND_ERROR "${ARGN}\nshould say \"${regex}\"\n${status} ${output}${error}")
    endif()
endfunction()

function(refuses_input input regex)
    file(WRITE "${in}" "${input}")
    refuses("${regex}" ${ARGN} "${in}")
endfunction()

function(same a b message)
    if(NOT a STREQUAL b)
        message(SEND_ERROR "${message}\n\"${a}\"\n\"${b}\"")
    endif()
endfunction()

# ==== weights: rows whose results are exact
gives("2 1.5 -1\n" "0.75,0.25,0\n" --function sparsemax)
gives("0 0 0 0\n" "0.25,0.25,0.25,0.25\n" --function softmax)
gives("3 3\n" "0.5,0.5\n" --function multimax)
gives("4 0\n" "1,0\n" --function entmax15 --precision f64)
gives("1 1 -5\n" "0.5,0.5,0\n" --function evsoftmax)
gives("0 -0\n" "0,0\n" --function tanhmax)
gives("2 1.5 -1\n" "0.625,0.375,0\n" --function sparsemax --scale 0.5)
gives("0x1.0001p-2 -0x1.0001p-2\n" "0.750003815,0.249996185\n" --function sparsemax)
gives("0x1.0001p-2 -0x1.0001p-2\n" "0.75000381469726562,0.24999618530273438\n" --function sparsemax --precision f64)
gives("-inf 0\n" "softmax,0,1\nmultimax,0,1\nsparsemax,0,1\nentmax15,0,1\nevsoftmax,0,1\ntanhmax,0,0\n" --print weights)

# ==== cells
gives("2,1.5,-1" "0.75,0.25,0\n" --function sparsemax)
gives("2 ,\t1.5 , -1\r\n\r\n \n1\r\n" "0.75,0.25,0\n1\n" --function sparsemax)
gives("\t2  1.5\t-1 \r\n" "0.75,0.25,0\n" --function sparsemax)
gives("0x1p1 +15e-1 -.1e1\n" "0.75,0.25,0\n" --function sparsemax)
gives("1,,1,\n,\n-inf -INFINITY 0\n" "0.5,0,0.5,0\n0,0\n0,0,1\n" --function softmax)
gives("nan 1 -inf\n0 inf\n0\n" "nan,nan,0\nnan,nan\n1\n" --function softmax)
gives("0 1e-999 -0x1p-9999\n" "1,0,0\n" --function sparsemax --causal)
gives("3.4028235e38 1e38 -3e38\n" "1,0,0\n" --function sparsemax)
gives("1.7e308 1.7e308 -1.7e308\n" "0.5,0.5,0\n" --function softmax --precision f64)
string(ASCII 239 187 191 byte_order_mark)
gives("${byte_order_mark}2 1.5 -1\n" "0.75,0.25,0\n" --function sparsemax)
gives("5 1 1\n\n1 1 5\n0\n1 1 1 1 1\n" "1,0,0\n0.5,0.5,0\n1\n0.25,0.25,0.25,0.25,0\n" --function softmax --causal)

# ==== the table
set(head "    row  function    entries   support   entropy   largest   sparsity   multi-modality\n")
gives("2 1.5 -1 -1\n-inf -inf\nnan 1 -inf\n0\n"
      "${head}      1  sparsemax         4         2    0.5623    0.7500     1.0000           0.5000
      2  sparsemax         0         0         -    0.0000          -                -
      3  sparsemax         2       nan       nan       nan        nan              nan
      4  sparsemax         1         1    0.0000    1.0000          -                -\n"
      --function sparsemax --print table)
gives("2 1.5 1 -6\n" "${head}      1  softmax           4         4    1.0217    0.5064     0.9832           0.7403
      1  multimax          4         3    1.0176    0.5007     1.0000           0.7490
      1  sparsemax         4         2    0.5623    0.7500     1.0000           0.3750
      1  entmax15          4         3    0.8618    0.6242     1.0000           0.5637
      1  evsoftmax         4         3    1.0202    0.5065     1.0000           0.7403
      1  tanhmax           4         4    0.1791   -0.9634     0.0000           0.9906\n")
gives("0x1.fffffffffffffp1023 0x1.fffffffffffffp1023 0x1.fffffffffffffp1023\n"
      "${head}      1  softmax           3         3    1.0986    0.3333          -                -\n"
      --function softmax --print table --precision f64)

# ==== columns: the same weights, turned
gives("2 3\n1.5 3\n-1 -inf\n" "0.75,0.5\n0.25,0.5\n0,0\n" --function sparsemax --columns)
gives("2,3,\n1.5,3,\n" "0.75,0.5,0\n0.25,0.5,0\n" --function sparsemax --columns --precision f64)
gives("0 5 1\n0 5 1\n9 9 1\n" "1,0.5,0.333333343\n0,0.5,0.333333343\n0,0,0.333333343\n" --function softmax --columns --causal)
string(REPLACE "    row" " column" column_head "${head}")
gives("2 nan\n1.5 1\n-1 1\n-1 -inf\n" "${column_head}      1  sparsemax         4         2    0.5623    0.7500     1.0000           0.5000
      2  sparsemax         3       nan       nan       nan        nan              nan\n"
      --function sparsemax --print table --columns)
gives("2 1.5 1 -6\n2 1.5 1 -6\n" "0.5,0.5,0.5,0.5\n0.5,0.5,0.5,0.5\n" --function multimax --columns)
set(numbers "2 1 0.5 -1\n0.25 -inf 3 2\n1 1 1 1\n-2 0.125 7 0\n")
set(turned "2 0.25 1 -2\n1 -inf 1 0.125\n0.5 3 1 7\n-1 2 1 0\n")
foreach(function softmax multimax sparsemax entmax15 evsoftmax tanhmax topk:2 entmax:1.7 sigsoftmax sparsehourglass)
    foreach(numbers_ numbers turned)
        set(flags --function ${function} --print table)
        if(numbers_ STREQUAL "turned")
            list(APPEND flags --columns)
        endif()
        file(WRITE "${in}" "${${numbers_}}")
        run(${flags} "${in}")
        string(REPLACE " column" "    row" of_${numbers_} "${status} ${output}${error}")
    endforeach()
    same("${of_numbers}" "${of_turned}" "${function} of columns is not that of rows")
endforeach()
refuses_input("1 2\n\n1\n" "line 3: a row of 1 cells, not of 2" --columns)
refuses_input("\n" "no rows" --columns)

# ==== a long row, and the standard input
string(REPEAT "0.25 " 65536 long)
gives("${long}\n" "${head}      1  softmax       65536     65536   11.0904    0.0000          -                -\n"
      --function softmax --print table)
gives("1 ${long}\n" "${head}      1  sparsemax     65537     65537    3.3349    0.7500     0.9996                -\n"
      --function sparsemax --print table)
foreach(name "" "-")
    file(WRITE "${in}" "2 1.5 -1\n")
    execute_process(COMMAND "${PROGRAM}" --function sparsemax ${name} INPUT_FILE "${in}" OUTPUT_VARIABLE output)
    same("${output}" "0.75,0.25,0\n" "the standard input, by '${name}'")
endforeach()

# ==== --layer and --params: the published tables are those of the CSV files
set(columns t_b1 t_d1 t_b2 t_d2 b1 d1 b2 d2)
set(layers 0)
file(WRITE "${in}" "-3 -2 -1 0 1 2 3 4\n")
foreach(table "deit-small;table7_deit_small.csv" "language-transformer;table8_language_transformer.csv")
    list(GET table 0 model)
    list(GET table 1 file)
    file(STRINGS "${DATA}/${file}" lines)
    list(POP_FRONT lines names)
    same("${names}" "layer,t_b1,t_d1,t_b2,t_d2,b1,d1,b2,d2" "${file}")
    foreach(line ${lines})
        string(REPLACE "," ";" cell "${line}")
        list(POP_FRONT cell number)
        foreach(column ${columns})
            list(POP_FRONT cell ${column})
        endforeach()
        set(first ${t_b1},${t_d1},${b1},${d1})
        set(second ${t_b2},${t_d2},${b2},${d2})
        foreach(order 1 2)
            run(--function multimax --precision f64 --layer ${model}:${number} --order ${order} "${in}")
            set(by_layer "${status} ${output}${error}")
            run(--function multimax --precision f64 --params ${first},${second} --order ${order} "${in}")
            same("${by_layer}" "0 ${output}" "${model}:${number}, order ${order}")
        endforeach()
        run(--function multimax --precision f64 --layer ${model}:${number} "${in}")
        same("${by_layer}" "0 ${output}" "${model}:${number}: order 2 if not asked for")
        run(--function multimax --precision f64 --layer ${model}:${number} --order 1 "${in}")
        set(by_layer "${output}")
        run(--function multimax --precision f64 --params ${first} "${in}")
        same("${by_layer}" "${output}" "${model}:${number}: order 1 for four numbers")
        math(EXPR layers "${layers} + 1")
    endforeach()
endforeach()
same(${layers} 18 "layers")
# ==== input that is refused
refuses_input(" \n3,x4\n" "in, line 2, column 2: 'x4' is not a number")
refuses_input("1 2 3,4\n" "line 1, column 1: '1 2 3' is not a number")
refuses_input("1,\"2\"\n" "line 1, column 2: '\"2\"' is not a number")
refuses_input("# 1 2\n" "line 1, column 1: '#' is not a number")
refuses_input("1 2 1.5e\n" "line 1, column 3: '1.5e' is not a number")
refuses_input("1 0x\n" "line 1, column 2: '0x' is not a number")
refuses_input("1 1e39\n" "line 1, column 2: '1e39' is beyond the range of f32")
refuses_input("1 -1e999\n" "line 1, column 2: '-1e999' is beyond the range of f64" --precision f64)
refuses_input("\n2\r3,4\n" "line 2, column 1: '2\\?3' is not a number")
refuses_input("1;2\n" "line 1, column 1: '1;2' is not a number")
refuses_input("1,2${byte_order_mark}\n" "line 1, column 2: '2...' is not a number")
string(REPEAT "x" 70000 long)
refuses_input("1 ${long}" "line 1, column 2: 'x+\\.\\.\\.' is not a number")
refuses_input("" "in has no rows of numbers")
refuses_input(" \n\t\r\n\n" "in has no rows of numbers")
refuses("cannot open '${WORK}/nosuch': " "${WORK}/nosuch")
refuses("cannot (open|read) .*" "${WORK}")
file(WRITE "${in}" "1.5 1.5\n0,0,x\n1\n")
run(--function softmax "${in}")
same("${status} ${output}" "2 0.5,0.5\n" "the rows before a bad one are printed, nothing of it and what follows")

# ==== options that are refused
file(WRITE "${in}" "1 2\n")
refuses("--nosuch" --nosuch "${in}")
refuses("-x" -x "${in}")
foreach(option --function --print --layer --params --order --scale --precision --svg)
    refuses("${option} needs a value" ${option})
endforeach()
refuses("--function does not know 'max'" --function max "${in}")
refuses("--print does not know 'all'" --print all "${in}")
refuses("--precision does not know 'f16'" --precision f16 "${in}")
foreach(order 0 3 1.0 x)
    refuses("--order does not know '${order}'" --order ${order} "${in}")
endforeach()
foreach(scale 0 -1 nan inf 1e999 1x x)
    refuses("--scale takes a number above 0, not '${scale}'" --scale ${scale} "${in}")
endforeach()
refuses("--scale or --params .* beyond the range of f32" --scale 1e39 "${in}")
refuses("--scale or --params .* beyond the range of f32" --params 1e39,1,0,0 "${in}")
foreach(layer deit-small deit-small:0 deit-small:13 deit-small:7x language-transformer:7 nosuch:1 7)
    refuses("--layer takes .*, not '${layer}'" --layer ${layer} "${in}")
endforeach()
foreach(params 1 1,1,0 1,1,0,0,1 1,1,0,0,1,1,0 1,1,0,0,1,1,0,0,1 1,1,0,0, 1,1,0,0,1,1,0,0, ,1,1,0 1,1,,0 1,1,0,x
        1,1,0,nan 1,1,0,1e999 1,1,0,0x,1)
    refuses("--params takes 4 or 8 numbers, .*, not '${params}'" --params ${params} "${in}")
endforeach()
refuses("--order 2 needs 8 numbers" --order 2 --params 1,1,0,0 "${in}")
refuses("--layer and --params exclude each other" --layer deit-small:1 --params 1,1,0,0 "${in}")
refuses("one file at a time" "${in}" "${in}")

# ==== --help fits a screen of 24 lines of 80 columns
run(--help)
string(REGEX MATCHALL "\n" lines "${output}")
list(LENGTH lines lines)
if(NOT status STREQUAL "0" OR lines GREATER 23)
    message(SEND_ERROR "--help has ${lines} lines\n${output}")
endif()
string(REPLACE "\n" ";" lines "${output}")
foreach(line ${lines})
    string(LENGTH "${line}" length)
    if(length GREATER 79)
        message(SEND_ERROR "--help is too wide: ${line}")
    endif()
endforeach()

# ==== --svg
set(svg "${WORK}/bars.svg")

# drawn(MESSAGE PATTERN COUNT ...): the pattern occurs COUNT times in the file.
function(drawn message)
    file(READ "${svg}" text)
    while(ARGN)
        list(POP_FRONT ARGN pattern count)
        string(REGEX MATCHALL "${pattern}" found "${text}")
        list(LENGTH found found)
        same("${found}" "${count}" "${message}: how often is ${pattern}")
    endwhile()
endfunction()

# The directory holds the input, the given names and nothing else.
function(leaves message)
    file(GLOB found RELATIVE "${WORK}" "${WORK}/*")
    same("${found}" "${ARGN}" "${message}")
endfunction()

gives("2 1.5 -1\n" "0.75,0.25,0\n" --function sparsemax --svg "${WORK}")
drawn("one function" "<svg " 1 "</svg>" 1 "<rect" 3 "sparsemax" 1 "softmax" 0 "support 2, largest 0.75" 1 "not drawn" 0)
leaves("one function" bars.svg in)
file(READ "${svg}" before)
refuses_input("x\n" "line 1" --svg "${WORK}")
file(READ "${svg}" after)
same("${before}" "${after}" "bad input leaves the old picture alone")
leaves("bad input" bars.svg in)
file(REMOVE "${svg}")
refuses_input("x\n" "line 1" --svg "${WORK}")
refuses_input("" "no rows" --svg "${WORK}")
leaves("bad input" in)
refuses("cannot write" --svg "${WORK}/nosuch" "${in}")
refuses("cannot write" --svg "${in}" "${in}")
leaves("a wrong directory" in)
string(REPEAT "nan,0\n1,,-1\n" 7 rows)
string(REPEAT "0.5 " 1000 long)
file(WRITE "${in}" "${long}\n${rows}")
run(--svg "${WORK}" "${in}")
same("${status}${error}" "0" "all functions")
drawn("all functions" "</svg>" 1 "softmax" 2 "tanhmax" 1 ">nan<" 36 "1000 columns" 1 "2 columns" 6 "3 columns" 5
      "of 6 neighbours" 1 "row 12" 1
      "row 13" 0 "3 more rows are not drawn" 1 "fill=\"#d55e00\"" 5)

# ==== cases that need a shell
find_program(shell sh)
if(UNIX AND shell)
    # shell_refuses(REGEX COMMAND): the command has the program as $0 and the input as $1.
    function(shell_refuses regex command)
        execute_process(COMMAND "${shell}" -c "${command}" "${PROGRAM}" "${in}"
                        WORKING_DIRECTORY "${WORK}" OUTPUT_QUIET
                        RESULT_VARIABLE status ERROR_VARIABLE error)
        if(NOT status STREQUAL "2" OR NOT error MATCHES "^reweight: [^\n]*${regex}[^\n]*\n$")
            message(SEND_ERROR "${command}\nshould say \"${regex}\"\n${status} ${error}")
        endif()
    endfunction()
    shell_refuses("the standard input, line 1, column 2: '2\\?' is not a number" "printf '1 2\\0 3\\n' | \"$0\"")
    shell_refuses("line 2, column 1: '\\?' is not a number" "printf '1\\n\\0\\n' | \"$0\"")
    shell_refuses("line 1, column 1: '1\\?' is not a number" "printf '1\\0,2' | \"$0\"")
    if(EXISTS /dev/full)
        shell_refuses("cannot write the results: " "\"$0\" \"$1\" >/dev/full")
        shell_refuses("cannot write the results: " "yes '1 2 3' | head -n 100000 | \"$0\" >/dev/full")
        # A link: a program that replaces the file would break it.
        execute_process(COMMAND "${CMAKE_COMMAND}" -E create_symlink /dev/full "${svg}")
        shell_refuses("cannot write '[^']*bars.svg': " "\"$0\" --svg . \"$1\"")
        if(NOT IS_SYMLINK "${svg}")
            message(SEND_ERROR "--svg replaced a link")
        endif()
        shell_refuses("cannot write the results: " "\"$0\" --help >/dev/full")
    endif()
endif()
