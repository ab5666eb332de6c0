// drama3-oracle as a function, so that tests can run it inside their own process.
#pragma once

namespace drama3 {

// Replays stages against reference data as the arguments say; returns the exit code.
int oracle_main(int argc, char** argv);

}  // namespace drama3
