// Requests whose client traces them, and what became of them: for spans, which are made elsewhere and later.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "predict/request_scorer.h"

namespace st {

struct Traced {
    std::string parent, state;     // the W3C headers traceparent, which says that it is sampled, and tracestate
    i32 partition;
    i64 offset;
    i64 begun_ns, ended_ns;        // since 1970: its batch was taken, its answer delivered
    i64 version;
    u32 rows, errors;
    std::string error;             // why no row was answered
};

// One thread gathers; the caller takes them between two batches. Bounded: what comes beyond is counted and left out.
class TracedRequests {
  public:
    // The clock of a batch.
    void begin();
    // `answer` to `record` has been delivered.
    void add(const RecordView &record, const Answer &answer, i64 ended_ns);
    std::vector<Traced> drain() { return std::exchange(found_, {}); }
    u64 left_out() const { return left_out_; }

  private:
    std::vector<Traced> found_;
    i64 begun_ns_ = 0;
    u64 left_out_ = 0;
};

i64 nanoseconds_since_1970();

}   // namespace st
