/* How many threads a call may use. */
#ifndef TE_SELECT_PROCESSORS_H_
#define TE_SELECT_PROCESSORS_H_

#include <stdint.h>

enum { TE_SELECT_MOST_THREADS = 256 }; /* of one call; more would only hinder each other */

/* TE_SELECT_NUM_THREADS; else OMP_NUM_THREADS; else the number of processors that this process may
 * use, but no more than its container's quota of processor time pays for. From 1 to TE_SELECT_MOST_THREADS. */
int32_t te_select_max_threads(void);

/* What TE_SELECT_NUM_THREADS said when the library was loaded, if that is no positive whole number;
 * else NULL. */
const char* te_select_bad_threads(void);

#endif
