/* prony_memory_*: the process's budget, and what the machine has. */
#include "base/memory/budget.h"
#include "base/cpu/machine.h"

void prony_memory_set_limit(uint64_t bytes)
{
    prn_budget_limit_process(bytes);
}

uint64_t prony_memory_in_use(void)
{
    return prn_budget_held(NULL);
}

uint64_t prony_memory_available(void)
{
    return prn_machine_available_bytes();
}
