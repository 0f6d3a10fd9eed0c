// The kernels of every unit, as the linker laid their entries out in the section st_kernels.
#include <cstring>

#include "base/thunk.h"

extern "C" {
extern const st::KernelEntry *__start_st_kernels[] __attribute__((visibility("hidden")));
extern const st::KernelEntry *__stop_st_kernels[] __attribute__((visibility("hidden")));
}

namespace st {

u32 kernel_count() { return static_cast<u32>(__stop_st_kernels - __start_st_kernels); }

const KernelEntry &kernel_at(u32 index) { return *__start_st_kernels[index]; }

const KernelEntry *find_kernel(const char *name, const char *types, const char *isa) {
    for (u32 i = 0; i < kernel_count(); ++i) {
        const KernelEntry &entry = kernel_at(i);
        if (!std::strcmp(entry.name, name) && !std::strcmp(entry.types, types) && !std::strcmp(entry.isa, isa))
            return &entry;
    }
    return nullptr;
}

}  // namespace st
