#ifndef TE_SELECT_STATUS_H_
#define TE_SELECT_STATUS_H_

#ifdef __cplusplus
extern "C" {
#endif

/* What a function of a kernel returns. Unless that is TE_SELECT_OK, out was not written. */
typedef enum te_select_status {
  TE_SELECT_OK = 0,
  TE_SELECT_INVALID_ARGUMENT = 1, /* an argument, or a TE_SELECT_... variable of the environment */
  TE_SELECT_CANNOT_RUN = 2        /* this machine: its CPU, its driver or its devices */
} te_select_status;

/* Why the last function that failed in this thread did so: one line, which stays as it is until
 * another one fails in this thread. Empty if none has failed. */
const char* te_select_error(void);

#ifdef __cplusplus
}
#endif

#endif
