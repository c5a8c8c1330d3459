/* Pages are moved by mremap, which leaves both ranges mapped (MREMAP_DONTUNMAP): at no moment could another thread's
 * mapping come between. Without this call spares are never used. */
#define _GNU_SOURCE
#include "base/memory/reserve.h"

#include "base/memory/alloc.h"
#include "base/memory/budget.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* 4, 16 or 64 KiB on AArch64. */
static size_t reserve_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t reserve_room_of(size_t bytes)
{
    const size_t page = reserve_page_bytes();
    return (bytes + page - 1) & ~(page - 1);
}

static void *map_empty(size_t room)
{
    const size_t page = reserve_page_bytes(), alignment = room >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : page,
                 whole = room + alignment - page;
    char *raw = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    const size_t front = (alignment - (uintptr_t)raw % alignment) % alignment;
    if (front) (void)munmap(raw, front);
    if (whole - front > room) (void)munmap(raw + front + room, whole - front - room);
    return raw + front;
}

/* Moves the pages of `from` to `to`, which may then be read and written; `from` stays mapped without pages. */
static bool move_pages(void *from, void *to, size_t room)
{
#ifdef MREMAP_DONTUNMAP
    return mremap(from, room, room, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == to;
#else
    (void)from;
    (void)to;
    (void)room;
    return false;
#endif
}

static bool make_readable(char *data, size_t room)
{
    if (mprotect(data, room, PROT_READ | PROT_WRITE) != 0) return false;
#ifdef MADV_HUGEPAGE
    if (room >= HUGE_PAGE_BYTES) (void)madvise(data, room & ~(HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE);
#endif
    return true;
}

static void make_unreadable(void *data, size_t room)
{
    (void)madvise(data, room, MADV_DONTNEED);
    (void)mprotect(data, room, PROT_NONE);
}

bool prn_reserve_open(prn_reserve *reserve, size_t bytes)
{
    *reserve = (prn_reserve){.bytes = bytes ? bytes : 1};
    if (prn_alloc_refused(bytes)) return false;
    reserve->data = map_empty(reserve_room_of(reserve->bytes));
    return reserve->data != NULL;
}

/* Releases the spare's bytes beyond `room`. */
static void trim(prn_spare *spare, size_t room)
{
    (void)munmap((char *)spare->data + room, spare->bytes - room);
    prn_budget_return(spare->budget, spare->bytes - room);
    spare->bytes = room;
}

/* Fills the range with the spare's bytes, and the rest fresh. Releases the spare's remaining bytes, because a plan
 * packs the largest constants first. */
static bool reserve_borrow(prn_reserve *reserve, prn_spare *spare, size_t room)
{
    if (spare->bytes > room) trim(spare, room);
    const size_t part = spare->bytes < room ? spare->bytes : room;
    if (part && !move_pages(spare->data, reserve->data, part)) return false;
    if (part < room && !make_readable((char *)reserve->data + part, room - part)) return false;
    if (spare->bytes) prn_budget_unbook(spare->budget, spare->bytes);
    spare->budget = NULL;
    spare->lent = true;
    reserve->spare = spare;
    return true;
}

bool prn_reserve_fill(prn_reserve *reserve, prn_spare *spare)
{
    const size_t room = reserve_room_of(reserve->bytes);
    prn_budget *budget = prn_budget_current();
    if (prn_alloc_refused(room) || !prn_budget_book(budget, room)) return false;
    const bool borrowed = spare && !spare->lent && reserve_borrow(reserve, spare, room);
    if (!borrowed && !make_readable(reserve->data, room)) {
        make_unreadable(reserve->data, room);
        prn_budget_unbook(budget, room);
        return false;
    }
    reserve->budget = budget;
    reserve->filled = true;
    return true;
}

/* Moves the range's pages back to the spare; a smaller spare moves to a larger range. */
static bool reserve_give_back(prn_spare *spare, const prn_reserve *reserve, size_t room)
{
    prn_spare grown = {.data = spare->data, .bytes = spare->bytes, .budget = prn_budget_current()};
    if (grown.bytes < room) {
        grown.data = map_empty(room);
        grown.bytes = room;
    }
    bool ok = grown.data && prn_budget_book(grown.budget, grown.bytes);
    if (ok && !move_pages(reserve->data, grown.data, room)) {
        prn_budget_unbook(grown.budget, grown.bytes);
        ok = false;
    }
    if (grown.data && grown.data != spare->data && !ok) (void)munmap(grown.data, grown.bytes);
    if (spare->bytes && (!ok || grown.data != spare->data)) (void)munmap(spare->data, spare->bytes);
    *spare = ok ? grown : (prn_spare){0};
    return ok;
}

void prn_reserve_empty(prn_reserve *reserve)
{
    if (!reserve->filled) return;
    const size_t room = reserve_room_of(reserve->bytes);
    prn_budget_unbook(reserve->budget, room);
    if (reserve->spare) (void)reserve_give_back(reserve->spare, reserve, room);
    make_unreadable(reserve->data, room);
    reserve->spare = NULL;
    reserve->budget = NULL;
    reserve->filled = false;
}

void prn_reserve_drop(const prn_reserve *reserve, const void *from, size_t bytes)
{
    const size_t page = reserve_page_bytes(), offset = (size_t)((const char *)from - (const char *)reserve->data);
    const size_t begin = (offset + page - 1) & ~(page - 1), end = (offset + bytes) & ~(page - 1);
    if (reserve->filled && begin < end) (void)madvise((char *)reserve->data + begin, end - begin, MADV_DONTNEED);
}

void prn_reserve_close(prn_reserve *reserve)
{
    if (!reserve->data) return;
    prn_reserve_empty(reserve);
    (void)munmap(reserve->data, reserve_room_of(reserve->bytes));
    *reserve = (prn_reserve){0};
}

void prn_spare_release(prn_spare *spare)
{
    if (spare->bytes == 0) return;
    (void)munmap(spare->data, spare->bytes);
    prn_budget_unbook(spare->budget, spare->bytes);
    *spare = (prn_spare){0};
}
