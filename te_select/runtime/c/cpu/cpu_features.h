/* The features of this CPU. */
#pragma once

/* Whether the CPU has a feature, and the system saves the registers that belong to it. Names are
 * those of /proc/cpuinfo; 0 for a name that is not known. */
int te_select_cpu_has(const char* feature);

enum { TE_SELECT_CPU_FEATURES_BYTES = 1024 };

/* Lists the features that it has; behind each name is a blank. */
void te_select_list_cpu_features(char text[TE_SELECT_CPU_FEATURES_BYTES]);
