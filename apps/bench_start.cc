// The drama3-bench program.
#include "apps/bench.h"

int main(int argc, char** argv) { return drama3::bench_main(argc, argv); }
