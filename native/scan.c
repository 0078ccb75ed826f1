/* Events of a trace to columns, in one pass over a stretch of text.

Only what is plain is read here: strict JSON, whole numbers of 18 digits, times of three decimals, known keys without escapes.
Anything else gives None, and the stretch is read as if this module were missing; so what is read here must mean the same
to both. Arguments whose values are of other types are marked, and decoded elsewhere. Text is never looked at beyond its
end, and strings are kept as they stand in the file, quotes included, each different one once. */

#include "intern.h"

enum { OK, ODD, SHORT };                  /* what reading a piece may end in */
enum { WHOLE, NUMBER, TEXT, RAW, TRIPLE }; /* what an argument should be; the same order as in reading/scanning.py */
enum { PH, CAT, PID, TID, NAME, TEXTS, RAWS, NUM_TABLES };
enum { NO_ID, WHOLE_ID, OTHER_ID };

#define DEEPEST 64
#define MOST_SORTS 4096
#define NO_TIME INT64_MIN
#define LARGEST_TIME ((uint64_t)1 << 53)  /* in µs, as far as floats tell whole numbers apart */
#define COARSE_TIME ((uint64_t)1 << 43)   /* in µs; from here on floats do not tell nanoseconds apart */
#define EXACT_MANTISSA ((uint64_t)1 << 53)

/* What is kept of each event, in this order; places are bytes of the text. */
enum { BEGIN, STOP, SORT, NAMED, TS, DUR, ID, ID_KIND, ARGS_BEGIN, ARGS_STOP, ODD_ARGS, NUM_FIELDS };

typedef struct {
    const char *key;
    Py_ssize_t length;
    long type;
    Column found; /* row and value of each; three values of a triple */
} Key;

typedef struct {
    const char *text, *at, *end;
    int coarse, failed; /* failed: memory ran out */
    Py_ssize_t num;
    Column events, sorts, hard; /* hard: row, key and place of numbers that are left to others */
    Table tables[NUM_TABLES];
    Key *keys;
    Py_ssize_t num_keys;
    int32_t *key_slots;
    uint64_t key_mask;
} Scan;

static inline void skip_space(Scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t')) s->at++;
}

static int hex4(const char *p, uint32_t *value) {
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)(c - '0')
                         : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint32_t)((c | 32) - 'a' + 10)
                                                              : 16;
        if (digit > 15) return 0;
        *value = *value * 16 + digit;
    }
    return 1;
}

/* Behind a backslash; a half of a surrogate pair must have its other half. */
static int skip_escape(Scan *s) {
    if (s->at >= s->end) return SHORT;
    char c = *s->at++;
    if (c != 'u') return c && strchr("\"\\/bfnrt", c) ? OK : ODD;
    uint32_t first, second;
    if (s->end - s->at < 4) return SHORT;
    if (!hex4(s->at, &first)) return ODD;
    s->at += 4;
    if (first < 0xD800 || first > 0xDFFF) return OK;
    if (first > 0xDBFF) return ODD;
    if (s->end - s->at < 6) return SHORT;
    if (s->at[0] != '\\' || s->at[1] != 'u' || !hex4(s->at + 2, &second)) return ODD;
    s->at += 6;
    return second >= 0xDC00 && second <= 0xDFFF ? OK : ODD;
}

