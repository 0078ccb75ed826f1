/* Loops over the events of a trace in which every turn needs the one before, so that no array operation replaces them.

Each has a twin in Python that gives the same (named beside it) and works where this module could not be built. They
take arrays of 64-bit integers, write into arrays of the caller, and check every index before they use it. */

#include "native.h"

/* Take arrays out of the arguments: each must hold `num` whole numbers, or set `num` where that is below 0. */
static int take(Py_buffer *views, int count, Py_ssize_t *num) {
    for (int i = 0; i < count; i++) {
        if (*num < 0) *num = views[i].len / 8;
        if (views[i].len != *num * 8 || (uintptr_t)views[i].buf % 8) {
            PyErr_Format(PyExc_ValueError, "array %d holds %zd bytes where %zd aligned numbers of 8 are needed", i,
                         views[i].len, *num);
            return 0;
        }
    }
    return 1;
}

static PyObject *finish(Py_buffer *views, int count, PyObject *result) {
    for (int i = 0; i < count; i++) PyBuffer_Release(&views[i]);
    return result;
}

static PyObject *outside(Py_ssize_t i) {
    PyErr_Format(PyExc_ValueError, "row %zd refers to a row that does not come before it", i);
    return NULL;
}

#define NUMBERS(i) ((int64_t *)views[i].buf)

/* dependencies/replay.py: when each node ends, if it begins as soon as its two sources allow. */
PyObject *native_replay(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer views[6];
    long long low;
    if (!PyArg_ParseTuple(args, "Ly*y*y*y*y*w*", &low, &views[0], &views[1], &views[2], &views[3], &views[4], &views[5]))
        return NULL;
    Py_ssize_t num = -1, bad = -1;
    if (!take(views, 6, &num)) return finish(views, 6, NULL);
    const int64_t *u = NUMBERS(0), *w = NUMBERS(1), *v = NUMBERS(2), *x = NUMBERS(3), *stay = NUMBERS(4);
    int64_t *ends = NUMBERS(5);
    Py_BEGIN_ALLOW_THREADS
    if (num) ends[0] = low;
    for (Py_ssize_t i = 1; i < num; i++) {
        if ((uint64_t)u[i] >= (uint64_t)i || (uint64_t)v[i] >= (uint64_t)i) {
            bad = i;
            break;
        }
        int64_t a = sum(ends[u[i]], w[i]), b = sum(ends[v[i]], x[i]);
        ends[i] = sum(a > b ? a : b, stay[i]);
    }
    Py_END_ALLOW_THREADS
    return finish(views, 6, bad >= 0 ? outside(bad) : Py_NewRef(Py_None));
}

/* dependencies/replay.py: how late each node may end; `latest` comes filled with the end of the span. */
PyObject *native_slack(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer views[6];
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*w*", &views[0], &views[1], &views[2], &views[3], &views[4], &views[5]))
        return NULL;
    Py_ssize_t num = -1, bad = -1;
    if (!take(views, 6, &num)) return finish(views, 6, NULL);
    const int64_t *u = NUMBERS(0), *w = NUMBERS(1), *v = NUMBERS(2), *x = NUMBERS(3), *stay = NUMBERS(4);
    int64_t *latest = NUMBERS(5);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = num - 1; i > 0; i--) {
        if ((uint64_t)u[i] >= (uint64_t)i || (uint64_t)v[i] >= (uint64_t)i) {
            bad = i;
            break;
        }
        int64_t begin = less(latest[i], stay[i]);
        if (less(begin, w[i]) < latest[u[i]]) latest[u[i]] = less(begin, w[i]);
        if (less(begin, x[i]) < latest[v[i]]) latest[v[i]] = less(begin, x[i]);
    }
    Py_END_ALLOW_THREADS
    return finish(views, 6, bad >= 0 ? outside(bad) : Py_NewRef(Py_None));
}

/* dependencies/order.py: how many edges lead to each node one after the other, at most; `depth` comes filled with 0. */
PyObject *native_depths(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer views[3];
    if (!PyArg_ParseTuple(args, "y*y*w*", &views[0], &views[1], &views[2])) return NULL;
    Py_ssize_t edges = -1, num = -1, bad = -1;
    if (!take(views, 2, &edges) || !take(views + 2, 1, &num)) return finish(views, 3, NULL);
    const int64_t *source = NUMBERS(0), *target = NUMBERS(1);
    int64_t *depth = NUMBERS(2);
    int64_t *first = calloc((size_t)(2 * num + 2), sizeof *first), *missing = first + num + 2;
    int64_t *behind = malloc((size_t)(edges + num + 1) * sizeof *behind), *ready = behind + edges;
    if (!first || !behind) {
        free(first);
        free(behind);
        return finish(views, 3, PyErr_NoMemory());
    }
    Py_ssize_t known = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < edges && bad < 0; i++) {
        if ((uint64_t)source[i] >= (uint64_t)num || (uint64_t)target[i] >= (uint64_t)num) {
            bad = i;
            break;
        }
        first[source[i] + 2]++;
        missing[target[i]]++;
    }
    if (bad < 0) {
        for (Py_ssize_t i = 1; i < num; i++) first[i + 1] += first[i];
        for (Py_ssize_t i = 0; i < edges; i++) behind[first[source[i] + 1]++] = target[i];
        for (Py_ssize_t i = 0; i < num; i++)
            if (!missing[i] && first[i + 1] > first[i]) ready[known++] = i;
        for (Py_ssize_t at = 0; at < known; at++) {
            int64_t node = ready[at];
            for (int64_t k = first[node]; k < first[node + 1]; k++) {
                int64_t after = behind[k];
                if (depth[after] <= depth[node]) depth[after] = sum(depth[node], 1);
                if (!--missing[after]) ready[known++] = after;
            }
        }
    }
    Py_END_ALLOW_THREADS
    free(first);
    free(behind);
    return finish(views, 3, bad >= 0 ? outside(bad) : Py_NewRef(Py_None));
}

