"""Sites fetched and pairs in range kept, TOGETHER at a time.

What vectors of the widest instruction set have an instruction for and a compiler makes nothing of: four numbers of each
of eight sites that are anywhere, turned into components; and the few of many that are kept moved together. The same is
written without it for all other processors. Numbers are moved, and squares are summed in one order: bits are the same.
"""
from libc.stdint cimport int32_t

cdef extern from * nogil:
    """
    #ifndef MEDYANPY_TOGETHER
    #define MEDYANPY_TOGETHER 8
    #if defined(__AVX512F__) && defined(__AVX512VL__)
    #define MEDYANPY_WIDE 1
    #include <immintrin.h>
    #else
    #define MEDYANPY_WIDE 0
    #endif

    /* Components of n sites, (4,) each, `width` apart; width is a multiple of TOGETHER and n not above it, and behind
       the n-th comes the last one again. They are those of `slot`, or where that is NULL the first n. */
    static inline void medyanpy_fetch(const double *sites, const int32_t *slot, int n, int width, double *x) {
        int k;
    #if MEDYANPY_WIDE
        for (k = 0; k < width; k += 8) {
            const double *p[8];
            int j;
            if (k + 8 <= n)
                for (j = 0; j < 8; j++)
                    p[j] = sites + 4 * (Py_ssize_t) (slot ? slot[k + j] : k + j);
            else
                for (j = 0; j < 8; j++) {
                    int i = k + j < n ? k + j : n - 1;
                    p[j] = sites + 4 * (Py_ssize_t) (slot ? slot[i] : i);
                }
    #define MEDYANPY_BOTH(i, j) \
        _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(p[i])), _mm256_loadu_pd(p[j]), 1)
            __m512d a = MEDYANPY_BOTH(0, 2), b = MEDYANPY_BOTH(1, 3), c = MEDYANPY_BOTH(4, 6), d = MEDYANPY_BOTH(5, 7);
            /* x and z of four, and of four; then y and what is behind z. */
            __m512d e = _mm512_unpacklo_pd(a, b), f = _mm512_unpacklo_pd(c, d);
            __m512d g = _mm512_unpackhi_pd(a, b), h = _mm512_unpackhi_pd(c, d);
            _mm512_storeu_pd(x + k, _mm512_shuffle_f64x2(e, f, 0x88));
            _mm512_storeu_pd(x + width + k, _mm512_shuffle_f64x2(g, h, 0x88));
            _mm512_storeu_pd(x + 2 * width + k, _mm512_shuffle_f64x2(e, f, 0xdd));
        }
    #else
        for (k = 0; k < width; k++) {
            int i = k < n ? k : n - 1;
            const double *p = sites + 4 * (Py_ssize_t) (slot ? slot[i] : i);
            x[k] = p[0];
            x[width + k] = p[1];
            x[2 * width + k] = p[2];
        }
    #endif
    }

    /* Of n displacements d, `width` apart, those with a square below `end` go to `to`, whose components are `room`
       apart, with their squares behind them; how many they are. Up to TOGETHER numbers more are written to each. */
    static inline int medyanpy_keep(const double *d, int n, int width, double end, double *to, int room) {
        int k, kept = 0;
    #if MEDYANPY_WIDE
        for (k = 0; k < n; k += 8) {
            __m512d x = _mm512_loadu_pd(d + k), y = _mm512_loadu_pd(d + width + k);
            __m512d z = _mm512_loadu_pd(d + 2 * width + k), s = _mm512_mul_pd(x, x);
            __mmask8 in;
            s = _mm512_add_pd(s, _mm512_mul_pd(y, y));
            s = _mm512_add_pd(s, _mm512_mul_pd(z, z));
            in = _mm512_cmp_pd_mask(s, _mm512_set1_pd(end), _CMP_LT_OQ);
            in &= (__mmask8) (n - k < 8 ? (1 << (n - k)) - 1 : 255);
            _mm512_storeu_pd(to + kept, _mm512_maskz_compress_pd(in, x));
            _mm512_storeu_pd(to + room + kept, _mm512_maskz_compress_pd(in, y));
            _mm512_storeu_pd(to + 2 * room + kept, _mm512_maskz_compress_pd(in, z));
            _mm512_storeu_pd(to + 3 * room + kept, _mm512_maskz_compress_pd(in, s));
            kept += __builtin_popcount(in);
        }
    #else
        for (k = 0; k < n; k++) {
            double x = d[k], y = d[width + k], z = d[2 * width + k];
            double s = x * x + y * y + z * z;
            to[kept] = x;
            to[room + kept] = y;
            to[2 * room + kept] = z;
            to[3 * room + kept] = s;
            /* Written always and kept by counting on: which are in range is beyond a branch predictor. */
            kept += s < end;
        }
    #endif
        return kept;
    }

    /* Of n squares, the numbers of those up to `end`, but for the number `but`; they are counted from `first`. How many
       they are. */
    static inline int medyanpy_number(
        const double *square, int n, double end, int32_t first, int32_t but, int32_t *out) {
        int k, kept = 0;
    #if MEDYANPY_WIDE
        const __m256i steps = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        for (k = 0; k < n; k += 8) {
            __m256i number = _mm256_add_epi32(_mm256_set1_epi32(first + k), steps);
            __mmask8 in;
            int many;
            in = _mm512_cmp_pd_mask(_mm512_loadu_pd(square + k), _mm512_set1_pd(end), _CMP_LE_OQ);
            in &= (__mmask8) (n - k < 8 ? (1 << (n - k)) - 1 : 255);
            in &= _mm256_cmpneq_epi32_mask(number, _mm256_set1_epi32(but));
            many = __builtin_popcount(in);
            _mm256_mask_storeu_epi32(out + kept, (__mmask8) ((1 << many) - 1), _mm256_maskz_compress_epi32(in, number));
            kept += many;
        }
    #else
        for (k = 0; k < n; k++) {
            out[kept] = first + k;
            kept += (square[k] <= end) & (first + k != but);
        }
    #endif
        return kept;
    }

    /* Terms d of rows, whose components are `room` apart, onto their sums (rows, 3): each row from where the one before
       ends, one term after another. Two rows at a time: a sum waits for each of its terms, and two wait as long as one.
       A compiler that makes vectors of terms takes them apart again. */
    #if defined(__GNUC__) && !defined(__clang__)
    __attribute__((noinline, optimize("no-tree-vectorize")))
    #endif
    static void medyanpy_add_rows(const double *d, int room, const int32_t *ends, int rows, double *sums) {
        const double *x = d, *y = d + room, *z = d + 2 * room;
        int q, k, begin = 0;
        for (q = 0; q < rows; q += 2, sums += 6) {
            int middle = ends[q], end = q + 1 < rows ? ends[q + 1] : middle;
            int n = middle - begin < end - middle ? middle - begin : end - middle;
            double a = sums[0], b = sums[1], c = sums[2], e, f, g;
            for (k = begin; k < middle - n; k++) {
                a += x[k];
                b += y[k];
                c += z[k];
            }
            if (q + 1 < rows) {
                e = sums[3];
                f = sums[4];
                g = sums[5];
                for (; k < middle; k++) {
                    a += x[k];
                    b += y[k];
                    c += z[k];
                    e += x[k + n];
                    f += y[k + n];
                    g += z[k + n];
                }
                for (k += n; k < end; k++) {
                    e += x[k];
                    f += y[k];
                    g += z[k];
                }
                sums[3] = e;
                sums[4] = f;
                sums[5] = g;
            }
            sums[0] = a;
            sums[1] = b;
            sums[2] = c;
            begin = end;
        }
    }

    /* Sort n slots, at most ROOM, by their keys, all different: the place of each is the number of smaller ones. */
    #define MEDYANPY_SHORT_ROW 192
    static inline void medyanpy_sort_short(const int32_t *id, int32_t *row, int n) {
        int32_t slots[MEDYANPY_SHORT_ROW + 16];
        int32_t keys[MEDYANPY_SHORT_ROW + 16];
        int i, k;
        for (i = 0; i < n; i++) {
            slots[i] = row[i];
            keys[i] = id[slots[i]];
        }
    #if MEDYANPY_WIDE
        for (; i & 15; i++)
            slots[i] = keys[i] = 0;
        for (i = 0; i < n; i += 16) {
            __m512i mine = _mm512_loadu_si512(keys + i), rank = _mm512_setzero_si512();
            const __m512i one = _mm512_set1_epi32(1);
            for (k = 0; k < n; k++) {
                __mmask16 smaller = _mm512_cmpgt_epi32_mask(mine, _mm512_set1_epi32(keys[k]));
                rank = _mm512_mask_add_epi32(rank, smaller, rank, one);
            }
            _mm512_mask_i32scatter_epi32(
                row, (__mmask16) (n - i < 16 ? (1 << (n - i)) - 1 : 65535), rank, _mm512_loadu_si512(slots + i), 4);
        }
    #else
        for (i = 0; i < n; i++) {
            int rank = 0;
            for (k = 0; k < n; k++)
                rank += keys[k] < keys[i];
            row[rank] = slots[i];
        }
    #endif
    }
    #endif
    """
    enum:
        TOGETHER "MEDYANPY_TOGETHER"
        # Rows up to this length are sorted by counting smaller entries, which vectorises and has no branches to
        # mispredict.
        SHORT_ROW "MEDYANPY_SHORT_ROW"
    void fetch "medyanpy_fetch"(const double* sites, const int32_t* slot, int n, int width, double* x)
    int keep "medyanpy_keep"(const double* d, int n, int width, double end, double* to, int room)
    int number "medyanpy_number"(
        const double* square, int n, double end, int32_t first, int32_t but, int32_t* out)
    void add_rows "medyanpy_add_rows"(const double* d, int room, const int32_t* ends, int rows, double* sums)
    void sort_short "medyanpy_sort_short"(const int32_t* id, int32_t* row, int n)
