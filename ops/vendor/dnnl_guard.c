/* A catch clause in C. A C++ runtime unwinds the stack by the unwind tables, which name a personality function for each
 * function that has handlers. prn_dnnl_catch is a function in assembly with such an entry; its personality, in C, takes
 * every C++ exception that leaves the call and goes on at prn_dnnl_landing. oneDNN's own frames are unwound by its own
 * personality on the way, so that its locks are released and its objects destroyed.
 *
 * Exceptions inside of an OpenMP region of oneDNN end the process as before: the compiler puts std::terminate there. */
#include "ops/vendor/dnnl_guard.h"

#ifdef PRN_HAVE_DNNL

#include <sys/mman.h>

/* A primitive with its descriptions takes some 100 KiB, its code buffer 256 KiB. */
enum { ROOM_BYTES = 1 << 20 };

#if defined(__x86_64__) && defined(__ELF__)

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include <dlfcn.h>
#include <string.h>
#include <unwind.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN extern const char prn_dnnl_landing[];
HIDDEN dnnl_status_t prn_dnnl_catch(void *argument, dnnl_status_t (*function)(void *argument));
/* Called from the assembly below. */
HIDDEN dnnl_status_t prn_dnnl_caught(struct _Unwind_Exception *exception);
HIDDEN _Unwind_Reason_Code prn_dnnl_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                                struct _Unwind_Exception *exception, struct _Unwind_Context *context);

/* The stack is a multiple of 16 at the call. The landing continues with the frame as it was during the call and the
 * exception in the register that holds a result. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl prn_dnnl_catch\n"
        ".hidden prn_dnnl_catch\n"
        ".type prn_dnnl_catch, @function\n"
        "prn_dnnl_catch:\n"
        "    .cfi_startproc\n"
        "    .cfi_personality 0x1b, prn_dnnl_personality\n" /* relative to the entry, 32 bits */
        "    endbr64\n"
        "    pushq %rbx\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbx, -16\n"
        "    call *%rsi\n"
        "    popq %rbx\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        ".globl prn_dnnl_landing\n"
        ".hidden prn_dnnl_landing\n"
        "prn_dnnl_landing:\n"
        "    .cfi_def_cfa_offset 16\n"
        "    endbr64\n"
        "    movq %rax, %rdi\n"
        "    call prn_dnnl_caught\n"
        "    popq %rbx\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size prn_dnnl_catch, . - prn_dnnl_catch\n");

/* "GNUCC++" and "CLNGC++" with a last byte of the runtime's own. */
static bool is_cxx(_Unwind_Exception_Class class)
{
    const uint64_t name = (uint64_t)class >> 8;
    return name == UINT64_C(0x474e5543432b2b) || name == UINT64_C(0x434c4e47432b2b);
}

_Unwind_Reason_Code prn_dnnl_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                         struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    if (version != 1 || (actions & _UA_FORCE_UNWIND) || !is_cxx(class)) return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE) return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME)) return _URC_CONTINUE_UNWIND;
    _Unwind_SetGR(context, __builtin_eh_return_data_regno(0), (_Unwind_Word)(uintptr_t)exception);
    _Unwind_SetIP(context, (_Unwind_Word)(uintptr_t)prn_dnnl_landing);
    return _URC_INSTALL_CONTEXT;
}

/* Ends the exception as `catch (...) {}` does. The C++ runtime is oneDNN's: where its functions are not found by name,
 * the exception is deleted, and only its count of exceptions in flight stays wrong. */
dnnl_status_t prn_dnnl_caught(struct _Unwind_Exception *exception)
{
    void *(*begin)(void *) = NULL;
    void (*end)(void) = NULL;
    void *symbols[] = {dlsym(RTLD_DEFAULT, "__cxa_begin_catch"), dlsym(RTLD_DEFAULT, "__cxa_end_catch")};
    memcpy(&begin, &symbols[0], sizeof begin);
    memcpy(&end, &symbols[1], sizeof end);
    if (begin && end) {
        (void)begin(exception);
        end();
    } else {
        _Unwind_DeleteException(exception);
    }
    return dnnl_out_of_memory;
}

#else

static dnnl_status_t prn_dnnl_catch(void *argument, dnnl_status_t (*function)(void *argument))
{
    return function(argument);
}

#endif

/* Entries of primitives that were never finished would fail every later request for the same one. */
static dnnl_status_t empty_cache(void *unused)
{
    int capacity = 0;
    (void)unused;
    dnnl_status_t status = dnnl_get_primitive_cache_capacity(&capacity);
    if (status == dnnl_success) status = dnnl_set_primitive_cache_capacity(0);
    return status == dnnl_success ? dnnl_set_primitive_cache_capacity(capacity) : status;
}

dnnl_status_t prn_dnnl_guarded(dnnl_status_t (*function)(void *argument), void *argument)
{
    dnnl_status_t status = prn_dnnl_catch(argument, function);
    if (status == dnnl_out_of_memory) (void)prn_dnnl_catch(NULL, empty_cache);
    return status;
}

/* Address space that is free again at once: another thread may still take it, which the exception then tells. */
static bool has_room(void)
{
    void *room = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, ROOM_BYTES) == 0;
}

dnnl_status_t prn_dnnl_guarded_creation(dnnl_status_t (*function)(void *argument), void *argument)
{
    return has_room() ? prn_dnnl_guarded(function, argument) : dnnl_out_of_memory;
}

#endif
