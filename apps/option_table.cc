// The one table of options of all tools, and what their pages say beside it.
#include "apps/option_table.h"

#include <array>

#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr unsigned kSay = static_cast<unsigned>(Tool::kSay);
constexpr unsigned kOracle = static_cast<unsigned>(Tool::kOracle);
constexpr unsigned kBench = static_cast<unsigned>(Tool::kBench);
constexpr unsigned kAll = kSay | kOracle | kBench;

constexpr std::array kOptions{
    Option{.tools = kBench,
           .name = "corpus",
           .form = ValueForm::kOptional,
           .value_name = "FILE",
           .completion = Completion::kFile,
           .help = "speak the corpus of this program, or that of FILE"},
    Option{.tools = kSay,
           .name = "output",
           .letter = 'o',
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .completion = Completion::kFile,
           .help = "audio file to write, replaced only after success; - for standard output"},
    Option{.tools = kSay,
           .name = "file",
           .letter = 'f',
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .completion = Completion::kFile,
           .help = "read the text from a UTF-8 file; - for standard input"},
    Option{.tools = kSay,
           .name = "format",
           .form = ValueForm::kRequired,
           .value_name = "FORMAT",
           .completion = Completion::kChoices,
           .choices = "wav flac pcm",
           .help = "wav, flac or pcm (s16le, mono, 44,100 Hz, no header); default: by the extension of FILE, "
                   "wav for -"},
    Option{.tools = kAll,
           .name = "model",
           .letter = 'm',
           .form = ValueForm::kRequired,
           .value_name = "DIR",
           .completion = Completion::kFolder,
           .variable = "DRAMA3_MODEL",
           .help = "model folder in the published layout; default: the embedded voice"},
    Option{.tools = kSay | kBench,
           .name = "device",
           .form = ValueForm::kRequired,
           .value_name = "DEVICE",
           .completion = Completion::kChoices,
           .choices = "auto cpu cuda cuda:0",
           .variable = "DRAMA3_DEVICE",
           .help = "auto, cpu, cuda or cuda:N (N counts visible devices in PCI order); default auto"},
    Option{.tools = kOracle,
           .name = "device",
           .form = ValueForm::kRequired,
           .value_name = "DEVICE",
           .completion = Completion::kChoices,
           .choices = "ref cpu cuda cuda:0",
           .variable = "DRAMA3_DEVICE",
           .help = "ref (the scalar definition), cpu, cuda or cuda:N; default cpu"},
    Option{.tools = kAll,
           .name = "threads",
           .letter = 't',
           .form = ValueForm::kRequired,
           .value_name = "N",
           .variable = "DRAMA3_THREADS",
           .help = "CPU threads, 1 to 1024; default: the physical cores this process may use"},
    Option{.tools = kSay,
           .name = "seed",
           .form = ValueForm::kRequired,
           .value_name = "N",
           .help = "seed of the draws, 0 to 18446744073709551615; the same seed repeats the bytes; default: "
                   "drawn and reported"},
    Option{.tools = kSay,
           .name = "temperature",
           .form = ValueForm::kRequired,
           .value_name = "T",
           .help = "sampling temperature, 0 or more; 0 takes the likeliest; default 1"},
    Option{.tools = kSay,
           .name = "top-p",
           .form = ValueForm::kRequired,
           .value_name = "P",
           .help = "probability mass kept, above 0 and at most 1; default 0.9"},
    Option{.tools = kSay,
           .name = "top-k",
           .form = ValueForm::kRequired,
           .value_name = "K",
           .help = "entries kept, 0 for all; default 0"},
    Option{.tools = kSay,
           .name = "max-frames",
           .letter = 'n',
           .form = ValueForm::kRequired,
           .value_name = "N",
           .help =
               "most frames of the whole output, 46.4 ms each; default: none, 2048 for each piece of a long "
               "text"},
    Option{.tools = kSay,
           .name = "verify",
           .help = "print the SHA-256 of every model file and refuse NaN or infinity in any weight"},
    Option{.tools = kSay, .name = "dump-tokens", .help = "print the token ids, one line a piece, and stop"},
    Option{.tools = kBench,
           .name = "passes",
           .form = ValueForm::kRequired,
           .value_name = "N",
           .help = "times every item is spoken, 1 to 100; default 2"},
    Option{.tools = kBench,
           .name = "warmup",
           .form = ValueForm::kRequired,
           .value_name = "N",
           .help = "untimed requests before the first pass, 0 to 100; default 1"},
    Option{.tools = kBench,
           .name = "filter",
           .form = ValueForm::kRequired,
           .value_name = "IDS",
           .help = "only items whose id matches one of these patterns, as in 'short-*,edge-01'"},
    Option{.tools = kBench,
           .name = "baseline",
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .completion = Completion::kFile,
           .help = "compare with this baseline; default: the one of the backend and checkpoint beside the "
                   "corpus"},
    Option{.tools = kBench,
           .name = "update-baseline",
           .help = "record this run as the baseline, if every other gate passes"},
    Option{.tools = kBench,
           .name = "max-rtf",
           .form = ValueForm::kRequired,
           .value_name = "X",
           .help = "fail when an item's median RTF (compute seconds / audio seconds) is above X"},
    Option{.tools = kBench,
           .name = "report",
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .repeatable = true,
           .completion = Completion::kFile,
           .help = "write a report to FILE, .html or .md; may be repeated"},
    Option{.tools = kBench,
           .name = "show",
           .form = ValueForm::kRequired,
           .value_name = "IDS",
           .help = "draw waveform and spectrogram of the items that match these patterns in the HTML report"},
    Option{.tools = kBench,
           .name = "save",
           .form = ValueForm::kRequired,
           .value_name = "DIR",
           .completion = Completion::kFolder,
           .help = "write the audio of pass 1 as DIR/ID.wav"},
    Option{.tools = kOracle,
           .name = "reference",
           .form = ValueForm::kRequired,
           .value_name = "DIR",
           .completion = Completion::kFolder,
           .help = "folder of reference data to replay"},
    Option{.tools = kOracle,
           .name = "stage",
           .form = ValueForm::kRequired,
           .value_name = "STAGE",
           .completion = Completion::kChoices,
           .choices = "tokenizer sampler backbone tower codec all",
           .help = "tokenizer, sampler, backbone, tower, codec or all; default all"},
    Option{.tools = kOracle,
           .name = "no-activation-quantization",
           .help = "replay without rounding expert inputs to FP8, against the *_noact tensors alone"},
    Option{.tools = kOracle,
           .name = "force-routing",
           .help = "send rows to the reference's experts wherever it holds its routing"},
    Option{.tools = kOracle,
           .name = "op",
           .form = ValueForm::kRequired,
           .value_name = "NAME",
           .help = "replay one op, or all, from the inputs that --dump wrote into the reference folder"},
    Option{.tools = kOracle,
           .name = "dump",
           .form = ValueForm::kRequired,
           .value_name = "DIR",
           .completion = Completion::kFolder,
           .help = "write our own stage tensors as safetensors into this folder"},
    Option{
        .tools = kSay,
        .name = "json",
        .form = ValueForm::kOptional,
        .value_name = "FILE",
        .implied = "-",
        .completion = Completion::kFile,
        .help = "write a report as JSON to FILE; bare or - for standard output (standard error with -o -)"},
    Option{.tools = kOracle | kBench,
           .name = "json",
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .completion = Completion::kFile,
           .help = "write a report as JSON to FILE; - for standard output"},
    Option{.tools = kSay, .name = "list-devices", .help = "list the usable devices and stop"},
    Option{.tools = kAll, .name = "quiet", .letter = 'q', .help = "print errors only"},
    Option{.tools = kAll, .name = "verbose", .letter = 'v', .help = "print stages and sizes too"},
    Option{.tools = kAll, .name = "version", .help = "print the version and what is built in, and stop"},
    Option{.tools = kAll, .name = "help", .letter = 'h', .help = "print this page and stop"},
    // Spellings of other tools, accepted and shown nowhere.
    Option{.tools = kSay,
           .name = "text",
           .form = ValueForm::kRequired,
           .value_name = "TEXT",
           .stands_for = "TEXT",
           .help = ""},
    Option{.tools = kSay,
           .name = "out",
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .stands_for = "output",
           .help = ""},
    Option{.tools = kSay,
           .name = "output-file",
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .stands_for = "output",
           .help = ""},
    Option{.tools = kSay,
           .name = "input-file",
           .form = ValueForm::kRequired,
           .value_name = "FILE",
           .stands_for = "file",
           .help = ""},
    Option{.tools = kSay,
           .name = "temp",
           .form = ValueForm::kRequired,
           .value_name = "T",
           .stands_for = "temperature",
           .help = ""},
};

