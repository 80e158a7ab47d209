/* `te_select.copyto` and `te_select.putmask`: one Select in place, or NumPy's function.
 *
 * What is not taken goes to NumPy from here, so that a small call costs hardly more. */
#include "extension.h"

enum { FIRST, SECOND, THIRD, FOURTH, MOST_ARGUMENTS };

/* A function of NumPy's. */
typedef struct {
  const char* names[MOST_ARGUMENTS]; /* of its arguments; NULL if it has no name */
  PyObject *numpys, *python;         /* itself, and what takes masks that are not arrays */
} te_select_in_place;

static te_select_in_place copyto = {{"dst", "src", "casting", "where"}, NULL, NULL};
static te_select_in_place putmask = {{NULL, "mask", "values", NULL}, NULL, NULL};

static int place_of(const te_select_in_place* function, PyObject* name) {
  for (int i = 0; i < MOST_ARGUMENTS; ++i) {
    const char* own = function->names[i];
    if (own && !PyUnicode_CompareWithASCIIString(name, own)) return i;
  }
  return -1;
}

/* Puts the arguments of a call in their places; false if the call is wrong. */
static int find_arguments(const te_select_in_place* function, PyObject* const* args,
                          Py_ssize_t count, PyObject* names, PyObject** found) {
  Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  if (count + named > MOST_ARGUMENTS) return 0;
  for (Py_ssize_t i = 0; i < count; ++i) found[i] = args[i];
  for (Py_ssize_t i = 0; i < named; ++i) {
    int place = place_of(function, PyTuple_GET_ITEM(names, i));
    if (place < 0 || found[place]) return 0;
    found[place] = args[count + i];
  }
  return 1;
}

/* ---- what kernels do ---------------------------------------------------------------------------- */

/* Whether kernels convert elements to a type as NumPy does, which warns of a signalling NaN. */
static int are_kept(const PyArray_Descr* own, const PyArray_Descr* type) {
  if (own == type || PyArray_EquivTypes((PyArray_Descr*)own, (PyArray_Descr*)type)) return 1;
  return te_select_kind_of(own) != TE_SELECT_AS_IS && own->type_num != NPY_FLOAT &&
         own->type_num != NPY_CFLOAT && te_select_kind_of(type) != TE_SELECT_AS_IS &&
         PyArray_CanCastSafely(own->type_num, type->type_num);
}

PyObject* te_select_are_kept(PyObject* Py_UNUSED(module), PyObject* args) {
  PyArray_Descr *own, *type;
  if (!PyArg_ParseTuple(args, "O!O!", &PyArrayDescr_Type, &own, &PyArrayDescr_Type, &type))
    return NULL;
  return PyBool_FromLong(are_kept(own, type));
}

/* The same of a value, of which NumPy makes a float before it makes a shorter one of that. */
static int is_kept(PyObject* value, const PyArray_Descr* type) {
  static const long long exact = INT64_C(1) << 53;
  if (PyLong_CheckExact(value)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || number < -exact || number > exact) return 0;
  }
  if (te_select_is_number(value))
    return !PyComplex_CheckExact(value) && te_select_keeps_type(value, type->type_num);
  PyArray_Descr* own = NULL;
  if (PyArray_Check(value)) {
    own = (PyArray_Descr*)Py_NewRef(PyArray_DESCR((PyArrayObject*)value));
  } else if (PyArray_IsScalar(value, Generic)) {
    own = PyArray_DescrFromScalar(value);
  }
  if (!own) return 0;
  int kept = are_kept(own, type);
  Py_DECREF(own);
  return kept;
}

/* Replaces elements by a kernel: 1, 0 if none does it as NumPy does, or -1 with an error of Python. */
static int replace(PyObject* to, PyObject* mask, PyObject* by) {
  if (!PyArray_Check(to) || !is_kept(by, PyArray_DESCR((PyArrayObject*)to))) return 0;
  PyObject* args[] = {mask, by, to, to};
  PyObject* result = NULL;
  te_select_where_plan made;
  te_select_where_plan* plan = te_select_sampler ? &made : NULL;
  te_select_operands taken;
  te_select_verdict found = te_select_take(args, NULL, &taken);
  if (found == TE_SELECT_TAKEN) found = te_select_operands_into(&taken, to, &result, plan);
  te_select_release(&taken);
  Py_XDECREF(result);
  if (found == TE_SELECT_RAISED) return -1;
  if (found != TE_SELECT_TAKEN || !plan) return found == TE_SELECT_TAKEN;
  PyObject* names = Py_BuildValue("(s)", "out"); /* what is captured are calls of where() */
  result = names ? te_select_call_where(NULL, args, TE_SELECT_INPUTS, names) : NULL;
  Py_XDECREF(names);
  Py_XDECREF(result);
  return result ? 1 : -1;
}

