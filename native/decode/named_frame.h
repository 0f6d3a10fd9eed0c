// A registry's frame of records that are read without their schema: its name is one that the registry knows, of a
// schema of the format's type, else the record is refused.
#pragma once
#include <optional>
#include <unordered_map>

#include "decode/decoder.h"
#include "decode/options.h"
#include "decode/schema_frame.h"

namespace st {

class NamedFrame {
  public:
    explicit NamedFrame(const Options &options)
        : framed_(options.get<std::string>("frame") == "registry"),
          schemas_(options.get<std::shared_ptr<SchemaSource>>("schemas")) {}

    explicit operator bool() const { return framed_; }
    // Whether the answer to what was opened last has not come yet.
    bool waits() const { return waits_; }

    // Where the datum of a record begins, and what the record names; nullptr: refused, as `reason` says.
    const char *open(const RecordView &record, NamedSchema &named, std::string &reason) {
        waits_ = false;
        const SchemaFrame frame = SchemaFrame::of(record);
        SchemaName name;
        const char *const behind = frame.read_all(name);
        if (!behind) return reason = frame.problem(), nullptr;
        named.name = name;
        if (!newest_ || name != newest_name_) {
            newest_ = nullptr;
            if (known_.size() > MOST_KNOWN) known_.clear();
            auto found = known_.find(name);
            if (found == known_.end()) {
                const auto answer = schemas_ ? schemas_->ask(name.text()) : std::nullopt;
                waits_ = !answer;
                if (waits_) return reason = "schema " + name.text() + " is not known yet", nullptr;
                found = known_.emplace(name, *answer).first;
            }
            newest_name_ = name;
            newest_ = &found->second;   // stays in place while others come
        }
        named.answer = newest_;
        if (newest_->refusal.empty()) return frame.datum(record, behind);
        return reason = "schema " + name.text() + ": " + newest_->refusal, nullptr;
    }

  private:
    static constexpr u64 MOST_KNOWN = 4096;   // records may name any number of schemas, and be refused for it

    const bool framed_;
    const std::shared_ptr<SchemaSource> schemas_;
    std::unordered_map<SchemaName, SchemaSource::Answer, SchemaName::Hash> known_;
    const SchemaSource::Answer *newest_ = nullptr;
    SchemaName newest_name_;
    bool waits_ = false;
};

}  // namespace st
