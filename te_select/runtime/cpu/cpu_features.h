/* What this CPU can do, with the system's help where wide registers must be saved. */
#ifndef TE_SELECT_FEATURES_H_
#define TE_SELECT_FEATURES_H_

/* Whether the CPU has a feature, named as Linux does in /proc/cpuinfo; 0 for a name that is not
 * known. */
int te_select_cpu_has(const char* feature);

#endif
