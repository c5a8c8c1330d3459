/* NumPy's .npz: a zip archive with one .npy file per array. */
#ifndef PRN_LOADERS_TENSORS_NPZ_H
#define PRN_LOADERS_TENSORS_NPZ_H

#include "base/status.h"

typedef struct prn_npz prn_npz;

/* Maps the file and reads its directory; arrays are read one by one, when they are asked for. */
PRN_MUST_USE prony_status prn_npz_open(prn_npz **out, const char *path, prony_error *error);
void prn_npz_close(prn_npz *npz);
/* Number of arrays, in the archive's order. Other files in it are skipped. */
size_t prn_npz_count(const prn_npz *npz);
/* Without ".npy". */
const char *prn_npz_name(const prn_npz *npz, size_t index);
/* The caller owns *out (prn_value_free). */
PRN_MUST_USE prony_status prn_npz_read(prony_value **out, const prn_npz *npz, size_t index, prony_error *error);
/* The array of that name; NULL: the only one. */
PRN_MUST_USE prony_status prn_npz_load(prony_value **out, const char *path, const char *name, prony_error *error);

#endif
