// The kernels of kernels.ptx for HIP: the same names, arguments and results. HIPRTC compiles them for the GPU at hand. Every kernel walks
// its range with a grid-wide stride. What is C in HIP's C++ is used alone, so that the tests compile this file for the processor.

typedef unsigned char b8;
typedef unsigned short b16;
typedef unsigned int b32;
typedef unsigned long long b64;

#ifdef __cplusplus
#define KERNEL extern "C" __global__ void
#else
#define KERNEL __global__ void
#endif
#define FIRST ((b64)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((b64)gridDim.x * blockDim.x)

// The finaliser of SplitMix64 over key + i * golden ratio: word() of agent/src/memory/pattern.rs.
static __device__ b64 pattern_word(b64 key, b64 i)
{
    b64 x = key + i * 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

// What ranks first .. first+many give for element i, reduced: value() and expected() of values.rs.
// Of a sum, the first `most` in turn give up to `cap`. mode: 0 sum, 1 product, 2 smallest, 3 largest.
static __device__ b32 reduced_value(b64 key, b64 i, b32 ranks, b32 cap, b32 most, b32 mode, b32 first, b32 many)
{
    b64 hash = pattern_word(key, i);
    b32 low = (b32)hash & 0x7fffffffU, high = (b32)(hash >> 32);
    b32 out = mode == 1 ? 1 : mode == 2 ? 0xffffffffU : 0;
    for (b32 rank = first; rank < first + many; rank++) {
        b32 turn = (low + rank) % ranks;
        b32 one = (high + rank * 37) & 127;
        if (mode == 0) {
            out += turn < most ? (high + rank * 7) % (cap + 1) : 0;
        } else if (mode == 1) {
            out <<= turn < 6 ? 1 : 0;
        } else if (mode == 2) {
            out = one < out ? one : out;
        } else {
            out = one > out ? one : out;
        }
    }
    return out;
}

// The element of row and column of place i in a square matrix: r1*c1 + r2*c2, which is -256 to 255, looked up. The factors are
// two numbers of 32 bits for each row and column.
static __device__ b32 outer_element(const int *rows, const int *columns, const b32 *table, b32 length, b64 i)
{
    b32 row = (b32)i / length, column = (b32)i % length;
    int number = rows[2 * row] * columns[2 * column] + rows[2 * row + 1] * columns[2 * column + 1];
    return table[(number + 256) & 511];
}

static __device__ void store_element(b8 *at, b32 shift, b64 element)
{
    if (shift == 0) {
        *at = (b8)element;
    } else if (shift == 1) {
        *(b16 *)at = (b16)element;
    } else if (shift == 2) {
        *(b32 *)at = (b32)element;
    } else {
        *(b64 *)at = element;
    }
}

static __device__ b64 load_element(const b8 *at, b32 shift)
{
    return shift == 0 ? *at : shift == 1 ? *(const b16 *)at : shift == 2 ? *(const b32 *)at : *(const b64 *)at;
}

// Adds to what is wrong, and keeps the lowest offset.
static __device__ void count_wrong(b64 *result, b64 offset)
{
    atomicAdd(&result[0], 1ULL);
    atomicMin(&result[1], offset);
}

// Writes the pattern's words, and mask, xor flip, into the first len bytes at ptr.
KERNEL write_pattern(b8 *ptr, b64 len, b64 key, b64 flip, b64 mask)
{
    for (b64 i = FIRST; i < (len + 7) / 8; i += STEP) {
        b64 made = (pattern_word(key, i) & mask) ^ flip, at = 8 * i;
        if (len - at >= 8) {
            *(b64 *)(ptr + at) = made;
        } else {
            for (; at < len; at++, made >>= 8) {
                ptr[at] = (b8)made;
            }
        }
    }
}

// Compares the first len bytes at ptr with what write_pattern writes. At result: wrong bytes are added up, and the offset of the
// first is kept (the caller puts 0 and 2^64-1 there).
KERNEL check_pattern(const b8 *ptr, b64 len, b64 key, b64 flip, b64 mask, b64 *result)
{
    for (b64 i = FIRST; i < (len + 7) / 8; i += STEP) {
        b64 made = (pattern_word(key, i) & mask) ^ flip, at = 8 * i;
        if (len - at >= 8 && *(const b64 *)(ptr + at) == made) {
            continue;
        }
        for (b64 end = len - at >= 8 ? at + 8 : len; at < end; at++, made >>= 8) {
            if (ptr[at] != (b8)made) {
                count_wrong(result, at);
            }
        }
    }
}

// Writes count elements of 2^shift bytes: table[value] for element offset+i.
KERNEL write_values(b8 *ptr, b64 count, const b64 *table, b64 offset, b64 key, b32 shift, b32 ranks, b32 cap, b32 most, b32 mode, b32 first, b32 many)
{
    for (b64 i = FIRST; i < count; i += STEP) {
        store_element(ptr + (i << shift), shift, table[reduced_value(key, offset + i, ranks, cap, most, mode, first, many)]);
    }
}

// Compares count elements with what write_values would write. At result: wrong elements are added up, and the byte
// offset of the first is kept.
KERNEL check_values(const b8 *ptr, b64 count, const b64 *table, b64 offset, b64 key, b32 shift, b32 ranks, b32 cap, b32 most, b32 mode, b32 first, b32 many, b64 *result)
{
    b64 bits = shift == 3 ? ~0ULL : (1ULL << (8 << shift)) - 1;
    for (b64 i = FIRST; i < count; i += STEP) {
        b64 element = table[reduced_value(key, offset + i, ranks, cap, most, mode, first, many)];
        if (load_element(ptr + (i << shift), shift) != (element & bits)) {
            count_wrong(result, i << shift);
        }
    }
}

// Writes the elements of a square matrix, count in all, row by row.
KERNEL write_outer(b8 *ptr, b64 count, const int *rows, const int *columns, const b32 *table, b32 length, b32 shift)
{
    for (b64 i = FIRST; i < count; i += STEP) {
        store_element(ptr + (i << shift), shift, outer_element(rows, columns, table, length, i));
    }
}

// Compares them with what write_outer would write. At result: wrong elements are added up, and the byte offset of the first is
// kept.
KERNEL check_outer(const b8 *ptr, b64 count, const int *rows, const int *columns, const b32 *table, b32 length, b32 shift, b64 *result)
{
    b64 bits = (1ULL << (8 << shift)) - 1;
    for (b64 i = FIRST; i < count; i += STEP) {
        if (load_element(ptr + (i << shift), shift) != (outer_element(rows, columns, table, length, i) & bits)) {
            count_wrong(result, i << shift);
        }
    }
}
