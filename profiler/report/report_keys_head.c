/* Keys of the report's head: model, config, system, roof. */
#include "profiler/report/report_keys.h"

#include <string.h>

/* ---- model ---- */

static bool has_symbols(const prn_at *at)
{
    const prony_value_info *port = at->row;
    for (int d = 0; d < port->shape.rank && d < PRONY_MAX_RANK; d++)
        if (port->dim_names[d]) return true;
    return false;
}

static void write_dim_names(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prony_value_info *port = at->row;
    prn_json_open(j, key->name, '[', true);
    for (int d = 0; d < port->shape.rank && d < PRONY_MAX_RANK; d++) prn_json_string(j, NULL, port->dim_names[d]);
    prn_json_close(j, ']');
}

static void read_dim_names(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    prony_value_info *port = at->row;
    size_t count, d = 0;
    const prn_json_value *names = prn_json_get_array(j, object, key->name, false, &count);
    if (count > PRONY_MAX_RANK) {
        prn_json_bad(j, key->name, "%zu names exceed the limit of %d", count, PRONY_MAX_RANK);
        return;
    }
    for (const prn_json_value *e = prn_json_first(names); e; e = prn_json_next(e), d++)
        if (!prn_json_is_null(e)) prn_json_element_string(j, e, key->name, &port->dim_names[d]);
}

static const prn_key port_keys[] = {
    {"name", PRN_AT(prony_value_info, name), PRN_ALWAYS, "Name."},
    {"kind", PRN_AS(KIND, prony_value_info, kind), PRN_IF_SET, "sequence or optional; absent for a tensor.",
     "sequence|optional"},
    {"type", PRN_AS(DTYPE, prony_value_info, dtype), PRN_IF_SET, "Element type as NumPy spells it."},
    {"shape", PRN_AS(SHAPE, prony_value_info, shape), PRN_IF_SET, NULL},
    {"dim_names", PRN_AS(STRINGS, prony_value_info, dim_names), PRN_NULLS,
     "Symbols of the declared dimensions; null: the dimension has no symbol. Absent: no dimension has one.",
     .when = has_symbols, .write = write_dim_names, .read = read_dim_names},
    {0}};

static const prn_key model_keys[] = {
    {"name", PRN_AT(prn_report_model, name), PRN_ALWAYS, "Name of the model or its file."},
    {"sha256", PRN_AT(prn_report_model, sha256), PRN_IF_SET | PRN_HASH, "SHA-256 of the file."},
    {"file_bytes", PRN_AT(prn_report_model, file_bytes), PRN_ALWAYS, "Bytes of the file."},
    {"ir_version", PRN_AT(prn_report_model, ir_version), PRN_ALWAYS, "ONNX IR version."},
    {"opset", PRN_AT(prn_report_model, opset), PRN_ALWAYS, "Version of ai.onnx."},
    {"producer", PRN_AT(prn_report_model, producer), PRN_IF_SET | PRN_EMPTY, "Name and version of the exporter."},
    {"nodes", PRN_AT(prn_report_model, nodes), PRN_ALWAYS, "Nodes of the main graph."},
    {"parameters", PRN_AT(prn_report_model, parameters), PRN_ALWAYS, "Elements of the weights."},
    {"parameter_bytes", PRN_AT(prn_report_model, parameter_bytes), PRN_ALWAYS, "Bytes of the weights."},
    {"parameter_bits", PRN_AT(prn_report_model, parameter_bits), PRN_OLD,
     "Bits of the weights' elements: codes that are packed into bytes have their own."},
    {"inputs", PRN_ROWS(prn_report_model, inputs, input_count, port_keys), PRN_ROW_DIRECT_ROWS, "As bound."},
    {"outputs", PRN_ROWS(prn_report_model, outputs, output_count, port_keys), PRN_ROW_DIRECT_ROWS, "As bound."},
    {0}};

/* ---- config ---- */

static bool is_pinned(const prn_at *at)
{
    const char *affinity = ((const prn_report_config *)at->row)->affinity;
    return affinity && *affinity;
}

