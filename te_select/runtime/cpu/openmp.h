/* Whether the caller is inside a parallel region of any OpenMP runtime. */
#ifndef TE_SELECT_OPENMP_H_
#define TE_SELECT_OPENMP_H_

int te_select_in_openmp_region(void);

#endif
