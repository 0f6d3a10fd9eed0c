#include "decode/batch_filler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace st {

void BatchFiller::Free::operator()(u8 *bytes) const { std::free(bytes); }

void BatchFiller::open() {
    if (!own_) {
        const u64 bytes = align64(plan_->layout.slot_bytes);
        own_.reset(static_cast<u8 *>(std::aligned_alloc(64, bytes)));
        if (!own_) throw std::bad_alloc();
        std::memset(own_.get(), 0, bytes);
    }
    open(own_.get(), plan_->layout.row_capacity);
}

u32 BatchFiller::close() {
    plan_->clear_behind(sink_.slot, sink_.rows);
    reinterpret_cast<SlotHeader *>(sink_.slot)->rows = sink_.rows;
    return sink_.rows;
}

void BatchFiller::count(const RecordView &record, i64 from_row, i64 most) {
    if (!sink_.slot) open();
    const u32 capacity = sink_.row_capacity;
    begin(record, from_row);
    for (bool done = false; !done && most > 0;) {
        if (full()) sink_.rows = 0, full_ = false;
        const u32 before = sink_.rows;
        sink_.row_capacity = before + static_cast<u32>(std::min<i64>(capacity - before, most));
        done = next();
        most -= i64{sink_.rows} - before;
    }
    sink_.row_capacity = capacity;
}

}  // namespace st