static const prn_key assumed_keys[] = {
    {"name", PRN_AT(prony_assumed_dim, name), PRN_ALWAYS, "As --dim takes it: the symbol, or INPUT.AXIS."},
    {"value", PRN_AT(prony_assumed_dim, value), PRN_LEAST_0, NULL},
    {"reason", PRN_AT(prony_assumed_dim, reason), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY,
     "batch, tree features, window size, metadata imgsz, declared shapes or nothing reads it; null: 1 without a "
     "reason."},
    {0}};

#define C prn_report_config
static const prn_key config_keys[] = {
    {"intra_op_threads", PRN_AT(C, intra_op_threads), PRN_IF_SET, "Threads inside an operator."},
    {"inter_op_threads", PRN_AT(C, inter_op_threads), PRN_IF_SET, "Workers that run operators side by side."},
    {"inter_op_reason", PRN_AT(C, inter_op_reason), PRN_IF_SET,
     "Reason for the number of workers, if the plan chose it."},
    {"affinity", PRN_AT(C, affinity), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY, "Core list; null: threads are not pinned."},
    {"affinity_used", PRN_AT(C, affinity_used), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY,
     "Processors in the order in which threads have them; null: no processor of the list was available.",
     .when = is_pinned},
    {"affinity_failure", PRN_AT(C, affinity_failure), PRN_IF_SET | PRN_OR_NULL | PRN_EMPTY,
     "Processors of the list that were not available, or threads that were not pinned; null: none.", .when = is_pinned},
    {"device", PRN_AT(C, device), PRN_IF_SET | PRN_EMPTY, "Number and name of the device that runs operators."},
    {"batch", PRN_AT(C, batch), PRN_IF_FROM_0 | PRN_OR_NULL, "First dimension of the first input; null: it has none."},
    {"dims", PRN_NUMBERS(C, dims, dim_count), PRN_LENIENT, "Free dimensions by symbol."},
    {"assumed_dims", PRN_ROWS(C, assumed, assumed_count, assumed_keys), PRN_OLD | PRN_ROW_DIRECT_ROWS,
     "Free dimensions that the user did not set, and the assumed values."},
    {"precision", PRN_AT(C, precision), PRN_IF_SET, "fp32"},
    {"warmup_runs", PRN_AT(C, warmup_runs), PRN_IF_FROM_0, "Runs before the measured ones."},
    {"runs", PRN_AT(C, runs), PRN_IF_FROM_0, "Measured runs."},
    {"seed", PRN_WITH(C, seed, seed_known), PRN_IF_FLAG, "Seed of generated inputs."},
    {"count_preset", PRN_AT(C, count_preset), PRN_IF_SET | PRN_OR_NULL, "Counting preset; null: none."},
    {"rewrites", PRN_AT(C, rewrites), PRN_ALWAYS, "true: nodes were fused."},
    {"reuse", PRN_AT(C, reuse), PRN_OLD | PRN_TRUE, "true: values shared memory; absent: true."},
    {"background_threads", PRN_AT(C, background_threads), PRN_IF_SET,
     "Busy threads of another process while measuring (--with-load)."},
    {0}};
#undef C

/* ---- system ---- */

static const prn_key cache_keys[] = {
    {"level", PRN_AT(prn_cache_level, level), PRN_LEAST_0, "1, 2, 3"},
    {"type", PRN_AT(prn_cache_level, type), PRN_IF_SET, "data, instruction or unified"},
    {"bytes", PRN_AT(prn_cache_level, bytes), PRN_ALWAYS, "Bytes."},
    {"shared_by", PRN_AT(prn_cache_level, shared_by), PRN_IF_SET, "Logical processors that share it."},
    {0}};

/* Makes the array in the struct a list like any other. */
typedef struct cache_list {
    const prn_cache_level *rows;
    size_t count;
} cache_list;
static const prn_key cache_list_key = {"caches", PRN_ROWS(cache_list, rows, count, cache_keys),
                                       PRN_LENIENT | PRN_ROW_DIRECT_ROWS, NULL};
#define MOST_CACHES (sizeof PRN_FIELD(prn_machine, caches) / sizeof(prn_cache_level))

