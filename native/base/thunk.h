// ST_EXPORT(kernel) or ST_EXPORT(kernel, float, double): the registry of kernels. The signature is derived from the C++
// function type. Entries are constant data in a section of their own: nothing of a unit built for a newer instruction
// set runs at load. ST_EXPORT_HOST is for matrix products, ST_EXPORT_UPDATE for what an optimizer changes.
#pragma once
#include "base/types.h"
#include "base/step.h"

#if defined(__CUDACC_RTC__)
#define ST_EXPORT(...)
#define ST_EXPORT_HOST(...)
#define ST_EXPORT_UPDATE(...)
#else
#include <utility>

namespace st {

using Thunk = void (*)(void **arguments);   // arguments[i] points to the i-th argument

struct KernelEntry {
    const char *name;              // mish
    const char *types;             // float; empty for a kernel that is no template
    const char *isa;               // v2 | v3 | v4 | baseline
    Thunk thunk;
    const char *const *arguments;  // "i64", "f32", "f32*", "const f32*", "step*", ...
    u32 argument_count;
    bool host_only;                // CUDA has another way for it (cuBLAS)
    bool subnormals_are_zero;      // while it runs, see plan/subnormal.h
};

// Defined in base/registry.cpp.
const KernelEntry *find_kernel(const char *name, const char *types, const char *isa);
u32 kernel_count();
const KernelEntry &kernel_at(u32 index);

inline namespace ST_ISA {

template <class T>
constexpr const char *argument_name = nullptr;
#define ST_ARGUMENT(type, text)                               \
    template <>                                               \
    inline constexpr const char *argument_name<type> = text;  \
    template <>                                               \
    inline constexpr const char *argument_name<type *> = text "*"; \
    template <>                                               \
    inline constexpr const char *argument_name<const type *> = "const " text "*"; \
    template <>                                               \
    inline constexpr const char *argument_name<type *const *> = text "**"; \
    template <>                                               \
    inline constexpr const char *argument_name<const type *const *> = "const " text "**";
ST_ARGUMENT(f32, "f32")
ST_ARGUMENT(f64, "f64")
ST_ARGUMENT(i32, "i32")
ST_ARGUMENT(i64, "i64")
ST_ARGUMENT(u8, "u8")
ST_ARGUMENT(u64, "u64")
ST_ARGUMENT(StepBlock, "step")
#undef ST_ARGUMENT

template <auto function>
struct Exported;
template <class... A, void (*function)(A...)>
struct Exported<function> {
    static_assert(((argument_name<A> != nullptr) && ...),
                  "a kernel takes f32, f64, i32, i64, u8, u64, pointers or tables of pointers");
    static constexpr const char *names[] = {argument_name<A>...};
    static constexpr u32 count = sizeof...(A);
    template <std::size_t... i>
    static void spread(void **arguments, std::index_sequence<i...>) {
        function(*static_cast<A *>(arguments[i])...);
    }
    static void call(void **arguments) { spread(arguments, std::index_sequence_for<A...>{}); }
};

}  // namespace ST_ISA
}  // namespace st

#define ST_TEXT_(x) #x
#define ST_TEXT(x) ST_TEXT_(x)
#define ST_JOIN_(a, b) a##b
#define ST_JOIN(a, b) ST_JOIN_(a, b)
#define ST_ENTRY_(number, kernel, function, types, ...)                                                         \
    static constinit const st::KernelEntry ST_JOIN(kernel##_entry, number) = {                                  \
        #kernel, types, ST_TEXT(ST_ISA_NAME), st::Exported<function>::call, st::Exported<function>::names,      \
        st::Exported<function>::count, __VA_ARGS__};                                                            \
    static constinit const st::KernelEntry *ST_JOIN(kernel##_pointer, number)                                   \
        __attribute__((section("st_kernels"), used)) = &ST_JOIN(kernel##_entry, number);
#define ST_EXPORT_0(kernel, ...) ST_ENTRY_(0, kernel, &kernel, "", __VA_ARGS__)
#define ST_EXPORT_1(kernel, a) ST_ENTRY_(1, kernel, &kernel<a>, #a, false, false)
#define ST_EXPORT_2(kernel, a, b) ST_EXPORT_1(kernel, a) ST_ENTRY_(2, kernel, &kernel<b>, #b, false, false)
#define ST_EXPORT_3(kernel, a, b, c) ST_EXPORT_2(kernel, a, b) ST_ENTRY_(3, kernel, &kernel<c>, #c, false, false)
#define ST_PICK_(kernel, a, b, c, chosen, ...) chosen
#define ST_EXPORT_NONE(kernel) ST_EXPORT_0(kernel, false, false)
#define ST_EXPORT(...) ST_PICK_(__VA_ARGS__, ST_EXPORT_3, ST_EXPORT_2, ST_EXPORT_1, ST_EXPORT_NONE, )(__VA_ARGS__)
#define ST_EXPORT_HOST(kernel) ST_EXPORT_0(kernel, true, true)
#define ST_EXPORT_UPDATE(kernel) ST_EXPORT_0(kernel, false, true)
#endif
