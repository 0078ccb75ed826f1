/* Columns that grow, and tables that number different texts. */

#include "native.h"

typedef struct {
    int64_t *data;
    Py_ssize_t num, room;
} Column;

/* Room for `count` more numbers; NULL where memory ran out. */
static inline int64_t *more(Column *c, Py_ssize_t count) {
    if (c->room - c->num < count) {
        Py_ssize_t room = 2 * c->room + count + 64;
        int64_t *data = realloc(c->data, (size_t)room * sizeof *data);
        if (!data) return NULL;
        c->data = data, c->room = room;
    }
    c->num += count;
    return c->data + c->num - count;
}

static inline uint64_t hash_text(const char *text, Py_ssize_t length) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ (uint64_t)length, eight;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&eight, text, 8);
        hash = (hash ^ eight) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    eight = 0;
    memcpy(&eight, text, (size_t)length);
    hash = (hash ^ eight) * 0xFF51AFD7ED558CCDu;
    return hash ^ hash >> 32;
}

/* A text is a place, a length and a hash; `slots` holds its number plus 1, or 0. */
typedef struct {
    Column texts;
    int32_t *slots;
    uint64_t mask;
} Table;

static inline int grow(Table *t) {
    uint64_t mask = t->slots ? 2 * t->mask + 1 : 255;
    int32_t *slots = calloc(mask + 1, sizeof *slots);
    if (!slots) return 0;
    for (Py_ssize_t i = 0; i < t->texts.num / 3; i++) {
        uint64_t at = (uint64_t)t->texts.data[3 * i + 2] & mask;
        while (slots[at]) at = (at + 1) & mask;
        slots[at] = (int32_t)i + 1;
    }
    free(t->slots);
    t->slots = slots, t->mask = mask;
    return 1;
}

/* The number of a text; -1 where memory ran out. */
static inline int64_t number_of(Table *t, const char *base, const char *text, Py_ssize_t length) {
    uint64_t hash = hash_text(text, length);
    if (!t->slots && !grow(t)) return -1;
    uint64_t at = hash & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        const int64_t *held = t->texts.data + 3 * (Py_ssize_t)(t->slots[at] - 1);
        if ((uint64_t)held[2] == hash && held[1] == length && !memcmp(base + held[0], text, (size_t)length))
            return t->slots[at] - 1;
    }
    int64_t *added = more(&t->texts, 3);
    if (!added) return -1;
    added[0] = text - base, added[1] = length, added[2] = (int64_t)hash;
    Py_ssize_t num = t->texts.num / 3;
    t->slots[at] = (int32_t)num;
    if ((uint64_t)num * 2 > t->mask && !grow(t)) return -1;
    return num - 1;
}
