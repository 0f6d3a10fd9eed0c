# One line per state/rules/*.h: the header x.h defines st::rules::x, and the stem x is the rule's name.
file(GLOB ST_RULE_HEADERS CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/state/rules/*.h")
set(ST_RULE_INCLUDES "")
set(ST_RULE_ENTRIES "")
foreach(header IN LISTS ST_RULE_HEADERS)
  get_filename_component(stem "${header}" NAME_WE)
  string(APPEND ST_RULE_INCLUDES "#include \"state/rules/${stem}.h\"\n")
  string(APPEND ST_RULE_ENTRIES "    named(\"${stem}\", rules::${stem}),\n")
endforeach()
set(ST_RULE_TABLE "${CMAKE_CURRENT_BINARY_DIR}/rule_table.cpp")
file(CONFIGURE OUTPUT "${ST_RULE_TABLE}" CONTENT [[
@ST_RULE_INCLUDES@
namespace st {
namespace {
constexpr Rule named(const char *name, Rule rule) {
    rule.name = name;
    return rule;
}

constexpr Rule RULES[] = {
@ST_RULE_ENTRIES@};
}  // namespace

std::span<const Rule> state_rules() { return RULES; }
}  // namespace st
]] @ONLY)
