/* Keys of a run on a device. */
#include "profiler/report/report_keys.h"

#define D prony_device_report
#define O prony_device_operator_row
#define C prony_device_copy_row
#define P prony_device_peaks
#define S prony_device_sensors
#define H prony_device_host_row
#define T prony_device_split_totals

// clang-format off
static const prn_key info_keys[] = {
    {"id", PRN_AT(prony_device_info, id), PRN_ALWAYS, "The option that chooses it: opencl:0."},
    {"kind", PRN_AT(prony_device_info, kind), PRN_ALWAYS, NULL, "gpu|cpu|accelerator"},
    {"name", PRN_AT(prony_device_info, name), PRN_ALWAYS, NULL},
    {"vendor", PRN_AT(prony_device_info, vendor), PRN_ALWAYS, NULL},
    {"platform", PRN_AT(prony_device_info, platform), PRN_ALWAYS, NULL},
    {"driver", PRN_AT(prony_device_info, driver), PRN_ALWAYS, "Version of the driver."},
    {"version", PRN_AT(prony_device_info, version), PRN_ALWAYS, "Version of OpenCL."},
    {"compute_units", PRN_AT(prony_device_info, compute_units), PRN_ALWAYS, NULL},
    {"clock_mhz", PRN_AT(prony_device_info, clock_mhz), PRN_IF_SET, "Highest clock that the driver states."},
    {"memory_bytes", PRN_AT(prony_device_info, memory_bytes), PRN_ALWAYS, NULL},
    {"largest_buffer_bytes", PRN_AT(prony_device_info, largest_buffer_bytes), PRN_ALWAYS, NULL},
    {"local_memory_bytes", PRN_AT(prony_device_info, local_memory_bytes), PRN_ALWAYS, "Of a work group."},
    {"largest_work_group", PRN_AT(prony_device_info, largest_work_group), PRN_ALWAYS, "Work items."},
    {"fp16", PRN_AT(prony_device_info, fp16), PRN_ALWAYS, "It computes in float16."},
    {"fp64", PRN_AT(prony_device_info, fp64), PRN_ALWAYS, "It computes in float64."},
    {"pci_bus_id", PRN_AT(prony_device_info, pci_bus_id), PRN_IF_SET | PRN_EMPTY, "Domain, bus, device and function."},
    {0}};

static const prn_key operator_keys[] = {
    {"operator", PRN_AT(O, operator_index), PRN_ALWAYS, "Index among the operators."},
    {"kernels", PRN_AT(O, kernels), PRN_ALWAYS, "Names of the launched kernels."},
    {"launches", PRN_AT(O, launches), PRN_ALWAYS, "Of a run."},
    {"busy_ns", PRN_AT(O, busy_ns), PRN_IF_FROM_0, "Kernels execute, by the device's clock."},
    {"wait_ns", PRN_AT(O, wait_ns), PRN_IF_FROM_0, "From queueing the first kernel to its start."},
    {"global_x", PRN_AT(O, global[0]), PRN_ALWAYS, "Work items of the first kernel."},
    {"global_y", PRN_AT(O, global[1]), PRN_ALWAYS, NULL},
    {"global_z", PRN_AT(O, global[2]), PRN_ALWAYS, NULL},
    {"local_x", PRN_AT(O, local[0]), PRN_ALWAYS, "Work items of a group; 0: the driver chooses."},
    {"local_y", PRN_AT(O, local[1]), PRN_ALWAYS, NULL},
    {"local_z", PRN_AT(O, local[2]), PRN_ALWAYS, NULL},
    {"trace_start_ns", PRN_AT(O, trace_start_ns), PRN_ALWAYS, "In the last run, from its begin."},
    {"trace_end_ns", PRN_AT(O, trace_end_ns), PRN_ALWAYS, NULL},
    {"flops_per_second", PRN_AT(O, flops_per_second), PRN_IF_NUMBER | PRN_LEAST_0, "FLOPs over busy_ns."},
    {"bytes_per_second", PRN_AT(O, bytes_per_second), PRN_IF_NUMBER | PRN_LEAST_0, "Bytes that it must read and write, over busy_ns."},
    {"bound", PRN_AT(O, bound), PRN_IF_SET, "Limit on its speed; absent: the device's peaks are not kept (prony devices).", "compute|memory|overhead"},
    {"percent_of_roof", PRN_AT(O, percent_of_roof), PRN_IF_NUMBER | PRN_LEAST_0, "Time of the device's roof over busy_ns, in percent."},
    {0}};

