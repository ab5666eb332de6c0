// Numbers, choices and the environment: what is accepted, and the option and range in every refusal.
#include "apps/option_values.h"

#include <doctest/doctest.h>

#include <clocale>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/say_options.h"

namespace drama3 {
namespace {

SayOptions say_options(std::vector<const char*> extra) {
  extra.insert(extra.begin(), {"hi", "-o", "x.wav"});
  return read_say_options(CommandLine(Tool::kSay, extra), true);
}

std::string refusal(const char* name, const char* value) {
  try {
    say_options({name, value});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("whole numbers are plain decimal digits in range") {
  CHECK(say_options({"--seed", "18446744073709551615"}).seed == UINT64_MAX);
  CHECK(say_options({"--seed", "0"}).seed == 0);
  CHECK(say_options({"--top-k", "1000000"}).top_k == 1000000);
  CHECK(say_options({"-t", "1024"}).threads == 1024);
  for (const char* wrong :
       {"-1", "+1", "010", " 1", "1 ", "0x10", "1e3", "1.0", "", "abc", "18446744073709551616",
        "99999999999999999999999", "\xd9\xa1", "1_000", "1,000", "nan"}) {
    CHECK(
        contains(refusal("--seed", wrong), "--seed: expected a whole number from 0 to 18446744073709551615"));
  }
  CHECK(contains(refusal("--seed", "-1"), "leave --seed out"));
  for (const char* wrong : {"0", "1025", "-2", "two"}) {
    CHECK(contains(refusal("--threads", wrong), "--threads: expected a whole number from 1 to 1024"));
  }
  for (const char* wrong : {"0", "-4"})
    CHECK(contains(refusal("--max-frames", wrong), "--max-frames: expected"));
  for (const char* wrong : {"-1", "2.5", "x"})
    CHECK(contains(refusal("--top-k", wrong), "--top-k: expected"));
}

TEST_CASE("reals are finite decimals in range") {
  CHECK(say_options({"--temperature", "0"}).temperature == 0.0f);
  CHECK(say_options({"--temperature", "1.5e-1"}).temperature == 0.15f);
  CHECK(say_options({"--top-p", "1"}).top_p == 1.0f);
  CHECK(say_options({"--top-p", ".25"}).top_p == 0.25f);
  for (const char* wrong :
       {"nan", "inf", "-0.1", "infinity", "1,5", "0x1p3", "1e999", "", " 1", "1 ", "+1", "e5", "."}) {
    CHECK(contains(refusal("--temperature", wrong), "--temperature: expected a number of at least 0"));
  }
  for (const char* wrong : {"0", "1.01", "nan", "-1", "0.0"}) {
    CHECK(contains(refusal("--top-p", wrong), "--top-p: expected a number above 0 and at most 1"));
  }
}

TEST_CASE("numbers do not depend on the locale") {
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) MESSAGE("no German locale here; checked in C only");
  CHECK(say_options({"--temperature", "0.5"}).temperature == 0.5f);
  CHECK(contains(refusal("--temperature", "0,5"), "--temperature"));
  std::setlocale(LC_ALL, "C");
}

TEST_CASE("devices have their names and short names") {
  CHECK(say_options({}).device == "auto");
  CHECK(say_options({"--device", "gpu"}).device == "cuda");
  CHECK(say_options({"--device", "3"}).device == "cuda:3");
  CHECK(say_options({"--device", "cuda:0"}).device == "cuda:0");
  for (const char* wrong :
       {"", "GPU", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cuda:99999", "ref", "tpu", "-1"}) {
    CHECK(contains(refusal("--device", wrong), "--device: expected auto, cpu, cuda or cuda:N"));
  }
}

TEST_CASE("the flag beats the environment, and a bad environment value names its variable") {
  ::setenv("DRAMA3_THREADS", "3", 1);
  ::setenv("DRAMA3_DEVICE", "gpu", 1);
  ::setenv("DRAMA3_MODEL", "/somewhere", 1);
  CHECK(say_options({}).threads == 3);
  CHECK(say_options({"-t", "5"}).threads == 5);
  CHECK(say_options({}).device == "cuda");
  CHECK(say_options({"--device=cpu"}).device == "cpu");
  CHECK(say_options({}).model->text == "/somewhere");
  CHECK(say_options({"-m", "/else"}).model->text == "/else");
  CHECK(say_options({"-m", "/else"}).model->origin == "--model");
  ::setenv("DRAMA3_MODEL", "", 1);
  CHECK_FALSE(say_options({}).model);
  ::setenv("DRAMA3_THREADS", "many", 1);
  CHECK_THROWS_WITH_AS(say_options({}), "DRAMA3_THREADS: expected a whole number from 1 to 1024, got 'many'",
                       UsageError);
  ::unsetenv("DRAMA3_THREADS");
  ::setenv("DRAMA3_DEVICE", "toaster", 1);
  CHECK_THROWS_WITH_AS(say_options({}), "DRAMA3_DEVICE: expected auto, cpu, cuda or cuda:N, got 'toaster'",
                       UsageError);
  ::unsetenv("DRAMA3_DEVICE");
  ::unsetenv("DRAMA3_MODEL");
}

}  // namespace drama3
