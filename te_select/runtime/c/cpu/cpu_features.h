/* The features of this CPU. */
#pragma once

/* Whether the CPU has a feature, and the system saves the registers that belong to it. Names are
 * those of /proc/cpuinfo; 0 for a name that is not known. */
int te_select_cpu_has(const char* feature);
