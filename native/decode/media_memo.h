// Media decoded ahead, those of some records together, so that several threads can take part; and those that were not,
// decoded alone. Of one thread.
#pragma once
#include <unordered_map>
#include <vector>

#include "decode/media.h"
#include "decode/murmur3.h"

namespace st {

class MediaMemo {
  public:
    static MediaMemo &own() {
        thread_local MediaMemo memo;
        return memo;
    }

    void clear() {
        for (Batch &batch : batches_) batch.clear();
        bytes_ = 0;
    }

    // One that will be asked for, if there is room for it.
    void want(MediaDecoder &decoder, const MediaForm &form, std::string_view encoded) {
        const u64 bytes = encoded.size() + form.bytes;
        if (bytes_ + bytes > MOST_BYTES || batch_of(form).entries.size() == MOST) return;
        Batch &batch = batch_of(form);
        if (!batch.add(encoded)) return;
        batch.decoder = &decoder;
        bytes_ += bytes;
    }

    void run() {
        for (Batch &batch : batches_) batch.run();
    }

    // Its row, in place until the next call; nullptr: it cannot be decoded.
    const u8 *row(MediaDecoder &decoder, const MediaForm &form, std::string_view encoded) {
        if (const Batch::Entry *known = batch_of(form).find(encoded)) {
            const Batch &batch = batch_of(form);
            const u64 at = static_cast<u64>(known - batch.entries.data());
            return batch.good[at] ? batch.rows.data() + at * form.bytes : nullptr;
        }
        alone_.resize(form.bytes);
        u8 good = 0;
        decoder.decode(form, &encoded, 1, alone_.data(), &good);
        return good ? alone_.data() : nullptr;
    }

  private:
    static constexpr u64 MOST_BYTES = 32 << 20;   // of encoded and decoded ones together

    static constexpr u64 MOST = 4096;   // of a form: bytes can be made so that all of them meet in the table

    // Of one form. What was decoded counts only where its bytes are those that are asked for.
    struct Batch {
        struct Entry {
            u64 at, size;   // in `encoded`
        };

        MediaForm form;
        MediaDecoder *decoder = nullptr;
        std::vector<Entry> entries;
        std::string encoded;
        std::unordered_map<u64, u64> by_hash;
        std::vector<u8> rows, good;

        void clear() {
            entries.clear();
            encoded.clear();
            by_hash.clear();
            good.clear();
        }
        bool add(std::string_view bytes) {
            if (!by_hash.try_emplace(murmur3_64(bytes.data(), bytes.size(), 0), entries.size()).second) return false;
            entries.push_back({encoded.size(), bytes.size()});
            encoded += bytes;
            return true;
        }
        std::string_view view(const Entry &entry) const { return {encoded.data() + entry.at, entry.size}; }
        const Entry *find(std::string_view bytes) const {
            if (good.empty()) return nullptr;
            const auto known = by_hash.find(murmur3_64(bytes.data(), bytes.size(), 0));
            if (known == by_hash.end() || view(entries[known->second]) != bytes) return nullptr;
            return &entries[known->second];
        }
        void run() {
            if (entries.empty()) return;
            std::vector<std::string_view> views;
            for (const Entry &entry : entries) views.push_back(view(entry));
            if (rows.size() < views.size() * form.bytes) rows.resize(views.size() * form.bytes);
            good.assign(views.size(), 0);
            decoder->decode(form, views.data(), views.size(), rows.data(), good.data());
        }
    };

    Batch &batch_of(const MediaForm &form) {
        for (Batch &batch : batches_)
            if (batch.form == form) return batch;
        batches_.push_back({.form = form});
        return batches_.back();
    }

    std::vector<Batch> batches_;
    std::vector<u8> alone_;
    u64 bytes_ = 0;
};

}  // namespace st