static void write_caches(prn_json *j, const prn_key *key, const prn_at *at)
{
    const prn_machine *m = prn_key_field(key, at);
    cache_list list = {m->caches, (size_t)m->cache_count < MOST_CACHES ? (size_t)m->cache_count : MOST_CACHES};
    prn_key_write(j, &cache_list_key, &(prn_at){.row = &list});
}

static void keys_head_read_caches(prn_json_reader *j, const prn_json_value *object, const prn_key *key,
                                  const prn_at *at)
{
    prn_machine *m = prn_key_field(key, at);
    cache_list list = {NULL, 0};
    prn_key_read(j, object, &cache_list_key, &(prn_at){.row = &list});
    if (list.count > MOST_CACHES) list.count = MOST_CACHES;
    if (list.count) memcpy(m->caches, list.rows, list.count * sizeof *list.rows);
    m->cache_count = (int)list.count;
}

/* "onednn 2.6.3, openblas 0.3.21" -> {"onednn": "2.6.3", "openblas": "0.3.21"} */
static void write_libraries(prn_json *j, const prn_key *key, const prn_at *at)
{
    const char *list = ((const prn_report_system *)at->row)->libraries;
    prn_json_open(j, key->name, '{', true);
    for (const char *p = list ? list : ""; *p;) {
        char name[64], version[64];
        p += strspn(p, ", ");
        size_t pair = strcspn(p, ","), length = strcspn(p, " ,"), rest = pair > length ? pair - length - 1 : 0;
        const char *value = p + length + (pair > length);
        if (length == 0) break;
        if (length >= sizeof name) length = sizeof name - 1;
        if (rest >= sizeof version) rest = sizeof version - 1;
        memcpy(name, p, length);
        memcpy(version, value, rest);
        name[length] = version[rest] = '\0';
        prn_json_string(j, name, version);
        p += pair;
    }
    prn_json_close(j, '}');
}

static void read_libraries(prn_json_reader *j, const prn_json_value *object, const prn_key *key, const prn_at *at)
{
    const char *list = "", *version = NULL;
    const prn_json_value *map = prn_json_get_object(j, object, key->name, false);
    for (const prn_json_value *e = prn_json_first(map); e; e = prn_json_next(e)) {
        if (!prn_json_element_string(j, e, key->name, &version)) return;
        list = prn_bump_printf(j->pool, "%s%s%s %s", list, *list ? ", " : "", prn_json_key(e), version);
        if (!list) {
            j->status = prn_no_memory(j->error);
            return;
        }
    }
    ((prn_report_system *)at->row)->libraries = list;
}

static const char *version(const prn_at *at)
{
    const char *maker = ((const prn_report_system *)at->row)->prony_version;
    return maker ? maker : PRONY_VERSION;
}

#define S prn_report_system
static const prn_key system_keys[] = {
    {"host_name", PRN_AT(S, machine.host_name), PRN_IF_SET, "Host."},
    {"os", PRN_AT(S, machine.os), PRN_IF_SET, "Operating system."},
    {"os_release", PRN_AT(S, machine.os_release), PRN_IF_SET, "Its release."},
    {"cpu_model", PRN_AT(S, machine.cpu_model), PRN_IF_SET, "Processor."},
    {"isa", PRN_NAMES(S, isa), PRN_LENIENT | PRN_ROW_DIRECT, "Notable instruction sets of the processor."},
    {"isa_used", PRN_AT(S, isa_used), PRN_IF_SET, "Highest instruction set used, after the cap."},
    {"cpu_count", PRN_AT(S, machine.cpu_count), PRN_IF_SET, "Logical processors online."},
    {"usable_cpus", PRN_AT(S, machine.mask_count), PRN_IF_SET, "Logical processors in the affinity mask."},
    {"physical_cores", PRN_AT(S, machine.physical_cores), PRN_IF_SET, "Distinct cores in the affinity mask."},
    {"quota_cpus", PRN_AT(S, machine.quota_cpus), PRN_IF_SET | PRN_OR_NULL,
     "cgroup CPU quota in processors; null: none."},
    {"total_memory_bytes", PRN_AT(S, machine.total_memory_bytes), PRN_IF_SET, "Bytes of memory."},
    {"caches", PRN_MADE_IN(S, machine, cache_keys), PRN_LENIENT, "Caches of the first processor.",
     .write = write_caches, .read = keys_head_read_caches},
    {"governor", PRN_AT(S, machine.governor), PRN_IF_SET, "cpufreq governor."},
    {"load_avg_1min", PRN_AT(S, machine.load_avg_1min), PRN_IF_FROM_0, "Load average of the last minute."},
    {"gpu", PRN_MADE(NULL), PRN_ALWAYS, "null: none is used."},
    {"libraries", PRN_MADE(NAMES), PRN_LENIENT, "Version by name.", .write = write_libraries, .read = read_libraries},
    {"prony_version", PRN_AT(S, prony_version), PRN_LENIENT, "Version.", .word = version},
    {"git_commit", PRN_AT(S, git_commit), PRN_IF_SET, "Commit of the build."},
    {"compiler", PRN_AT(S, compiler), PRN_IF_SET, "Compiler."},
    {"compiler_flags", PRN_AT(S, compiler_flags), PRN_IF_SET, "Its flags."},
    {0}};
