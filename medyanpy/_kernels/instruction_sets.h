/* The variants of the hot kernels that this processor can run: 0 the baseline only, 1 AVX2 too, 2 AVX-512 too.
   Asked when the package is built (option isa=auto) and when it is imported. */
static int instruction_sets(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi")
          && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")))
        return 0;
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
          && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
          && __builtin_cpu_supports("avx512vl")))
        return 1;
    return 2;
#else
    return 0;
#endif
}
