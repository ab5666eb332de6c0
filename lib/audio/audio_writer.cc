// The three containers: libsndfile for files and FLAC, our header for WAV on standard output, none for PCM.
#include "lib/audio/audio_writer.h"

#include <sndfile.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "lib/audio/wav_header.h"
#include "lib/base/error.h"

namespace drama3 {
namespace {

// Samples without a header.
class PcmWriter : public AudioWriter {
 public:
  explicit PcmWriter(const OutputTarget& target) : output_(target) {}
  void write(std::span<const int16_t> samples) override { output_.write(std::as_bytes(samples)); }
  void finish() override { output_.commit(); }

 private:
  OutputFile output_;
};

// WAV where the header cannot always be completed: a pipe, a device, or redirected standard output.
class WavStreamWriter : public AudioWriter {
 public:
  WavStreamWriter(const OutputTarget& target, int sample_rate)
      : output_(target), sample_rate_(static_cast<uint32_t>(sample_rate)) {
    output_.write(wav_header(kWavUnknownSize, sample_rate_));
  }
  void write(std::span<const int16_t> samples) override {
    check_wav_size(output_.size() - kWavHeaderBytes + samples.size_bytes());
    output_.write(std::as_bytes(samples));
  }
  void finish() override {
    if (output_.seekable()) {
      output_.write_at(0, wav_header(static_cast<uint32_t>(output_.size() - kWavHeaderBytes), sample_rate_));
    }
    output_.commit();
  }

 private:
  OutputFile output_;
  uint32_t sample_rate_;
};

// libsndfile over our output, because sf_close and sf_error report success on a full disk: the callbacks keep
// the first failure, which is thrown after the call that met it.
class SoundFileWriter : public AudioWriter {
 public:
  SoundFileWriter(const OutputTarget& target, AudioFormat format, int sample_rate)
      : output_(target), shown_(target.shown), is_wav_(format == AudioFormat::kWav) {
    SF_INFO info{};
    info.samplerate = sample_rate;
    info.channels = 1;
    info.format = (is_wav_ ? SF_FORMAT_WAV : SF_FORMAT_FLAC) | SF_FORMAT_PCM_16;
    SF_VIRTUAL_IO calls{&file_length, &seek, &read, &write_bytes, &tell};
    file_ = sf_open_virtual(&calls, SFM_WRITE, &info, this);
    if (failure_ && file_ != nullptr) sf_close(std::exchange(file_, nullptr));
    rethrow();
    if (file_ == nullptr) fail(shown_, ": expected libsndfile to open it, got: ", sf_strerror(nullptr));
  }
  ~SoundFileWriter() override {
    if (file_ != nullptr) sf_close(file_);
  }
  void write(std::span<const int16_t> samples) override {
    if (is_wav_) check_wav_size((samples_ + samples.size()) * sizeof(int16_t));
    const sf_count_t count = static_cast<sf_count_t>(samples.size());
    const sf_count_t taken = sf_write_short(file_, samples.data(), count);
    rethrow();
    if (taken != count) fail(shown_, ": expected ", count, " samples written, got ", taken);
    samples_ += samples.size();
  }
  void finish() override {
    SNDFILE* file = std::exchange(file_, nullptr);
    const int problem = sf_close(file);
    rethrow();
    if (problem != 0) fail(shown_, ": expected a closed file, got: ", sf_error_number(problem));
    output_.commit();
  }

 private:
  static SoundFileWriter& self(void* user) { return *static_cast<SoundFileWriter*>(user); }
  static sf_count_t file_length(void* user) { return static_cast<sf_count_t>(self(user).output_.size()); }
  static sf_count_t tell(void* user) { return self(user).position_; }
  static sf_count_t read(void*, sf_count_t, void*) { return 0; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    SoundFileWriter& writer = self(user);
    const sf_count_t base = whence == SEEK_SET   ? 0
                            : whence == SEEK_CUR ? writer.position_
                                                 : file_length(user);
    if (base + offset < 0 || base + offset > file_length(user)) return -1;
    writer.position_ = base + offset;
    return writer.position_;
  }
  static sf_count_t write_bytes(const void* data, sf_count_t count, void* user) {
    SoundFileWriter& writer = self(user);
    if (writer.failure_) return 0;
    try {
      writer.place({static_cast<const std::byte*>(data), static_cast<size_t>(count)});
    } catch (...) {
      writer.failure_ = std::current_exception();
      return 0;
    }
    return count;
  }

  // Bytes behind the end complete a header. On a pipe they are dropped: a FLAC header then says that length
  // and checksum are unknown, as its format allows.
  void place(std::span<const std::byte> bytes) {
    const size_t behind =
        std::min(bytes.size(), static_cast<size_t>(output_.size()) - static_cast<size_t>(position_));
    if (behind > 0 && output_.seekable()) {
      output_.write_at(static_cast<uint64_t>(position_), bytes.first(behind));
    }
    output_.write(bytes.subspan(behind));
    position_ += static_cast<sf_count_t>(bytes.size());
  }

  void rethrow() {
    if (failure_) std::rethrow_exception(failure_);
  }

  OutputFile output_;
  std::string shown_;
  bool is_wav_;
  SNDFILE* file_ = nullptr;
  sf_count_t position_ = 0;
  uint64_t samples_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

std::string_view format_name(AudioFormat format) {
  return format == AudioFormat::kWav ? "wav" : format == AudioFormat::kFlac ? "flac" : "pcm";
}

std::optional<AudioFormat> format_of_path(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string extension(path.substr(dot));
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (extension == ".wav") return AudioFormat::kWav;
  if (extension == ".flac") return AudioFormat::kFlac;
  if (extension == ".pcm" || extension == ".raw") return AudioFormat::kPcm;
  return std::nullopt;
}

std::unique_ptr<AudioWriter> open_audio_writer(const OutputTarget& target, AudioFormat format,
                                               int sample_rate) {
  if (format == AudioFormat::kPcm) return std::make_unique<PcmWriter>(target);
  if (format == AudioFormat::kWav && target.kind != OutputKind::kReplaced) {
    return std::make_unique<WavStreamWriter>(target, sample_rate);
  }
  return std::make_unique<SoundFileWriter>(target, format, sample_rate);
}

}  // namespace drama3