#undef S

const prn_key prn_manifest_keys[] = {
    {"created", PRN_AT(prony_report, created), PRN_IF_SET, "Date of the report, in UTC (ISO 8601)."},
    {"model", PRN_IN(prony_report, model, model_keys), PRN_ALWAYS, NULL},
    {"config", PRN_IN(prony_report, config, config_keys), PRN_ALWAYS, NULL},
    {"system", PRN_IN(prony_report, system, system_keys), PRN_ALWAYS, NULL},
    {0}};

/* ---- roof ---- */

static const prn_key compute_keys[] = {
    {"precision", PRN_AT(prn_roof_compute, precision), PRN_ALWAYS, "fp32"},
    {"threads", PRN_AT(prn_roof_compute, threads), PRN_LEAST_0, "Threads."},
    {"flops_per_second", PRN_AT(prn_roof_compute, flops_per_second), PRN_ALWAYS, "Peak FLOP/s"},
    {0}};

static const prn_key bandwidth_keys[] = {
    {"level", PRN_AT(prn_roof_memory, level), PRN_ALWAYS, "L1, L2, L3 or DRAM."},
    {"threads", PRN_AT(prn_roof_memory, threads), PRN_LEAST_0, "Threads."},
    {"bytes_per_second", PRN_AT(prn_roof_memory, bytes_per_second), PRN_ALWAYS, "Peak bytes/s"},
    {0}};

static const prn_key work_keys[] = {{"work", PRN_AT(prn_roof_work, work), PRN_ALWAYS,
                                     "product, simple, divide, sqrt, exp, log, erf, tanh, sin, pow, move."},
                                    {"threads", PRN_AT(prn_roof_work, threads), PRN_LEAST_0, "Threads."},
                                    {"per_second", PRN_AT(prn_roof_work, per_second), PRN_ALWAYS,
                                     "FLOPs of product, bytes of move, results of the others, per second."},
                                    {0}};

static const prn_key roof_keys[] = {
    {"compute", PRN_ROWS(prn_report_roof, compute, compute_count, compute_keys), PRN_ROW_DIRECT_ROWS,
     "Peak arithmetic."},
    {"memory", PRN_ROWS(prn_report_roof, memory, memory_count, bandwidth_keys), PRN_ROW_DIRECT_ROWS, "Peak bandwidth."},
    {"work", PRN_ROWS(prn_report_roof, work, work_count, work_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS,
     "Rates of each kind of work."},
    {"method", PRN_AT(prn_report_roof, method), PRN_IF_SET, "Method of measurement."},
    {"busy", PRN_AT(prn_report_roof, busy), PRN_IF_SET,
     "true: other processes used the machine while the peaks were measured, so they are too low. Absent: false."},
    {0}};

const prn_key prn_roof_keys[] = {{"roof", PRN_IN_WITH(prony_report, roof, has_roof, roof_keys), PRN_IF_FLAG,
                                  "Peaks of this machine, as prony machine measured them; absent: not measured."},
                                 {0}};
