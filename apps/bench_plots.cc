// SVG drawings of a report: scales, axes, points and bars.
#include "apps/bench_plots.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/progress.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 84;
constexpr double kRight = 20;
// Told apart by people with colour blindness too.
constexpr std::array<const char*, 6> kColours{"#0072b2", "#d55e00", "#009e73",
                                              "#cc79a7", "#e69f00", "#56b4e9"};
constexpr std::array<const char*, 5> kStageNames{"prompt", "backbone", "tower", "sampler", "codec"};

std::array<double, 5> stage_list(const StageSeconds& stages) {
  return {stages.prompt, stages.backbone, stages.tower, stages.sampler, stages.codec};
}

std::string number(double value) { return decimal(value, 1); }

// A value's place between two edges of the drawing.
struct Scale {
  double least = 0;
  double most = 1;
  double from = 0;
  double to = 1;
  bool logarithmic = false;

  double at(double value) const {
    const double share =
        logarithmic ? std::log(value / least) / std::log(most / least) : (value - least) / (most - least);
    return from + (to - from) * share;
  }
};

// A step of 1, 2 or 5 times a power of ten that gives some five ticks.
double tick_step(double range) {
  const double power = std::pow(10.0, std::floor(std::log10(range / 5)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (range / (power * factor) <= 6) return power * factor;
  }
  return power * 10;
}

std::vector<double> ticks_of(const Scale& scale) {
  std::vector<double> ticks;
  if (scale.logarithmic) {
    for (double power = 0.01; power < 1e5; power *= 10) {
      for (double factor : {1.0, 2.0, 5.0}) ticks.push_back(power * factor);
    }
  } else {
    const double step = tick_step(scale.most - scale.least);
    for (double i = 0; scale.least + i * step <= scale.most * 1.0001; ++i)
      ticks.push_back(scale.least + i * step);
  }
  std::erase_if(ticks, [&](double tick) { return tick < scale.least * 0.999 || tick > scale.most * 1.001; });
  return ticks;
}

std::string tick_text(double tick) {
  std::string text = decimal(tick, tick < 0.1 ? 3 : tick < 10 ? 2 : 0);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string text_at(double x, double y, const char* anchor, const std::string& words) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(words) + "</text>";
}

std::string line_at(double x1, double y1, double x2, double y2, const char* kind) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" +
         number(y2) + "\" class=\"" + kind + "\"/>";
}

std::string rectangle(double x, double y, double width, double height, const char* colour) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + decimal(width, 2) +
         "\" height=\"" + number(height) + "\" fill=\"" + colour + "\"/>";
}

std::string open_svg(double height, const std::string& label) {
  return "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(height) + "\" role=\"img\" aria-label=\"" +
         escaped(label) + "\">";
}

// Grid, numbers and title of the horizontal axis between two heights.
std::string horizontal_axis(const Scale& scale, double top, double bottom, const std::string& title) {
  std::string svg;
  for (double tick : ticks_of(scale)) {
    svg += line_at(scale.at(tick), top, scale.at(tick), bottom, "grid");
    svg += text_at(scale.at(tick), bottom + 18, "middle", tick_text(tick));
  }
  return svg + text_at((kLeft + kWidth - kRight) / 2, bottom + 38, "middle", title);
}

std::string vertical_axis(const Scale& scale, const std::string& title) {
  std::string svg;
  for (double tick : ticks_of(scale)) {
    svg += line_at(kLeft, scale.at(tick), kWidth - kRight, scale.at(tick), "grid");
    svg += text_at(kLeft - 8, scale.at(tick) + 4, "end", tick_text(tick));
  }
  const double middle = (scale.from + scale.to) / 2;
  return svg + "<text transform=\"translate(20 " + number(middle) +
         ") rotate(-90)\" text-anchor=\"middle\">" + escaped(title) + "</text>";
}

std::string legend(const std::vector<std::string>& names, double y) {
  std::string svg;
  double x = kLeft;
  for (size_t i = 0; i < names.size(); ++i) {
    svg +=
        rectangle(x, y - 10, 12, 12, kColours[i % kColours.size()]) + text_at(x + 17, y, "start", names[i]);
    x += 40 + 8.5 * static_cast<double>(names[i].size());
  }
  return svg;
}

std::string dot(double x, double y, const char* colour, const std::string& title) {
  return "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"4.5\" fill=\"" + colour +
         "\" fill-opacity=\"0.75\"><title>" + escaped(title) + "</title></circle>";
}

std::vector<std::string> categories_of(const Report& report) {
  std::vector<std::string> categories;
  for (const Row& row : report.rows) {
    if (std::find(categories.begin(), categories.end(), row.item.category) == categories.end()) {
      categories.push_back(row.item.category);
    }
  }
  return categories;
}

size_t category_index(const std::vector<std::string>& categories, const Row& row) {
  return static_cast<size_t>(std::find(categories.begin(), categories.end(), row.item.category) -
                             categories.begin());
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (char c : text) {
    safe += c == '&'   ? "&amp;"
            : c == '<' ? "&lt;"
            : c == '>' ? "&gt;"
            : c == '"' ? "&quot;"
                       : std::string(1, c);
  }
  return safe;
}

