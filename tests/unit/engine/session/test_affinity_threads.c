/* Affinity lists: the order of processors from simulated /sys trees, cpusets from simulated groups, and the real
 * affinity of a session's threads. */
#define _GNU_SOURCE
#include "failure_trace.h"
#include "base/os/cgroup.h"
#include "base/cpu/machine.h"
#include "base/threads/parallel.h"
#include "base/cpu/topology.h"
#include "engine/session/session.h"
#include "prony_report.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "affinity_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* Creates the folders that lead to the file. */
static void write_text(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *in_folder(const char *name)
{
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void assert_order(const char *list, const int *wanted, int count)
{
    prn_cpu_mask mask;
    int order[64];
    assert_true(prn_cpu_mask_parse(&mask, list));
    assert_int_equal(prn_cpu_mask_count(&mask), count);
    prn_topology_order(order, &mask, folder);
    for (int i = 0; i < count; i++) assert_int_equal(order[i], wanted[i]);
}

/* Two nodes of two cores of two threads, numbered as servers do: 0-3 are the cores' first threads, 4-7 their second;
 * node 0 holds the odd cores. */
static void cores_come_first_node_by_node_and_siblings_last(void **state)
{
    (void)state;
    char name[64], text[16];
    for (int cpu = 0; cpu < 8; cpu++) {
        snprintf(name, sizeof name, "cpu/cpu%d/topology/%s", cpu, cpu % 2 ? "thread_siblings_list" : "core_cpus_list");
        snprintf(text, sizeof text, "%d,%d\n", cpu % 4, cpu % 4 + 4);
        write_text(name, text);
    }
    write_text("node/online", "0-1\n");
    write_text("node/node0/cpulist", "1,3,5,7\n");
    write_text("node/node1/cpulist", "0,2,4,6\n");
    assert_order("0-7", (const int[]){1, 3, 0, 2, 5, 7, 4, 6}, 8);
    assert_order("4-7", (const int[]){5, 7, 4, 6}, 4); /* siblings without another processor of their core in the mask
                                                          count as cores */
    assert_order("0,4,7", (const int[]){7, 0, 4}, 3);
    prn_cpu_mask mask;
    assert_true(prn_cpu_mask_parse(&mask, "0,4,7"));
    assert_int_equal(prn_topology_cores(&mask, folder), 2);
    assert_true(prn_cpu_mask_parse(&mask, "0,9"));
    assert_int_equal(prn_topology_cores(&mask, folder), 0); /* 9 is not told of */
    assert_order("0,9", (const int[]){0, 9}, 2);
}

/* A board with two kinds of cores: four slow ones, then two fast ones and the fastest. */
static void faster_cores_come_first(void **state)
{
    (void)state;
    static const int capacity[] = {250, 250, 250, 250, 900, 900, 1024};
    char name[64], text[16];
    for (int cpu = 0; cpu < 7; cpu++) {
        snprintf(name, sizeof name, "cpu/cpu%d/topology/core_cpus_list", cpu);
        snprintf(text, sizeof text, "%d\n", cpu);
        write_text(name, text);
        snprintf(name, sizeof name, "cpu/cpu%d/cpu_capacity", cpu);
        snprintf(text, sizeof text, "%d\n", capacity[cpu]);
        write_text(name, text);
    }
    assert_order("0-6", (const int[]){6, 4, 5, 0, 1, 2, 3}, 7);
    assert_order("1,2,5", (const int[]){5, 1, 2}, 3);
}

static void without_a_topology_numbers_decide(void **state)
{
    (void)state;
    assert_order("8,0-2", (const int[]){0, 1, 2, 8}, 4);
}

static void cpusets_of_all_ancestors_count(void **state)
{
    (void)state;
    char text[1024];
    prn_cpu_mask mask, wanted;
    snprintf(text, sizeof text,
             "31 1 0:28 / %s/v2 rw - cgroup2 cgroup2 rw\n"
             "32 1 0:29 / %s/v1 rw - cgroup cgroup rw,cpuset\n",
             folder, folder);
    write_text("mounts", text);
    write_text("groups", "4:cpuset:/outer/inner\n0::/a/b\n");
    assert_false(prn_cgroup_cpuset(&mask, in_folder("groups"), in_folder("mounts")));
    write_text("v2/a/b/cpuset.cpus", "\n"); /* as its parent */
    write_text("v2/a/cpuset.cpus.effective", "0-5\n");
    write_text("v2/a/cpuset.cpus", "0-63\n");
    assert_true(prn_cgroup_cpuset(&mask, in_folder("groups"), in_folder("mounts")));
    assert_true(prn_cpu_mask_parse(&wanted, "0-5"));
    assert_memory_equal(&mask, &wanted, sizeof mask);
    write_text("v1/outer/cpuset.cpus", "4-9\n");
    write_text("v1/outer/inner/cpuset.cpus", "3-9\n");
    assert_true(prn_cgroup_cpuset(&mask, in_folder("groups"), in_folder("mounts")));
    assert_true(prn_cpu_mask_parse(&wanted, "4-5"));
    assert_memory_equal(&mask, &wanted, sizeof mask);
    write_text("v1/outer/inner/cpuset.effective_cpus", "5\n");
    assert_true(prn_cgroup_cpuset(&mask, in_folder("groups"), in_folder("mounts")));
    assert_true(prn_cpu_mask_parse(&wanted, "5"));
    assert_memory_equal(&mask, &wanted, sizeof mask);
    write_text("v2/cpuset.cpus", "60\n"); /* nothing in common: passed over */
    assert_true(prn_cgroup_cpuset(&mask, in_folder("groups"), in_folder("mounts")));
    assert_int_equal(prn_cpu_mask_count(&mask), 1);
    assert_false(prn_cgroup_cpuset(&mask, in_folder("absent"), in_folder("absent")));
}

static int first_cpu(const prn_cpu_mask *mask)
{
    int cpu = 0;
    while (!prn_cpu_mask_has(mask, cpu)) cpu++;
    return cpu;
}

static void what_may_not_be_used_is_left_out_and_said(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_affinity *affinity;
    prn_cpu_mask before, after;
    char list[32];
    assert_true(prn_cpu_mask_get(&before));
    static const char *const wrong[] = {"", "x", "1-0", "0,", "4096", "0 1", "-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        SCENARIO_NAMED(i, wrong[i]);
        assert_int_equal(prn_affinity_create(&affinity, wrong[i], &error), PRONY_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "is not a core list such as 0-3,8"));
        assert_int_equal(prony_affinity_check(wrong[i], &error), PRONY_INVALID_ARGUMENT);
    }
    assert_int_equal(prony_affinity_check("0-4095", &error), PRONY_OK);

    snprintf(list, sizeof list, "%d,4095", first_cpu(&before));
    assert_int_equal(prn_affinity_create(&affinity, list, &error), PRONY_OK);
    assert_int_equal(affinity->count, 1);
    assert_non_null(strstr(affinity->failure, "processor 4095"));
    prn_affinity_release(affinity);
    assert_int_equal(prn_affinity_create(&affinity, "4094-4095", &error), PRONY_OK);
    assert_int_equal(affinity->count, 0);
    assert_non_null(strstr(affinity->failure, "none of these"));
    prn_pin pin;
    prn_pin_begin(&pin, affinity);
    assert_null(prn_affinity_current());
    prn_pin_end(&pin);
    prn_affinity_release(affinity);
    assert_true(prn_cpu_mask_get(&after));
    assert_memory_equal(&before, &after, sizeof before);
}

typedef struct seen {
    _Atomic int inside;
    prn_cpu_mask masks[2];
} seen;

/* Each of two tasks waits for the other, so two threads take part. */
static void look(void *argument, int64_t task)
{
    seen *s = argument;
    atomic_fetch_add(&s->inside, 1);
    while (atomic_load(&s->inside) % 2) sched_yield();
    assert_true(prn_cpu_mask_get(&s->masks[task]));
}

static void look_at_both(seen *s)
{
    *s = (seen){0};
    prn_parallel_tasks(2, 2, look, s);
}

static bool is_only(const prn_cpu_mask *mask, int cpu)
{
    return prn_cpu_mask_count(mask) == 1 && prn_cpu_mask_has(mask, cpu);
}

static void threads_are_pinned_while_it_lasts(void **state)
{
    (void)state;
    prony_error error = {0};
    prn_cpu_mask before, after;
    prn_affinity *affinity, *one;
    prn_pin outer, inner;
    seen s;
    char list[32];
    assert_true(prn_cpu_mask_get(&before));
    if (prn_cpu_mask_count(&before) < 2) skip();
    int first = first_cpu(&before), second = first + 1;
    while (!prn_cpu_mask_has(&before, second)) second++;
    snprintf(list, sizeof list, "%d,%d", first, second);
    assert_int_equal(prn_affinity_create(&affinity, list, &error), PRONY_OK);
    snprintf(list, sizeof list, "%d", second);
    assert_int_equal(prn_affinity_create(&one, list, &error), PRONY_OK);
    affinity->threads = one->threads = 2;
    look_at_both(&s); /* the thread pool exists before its affinity is set */

    prn_pin_begin(&outer, affinity);
    look_at_both(&s);
    bool swapped = is_only(&s.masks[0], affinity->order[1]);
    assert_true(is_only(&s.masks[swapped], affinity->order[0]));
    assert_true(is_only(&s.masks[!swapped], affinity->order[1]));
    prn_pin_begin(&inner, affinity); /* the same: nothing to do */
    prn_pin_end(&inner);
    assert_ptr_equal(prn_affinity_current(), affinity);
    prn_pin_begin(&inner, one); /* more threads than processors: all may use all */
    look_at_both(&s);
    assert_true(is_only(&s.masks[0], second) && is_only(&s.masks[1], second));
    prn_pin_end(&inner);
    look_at_both(&s);
    assert_int_equal(prn_cpu_mask_count(&s.masks[0]) + prn_cpu_mask_count(&s.masks[1]), 2);
    assert_false(is_only(&s.masks[0], first_cpu(&s.masks[1])));
    prn_pin_end(&outer);
    assert_true(prn_cpu_mask_get(&after));
    assert_memory_equal(&before, &after, sizeof before);
    assert_null(prn_affinity_current());

    prn_pin_begin(&outer, NULL); /* a session without a list: workers may use the caller's processors */
    look_at_both(&s);
    assert_memory_equal(&s.masks[0], &before, sizeof before);
    assert_memory_equal(&s.masks[1], &before, sizeof before);
    prn_pin_end(&outer);
    prn_thread_pool_shut_down();
    prn_pin_begin(&outer, affinity); /* the thread pool comes after the pin */
    look_at_both(&s);
    assert_int_equal(prn_cpu_mask_count(&s.masks[0]) + prn_cpu_mask_count(&s.masks[1]), 2);
    assert_false(is_only(&s.masks[0], first_cpu(&s.masks[1])));
    prn_pin_end(&outer);
    affinity->first = 1; /* sessions that share a list: too few processors are left for two */
    prn_cpu_mask mask;
    prn_affinity_mask(affinity, 0, &mask);
    assert_int_equal(prn_cpu_mask_count(&mask), 2);
    prn_affinity_release(affinity);
    prn_affinity_release(one);
}

static void a_session_restores_the_callers_mask(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model;
    prony_session *session;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prn_cpu_mask before, after;
    char list[64];
    const char *failure;
    assert_true(prn_cpu_mask_get(&before));
    int cpu = first_cpu(&before);
    snprintf(list, sizeof list, "%d,4095", cpu);
    options.affinity = list;
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/models/digits.onnx", NULL, &error), PRONY_OK);
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_OK);
    snprintf(list, sizeof list, "%d", cpu);
    assert_string_equal(prony_session_affinity(session, &failure), list);
    assert_non_null(strstr(failure, "4095"));
    assert_int_equal(prony_session_threads(session), 1); /* auto: the cores of the list */
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
    assert_int_equal(prony_session_prepare(session, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    assert_true(prn_cpu_mask_get(&after));
    assert_memory_equal(&before, &after, sizeof before);

    assert_int_equal(prony_session_pin(session, &error), PRONY_OK);
    assert_int_equal(prony_session_pin(session, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    assert_true(prn_cpu_mask_get(&after));
    assert_true(is_only(&after, cpu));
    prony_session_unpin(session);
    prony_session_unpin(session);
    assert_true(prn_cpu_mask_get(&after));
    assert_memory_equal(&before, &after, sizeof before);

    prony_report *report;
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    profile.runs = 3;
    assert_int_equal(prony_session_profile(&report, session, &profile, &error), PRONY_OK);
    prony_report_release(report);
    assert_true(prn_cpu_mask_get(&after));
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(prony_session_pin(session, &error), PRONY_OK);
    prony_session_release(session); /* unpins */
    assert_true(prn_cpu_mask_get(&after));
    assert_memory_equal(&before, &after, sizeof before);
    options.affinity = "nowhere";
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_INVALID_ARGUMENT);
    prony_model_release(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cores_come_first_node_by_node_and_siblings_last, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(faster_cores_come_first, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(without_a_topology_numbers_decide, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(cpusets_of_all_ancestors_count, make_folder, remove_folder),
        cmocka_unit_test(what_may_not_be_used_is_left_out_and_said),
        cmocka_unit_test(threads_are_pinned_while_it_lasts),
        cmocka_unit_test(a_session_restores_the_callers_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
