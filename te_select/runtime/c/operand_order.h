/* The order of the operands of a call, wherever there is one thing for each. */
#ifndef TE_SELECT_OPERAND_ORDER_H_
#define TE_SELECT_OPERAND_ORDER_H_

enum { TE_SELECT_COND, TE_SELECT_THEN, TE_SELECT_ELSE, TE_SELECT_OUT, TE_SELECT_OPERANDS };
enum { TE_SELECT_INPUTS = TE_SELECT_OUT };

#endif
