// The program drama3-oracle.
#include "apps/oracle.h"

int main(int argc, char** argv) { return drama3::oracle_main(argc, argv); }
