#include "predict/held_scorers.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace st {
namespace {

constexpr char variant_header[] = "streamtrain-variant";   // of a request: which one is to answer it

}   // namespace

HeldScorers::HeldScorers(std::vector<Named> held) {
    if (held.empty()) throw std::invalid_argument("a predictor holds one scorer at least");
    for (auto &[name, scorer] : held) {
        for (const Share &other : shares_)
            if (other.name == name || other.scorer == scorer)
                throw std::invalid_argument("each scorer has a name of its own, and each name a scorer: " + name);
        shares_.push_back({std::move(name), std::move(scorer), {}, {}, {}});
    }
}

HeldScorers::Share &HeldScorers::share_of(const RecordView &request) {
    if (!request.header) return shares_.front();
    const DeadLetterHeader named = request.header(request.handle, variant_header);
    if (!named.value) return shares_.front();
    const std::string_view name(reinterpret_cast<const char *>(named.value), named.size);
    const auto found = std::ranges::find(shares_, name, &Share::name);
    return found == shares_.end() ? shares_.front() : *found;
}

void HeldScorers::part(const RecordView *requests, std::size_t count) {
    for (Share &share : shares_) {
        share.requests.clear();
        share.places.clear();
    }
    for (std::size_t i = 0; i < count; ++i) {
        Share &share = share_of(requests[i]);
        share.requests.push_back(requests[i]);
        share.places.push_back(i);
    }
}

std::size_t HeldScorers::score(const std::string &topic, const RecordView *requests, std::size_t count,
                               std::vector<Answer> &answers) {
    if (shares_.size() == 1) {
        RequestScorer &alone = *shares_.front().scorer;
        const std::size_t answered = alone.score(topic, requests, count, answers);
        waits_ = alone.waits();
        return answered;
    }
    part(requests, count);
    answers.assign(count, Answer{});
    waits_ = false;
    std::size_t first_left = count;   // what one of them answered beyond it comes again
    for (Share &share : shares_) {
        if (share.requests.empty()) continue;
        RequestScorer &scorer = *share.scorer;
        const std::size_t answered = scorer.score(topic, share.requests.data(), share.requests.size(), share.answers);
        for (std::size_t i = 0; i < answered; ++i) answers[share.places[i]] = share.answers[i];
        if (answered == share.places.size() || share.places[answered] >= first_left) continue;
        first_left = share.places[answered];
        waits_ = scorer.waits();
    }
    answers.resize(first_left);
    return first_left;
}

}  // namespace st
