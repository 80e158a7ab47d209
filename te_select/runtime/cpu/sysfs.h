/* What Linux says about a CPU in files; used if no instruction says it. */
#ifndef TE_SELECT_SYSFS_H_
#define TE_SELECT_SYSFS_H_

#include "machine.h"

/* Sets the vendor, the model and the caches, as far as the files have them. */
void te_select_detect_by_sysfs(te_select_machine* machine);

#endif
