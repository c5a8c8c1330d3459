/* CPU quota, cpusets and memory from control groups. /proc/self/cgroup names the process's group in each hierarchy;
 * /proc/self/mountinfo gives the mount point of a hierarchy and the group shown there. Every directory from the group
 * up to the mount point is read. In a container the group path may lie outside of the mount; then only the mount point
 * is read. */
#include "base/os/cgroup.h"
#include "base/os/text_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A query to every group: a controller, its values, and the least value found. */
typedef struct question {
    const char *controller; /* of version 1 */
    void (*read)(struct question *q, const char *directory, bool v2);
    double quota; /* 0: none */
    uint64_t left;
    prn_cpu_mask set; /* valid if has_set */
    bool has_set;
} question;

static void keep_smaller(double *quota, int64_t time, int64_t period)
{
    if (time <= 0 || period <= 0) return;
    double cpus = (double)time / (double)period;
    if (*quota <= 0 || cpus < *quota) *quota = cpus;
}

static void read_quota(question *q, const char *directory, bool v2)
{
    char path[PATH_MAX + 32], text[64];
    if (v2) {
        snprintf(path, sizeof path, "%s/cpu.max", directory);
        char *end;
        if (!prn_text_read(path, text, sizeof text) || text[0] == 'm') return;
        int64_t time = strtoll(text, &end, 10);
        keep_smaller(&q->quota, time, strtoll(end, NULL, 10));
        return;
    }
    int64_t time, period;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
    if (!prn_text_read_int(path, &time)) return;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    if (prn_text_read_int(path, &period)) keep_smaller(&q->quota, time, period);
}

/* Bytes of inactive file pages, subgroups included. */
static uint64_t droppable_bytes(const char *directory, bool v2)
{
    char path[PATH_MAX + 32];
    const char *key = v2 ? "inactive_file " : "total_inactive_file ";
    uint64_t bytes = 0;
    prn_lines lines;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    if (!prn_lines_open(&lines, path)) return 0;
    for (char *line; (line = prn_lines_next(&lines));)
        if (strncmp(line, key, strlen(key)) == 0) bytes = strtoull(line + strlen(key), NULL, 10);
    prn_lines_close(&lines);
    return bytes;
}

static void cgroup_read_memory(question *q, const char *directory, bool v2)
{
    char path[PATH_MAX + 32];
    int64_t limit, used;
    snprintf(path, sizeof path, "%s/%s", directory, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (!prn_text_read_int(path, &limit) || limit < 0) return; /* "max" */
    snprintf(path, sizeof path, "%s/%s", directory, v2 ? "memory.current" : "memory.usage_in_bytes");
    if (!prn_text_read_int(path, &used) || used < 0) return;
    uint64_t drop = droppable_bytes(directory, v2);
    uint64_t held = (uint64_t)used > drop ? (uint64_t)used - drop : 0;
    uint64_t left = (uint64_t)limit > held ? (uint64_t)limit - held : 0;
    if (left < q->left) q->left = left;
}

/* Reads the effective set, or the configured one if the kernel does not give it; an empty set is ignored. */
static void read_set(question *q, const char *directory, bool v2)
{
    static const char *const names[2][2] = {{"cpuset.effective_cpus", "cpuset.cpus"},
                                            {"cpuset.cpus.effective", "cpuset.cpus"}};
    char path[PATH_MAX + 32], text[4096];
    prn_cpu_mask mask;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[v2][i]);
        if (!prn_text_read(path, text, sizeof text) || !prn_cpu_mask_parse(&mask, text)) continue;
        if (!q->has_set)
            q->set = mask;
        else
            (void)prn_cpu_mask_intersect(&q->set, &mask);
        q->has_set = true;
        return;
    }
}

static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    }
    return false;
}

