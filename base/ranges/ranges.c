/* Implements ranges.h, and the hooks of prony_ranges.h. */
#include "base/ranges/ranges.h"

#include "base/option_struct.h"

_Atomic(const prony_range_hooks *) prn_range_hooks;

/* The caller's struct is used where it lies: nothing is added to it in this version, so its fields are all there. */
prony_status prony_range_hooks_install(const prony_range_hooks *hooks, prony_error *error)
{
    prony_range_hooks read = PRONY_RANGE_HOOKS_INIT;
    if (hooks) {
        PRN_TRY(prn_options_read(&read, sizeof read, hooks, "prony_range_hooks", error));
        if (hooks->struct_size < sizeof read || !read.push || !read.pop)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_range_hooks: push or pop is missing");
    }
    atomic_store_explicit(&prn_range_hooks, hooks, memory_order_release);
    return PRONY_OK;
}
