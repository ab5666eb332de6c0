// Makes chosen uses of operator new in this test program fail.
#pragma once

#include <cstdint>

namespace drama3::testing {

// From now on the n-th allocation (from 1) throws std::bad_alloc, alone or with every one after it; 0: none.
void fail_allocation(uint64_t nth, bool from_there_on);
// Allocations since fail_allocation() was last called with n above 0.
uint64_t allocations_seen();

}  // namespace drama3::testing
