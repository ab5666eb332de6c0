// The program drama3-say.
#include "apps/say.h"

int main(int argc, char** argv) { return drama3::say_main(argc, argv); }
