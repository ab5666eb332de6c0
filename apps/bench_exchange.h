// Rank records as text, for the way from one process to another.
#pragma once

#include <string>

#include "apps/bench_record.h"

namespace drama3::bench {

// Every field of the record, exactly.
std::string record_text(const RankRecord& record);

// The record of a text by record_text.
RankRecord record_of_text(const std::string& text);

}  // namespace drama3::bench
