/* The type of `te_select.where`, `copyto` and `putmask`, which look like functions. */
#include <stddef.h>

#include "extension.h"

typedef struct {
  PyObject_HEAD vectorcallfunc call;
  PyObject *attributes, *weak_references;
} where_object;

/* It is pickled by its name, as functions are. */
static PyObject* reduce(PyObject* self, PyObject* Py_UNUSED(unused)) {
  return PyObject_GetAttrString(self, "__name__");
}

static PyObject* represent(PyObject* self) {
  PyObject* name = reduce(self, NULL);
  PyObject* text = name ? PyUnicode_FromFormat("<function te_select.%U>", name) : NULL;
  Py_XDECREF(name);
  return text;
}

static void drop(PyObject* self) {
  PyObject_ClearWeakRefs(self);
  Py_XDECREF(((where_object*)self)->attributes);
  PyObject_Free(self);
}

/* An attribute of a class is a method of its objects, as with functions. */
static PyObject* bind(PyObject* self, PyObject* object, PyObject* Py_UNUSED(type)) {
  return object ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "The name under which it is found again."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"__dict__", PyObject_GenericGetDict, NULL, "stats, build and the like; dir() lists them.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "te_select.selecting.Where",
    .tp_basicsize = sizeof(where_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(where_object, call),
    .tp_dictoffset = offsetof(where_object, attributes),
    .tp_weaklistoffset = offsetof(where_object, weak_references),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = drop,
    .tp_repr = represent,
    .tp_descr_get = bind,
    .tp_methods = methods,
    .tp_getset = members,
};

PyObject* te_select_make_callable(vectorcallfunc call, PyObject* traced) {
  if (PyType_Ready(&type) < 0) return NULL;
  /* torch.compile traces the attribute; calls go by the type's slots. */
  if (traced && PyDict_SetItemString(type.tp_dict, "__call__", traced)) return NULL;
  PyType_Modified(&type);
  where_object* made = PyObject_New(where_object, &type);
  if (!made) return NULL;
  made->call = call;
  made->attributes = made->weak_references = NULL;
  return (PyObject*)made;
}