/* From its first quote to behind its last one; says whether something in it is escaped. */
static int skip_string(Scan *s, int *escaped) {
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    *escaped = 0;
    s->at++;
    for (;;) {
        while (s->end - s->at >= 8) { /* eight bytes at once, as long as none is a quote, a backslash or a control */
            uint64_t eight, quote, slash;
            memcpy(&eight, s->at, 8);
            quote = eight ^ (ones * '"'), slash = eight ^ (ones * '\\');
            if ((((eight - ones * 0x20) & ~eight) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & high) break;
            s->at += 8;
        }
        for (;;) {
            if (s->at >= s->end) return SHORT;
            unsigned char c = (unsigned char)*s->at++;
            if (c == '"') return OK;
            if (c < 0x20) return ODD;
            if (c == '\\') {
                *escaped = 1;
                int ended = skip_escape(s);
                if (ended != OK) return ended;
                break;
            }
        }
    }
}

typedef struct {
    int negative, fraction, exponent, digits, decimals;
    uint64_t mantissa; /* all digits, where there are no more than 19 */
} Number;

static int read_number(Scan *s, Number *n) {
    *n = (Number){0};
    if (*s->at == '-') n->negative = 1, s->at++;
    if (s->at >= s->end) return SHORT;
    const char *first = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
        if (n->digits++ < 19) n->mantissa = n->mantissa * 10 + (uint64_t)(*s->at - '0');
        s->at++;
    }
    if (s->at >= s->end) return SHORT;
    if (!n->digits || (*first == '0' && n->digits > 1)) return ODD;
    if (*s->at == '.') {
        n->fraction = 1;
        s->at++;
        while (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
            if (n->digits++ < 19) n->mantissa = n->mantissa * 10 + (uint64_t)(*s->at - '0');
            n->decimals++, s->at++;
        }
        if (s->at >= s->end) return SHORT;
        if (!n->decimals) return ODD;
    }
    if (*s->at == 'e' || *s->at == 'E') {
        n->exponent = 1;
        s->at++;
        if (s->at < s->end && (*s->at == '+' || *s->at == '-')) s->at++;
        const char *power = s->at;
        while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
        if (s->at >= s->end) return SHORT;
        if (s->at == power) return ODD;
    }
    return OK;
}

static int is_whole(const Number *n) { return !n->fraction && !n->exponent && n->digits <= 18; }
static int64_t whole(const Number *n) { return n->negative ? less(0, (int64_t)n->mantissa) : (int64_t)n->mantissa; }

static int skip_word(Scan *s, const char *word) {
    for (; *word; word++, s->at++) {
        if (s->at >= s->end) return SHORT;
        if (*s->at != *word) return ODD;
    }
    return OK;
}

static int skip_value(Scan *s, int depth);

/* What stands between two entries: OK where another follows, and `closed` where the bracket does. */
static int between(Scan *s, char bracket, int *closed) {
    skip_space(s);
    if (s->at >= s->end) return SHORT;
    *closed = *s->at == bracket;
    if (!*closed && *s->at != ',') return ODD;
    s->at++;
    if (!*closed) skip_space(s);
    return OK;
}

static int skip_key(Scan *s, const char **key, Py_ssize_t *length, int *escaped) {
    int ended;
    if (s->at >= s->end) return SHORT;
    if (*s->at != '"') return ODD;
    *key = s->at + 1;
    if ((ended = skip_string(s, escaped)) != OK) return ended;
    *length = s->at - 1 - *key;
    skip_space(s);
    if (s->at >= s->end) return SHORT;
    if (*s->at++ != ':') return ODD;
    skip_space(s);
    return OK;
}

static int skip_container(Scan *s, int depth) {
    char bracket = *s->at++ == '{' ? '}' : ']';
    int closed = 0, ended, escaped;
    const char *key;
    Py_ssize_t length;
    if (depth >= DEEPEST) return ODD;
    skip_space(s);
    if (s->at >= s->end) return SHORT;
    if (*s->at == bracket) return s->at++, OK;
    while (!closed) {
        if (bracket == '}' && (ended = skip_key(s, &key, &length, &escaped)) != OK) return ended;
        if ((ended = skip_value(s, depth + 1)) != OK || (ended = between(s, bracket, &closed)) != OK) return ended;
    }
    return OK;
}

static int skip_value(Scan *s, int depth) {
    int escaped;
    Number number;
    if (s->at >= s->end) return SHORT;
    switch (*s->at) {
    case '"': return skip_string(s, &escaped);
    case '{':
    case '[': return skip_container(s, depth);
    case 't': return skip_word(s, "true");
    case 'f': return skip_word(s, "false");
    case 'n': return skip_word(s, "null");
    default: return *s->at == '-' || (*s->at >= '0' && *s->at <= '9') ? read_number(s, &number) : ODD;
    }
}

