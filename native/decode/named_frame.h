// A registry's frame (0 and a schema's id in four bytes) around records that are read without their schema: the id is
// one that the registry knows, of a schema of the format's type, else the record is refused.
#pragma once
#include <optional>
#include <unordered_map>

#include "decode/decoder.h"
#include "decode/options.h"

namespace st {

class NamedFrame {
  public:
    static constexpr u64 BYTES = 5;

    explicit NamedFrame(const Options &options)
        : framed_(options.get<std::string>("frame") == "registry"),
          schemas_(options.get<std::shared_ptr<SchemaSource>>("schemas")) {}

    explicit operator bool() const { return framed_; }
    // Whether the answer to what was opened last has not come yet.
    bool waits() const { return waits_; }

    // What the record names; "" where what stands behind the frame may be read, else why not.
    std::string open(const char *bytes, u64 size, NamedSchema &named) {
        waits_ = false;
        if (size < BYTES || bytes[0] != 0)
            return "expected a registry's frame (0 and a schema id), got " +
                   (size < BYTES ? std::to_string(size) + " bytes"
                                 : "byte " + std::to_string(static_cast<u8>(bytes[0])));
        const u32 id = __builtin_bswap32(load_little<u32>(bytes + 1));
        named.id = id;
        if (!newest_ || id != newest_id_) {
            newest_ = nullptr;
            if (known_.size() > MOST_KNOWN) known_.clear();
            auto found = known_.find(id);
            if (found == known_.end()) {
                const auto answer = schemas_ ? schemas_->ask(std::to_string(id)) : std::nullopt;
                waits_ = !answer;
                if (waits_) return "schema " + std::to_string(id) + " is not known yet";
                found = known_.emplace(id, *answer).first;
            }
            newest_id_ = id;
            newest_ = &found->second;   // stays in place while others come
        }
        named.answer = newest_;
        return newest_->refusal.empty() ? "" : "schema " + std::to_string(id) + ": " + newest_->refusal;
    }

  private:
    static constexpr u64 MOST_KNOWN = 4096;   // records may name any number of ids, and be refused for it

    const bool framed_;
    const std::shared_ptr<SchemaSource> schemas_;
    std::unordered_map<u32, SchemaSource::Answer> known_;
    const SchemaSource::Answer *newest_ = nullptr;
    u32 newest_id_ = 0;
    bool waits_ = false;
};

}  // namespace st
