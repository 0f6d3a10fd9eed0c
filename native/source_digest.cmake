# ST_SOURCE_DIGEST: a unit with the SHA-256 over name and bytes of every source of this folder, whichever one decides
# bits. It is made when CMake configures, and any change of a source makes it configure again.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS
     "${CMAKE_CURRENT_SOURCE_DIR}/*.h" "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/*.cmake"
     "${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt")
list(SORT sources)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
set(listing "")
foreach(source IN LISTS sources)
  file(RELATIVE_PATH path "${CMAKE_CURRENT_SOURCE_DIR}" "${source}")
  file(SHA256 "${source}" digest)
  string(APPEND listing "${path} ${digest}\n")
endforeach()
string(SHA256 digest "${listing}")
set(ST_SOURCE_DIGEST "${CMAKE_CURRENT_BINARY_DIR}/source_digest.cpp")
file(CONFIGURE OUTPUT "${ST_SOURCE_DIGEST}" @ONLY CONTENT
"#include \"base/text.h\"
namespace st {
const char *const source_digest = \"@digest@\";
}  // namespace st
")