static int64_t intern(Scan *s, int table, const char *text) {
    int64_t number = number_of(&s->tables[table], s->text, text, s->at - text);
    s->failed |= number < 0;
    return number;
}

static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number as the bits of a double, which is the nearest one: both parts are exact. */
static int as_double(const Number *n, int64_t *bits) {
    if (n->exponent || n->digits > 19 || n->mantissa > EXACT_MANTISSA || n->decimals > 22) return 0;
    double value = (double)n->mantissa / POWERS[n->decimals];
    if (n->negative && (n->fraction || n->mantissa)) value = -value;
    memcpy(bits, &value, 8);
    return 1;
}

static Key *known_key(Scan *s, const char *key, Py_ssize_t length) {
    for (uint64_t at = hash_text(key, length) & s->key_mask; s->key_slots[at]; at = (at + 1) & s->key_mask) {
        Key *known = &s->keys[s->key_slots[at] - 1];
        if (known->length == length && !memcmp(known->key, key, (size_t)length)) return known;
    }
    return NULL;
}

static int is_digit(const Scan *s) { return *s->at == '-' || (*s->at >= '0' && *s->at <= '9'); }

/* Three whole numbers in brackets; `fits` says whether that is what stands here. */
static int read_triple(Scan *s, int64_t *values, int *fits) {
    const char *begin = s->at;
    int closed = 0, ended;
    *fits = 0;
    s->at++;
    for (int i = 0; i < 3; i++) {
        Number number;
        skip_space(s);
        if (s->at >= s->end) return SHORT;
        if (closed || !is_digit(s)) goto other;
        if ((ended = read_number(s, &number)) != OK) return ended;
        if (!is_whole(&number)) goto other;
        values[i] = whole(&number);
        if ((ended = between(s, ']', &closed)) != OK) return ended;
    }
    if (closed) return *fits = 1, OK;
other:
    s->at = begin;
    return skip_value(s, 1);
}

/* The value of a known argument to its column; sets `odd` where it is not what it should be. */
static int read_known(Scan *s, Key *key, int64_t *odd) {
    const char *begin = s->at;
    int width = key->type == TRIPLE ? 4 : 2, ended, escaped, fits = 1;
    int64_t values[3] = {0};
    Number number;
    if (s->at >= s->end) return SHORT;
    Column *found = &key->found;
    if (found->num && found->data[found->num - width] == s->num) *odd = 1; /* a second time */
    char first = *s->at;
    if (first == 'n' && key->type != RAW) return skip_word(s, "null");
    if (key->type == RAW) {
        if ((ended = skip_value(s, 1)) != OK) return ended;
        values[0] = intern(s, RAWS, begin);
    } else if (key->type == TEXT && first == '"') {
        if ((ended = skip_string(s, &escaped)) != OK) return ended;
        values[0] = intern(s, TEXTS, begin);
    } else if (key->type == TRIPLE && first == '[') {
        if ((ended = read_triple(s, values, &fits)) != OK) return ended;
    } else if ((key->type == WHOLE || key->type == NUMBER) && is_digit(s)) {
        if ((ended = read_number(s, &number)) != OK) return ended;
        if (key->type == WHOLE) {
            fits = is_whole(&number);
            values[0] = whole(&number);
        } else if (!as_double(&number, &values[0])) {
            fits = number.fraction || number.exponent;
            int64_t *hard = fits ? more(&s->hard, 4) : NULL;
            if (fits && !hard) return s->failed = 1, ODD;
            if (fits) hard[0] = s->num, hard[1] = key - s->keys, hard[2] = begin - s->text, hard[3] = s->at - begin;
        }
    } else {
        fits = 0;
        if ((ended = skip_value(s, 1)) != OK) return ended;
    }
    *odd |= !fits;
    int64_t *added = fits ? more(found, width) : NULL;
    if (fits && !added) return s->failed = 1, ODD;
    if (fits) added[0] = s->num, memcpy(added + 1, values, (size_t)(width - 1) * sizeof *values);
    return OK;
}

