// Runs kernels of this build on arguments from the standard input and writes every array as it is afterwards: how the
// bits of another processor are compared. Numbers are little-endian; the texts of a call are a length and its bytes, an
// argument is a kind, a length and its bytes: a value, an array, or a null pointer.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/thunk.h"

namespace {

constexpr st::u64 value = 0, null_pointer = 2;   // else an array

void read(void *to, st::u64 bytes) {
    if (bytes && std::fread(to, 1, bytes, stdin) != bytes) std::exit(2);
}

st::u64 number() {
    st::u64 found;
    read(&found, sizeof found);
    return found;
}

std::string text() {
    std::string found(number(), ' ');
    read(found.data(), found.size());
    return found;
}

struct Free {
    void operator()(void *p) const { std::free(p); }
};

struct Argument {
    st::u64 kind, bytes;
    std::unique_ptr<void, Free> content;   // as aligned as the blocks of a plan
    void *address;
};

Argument argument() {
    Argument found{number(), number(), nullptr, nullptr};
    found.content.reset(std::aligned_alloc(st::CACHE_LINE, st::align64(found.bytes + 1)));
    read(found.content.get(), found.bytes);
    found.address = found.kind == null_pointer ? nullptr : found.content.get();
    return found;
}

void call() {
    const std::string name = text(), types = text();
    const st::KernelEntry *kernel = st::find_kernel(name.c_str(), types.c_str(), "baseline");
    std::vector<Argument> arguments(number());
    for (Argument &each : arguments) each = argument();
    if (!kernel || kernel->argument_count != arguments.size()) {
        std::fprintf(stderr, "no kernel %s<%s> of %zu arguments\n", name.c_str(), types.c_str(), arguments.size());
        std::exit(3);
    }
    std::vector<void *> pointers;
    for (Argument &each : arguments)
        pointers.push_back(each.kind == value ? each.content.get() : static_cast<void *>(&each.address));
    kernel->thunk(pointers.data());
    for (const Argument &each : arguments)
        if (each.kind != value) std::fwrite(each.content.get(), 1, each.bytes, stdout);
}

}  // namespace

int main() {
    for (st::u64 calls = number(); calls; --calls) call();
    return 0;
}
