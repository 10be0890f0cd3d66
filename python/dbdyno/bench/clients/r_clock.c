/* The clock of the clients in R, which has none of its own that is finer than milliseconds. */
#include <time.h>

#include <R.h>
#include <Rinternals.h>

/* CLOCK_MONOTONIC in nanoseconds; exact for 104 days of uptime, to a few nanoseconds after that. */
SEXP dyno_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return Rf_ScalarReal(1e9 * (double)now.tv_sec + (double)now.tv_nsec);
}