static int read_args(Scan *s, int64_t *event) {
    int closed = 0, ended, escaped;
    const char *name;
    Py_ssize_t length;
    if (event[ARGS_STOP]) return ODD; /* a second time */
    event[ARGS_BEGIN] = s->at - s->text;
    if (*s->at != '{') {
        event[ODD_ARGS] = 1;
        if ((ended = skip_value(s, 1)) != OK) return ended;
        return event[ARGS_STOP] = s->at - s->text, OK;
    }
    s->at++;
    skip_space(s);
    if (s->at >= s->end) return SHORT;
    if (*s->at == '}') s->at++, closed = 1;
    while (!closed) {
        if ((ended = skip_key(s, &name, &length, &escaped)) != OK) return ended;
        event[ODD_ARGS] |= escaped;
        Key *key = known_key(s, name, length);
        ended = key ? read_known(s, key, &event[ODD_ARGS]) : skip_value(s, 1);
        if (ended != OK || (ended = between(s, '}', &closed)) != OK) return ended;
    }
    event[ARGS_STOP] = s->at - s->text;
    return OK;
}

/* A time in µs to ns, where three decimals tell it. */
static int read_time(Scan *s, int64_t *ns, int *coarse) {
    Number n;
    int ended;
    *ns = NO_TIME, *coarse = 0;
    if (*s->at == 'n') return skip_word(s, "null");
    if (!is_digit(s)) return ODD;
    if ((ended = read_number(s, &n)) != OK) return ended;
    if (n.exponent || n.digits > 19 || n.decimals > 3) return ODD;
    int64_t scale = n.decimals == 0 ? 1000 : n.decimals == 1 ? 100 : n.decimals == 2 ? 10 : 1;
    uint64_t micros = n.mantissa / (uint64_t)(1000 / scale);
    if (micros >= LARGEST_TIME) return ODD;
    *ns = (n.negative ? -1 : 1) * (int64_t)n.mantissa * scale;
    *coarse = n.fraction && micros >= COARSE_TIME;
    return OK;
}

static int read_id(Scan *s, int64_t *event) {
    int ended, escaped;
    Number n;
    event[ID] = 0, event[ID_KIND] = NO_ID;
    if (*s->at == 'n') return skip_word(s, "null");
    if (*s->at == '"') return event[ID_KIND] = OTHER_ID, skip_string(s, &escaped);
    if (!is_digit(s)) return ODD;
    if ((ended = read_number(s, &n)) != OK) return ended;
    event[ID_KIND] = WHOLE_ID, event[ID] = whole(&n);
    return is_whole(&n) ? OK : ODD;
}

/* A text, or what else may stand where a text is expected, as its number in a table. */
static int read_text(Scan *s, int table, int64_t *number) {
    const char *begin = s->at;
    int ended, escaped;
    Number n;
    if (*s->at == '"') ended = skip_string(s, &escaped);
    else if (*s->at == 'n' && table != PH) ended = skip_word(s, "null");
    else if ((table == PID || table == TID) && is_digit(s)) ended = read_number(s, &n);
    else return ODD;
    if (ended == OK) *number = intern(s, table, begin);
    return ended;
}

static int is(const char *key, Py_ssize_t length, const char *word) {
    return length == (Py_ssize_t)strlen(word) && !memcmp(key, word, (size_t)length);
}

static int read_field(Scan *s, const char *key, Py_ssize_t length, int64_t *event, int64_t *sort) {
    int coarse, ended;
    if (s->at >= s->end) return SHORT;
    if (is(key, length, "ph")) return read_text(s, PH, &sort[PH]);
    if (is(key, length, "cat")) return read_text(s, CAT, &sort[CAT]);
    if (is(key, length, "pid")) return read_text(s, PID, &sort[PID]);
    if (is(key, length, "tid")) return read_text(s, TID, &sort[TID]);
    if (is(key, length, "name")) return read_text(s, NAME, &event[NAMED]);
    if (is(key, length, "args")) return read_args(s, event);
    if (is(key, length, "id")) return read_id(s, event);
    if (is(key, length, "ts")) {
        ended = read_time(s, &event[TS], &coarse);
        s->coarse |= coarse;
        return ended;
    }
    if (!is(key, length, "dur")) return skip_value(s, 1);
    ended = read_time(s, &event[DUR], &coarse);
    return coarse ? ODD : ended;
}

