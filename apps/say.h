// drama3-say as a function, so that tests can run it inside their own process.
#pragma once

namespace drama3 {

// Speaks a text into an audio file as the arguments say; returns the exit code.
int say_main(int argc, char** argv);

}  // namespace drama3
