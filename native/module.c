/* `pyrometer._native`: what is too slow in Python. Everything here is optional; see `pyrometer.native`. */

#include "native.h"

static PyMethodDef METHODS[] = {
    {"scan", native_scan, METH_VARARGS, NULL},
    {"replay", native_replay, METH_VARARGS, NULL},
    {"slack", native_slack, METH_VARARGS, NULL},
    {"depths", native_depths, METH_VARARGS, NULL},
    {"nearest", native_nearest, METH_VARARGS, NULL},
    {"nest", native_nest, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module) { return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE); }

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, fill}, {0, NULL}};
static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_native", NULL, 0, METHODS, SLOTS, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&MODULE); }