/* Path of this process's group in the v2 hierarchy or in the v1 hierarchy of the controller. */
static bool find_group(const char *cgroup_path, const char *controller, bool v2, char *group, size_t size)
{
    prn_lines lines;
    if (!prn_lines_open(&lines, cgroup_path)) return false;
    bool found = false;
    for (char *line; !found && (line = prn_lines_next(&lines));) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *controllers++ = '\0';
        *path++ = '\0';
        if (v2 ? controllers[0] != '\0' : !list_has(controllers, controller)) continue;
        found = (size_t)snprintf(group, size, "%s", path) < size;
    }
    prn_lines_close(&lines);
    return found;
}

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

typedef struct mount {
    char *root, *point, *type, *super_options;
} mount;

/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS */
static bool parse_mount(char *line, mount *mount)
{
    char *save = NULL, *field = strtok_r(line, " ", &save);
    for (int i = 0; field; i++, field = strtok_r(NULL, " ", &save)) {
        if (i == 3) mount->root = field;
        if (i == 4) mount->point = field;
        if (i > 4 && strcmp(field, "-") == 0) break;
    }
    if (!field || !mount->point) return false;
    mount->type = strtok_r(NULL, " ", &save);
    strtok_r(NULL, " ", &save);
    mount->super_options = strtok_r(NULL, " ", &save);
    if (!mount->super_options) return false;
    unescape(mount->root);
    unescape(mount->point);
    return true;
}

/* Reads the group and its ancestors up to the mount point. */
static void walk_up(question *q, const mount *mount, const char *group, bool v2)
{
    size_t root_length = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
    bool inside = strncmp(group, mount->root, root_length) == 0 && (group[root_length] == '/' || !group[root_length]) &&
                  !strstr(group, "/..");
    char directory[PATH_MAX];
    int length = snprintf(directory, sizeof directory, "%s%s", mount->point, inside ? group + root_length : "");
    if (length < 0 || (size_t)length >= sizeof directory) return;
    size_t top = strlen(mount->point);
    for (;;) {
        q->read(q, directory, v2);
        char *slash = strrchr(directory, '/');
        if (strlen(directory) <= top || !slash || (size_t)(slash - directory) < top) return;
        *slash = '\0';
    }
}

static void cgroup_ask(question *q, const char *cgroup_path, const char *mountinfo_path)
{
    char group[2][PATH_MAX];
    bool known[2];
    for (int v2 = 0; v2 < 2; v2++) known[v2] = find_group(cgroup_path, q->controller, v2, group[v2], sizeof group[v2]);
    prn_lines lines;
    if (!prn_lines_open(&lines, mountinfo_path)) return;
    for (char *line; (line = prn_lines_next(&lines));) {
        mount mount = {0};
        if (!parse_mount(line, &mount)) continue;
        bool v2 = strcmp(mount.type, "cgroup2") == 0;
        bool v1 = strcmp(mount.type, "cgroup") == 0 && list_has(mount.super_options, q->controller);
        if ((v1 || v2) && known[v2]) walk_up(q, &mount, group[v2], v2);
    }
    prn_lines_close(&lines);
}

double prn_cgroup_quota_cpus(const char *cgroup_path, const char *mountinfo_path)
{
    question q = {.controller = "cpu", .read = read_quota};
    cgroup_ask(&q, cgroup_path, mountinfo_path);
    return q.quota;
}

uint64_t prn_cgroup_memory_left(const char *cgroup_path, const char *mountinfo_path)
{
    question q = {.controller = "memory", .read = cgroup_read_memory, .left = UINT64_MAX};
    cgroup_ask(&q, cgroup_path, mountinfo_path);
    return q.left;
}

bool prn_cgroup_cpuset(prn_cpu_mask *out, const char *cgroup_path, const char *mountinfo_path)
{
    question q = {.controller = "cpuset", .read = read_set};
    cgroup_ask(&q, cgroup_path, mountinfo_path);
    if (q.has_set) *out = q.set;
    return q.has_set;
}
