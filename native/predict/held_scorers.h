// The scorers that a predictor holds at once, each of one snapshot under a name: a request is answered by one of them.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "predict/request_scorer.h"

namespace st {

class HeldScorers {
  public:
    using Named = std::pair<std::string, std::shared_ptr<RequestScorer>>;

    // The first answers what names none of them. Throws std::invalid_argument for none, and for a name or a scorer that
    // is there twice.
    explicit HeldScorers(std::vector<Named> held);

    // As RequestScorer's; where several wait, what is told is the first request that does.
    std::size_t score(const std::string &topic, const RecordView *requests, std::size_t count,
                      std::vector<Answer> &answers);
    bool waits() const { return waits_; }

  private:
    struct Share {   // of the requests at hand, in their order
        std::string name;
        std::shared_ptr<RequestScorer> scorer;
        std::vector<RecordView> requests;
        std::vector<std::size_t> places;
        std::vector<Answer> answers;
    };
    Share &share_of(const RecordView &request);
    void part(const RecordView *requests, std::size_t count);

    std::vector<Share> shares_;
    bool waits_ = false;
};

}  // namespace st