static const prn_key peak_keys[] = {
    {"flops_per_second", PRN_AT(P, flops_per_second), PRN_LEAST_0, "fp32, multiply-adds in registers."},
    {"bytes_per_second", PRN_AT(P, bytes_per_second), PRN_LEAST_0, "Its memory, read and written."},
    {"to_device_bytes_per_second", PRN_AT(P, to_device_bytes_per_second), PRN_LEAST_0, "Copies."},
    {"from_device_bytes_per_second", PRN_AT(P, from_device_bytes_per_second), PRN_LEAST_0, "Copies."},
    {"launch_ns", PRN_AT(P, launch_ns), PRN_LEAST_0, "A kernel that does nothing, of many queued one behind the other."},
    {0}};

static const prn_key sensor_keys[] = {
    {"samples", PRN_AT(S, samples), PRN_ALWAYS, "Ten a second, while runs are measured."},
    {"power_mean_w", PRN_AT(S, power_mean_w), PRN_IF_NUMBER, NULL},
    {"power_max_w", PRN_AT(S, power_max_w), PRN_IF_NUMBER, NULL},
    {"clock_mean_mhz", PRN_AT(S, clock_mean_mhz), PRN_IF_NUMBER, "Of the multiprocessors."},
    {"clock_min_mhz", PRN_AT(S, clock_min_mhz), PRN_IF_NUMBER, NULL},
    {"clock_max_mhz", PRN_AT(S, clock_max_mhz), PRN_IF_NUMBER, NULL},
    {"memory_clock_mean_mhz", PRN_AT(S, memory_clock_mean_mhz), PRN_IF_NUMBER, NULL},
    {"temperature_max_c", PRN_AT(S, temperature_max_c), PRN_IF_NUMBER, NULL},
    {"utilisation", PRN_AT(S, utilisation), PRN_IF_NUMBER | PRN_SHARE, "Share of time in which a kernel ran, as the driver samples it."},
    {"memory_used_bytes", PRN_AT(S, memory_used_bytes), PRN_IF_INDEX, "The most, of all processes."},
    {0}};

static const prn_key copy_keys[] = {
    {"operator", PRN_AT(C, operator_index), PRN_ALWAYS, "Index among the operators."},
    {"value", PRN_AT(C, value), PRN_ALWAYS, "Name of the tensor."},
    {"to_device", PRN_AT(C, to_device), PRN_ALWAYS, "false: to the host."},
    {"reason", PRN_AT(C, reason), PRN_ALWAYS, "The operator on the host that makes or reads it."},
    {"bytes", PRN_AT(C, bytes), PRN_ALWAYS, NULL},
    {"busy_ns", PRN_AT(C, busy_ns), PRN_IF_FROM_0, "By the device's clock."},
    {"trace_start_ns", PRN_AT(C, trace_start_ns), PRN_ALWAYS, "In the last run, from its begin."},
    {"trace_end_ns", PRN_AT(C, trace_end_ns), PRN_ALWAYS, NULL},
    {0}};

static const prn_key host_keys[] = {
    {"operator", PRN_AT(H, operator_index), PRN_ALWAYS, "Index among the operators."},
    {"reason", PRN_AT(H, reason), PRN_ALWAYS, "Why it is on the host.", "no kernel|memory|copies"},
    {"weight_bytes", PRN_AT(H, weight_bytes), PRN_OLD, "memory: constants that it reads."},
    {"copies_ns", PRN_AT(H, copies_ns), PRN_IF_FROM_0, "copies: of its chain of operators, by the kept peaks."},
    {"saved_ns", PRN_AT(H, saved_ns), PRN_IF_FROM_0, "copies: time that the device would save for the chain."},
    {0}};