static int64_t sort_of(Scan *s, const int64_t *sort) {
    Py_ssize_t num = s->sorts.num / 4;
    for (Py_ssize_t i = num - 1; i >= 0; i--) /* few, and mostly the ones before */
        if (!memcmp(s->sorts.data + 4 * i, sort, 4 * sizeof *sort)) return i;
    int64_t *added = num < MOST_SORTS ? more(&s->sorts, 4) : NULL;
    if (num >= MOST_SORTS) return -1;
    if (!added) return s->failed = 1, 0;
    memcpy(added, sort, 4 * sizeof *sort);
    return num;
}

static int read_event(Scan *s) {
    int closed = 0, ended, escaped;
    const char *key;
    Py_ssize_t length;
    int64_t event[NUM_FIELDS] = {[NAMED] = -1, [TS] = NO_TIME, [DUR] = NO_TIME}, sort[4] = {-1, -1, -1, -1};
    event[BEGIN] = s->at - s->text;
    if (*s->at != '{') return ODD;
    s->at++;
    skip_space(s);
    if (s->at >= s->end) return SHORT;
    if (*s->at == '}') s->at++, closed = 1;
    while (!closed) {
        if ((ended = skip_key(s, &key, &length, &escaped)) != OK) return ended;
        if (escaped) return ODD;
        if ((ended = read_field(s, key, length, event, sort)) != OK) return ended;
        if ((ended = between(s, '}', &closed)) != OK) return ended;
    }
    event[STOP] = s->at - s->text;
    if ((event[SORT] = sort_of(s, sort)) < 0) return ODD;
    int64_t *added = more(&s->events, NUM_FIELDS);
    if (!added) return s->failed = 1, ODD;
    memcpy(added, event, sizeof event);
    return s->failed ? ODD : OK;
}

/* All events that are followed by another, or by the end of the list; gives where the rest begins, or -1. */
static Py_ssize_t read_events(Scan *s, int *closed) {
    Py_ssize_t used = s->at - s->text;
    int ended = OK;
    *closed = 0;
    while (!*closed) {
        if (s->at >= s->end || (ended = read_event(s)) == SHORT || (ended == OK && (ended = between(s, ']', closed)) == SHORT))
            break;
        if (ended == ODD || (!*closed && s->at < s->end && *s->at != '{')) return -1;
        if (!*closed && s->at >= s->end) break;
        s->num++;
        used = s->at - s->text;
    }
    s->events.num = s->num * NUM_FIELDS;
    for (Py_ssize_t i = 0; i < s->num_keys; i++) { /* what was read of an event that is not taken */
        Column *found = &s->keys[i].found;
        int width = s->keys[i].type == TRIPLE ? 4 : 2;
        while (found->num && found->data[found->num - width] >= s->num) found->num -= width;
    }
    return used;
}

static PyObject *bytes_of(const Column *c) {
    return PyBytes_FromStringAndSize((const char *)c->data, c->num * (Py_ssize_t)sizeof *c->data);
}

/* The texts of a table as they stand in the file, in a JSON list. */
static PyObject *listed(const Scan *s, const Table *t) {
    Py_ssize_t size = 2, num = t->texts.num / 3;
    for (Py_ssize_t i = 0; i < num; i++) size += t->texts.data[3 * i + 1] + (i > 0);
    PyObject *list = PyBytes_FromStringAndSize(NULL, size);
    if (!list) return NULL;
    char *at = PyBytes_AsString(list);
    *at++ = '[';
    for (Py_ssize_t i = 0; i < num; i++) {
        const int64_t *text = t->texts.data + 3 * i;
        if (i) *at++ = ',';
        memcpy(at, s->text + text[0], (size_t)text[1]);
        at += text[1];
    }
    *at = ']';
    return list;
}