std::string rtf_plot(const Report& report) {
  static constexpr double kTop = 30, kBottom = 330;
  if (!report.totals.rtf) return "<p>No valid figures.</p>";
  Scale x{.least = 1e9, .most = 0, .from = kLeft, .to = kWidth - kRight, .logarithmic = true};
  for (const Row& row : report.rows) {
    if (!row.valid()) continue;
    x.least = std::min(x.least, row.audio_seconds * 0.8);
    x.most = std::max(x.most, row.audio_seconds * 1.25);
  }
  const Scale y{.least = 0, .most = report.totals.rtf->max * 1.1, .from = kBottom, .to = kTop};
  const std::vector<std::string> categories = categories_of(report);
  std::string svg = open_svg(kBottom + 50, "RTF against audio length") + legend(categories, 16) +
                    horizontal_axis(x, kTop, kBottom, "audio seconds (logarithmic)") +
                    vertical_axis(y, "RTF");
  if (y.most > 1) svg += line_at(kLeft, y.at(1), kWidth - kRight, y.at(1), "mark");
  for (const Row& row : report.rows) {
    if (!row.valid()) continue;
    const char* colour = kColours[category_index(categories, row) % kColours.size()];
    for (const RequestRecord& request : row.requests) {
      const double rtf = request.compute_seconds / row.audio_seconds;
      svg += dot(x.at(row.audio_seconds), y.at(rtf), colour,
                 row.item.id + ", pass " + std::to_string(request.pass) + ": " +
                     decimal(row.audio_seconds, 2) + " s, RTF " + decimal(rtf, 4));
    }
  }
  return svg + "</svg>";
}

std::string stage_plot(const Report& report) {
  static constexpr double kTop = 30, kStep = 19;
  std::vector<std::pair<std::string, std::array<double, 5>>> bars;
  Scale x{.least = 0, .most = 1e-6, .from = kLeft, .to = kWidth - kRight};
  for (const Row& row : report.rows) {
    if (!row.valid()) continue;
    std::array<double, 5> bar{};
    double sum = 0;
    for (const RequestRecord& request : row.requests) {
      const std::array<double, 5> stages = stage_list(request.stages);
      const double scale = 1e3 / row.audio_seconds / static_cast<double>(row.requests.size());
      for (size_t i = 0; i < bar.size(); ++i) bar[i] += stages[i] * scale;
    }
    for (double part : bar) sum += part;
    x.most = std::max(x.most, sum * 1.03);
    bars.emplace_back(row.item.id, bar);
  }
  if (bars.empty()) return "<p>No valid figures.</p>";
  const double bottom = kTop + kStep * static_cast<double>(bars.size());
  std::string svg = open_svg(bottom + 50, "stages of every item") +
                    legend({kStageNames.begin(), kStageNames.end()}, 16) +
                    horizontal_axis(x, kTop, bottom, "milliseconds of compute per second of audio");
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = kTop + kStep * static_cast<double>(i);
    double from = 0;
    svg += text_at(kLeft - 8, y + 13, "end", bars[i].first);
    for (size_t stage = 0; stage < kStageNames.size(); ++stage) {
      const double part = bars[i].second[stage];
      svg +=
          "<g><title>" + escaped(bars[i].first + " " + kStageNames[stage] + ": " + decimal(part, 2) + " ms") +
          "</title>" +
          rectangle(x.at(from), y + 2, x.at(from + part) - x.at(from), kStep - 4, kColours[stage]) + "</g>";
      from += part;
    }
  }
  return svg + "</svg>";
}

std::string first_audio_plot(const Report& report) {
  static constexpr double kTop = 30, kStep = 46;
  if (!report.totals.first_audio) return "<p>No valid figures.</p>";
  const Summary& all = *report.totals.first_audio;
  const std::vector<std::string> categories = categories_of(report);
  const double bottom = kTop + kStep * static_cast<double>(categories.size());
  const Scale x{.least = 0, .most = all.max * 1e3 * 1.05, .from = kLeft, .to = kWidth - kRight};
  std::string svg = open_svg(bottom + 50, "time to first audio") +
                    horizontal_axis(x, kTop, bottom, "milliseconds to first audio");
  for (size_t i = 0; i < categories.size(); ++i) {
    svg += text_at(kLeft - 8, kTop + kStep * (static_cast<double>(i) + 0.5) + 4, "end", categories[i]);
  }
  const auto mark = [&](double seconds, const std::string& words) {
    return line_at(x.at(seconds * 1e3), kTop, x.at(seconds * 1e3), bottom, "mark") +
           text_at(x.at(seconds * 1e3), 20, "middle", words + " " + decimal(seconds * 1e3, 1));
  };
  svg += mark(all.median, "median");
  if (all.p95) svg += mark(*all.p95, "p95");
  size_t counter = 0;
  for (const Row& row : report.rows) {
    if (!row.valid()) continue;
    const size_t category = category_index(categories, row);
    for (const RequestRecord& request : row.requests) {
      // Neighbours are spread over five heights, so that none hides another.
      const double height = 0.2 + 0.15 * static_cast<double>(counter++ % 5);
      svg +=
          dot(x.at(request.first_audio_seconds * 1e3),
              kTop + kStep * (static_cast<double>(category) + height), kColours[category % kColours.size()],
              row.item.id + ", pass " + std::to_string(request.pass) + ": " +
                  decimal(request.first_audio_seconds * 1e3, 2) + " ms");
    }
  }
  return svg + "</svg>";
}

}  // namespace drama3::bench
