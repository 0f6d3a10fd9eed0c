# One line per decode/formats/*.h: the header x.h defines st::formats::x(plan), x_encoder.h beside it x_encoder(), and
# the stem x is the format's name.
file(GLOB ST_FORMAT_HEADERS CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/decode/formats/*.h")
list(FILTER ST_FORMAT_HEADERS EXCLUDE REGEX "_encoder\\.h$")
set(ST_FORMAT_INCLUDES "")
set(ST_FORMAT_ENTRIES "")
foreach(header IN LISTS ST_FORMAT_HEADERS)
  get_filename_component(stem "${header}" NAME_WE)
  string(APPEND ST_FORMAT_INCLUDES "#include \"decode/formats/${stem}.h\"\n")
  string(APPEND ST_FORMAT_INCLUDES "#include \"decode/formats/${stem}_encoder.h\"\n")
  string(APPEND ST_FORMAT_ENTRIES "    {\"${stem}\", formats::${stem}, formats::${stem}_encoder},\n")
endforeach()
set(ST_FORMAT_TABLE "${CMAKE_CURRENT_BINARY_DIR}/format_table.cpp")
file(CONFIGURE OUTPUT "${ST_FORMAT_TABLE}" CONTENT [[
#include <stdexcept>
@ST_FORMAT_INCLUDES@
namespace st {
namespace {
struct Entry {
    const char *name;
    std::unique_ptr<Decoder> (*make)(std::shared_ptr<const DecodePlan>);
    std::unique_ptr<RecordEncoder> (*encoder)();
};
constexpr Entry ENTRIES[] = {
@ST_FORMAT_ENTRIES@};
}  // namespace

std::vector<std::string> decoder_formats() {
    std::vector<std::string> names;
    for (const Entry &entry : ENTRIES) names.push_back(entry.name);
    return names;
}

std::unique_ptr<Decoder> make_decoder(const std::string &format, std::shared_ptr<const DecodePlan> plan) {
    for (const Entry &entry : ENTRIES)
        if (format == entry.name) return entry.make(std::move(plan));
    throw std::invalid_argument("no record format is named " + format);
}

std::unique_ptr<RecordEncoder> make_encoder(const std::string &format) {
    for (const Entry &entry : ENTRIES)
        if (format == entry.name) return entry.encoder();
    throw std::invalid_argument("no record format is named " + format);
}
}  // namespace st
]] @ONLY)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  # the least the kernels are built for too; number_glance.h rests on its byte shuffle
  set_source_files_properties("${ST_FORMAT_TABLE}" PROPERTIES COMPILE_OPTIONS "-march=x86-64-v2")
endif()
