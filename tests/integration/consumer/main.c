/* The C interface as a user of the installed package meets it: C99, no C++ in sight. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tensorhash/c.h"

static int failures = 0;

static void expect(int holds, char const* what) {
    if (holds) return;
    fprintf(stderr, "not so: %s (last error: \"%s\")\n", what, th_last_error());
    ++failures;
}

int main(void) {
    int64_t const three = 3;
    th_element const key = {4, 1, &three};   /* int32 [3] */
    th_element const weight = {12, 0, NULL}; /* float32 */
    int32_t const voxels[3][3] = {{0, 0, 0}, {1, 2, 3}, {0, 0, 0}};
    float const weights[3] = {0.5f, 1.5f, 2.5f};
    void const* const columns[1] = {weights};
    int32_t const wanted[2][3] = {{1, 2, 3}, {9, 9, 9}};
    th_map* map = NULL;
    int32_t indices[3];
    uint8_t mask[3];
    float found[2];
    int64_t size = 0;
    th_memory memory = {NULL, 0};

    expect(th_abi_version() == TH_ABI_VERSION, "library and header agree on the interface");
    expect(th_map_create(8, key, &weight, 1, &map) == TH_OK, "a map is made");
    if (map == NULL) return 1;

    expect(th_map_insert(map, voxels, 3, columns, indices, mask) == TH_OK, "rows are inserted");
    expect(indices[0] == 0 && indices[1] == 1 && indices[2] == 0, "every row has its index");
    expect(mask[0] == 1 && mask[1] == 1 && mask[2] == 0, "the first of equal rows inserts");
    expect(th_map_size(map, &size) == TH_OK && size == 2, "two distinct keys are stored");

    expect(th_map_find(map, wanted, 2, indices, mask) == TH_OK, "keys are looked up");
    expect(indices[0] == 1 && mask[0] == 1, "a stored key is found at its index");
    expect(indices[1] == -1 && mask[1] == 0, "a missing key gives -1");
    expect(th_map_get(map, wanted, 2, 0, NULL, 0, found, NULL) == TH_OK, "values are read");
    expect(found[0] > 1.4f && found[0] < 1.6f, "get gives the value");
    expect(th_map_validate(map) == TH_OK, "the table is sound");

    expect(th_map_reserve(map, -1) == TH_VALUE_ERROR, "a negative capacity is refused");
    expect(strlen(th_last_error()) > 0, "the refusal comes with a sentence");
    expect(th_map_size(map, &size) == TH_OK && size == 2, "a refused call changes nothing");
    th_map_destroy(map);

    expect(th_memory_take(5 << 20, &memory) == TH_OK, "memory is taken");
    memset(memory.data, 1, 5 << 20);
    th_memory_give(memory);
    expect(th_memory_release() >= 5 << 20, "what was given back is released");

    if (failures == 0) printf("tensorhash %s works from C\n", th_version());
    return failures == 0 ? 0 : 1;
}
