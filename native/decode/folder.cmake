# Folders that are registries: decode_<folder>.inc includes the headers of decode/<folder>/ and names their stems, one
# line each. x_encoder.h beside x.h is the other half of the format x.
function(st_registry folder macro)
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/decode/${folder}/*.h")
  set(text "")
  set(stems "")
  foreach(header IN LISTS headers)
    get_filename_component(stem "${header}" NAME_WE)
    string(APPEND text "#include \"decode/${folder}/${stem}.h\"\n")
    if(NOT stem MATCHES "_encoder$")
      string(APPEND stems " X(${stem})")
    endif()
  endforeach()
  string(APPEND text "#define ${macro}(X)${stems}\n")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/decode_${folder}.inc" CONTENT "${text}" @ONLY)
endfunction()
st_registry(formats ST_FORMATS)
st_registry(kinds ST_KINDS)
st_registry(transforms ST_TRANSFORMS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  # the least the kernels are built for too; number_glance.h rests on its byte shuffle
  set_source_files_properties(decode/format_table.cpp decode/kind_table.cpp decode/transform_table.cpp bindings/encode.cpp
                              PROPERTIES COMPILE_OPTIONS "-march=x86-64-v2")
endif()