/* The same, of values that are repeated along an array. */
static int repeat(PyArrayObject* to, PyArrayObject* mask, PyArrayObject* values) {
  npy_intp size = PyArray_SIZE(values);
  if (!size || PyArray_SIZE(to) % size || !PyArray_IS_C_CONTIGUOUS(to)) return 0;
  PyArrayObject* const given[] = {to, mask, values};
  PyObject* wide[] = {NULL, NULL, NULL};
  int done = 0;
  for (int i = 0; i < 3 && done >= 0; ++i) {
    npy_intp rows[] = {PyArray_SIZE(given[i]) / size, size};
    wide[i] = PyArray_Newshape(given[i], &(PyArray_Dims){rows, 2}, NPY_CORDER);
    if (!wide[i]) done = -1;
  }
  if (done >= 0) done = replace(wide[0], wide[1], wide[2]);
  for (int i = 0; i < 3; ++i) Py_XDECREF(wide[i]);
  return done;
}

/* ---- the calls ---------------------------------------------------------------------------------- */

static int is_array(PyObject* value) { return value && PyArray_CheckExact(value); }

/* Whether a mask may be one of another library, of which Python makes an array. */
static int is_foreign(PyObject* mask) {
  return mask && !PyArray_CheckExact(mask) && !PyBool_Check(mask) &&
         !PyArray_IsScalar(mask, Generic);
}

static PyObject* end_call(const te_select_in_place* function, int done, PyObject* mask,
                          PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (done < 0) return NULL;
  if (done) Py_RETURN_NONE;
  PyObject* by = is_foreign(mask) ? function->python : function->numpys;
  return PyObject_Vectorcall(by, args, (size_t)count, names);
}

static PyObject* call_copyto(PyObject* Py_UNUSED(self), PyObject* const* args, size_t flagged,
                             PyObject* names) {
  Py_ssize_t count = PyVectorcall_NARGS(flagged);
  PyObject* found[MOST_ARGUMENTS] = {NULL};
  int done = 0;
  if (find_arguments(&copyto, args, count, names, found) && found[FIRST] && found[SECOND]) {
    PyObject *casting = found[THIRD], *mask = found[FOURTH];
    int may_convert = !casting || (PyUnicode_Check(casting) &&
                                   (!PyUnicode_CompareWithASCIIString(casting, "same_kind") ||
                                    !PyUnicode_CompareWithASCIIString(casting, "unsafe")));
    if (may_convert && is_array(mask) && PyArray_TYPE((PyArrayObject*)mask) == NPY_BOOL)
      done = replace(found[FIRST], mask, found[SECOND]);
  }
  return end_call(&copyto, done, found[FOURTH], args, count, names);
}

static PyObject* call_putmask(PyObject* Py_UNUSED(self), PyObject* const* args, size_t flagged,
                              PyObject* names) {
  Py_ssize_t count = PyVectorcall_NARGS(flagged);
  PyObject* found[MOST_ARGUMENTS] = {NULL};
  int done = 0;
  if (find_arguments(&putmask, args, count, names, found) && found[THIRD] && !found[FOURTH] &&
      is_array(found[FIRST]) && is_array(found[SECOND])) {
    PyArrayObject *to = (PyArrayObject*)found[FIRST], *mask = (PyArrayObject*)found[SECOND];
    PyArrayObject* values = PyArray_Check(found[THIRD]) ? (PyArrayObject*)found[THIRD] : NULL;
    if (!PyArray_SAMESHAPE(to, mask)) {
      done = 0;
    } else if (!values || PyArray_SAMESHAPE(to, values)) {
      done = replace(found[FIRST], found[SECOND], found[THIRD]);
    } else if (PyArray_CheckExact(found[THIRD])) {
      done = repeat(to, mask, values);
    }
  }
  return end_call(&putmask, done, found[SECOND], args, count, names);
}

PyObject* te_select_make_in_place(PyObject* Py_UNUSED(module), PyObject* const* args,
                                  Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "expected two functions, and which it is");
  int is_putmask = PyObject_IsTrue(args[2]);
  te_select_in_place* function = is_putmask ? &putmask : &copyto;
  Py_XSETREF(function->python, Py_NewRef(args[0]));
  Py_XSETREF(function->numpys, Py_NewRef(args[1]));
  return te_select_make_callable(is_putmask ? call_putmask : call_copyto, NULL);
}