/* linking/nearest.py: the innermost wanted row at or above each. */
PyObject *native_nearest(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer views[3];
    if (!PyArg_ParseTuple(args, "y*w*y*", &views[0], &views[1], &views[2])) return NULL;
    Py_ssize_t num = -1, bad = -1;
    if (!take(views, 2, &num)) return finish(views, 3, NULL);
    if (views[2].len != num) {
        PyErr_SetString(PyExc_ValueError, "one byte per row is needed for what is wanted");
        return finish(views, 3, NULL);
    }
    const int64_t *parent = NUMBERS(0);
    int64_t *found = NUMBERS(1);
    const unsigned char *wanted = views[2].buf;
    enum { UNKNOWN = -2 };
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < num; i++) found[i] = UNKNOWN;
    for (Py_ssize_t i = 0; i < num && bad < 0; i++) {
        int64_t at = i, known;
        Py_ssize_t steps = 0;
        if (!wanted[i] && parent[i] >= 0 && parent[i] < i) { /* mostly: what encloses an event begins before it */
            found[i] = found[parent[i]];
            continue;
        }
        while (at >= 0 && at < num && found[at] == UNKNOWN && !wanted[at] && steps++ <= num) at = parent[at];
        if (at >= num || steps > num) {
            bad = i;
            break;
        }
        known = at < 0 ? -1 : wanted[at] ? at : found[at];
        for (int64_t below = i; below >= 0 && found[below] == UNKNOWN; below = parent[below]) {
            found[below] = known;
            if (below == at) break;
        }
    }
    Py_END_ALLOW_THREADS
    return finish(views, 3, bad >= 0 ? outside(bad) : Py_NewRef(Py_None));
}

/* linking/tree.py: parents and depths of one track's events, and its time cut into pieces; gives (pieces, violations). */
PyObject *native_nest(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer views[7];
    long long tolerance;
    if (!PyArg_ParseTuple(args, "Ly*y*w*w*w*w*w*", &tolerance, &views[0], &views[1], &views[2], &views[3], &views[4], &views[5], &views[6]))
        return NULL;
    Py_ssize_t num = -1, twice;
    if (!take(views, 4, &num)) return finish(views, 7, NULL);
    twice = 2 * num; /* each event may be cut once where another begins, and once where it ends */
    if (!take(views + 4, 3, &twice)) return finish(views, 7, NULL);
    const int64_t *start = NUMBERS(0), *end = NUMBERS(1);
    int64_t *parent = NUMBERS(2), *depth = NUMBERS(3), *from = NUMBERS(4), *to = NUMBERS(5), *owner = NUMBERS(6);
    int64_t *stack = malloc((size_t)(num + 1) * sizeof *stack);
    if (!stack) return finish(views, 7, PyErr_NoMemory());
    Py_ssize_t open = 0, pieces = 0, violations = 0;
    int64_t clock = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < num; i++) {
        int64_t begins = start[i], ends = end[i];
        parent[i] = -1;
        while (open) {
            int64_t top = stack[open - 1], closes = end[top];
            if (closes > begins && (ends <= closes || less(closes, begins) > tolerance)) break;
            open--;
            int64_t until = begins < closes ? begins : closes;
            if (until > clock) {
                from[pieces] = clock, to[pieces] = until, owner[pieces++] = top;
                clock = until;
            }
        }
        Py_ssize_t place = open;
        if (open) {
            int64_t top = stack[open - 1];
            if (begins > clock) from[pieces] = clock, to[pieces] = begins, owner[pieces++] = top;
            if (less(ends, end[top]) > tolerance) {
                violations++;
                while (place && less(ends, end[stack[place - 1]]) > tolerance) place--;
            }
            if (place) parent[i] = stack[place - 1];
            memmove(stack + place + 1, stack + place, (size_t)(open - place) * sizeof *stack);
        }
        depth[i] = parent[i] < 0 ? 0 : depth[parent[i]] + 1;
        stack[place] = i;
        open++;
        if (begins > clock) clock = begins;
    }
    while (open) {
        int64_t top = stack[--open];
        if (end[top] > clock) {
            from[pieces] = clock, to[pieces] = end[top], owner[pieces++] = top;
            clock = end[top];
        }
    }
    Py_END_ALLOW_THREADS
    free(stack);
    return finish(views, 7, Py_BuildValue("nn", pieces, violations));
}
