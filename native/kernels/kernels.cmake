# One unit per header of kernels/ and instruction set, and the text of every header a kernel may include, for NVRTC.
file(GLOB ST_KERNEL_HEADERS CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.h")
file(GLOB ST_BASE_HEADERS CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/base/*.h")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(ST_ISAS v2 v3 v4)
  set(ST_FLAGS_v2 -march=x86-64-v2)
  set(ST_FLAGS_v3 -march=x86-64-v3)
  set(ST_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512)
else()
  set(ST_ISAS baseline)
  set(ST_FLAGS_baseline "")
endif()

set(ST_KERNEL_UNITS "")
foreach(header IN LISTS ST_KERNEL_HEADERS)
  get_filename_component(stem "${header}" NAME_WE)
  foreach(isa IN LISTS ST_ISAS)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/kernels/${stem}.${isa}.cpp")
    file(CONFIGURE OUTPUT "${unit}" @ONLY CONTENT
"#define ST_ISA isa_@isa@
#define ST_ISA_NAME @isa@
#include \"base/kernel.h\"
namespace st {
inline namespace ST_ISA {
#include \"kernels/@stem@.h\"
}
}
")
    # -Wno-psabi: vectors wider than the instruction set's registers never cross a function boundary that is not inlined
    set_source_files_properties("${unit}" PROPERTIES COMPILE_OPTIONS
      "${ST_FLAGS_${isa}};-fno-exceptions;-fno-rtti;-Wno-psabi;-Wno-unknown-pragmas")
    list(APPEND ST_KERNEL_UNITS "${unit}")
  endforeach()
endforeach()

set(ST_KERNEL_TEXT "${CMAKE_CURRENT_BINARY_DIR}/kernels/text.cpp")
set(entries "")
foreach(header IN LISTS ST_BASE_HEADERS ST_KERNEL_HEADERS)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  file(RELATIVE_PATH path "${CMAKE_CURRENT_SOURCE_DIR}" "${header}")
  file(READ "${header}" text)
  string(APPEND entries "    {\"${path}\", R\"st_text(${text})st_text\"},\n")
endforeach()
file(WRITE "${ST_KERNEL_TEXT}.new"
"#include \"base/text.h\"
namespace st {
const HeaderText header_texts[] = {
${entries}};
const unsigned header_text_count = sizeof header_texts / sizeof header_texts[0];
}  // namespace st
")
file(COPY_FILE "${ST_KERNEL_TEXT}.new" "${ST_KERNEL_TEXT}" ONLY_IF_DIFFERENT)