constexpr std::array kPages{
    ToolPage{
        .tool = Tool::kSay,
        .name = "drama3-say",
        .summary = "speak a text with the Drama 3 model",
        .argument = "[TEXT]",
        .description =
            "Speaks TEXT into one audio file. TEXT - or no TEXT with a redirected standard input reads all "
            "of "
            "standard input.\n"
            "A line break is a blank and an empty line ends a sentence. <|speaker:0|> to <|speaker:15|> name "
            "the "
            "speaker; [directions] are passed to the model. Put -- before a text that begins with a dash.\n"
            "Audio goes to the output, everything else to standard error.",
        .examples = "drama3-say \"Hello, world!\" -o hello.wav\tspeak a sentence into a WAV file\n"
                    "drama3-say -f story.txt -o story.flac --seed 7\tspeak a file, repeatably\n"
                    "echo \"Good evening.\" | drama3-say -o - | aplay\tfrom a pipe to the loudspeaker\n"
                    "drama3-say -m ~/drama-3 --device cuda:0 \"Hi.\" -o hi.wav\tchoose model and device\n",
        .exit_codes = "0\tthe audio is written\n"
                      "1\tit failed; no file is left and an existing output is as it was\n"
                      "2\tthe command line cannot be run\n"
                      "3\tthe audio is whole and written, but was cut at a limit\n"
                      "130, 141, 143\tended by SIGINT, SIGPIPE, SIGTERM\n"},
    ToolPage{.tool = Tool::kOracle,
             .name = "drama3-oracle",
             .summary = "compare every stage of the engine with reference data",
             .argument = "",
             .description =
                 "Replays the stages of the engine against a folder of reference data and prints, for each "
                 "tensor, the errors, the bar and pass or fail.\n"
                 "The first layer or stage that departs is named.",
             .examples =
                 "drama3-oracle --model tests/data/golden/tiny --reference tests/data/golden\tevery stage\n"
                 "drama3-oracle -m tiny --reference golden --stage codec --device ref\tone stage\n",
             .exit_codes = "0\tevery bar is met\n"
                           "1\tit failed\n"
                           "2\tthe command line cannot be run\n"
                           "4\tit ran to the end and a bar was missed\n"
                           "130, 141, 143\tended by SIGINT, SIGPIPE, SIGTERM\n"},
    ToolPage{.tool = Tool::kBench,
             .name = "drama3-bench",
             .summary = "measure the engine on a corpus, with gates that its figures must pass",
             .argument = "",
             .description =
                 "Speaks every item of the corpus several times, prints speed and digests, and judges them: "
                 "same bytes in every pass and as recorded, ends of speech, streaming, memory.\n"
                 "A figure whose gate failed is printed as INVALID. Under mpirun every process takes its own "
                 "device and a share of the requests, where the build has MPI.\n"
                 "The table goes to standard output, everything else to standard error.",
             .examples =
                 "drama3-bench --corpus\tall items, two passes, gates\n"
                 "drama3-bench --corpus --filter 'short-*' --report bench.html --show short-01\ta report\n"
                 "drama3-bench --corpus -m ~/drama-3 --device cuda:0 --max-rtf 0.2\ta ceiling\n"
                 "mpirun -n 2 drama3-bench --corpus\ttwo devices, one table\n",
             .exit_codes = "0\tevery gate passed\n"
                           "1\tit failed\n"
                           "2\tthe command line cannot be run\n"
                           "4\tit ran to the end and a gate failed\n"
                           "130, 141, 143\tended by SIGINT, SIGPIPE, SIGTERM\n"},
};

}  // namespace

std::vector<Option> options_of(Tool tool) {
  std::vector<Option> options;
  for (const Option& option : kOptions) {
    if ((option.tools & static_cast<unsigned>(tool)) != 0) options.push_back(option);
  }
  return options;
}

const ToolPage& page_of(Tool tool) {
  for (const ToolPage& page : kPages) {
    if (page.tool == tool) return page;
  }
  INVARIANT(false, "no page for tool ", static_cast<unsigned>(tool));
  return kPages.front();
}

std::span<const ToolPage> tool_pages() { return kPages; }

}  // namespace drama3