static PyObject *tuple_of(Py_ssize_t num, PyObject *(*make)(const Scan *, Py_ssize_t), const Scan *s) {
    PyObject *tuple = PyTuple_New(num);
    for (Py_ssize_t i = 0; tuple && i < num; i++) {
        PyObject *part = make(s, i);
        if (!part || PyTuple_SetItem(tuple, i, part)) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *found_of(const Scan *s, Py_ssize_t i) { return bytes_of(&s->keys[i].found); }
static PyObject *table_of(const Scan *s, Py_ssize_t i) { return listed(s, &s->tables[i]); }

static PyObject *result_of(const Scan *s, Py_ssize_t used, int closed) {
    PyObject *parts[] = {bytes_of(&s->events), bytes_of(&s->sorts), bytes_of(&s->hard),
                         tuple_of(NUM_TABLES, table_of, s), tuple_of(s->num_keys, found_of, s)};
    PyObject *result = NULL;
    if (parts[0] && parts[1] && parts[2] && parts[3] && parts[4])
        result = Py_BuildValue("niiOOOOO", used, closed, s->coarse, parts[0], parts[1], parts[2], parts[3], parts[4]);
    for (int i = 0; i < 5; i++) Py_XDECREF(parts[i]);
    return result;
}

/* Number the keys by their texts, which the caller holds. */
static int take_keys(Scan *s, PyObject *keys) {
    s->num_keys = PyTuple_Size(keys);
    if (s->num_keys < 0) return 0;
    s->key_mask = 63;
    while (s->key_mask < 4 * (uint64_t)s->num_keys) s->key_mask = 2 * s->key_mask + 1;
    s->keys = calloc((size_t)s->num_keys + 1, sizeof *s->keys);
    s->key_slots = calloc(s->key_mask + 1, sizeof *s->key_slots);
    if (!s->keys || !s->key_slots) return PyErr_NoMemory(), 0;
    for (Py_ssize_t i = 0; i < s->num_keys; i++) {
        Key *key = &s->keys[i];
        PyObject *pair = PyTuple_GetItem(keys, i);
        if (!pair || !PyArg_ParseTuple(pair, "y#l", &key->key, &key->length, &key->type)) return 0;
        uint64_t at = hash_text(key->key, key->length) & s->key_mask;
        while (s->key_slots[at]) at = (at + 1) & s->key_mask;
        s->key_slots[at] = (int32_t)i + 1;
    }
    return 1;
}

/* reading/scanning.py: scan(text, start, keys) gives columns of events, or None where not all of it is plain. */
PyObject *native_scan(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer text;
    Py_ssize_t start, used = -1;
    PyObject *keys, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*nO!", &text, &start, &PyTuple_Type, &keys)) return NULL;
    Scan s = {.text = text.buf, .end = (const char *)text.buf + text.len};
    int closed = 0;
    if (start < 0 || start > text.len) {
        PyErr_Format(PyExc_ValueError, "start %zd lies outside of a text of %zd bytes", start, text.len);
    } else if (take_keys(&s, keys)) {
        s.at = s.text + start;
        Py_BEGIN_ALLOW_THREADS
        used = read_events(&s, &closed);
        Py_END_ALLOW_THREADS
        if (s.failed) PyErr_NoMemory();
        else result = used < 0 ? Py_NewRef(Py_None) : result_of(&s, used, closed);
    }
    PyBuffer_Release(&text);
    free(s.events.data), free(s.sorts.data), free(s.hard.data), free(s.key_slots);
    for (int i = 0; i < NUM_TABLES; i++) free(s.tables[i].texts.data), free(s.tables[i].slots);
    for (Py_ssize_t i = 0; s.keys && i < s.num_keys; i++) free(s.keys[i].found.data);
    free(s.keys);
    return result;
}
