// The three containers on files, pipes and redirected descriptors.
#include "lib/audio/audio_writer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sndfile.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "lib/audio/wav_header.h"
#include "lib/base/system_calls.h"
#include "tests/audio/scratch_folder.h"

namespace drama3 {
namespace {

std::vector<int16_t> some_samples(size_t count) {
  std::vector<int16_t> samples(count);
  uint32_t state = 1;
  for (int16_t& sample : samples) {
    state = state * 1664525u + 1013904223u;
    sample = static_cast<int16_t>(state >> 18);
  }
  return samples;
}

void write_in_parts(AudioWriter& writer, const std::vector<int16_t>& samples) {
  const std::span<const int16_t> all(samples);
  writer.write(all.first(1));
  writer.write(all.subspan(1, samples.size() / 2));
  writer.write(all.subspan(1 + samples.size() / 2));
  writer.finish();
}

std::string pcm_bytes(const std::vector<int16_t>& samples) {
  return {reinterpret_cast<const char*>(samples.data()), samples.size() * 2};
}

std::vector<int16_t> decoded(const std::string& path) {
  SF_INFO info{};
  SNDFILE* file = sf_open(path.c_str(), SFM_READ, &info);
  REQUIRE(file != nullptr);
  CHECK(info.samplerate == 44100);
  CHECK(info.channels == 1);
  std::vector<int16_t> samples(10000);
  samples.resize(static_cast<size_t>(sf_read_short(file, samples.data(), 10000)));
  sf_close(file);
  return samples;
}

// Runs `act` with standard output on the descriptor.
template <typename Act>
void with_stdout(int fd, Act act) {
  const int kept = ::dup(STDOUT_FILENO);
  ::dup2(fd, STDOUT_FILENO);
  act();
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
}

uint32_t field(const std::string& file, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, file.data() + at, 4);
  return value;
}

}  // namespace

TEST_CASE("a WAV file has exact sizes, one header of 44 bytes and nothing after the samples") {
  const ScratchFolder folder;
  const std::vector<int16_t> samples = some_samples(5000);
  write_in_parts(*open_audio_writer(check_output(folder / "a.wav"), AudioFormat::kWav, 44100), samples);
  const std::string file = bytes_of(folder / "a.wav");
  REQUIRE(file.size() == 10044);
  const auto header = wav_header(10000, 44100);
  CHECK(std::memcmp(file.data(), header.data(), 44) == 0);  // libsndfile's header and ours agree
  CHECK(field(file, 4) == file.size() - 8);
  CHECK(field(file, 40) == 10000);
  CHECK(file.substr(44) == pcm_bytes(samples));
  CHECK(decoded(folder / "a.wav") == samples);
}

TEST_CASE("FLAC gives the samples back, raw PCM is the samples") {
  const ScratchFolder folder;
  const std::vector<int16_t> samples = some_samples(5000);
  write_in_parts(*open_audio_writer(check_output(folder / "a.flac"), AudioFormat::kFlac, 44100), samples);
  CHECK(decoded(folder / "a.flac") == samples);
  write_in_parts(*open_audio_writer(check_output(folder / "a.pcm"), AudioFormat::kPcm, 44100), samples);
  CHECK(bytes_of(folder / "a.pcm") == pcm_bytes(samples));
}

TEST_CASE("on a pipe WAV has unknown sizes and FLAC unknown length, with the same samples") {
  const ScratchFolder folder;
  const std::vector<int16_t> samples = some_samples(5000);
  for (const AudioFormat format : {AudioFormat::kWav, AudioFormat::kFlac}) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    std::string received;
    std::thread reader([&] {
      char block[4096];
      for (ssize_t count; (count = ::read(ends[0], block, sizeof block)) > 0;) {
        received.append(block, static_cast<size_t>(count));
      }
    });
    with_stdout(ends[1],
                [&] { write_in_parts(*open_audio_writer(check_output("-"), format, 44100), samples); });
    ::close(ends[1]);
    reader.join();
    ::close(ends[0]);
    if (format == AudioFormat::kWav) {
      CHECK(field(received, 4) == kWavUnknownSize);
      CHECK(field(received, 40) == kWavUnknownSize);
      CHECK(received.substr(44) == pcm_bytes(samples));
    } else {
      put_file(folder / "piped.flac", received);
      CHECK(decoded(folder / "piped.flac") == samples);
    }
  }
}

TEST_CASE("redirected standard output gets true sizes after what stood before, but not when it appends") {
  const ScratchFolder folder;
  const std::vector<int16_t> samples = some_samples(100);
  for (const bool appends : {false, true}) {
    put_file(folder / "mixed", "");
    const int fd = ::open((folder / "mixed").c_str(), O_WRONLY | (appends ? O_APPEND : 0));
    REQUIRE(::write(fd, "before", 6) == 6);
    with_stdout(fd, [&] {
      write_in_parts(*open_audio_writer(check_output("-"), AudioFormat::kWav, 44100), samples);
    });
    ::close(fd);
    const std::string file = bytes_of(folder / "mixed");
    REQUIRE(file.size() == 6 + 44 + 200);
    CHECK(file.substr(0, 6) == "before");
    CHECK(field(file, 6 + 40) == (appends ? kWavUnknownSize : 200u));
    CHECK(field(file, 6 + 4) == (appends ? kWavUnknownSize : 236u));
  }
}

TEST_CASE("4 GiB of WAV is refused with the formats that can hold it") {
  check_wav_size(0xFFFFFFFFull - 44);
  try {
    check_wav_size(0xFFFFFFFFull - 43);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("flac") != std::string::npos);
    CHECK(std::string(error.what()).find("pcm") != std::string::npos);
  }
}

TEST_CASE("every failing write of every format is reported and leaves the old file") {
  const ScratchFolder folder;
  const std::vector<int16_t> samples = some_samples(9000);
  for (const AudioFormat format : {AudioFormat::kWav, AudioFormat::kFlac, AudioFormat::kPcm}) {
    for (const bool from_there_on : {false, true}) {
      bool failed = true;
      for (uint64_t nth = 1; failed; ++nth) {
        REQUIRE(nth < 100);
        put_file(folder / "out", "old");
        set_fault(
            {.call = SystemCall::kWrite, .nth = nth, .error_number = ENOSPC, .from_there_on = from_there_on});
        failed = false;
        try {
          write_in_parts(*open_audio_writer(check_output(folder / "out"), format, 44100), samples);
        } catch (const Error& error) {
          failed = true;
          CHECK(std::string(error.what()).find("No space left on device") != std::string::npos);
        }
        clear_faults();
        CHECK(folder.entries() == 1);
        CHECK((bytes_of(folder / "out") == "old") == failed);
      }
    }
  }
}

TEST_CASE("formats by extension") {
  CHECK(format_of_path("a.WAV") == AudioFormat::kWav);
  CHECK(format_of_path("b.flac") == AudioFormat::kFlac);
  CHECK(format_of_path("c.pcm") == AudioFormat::kPcm);
  CHECK(format_of_path("c.raw") == AudioFormat::kPcm);
  for (const char* other : {"a.mp3", "a", "wav", "a.wav.txt", "", "a."}) CHECK_FALSE(format_of_path(other));
}

}  // namespace drama3
