/* What Linux tells of a CPU by files, where no instruction tells it. */
#ifndef TE_SELECT_SYSFS_H_
#define TE_SELECT_SYSFS_H_

#include "machine.h"

/* Sets the maker, the model and the caches, as far as the system shows them. */
void te_select_detect_by_sysfs(te_select_machine* machine);

#endif
