#include "predict/traced.h"

#include <chrono>

namespace st {
namespace {
constexpr std::size_t most = 4096;   // between two drains
constexpr std::size_t parent_bytes = 55, flags_at = 53;   // 00-<32 hex digits>-<16>-<2>: W3C Trace Context, 3.2
constexpr std::size_t most_bytes = 512;   // of a header, as its 3.3.1.5 has it: a longer tracestate is left out

std::string_view text_of(const DeadLetterHeader &header) {
    return {reinterpret_cast<const char *>(header.value), header.value ? header.size : 0};
}

// Whether its flags say sampled. What else is wrong with it is found where it is used.
bool is_sampled(std::string_view parent) {
    if (parent.size() < parent_bytes || parent.size() > most_bytes) return false;
    const char digit = parent[flags_at + 1];
    const int value = digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10;
    return value & 1;
}
}   // namespace

i64 nanoseconds_since_1970() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

void TracedRequests::begin() { begun_ns_ = nanoseconds_since_1970(); }

void TracedRequests::add(const RecordView &record, const Answer &answer, i64 ended_ns) {
    const std::string_view parent = text_of(record.header(record.handle, "traceparent"));
    if (!is_sampled(parent)) return;
    if (found_.size() >= most) {
        ++left_out_;
        return;
    }
    std::string_view state = text_of(record.header(record.handle, "tracestate"));
    if (state.size() > most_bytes) state = {};
    found_.push_back({std::string(parent), std::string(state), record.partition, record.offset, begun_ns_, ended_ns,
                      answer.by->version(), answer.rows, answer.errors, std::string(answer.error)});
}

}   // namespace st
