/* The most threads that a call may use. */
#ifndef TE_SELECT_PROCESSORS_H_
#define TE_SELECT_PROCESSORS_H_

enum { TE_SELECT_MOST_THREADS = 256 }; /* more would only hinder each other */

#endif
