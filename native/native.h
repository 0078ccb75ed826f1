/* What the parts of the compiled module share. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sums and differences that wrap around as numpy's do, where C leaves it open. */
static inline int64_t sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t less(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

PyObject *native_scan(PyObject *self, PyObject *args);
PyObject *native_replay(PyObject *self, PyObject *args);
PyObject *native_slack(PyObject *self, PyObject *args);
PyObject *native_depths(PyObject *self, PyObject *args);
PyObject *native_nearest(PyObject *self, PyObject *args);
PyObject *native_nest(PyObject *self, PyObject *args);