static const prn_key split_keys[] = {
    {"memory_operators", PRN_AT(T, memory_operators), PRN_ALWAYS, "On the host because the device has no room for them."},
    {"copies_operators", PRN_AT(T, copies_operators), PRN_ALWAYS, "On the host because their copies take longer than the device saves."},
    {"weight_bytes", PRN_AT(T, weight_bytes), PRN_ALWAYS, "Constants that are not on the device for want of memory."},
    {"room_bytes", PRN_AT(T, room_bytes), PRN_ALWAYS, "Memory that the plan could have there when it was made."},
    {0}};

const prn_key prn_device_keys[] = {
    {"info", PRN_IN(D, info, info_keys), PRN_ALWAYS, "The device."},
    {"runs", PRN_AT(D, runs), PRN_ALWAYS, "Runs that the times are means of; 0: nothing was stamped."},
    {"operators_on_device", PRN_AT(D, operators_on_device), PRN_ALWAYS, NULL},
    {"operators_on_host", PRN_AT(D, operators_on_host), PRN_ALWAYS, "Without copies."},
    {"busy_ns", PRN_AT(D, busy_ns), PRN_IF_FROM_0, "Kernels execute, in a run."},
    {"copy_ns", PRN_AT(D, copy_ns), PRN_IF_FROM_0, "Copies, in a run."},
    {"wait_ns", PRN_AT(D, wait_ns), PRN_IF_FROM_0, "Launches wait to start, in a run."},
    {"busy_share", PRN_AT(D, busy_share), PRN_IF_FROM_0, "Of the latency of stamped runs: the device's utilisation."},
    {"copy_share", PRN_AT(D, copy_share), PRN_IF_FROM_0, NULL},
    {"wait_share", PRN_AT(D, wait_share), PRN_IF_FROM_0, NULL},
    {"idle_share", PRN_AT(D, idle_share), PRN_IF_FROM_0, "The rest: the device waits for the host."},
    {"to_device_bytes", PRN_AT(D, to_device_bytes), PRN_ALWAYS, "Copied in a run."},
    {"from_device_bytes", PRN_AT(D, from_device_bytes), PRN_ALWAYS, "Copied in a run."},
    {"values_bytes", PRN_AT(D, values_bytes), PRN_ALWAYS, "Memory of the plan's values on the device."},
    {"values_lower_bound_bytes", PRN_AT(D, values_lower_bound_bytes), PRN_ALWAYS, "No plan of this order of steps needs less."},
    {"constants_bytes", PRN_AT(D, constants_bytes), PRN_ALWAYS, "Weights on the device, of all sessions."},
    {"peak_bytes", PRN_AT(D, peak_bytes), PRN_ALWAYS, "Most memory that the process had on the device."},
    {"programs", PRN_AT(D, programs), PRN_ALWAYS, "Programs, compiled or loaded."},
    {"programs_loaded", PRN_AT(D, programs_loaded), PRN_OLD, "Of the programs: from the user's cache folder."},
    {"kernels", PRN_AT(D, kernels), PRN_ALWAYS, "Kernel objects."},
    {"peaks", PRN_IN_WITH(D, peaks, has_peaks, peak_keys), PRN_IF_FLAG, "Measured by 'prony devices'; absent: not kept."},
    {"sensors", PRN_IN_WITH(D, sensors, has_sensors, sensor_keys), PRN_IF_FLAG, "NVIDIA's NVML while runs were measured."},
    {"operators", PRN_ROWS(D, operators, operator_count, operator_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, "Operators that ran on the device."},
    {"copies", PRN_ROWS(D, copies, copy_count, copy_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, "Copies between host and device."},
    {"split", PRN_IN_WITH(D, split, is_split, split_keys), PRN_IF_FLAG, "Operators that the device has a kernel for and that stay on the host; absent: none."},
    {"host_operators", PRN_ROWS(D, host_operators, host_operator_count, host_keys), PRN_IF_SET | PRN_ROW_DIRECT_ROWS, "Operators that ran on the host, with the reason."},
    {0}};
// clang-format on
