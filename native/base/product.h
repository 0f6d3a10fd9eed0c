// The matrix product on CPU: C = start + A B, each element one chain of fused multiply-adds in ascending k, or chains
// of a given length added in double, so that its bits depend on neither blocks, threads nor instruction set. Blocks as
// in Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008: of A in L2, of B in L2 or L3.
#pragma once

#include "base/pack.h"
#include "base/tile.h"

namespace st {
inline namespace ST_ISA {

// C is read and written again every block_depth, so that the deeper the better: one chain of dense_grad_weight. A panel
// of B of that depth (16 or 64 KiB) then comes from L1 or L2, where it is as fast. Packed: 512 KiB of B, 96 KiB of A.
constexpr i64 block_depth = 256, block_columns = 512, block_rows = 2 * strip_rows;
constexpr i64 few_rows_depth = panel_columns < 64 ? block_depth : 128;   // few rows meet a panel while it is in L1
constexpr i64 near = 128;   // A's rows no farther apart are used where they are

// A(row, k) = a[row * a_row + k * a_step], B(k, column) = b[k * b_step + column * b_column], in each one stride is 1;
// C is rows x columns, contiguous, and overlaps nothing else.
struct Product {
    i64 rows, depth, columns;
    const f32 *a;
    i64 a_row, a_step;
    const f32 *b;
    i64 b_step, b_column;
    const f32 *start;   // one a column; null: 0
    f32 *c;
    Finish finish;
    const f32 *mask;    // shaped as C
    i64 chain = 0;          // length of a chain; 0: the depth
    f64 *totals = nullptr;  // rows x a block's columns, whole vectors of them; may be null where there is one chain
};

// Part of the depth, no longer than a block, in one chain.
struct Stretch {
    i64 k, depth;
    bool begins, ends;   // the chain
};

ST_INLINE Stretch stretch_from(const Product &p, i64 k) {
    i64 begun = p.chain ? k - k % p.chain : 0;
    i64 end = p.chain ? smaller(begun + p.chain, p.depth) : p.depth;
    i64 depth = smaller(end - k, p.rows <= block_rows ? few_rows_depth : block_depth);
    return {k, depth, k == begun, k + depth == end};
}

// What becomes of the sums; until a chain ends C holds them.
ST_INLINE Chain chain_of(const Product &p, const Stretch &s) {
    if (!s.ends || !p.chain || p.chain >= p.depth) return Chain::only;
    return s.k < p.chain ? Chain::first : s.k + s.depth == p.depth ? Chain::last : Chain::next;
}

// A block of A where its tiles find it, strip by strip, and what they fetch while they compute.
struct Block {
    i64 first, rows;   // of C
    const f32 *a;
    i64 a_row, a_step, strip;
    Ahead next_a{};   // a row that is packed next, and how many there are
    i64 rows_ahead = 0;
    Ahead next_c{};   // down the columns that are met next, a line wide, and how many lines there are
    i64 lines_ahead = 0;
    const f32 *next_mask = nullptr;   // beside next_c
};

constexpr i64 line = 16;   // floats

ST_INLINE Block block_of(const Product &p, const Stretch &s, i64 first, i64 rows, f32 *packed) {
    const f32 *a = p.a + first * p.a_row + s.k * p.a_step;
    bool along_memory = p.a_row == 1;
    if (p.columns <= panel_columns || (along_memory ? p.a_step : p.a_row) <= near)
        return {first, rows, a, p.a_row, p.a_step, rows};
    if (along_memory) {
        pack_strips(packed, a, p.a_step, rows, s.depth);
        return {first, rows, packed, 1, strip_rows, strip_rows};
    }
    i64 width = pack_along(packed, a, p.a_row, rows, s.depth);
    return {first, rows, packed, width, 1, rows, {a + rows * p.a_row, 2}, smaller(p.rows - first - rows, block_rows)};
}

// What the tile fetches: its totals; or C, and the mask, of the next panel; or of A what is packed next.
template <int sums>
ST_INLINE Ahead ahead_of(const Product &p, const Panel &panel, Block &block, const f64 *totals) {
    if (panel.chain != Chain::only)
        return {reinterpret_cast<const f32 *>(totals), 4 * sums / larger<i64>(panel.depth, 1)};
    if (block.lines_ahead == 0 && block.next_mask) {
        block.next_c.at = block.next_mask;
        block.next_mask = nullptr;
        block.lines_ahead = panel_columns / line;
    }
    Ahead found = block.lines_ahead > 0 ? block.next_c : block.rows_ahead > 0 ? block.next_a : Ahead{panel.b, 0};
    if (block.lines_ahead > 0) block.next_c.at += line, --block.lines_ahead;
    else if (block.rows_ahead > 0) block.next_a.at += p.a_row, --block.rows_ahead;
    return found;
}

template <int rows, int vectors>
ST_INLINE void tiles(const Product &p, const Panel &panel, Block &block, i64 &row, i64 end, const f32 *&a, i64 column,
                     f64 *totals) {
    for (; row + rows <= end; row += rows, a += rows * block.a_row) {
        i64 at = (block.first + row) * p.columns + column;
        constexpr int sums = rows * vectors * vector_lanes;
        f64 *its_totals = totals + row * vectors * vector_lanes;
        tile<rows, vectors>(panel, a, block.a_row, block.a_step, p.c + at, p.columns, p.mask ? p.mask + at : nullptr,
                            its_totals, ahead_of<sums>(p, panel, block, its_totals));
    }
}

template <int vectors>
void multiply_panel(const Product &p, const Panel &panel, Block &block, i64 column, f64 *totals) {
    for (i64 row = 0; row < block.rows;) {
        const f32 *a = block.a + row * (block.strip < block.rows ? panel.depth : 0);   // a strip's first
        i64 end = smaller(row + block.strip, block.rows);
        tiles<vectors == panel_vectors ? 6 : 8, vectors>(p, panel, block, row, end, a, column, totals);
        tiles<4, vectors>(p, panel, block, row, end, a, column, totals);
        tiles<2, vectors>(p, panel, block, row, end, a, column, totals);
        tiles<1, vectors>(p, panel, block, row, end, a, column, totals);
    }
}

// A block of A and a block of B, its columns from `left` to `right`. A panel of B is packed when the first block of A
// meets it; kept for the others where there are any.
ST_INLINE void multiply_block(const Product &p, const Stretch &s, Block block, i64 left, i64 right, f32 *packed) {
    // whole vectors in rows not far apart are used where they are
    bool in_place = p.b_column == 1 && (right - left) % vector_lanes == 0 && p.b_step <= 2 * panel_columns;
    for (i64 column = left; column < right; column += panel_columns) {
        i64 columns = smaller<i64>(right - column, panel_columns), width = whole_vectors(columns);
        const f32 *b = p.b + s.k * p.b_step + column * p.b_column;
        if (!in_place) {
            f32 *to = packed + (block.rows < p.rows ? (column - left) * s.depth : 0);
            if (block.first == 0 && p.b_column == 1) pack_rows(to, b, p.b_step, s.depth, columns);
            else if (block.first == 0) pack_columns(to, b, p.b_column, s.depth, columns);
            b = to;
        }
        alignas(64) f32 start[panel_columns] = {};
        if (p.start) __builtin_memcpy(start, p.start + column, static_cast<std::size_t>(columns) * sizeof(f32));
        Panel panel{b, in_place ? p.b_step : width, s.depth, s.begins ? start : nullptr,
                    static_cast<int>(columns - width) + vector_lanes,
                    s.k + s.depth < p.depth ? Finish::none : p.finish, chain_of(p, s)};
        bool more = column + panel_columns < right;
        i64 next = (block.first + (more ? 0 : block.rows)) * p.columns + (more ? column + panel_columns : left);
        block.next_c = {p.c + next, p.columns};
        block.next_mask = panel.finish == Finish::mask ? p.mask + next : nullptr;
        block.lines_ahead = block.rows < p.rows ? panel_columns / line : 0;
        f64 *totals = p.totals + p.rows * (column - left) + block.first * width;
        const i64 vectors = width / vector_lanes;
        if (vectors == 1) multiply_panel<1>(p, panel, block, column, totals);
        if (vectors == 2) multiply_panel<2>(p, panel, block, column, totals);
        if constexpr (panel_vectors == 4) {
            if (vectors == 3) multiply_panel<3>(p, panel, block, column, totals);
            if (vectors == 4) multiply_panel<4>(p, panel, block, column, totals);
        }
    }
}

// What a thread packs blocks into: too much for a small stack. It comes with the thread's first product.
struct Packed {
    alignas(64) f32 a[block_rows * block_depth];
    alignas(64) f32 b[block_columns * block_depth];
};

// <memory>, for a pointer of its own that frees it, takes longer to read than all of a kernel.
struct PackedOfThread {
    Packed *const packed = new Packed;   // without (), which would touch all of it
    PackedOfThread() = default;
    PackedOfThread(const PackedOfThread &) = delete;
    ~PackedOfThread() { delete packed; }
};

inline Packed &packed_of_thread() {
    thread_local const PackedOfThread own;
    return *own.packed;
}

inline void multiply(const Product &p) {
    auto &[packed_a, packed_b] = packed_of_thread();
    const i64 part = p.columns > panel_columns ? block_rows : p.rows;   // of the rows
    for (i64 left = 0; left < p.columns; left += block_columns) {
        i64 right = smaller(left + block_columns, p.columns), k = 0;
        do {
            Stretch s = stretch_from(p, k);
            for (i64 row = 0; row < p.rows; row += part)
                multiply_block(p, s, block_of(p, s, row, smaller(p.rows - row, part), packed_a), left, right, packed_b);
            k += s.depth;
        } while (k < p.depth);
    }
}

}  // namespace ST_ISA
}  // namespace st
