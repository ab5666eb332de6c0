#!/usr/bin/env python3
"""Installs a build with DESTDIR, builds a consumer by find_package and by pkg-config, compares the pages."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS_PAGES = {"man1": "share/man/man1/{}.1", "bash": "share/bash-completion/completions/{}",
               "zsh": "share/zsh/site-functions/_{}", "fish": "share/fish/vendor_completions.d/{}.fish"}
OPTION_PATTERNS = {
    "help": r"^  (?:-[a-z], |    )(--[a-z-]+)",
    "man1": r"^\.TP\n(?:fB-[a-z]fR, )?fB(--[a-z-]+)fR",
    "bash": r"[ '](--[a-z-]+)(?=[ '])",
    "zsh": r"['\)](--[a-z-]+)=?-?\[",
    "fish": r" -l ([a-z-]+)",
}

CONSUMER = """// A program of somebody else: the installed headers and library, nothing more.
#include <drama3/engine.h>
#include <drama3/version.h>

#include <iostream>

int main() {
  std::cout << DRAMA3_VERSION << " " << drama3::checked_text("Hello.") << " "
            << drama3::list_devices().front().id << "\\n";
}
"""

passed = failed = 0


def check(what, holds, detail=""):
    global passed, failed
    if holds:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what}: {detail}")


def run(command, **settings):
    try:
        done = subprocess.run(command, capture_output=True, text=True, **settings)
    except OSError as error:
        check(" ".join(map(str, command)), False, error)
        return ""
    check(" ".join(map(str, command)), done.returncode == 0, done.stdout + done.stderr)
    return done.stdout


def check_files(prefix):
    names = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    libdir = next((str(Path(name).parent) for name in names if name.endswith("/libdrama3.a")), "lib")
    needed = ["include/drama3/engine.h", "include/drama3/version.h", f"{libdir}/pkgconfig/drama3.pc",
              f"{libdir}/cmake/drama3/drama3Config.cmake", f"{libdir}/cmake/drama3/drama3ConfigVersion.cmake",
              f"{libdir}/cmake/drama3/drama3Targets.cmake", "share/doc/drama3/LICENSE", "share/doc/drama3/NOTICE",
              "bin/drama3-say"]
    for name in needed:
        check(f"{name} is installed", name in names, sorted(names))
    for name in names:
        if name.startswith("include/"):
            text = (prefix / name).read_text()
            check(f"{name} includes nothing of the source tree", not re.search(r'#include "', text), name)
            check(f"{name} has no build flags", not re.search(r"#\s*(if|ifdef|ifndef)\b", text), name)
        else:
            check(f"{name} is no development file", not name.endswith((".cc", ".o", ".h")), name)
    return libdir


def check_pages(prefix):
    for tool in sorted(path.name for path in (prefix / "bin").iterdir()):
        options = {}
        texts = {"help": run([prefix / "bin" / tool, "--help"])}
        for page, place in TOOLS_PAGES.items():
            path = prefix / place.format(tool)
            check(f"{path} exists", path.is_file())
            texts[page] = path.read_text().replace("\\", "") if path.is_file() else ""
        for page, text in texts.items():
            found = re.findall(OPTION_PATTERNS[page], text, re.MULTILINE)
            options[page] = {name if name.startswith("--") else "--" + name for name in found}
        check(f"{tool} has options", len(options["help"]) > 5, options["help"])
        for page in TOOLS_PAGES:
            check(f"{tool}: {page} lists the options of --help", options[page] == options["help"],
                  options[page] ^ options["help"])
        run(["bash", "-n", str(prefix / TOOLS_PAGES["bash"].format(tool))])
        version = run([prefix / "bin" / tool, "--version"])
        check(f"{tool} --version", re.match(rf"{tool} \d+\.\d+\.\d+\ncommit: ", version), version)
        elf = subprocess.run(["readelf", "-d", str(prefix / "bin" / tool)], capture_output=True, text=True)
        check(f"{tool} has no rpath", "RPATH" not in elf.stdout and "RUNPATH" not in elf.stdout, elf.stdout)


def check_bash_completion(prefix):
    script = (f"source {prefix}/share/bash-completion/completions/drama3-say; COMP_WORDS=(drama3-say --for); "
              "COMP_CWORD=1; _drama3_say; echo ${COMPREPLY[*]}; COMP_WORDS=(drama3-say --format fl); COMP_CWORD=2; "
              "_drama3_say; echo ${COMPREPLY[*]}")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    check("bash completes names and choices", done.stdout.split() == ["--format", "flac"], done.stdout + done.stderr)


def check_voice(prefix, scratch):
    """The installed program speaks with the installed voice, without a source tree."""
    if not (prefix / "share/drama3/voice-mini").is_dir():
        return
    done = subprocess.run([prefix / "bin/drama3-say", "Hi.", "-o", scratch / "hi.wav", "-n", "2", "--device", "cpu"],
                          capture_output=True, text=True, cwd=scratch)
    check("the installed voice speaks", done.returncode in (0, 3) and "share/drama3/voice-mini" in done.stderr,
          done.stderr)


def check_consumers(arguments, prefix, libdir, scratch):
    version = re.search(r'DRAMA3_VERSION "([^"]+)"', (prefix / "include/drama3/version.h").read_text()).group(1)
    expected = f"{version} Hello. cpu\n"
    source = scratch / "consumer.cc"
    source.write_text(CONSUMER)
    flags = f"-fsanitize={arguments.sanitize}" if arguments.sanitize else ""
    major, minor, _ = version.split(".")
    for asked, accepted in [(f"{major}.{minor}", True), (f"{major}.{int(minor) + 1}", False)]:
        project = scratch / f"project-{asked}"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\nset(CMAKE_CXX_STANDARD 20)\n"
            f"find_package(drama3 {asked} REQUIRED)\nadd_executable(consumer {source})\n"
            "target_link_libraries(consumer PRIVATE drama3::drama3)\n")
        configure = [arguments.cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                     f"-DCMAKE_CXX_COMPILER={arguments.compiler}", f"-DCMAKE_CXX_FLAGS={flags}"]
        if not accepted:
            refused = subprocess.run(configure, capture_output=True, text=True)
            check(f"version {asked} is refused", refused.returncode != 0 and "not accepted" in refused.stderr,
                  refused.stderr)
            continue
        run(configure)
        run([arguments.cmake, "--build", project / "build"])
        check("consumer by find_package", run([project / "build" / "consumer"]) == expected, expected)
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / libdir / "pkgconfig"))
    check("pkg-config version", run(["pkg-config", "--modversion", "drama3"], env=environment) == version + "\n")
    words = run(["pkg-config", "--static", "--cflags", "--libs", "drama3"], env=environment).split()
    program = scratch / "consumer"
    run([arguments.compiler, "-std=c++20", *flags.split(), str(source), "-o", str(program), *words])
    check("consumer by pkg-config", run([program]) == expected, expected)


def check_old_versions(arguments):
    for settings, needed in [(["GNU", "11.2"], "expected GNU 12"), (["Clang", "13.0"], "expected Clang 14")]:
        done = subprocess.run([arguments.cmake, f"-DCMAKE_CXX_COMPILER_ID={settings[0]}",
                               f"-DCMAKE_CXX_COMPILER_VERSION={settings[1]}", "-P",
                               arguments.source + "/cmake/check_versions.cmake"], capture_output=True, text=True)
        check(f"{settings} is refused", done.returncode != 0 and needed in done.stderr, done.stderr)
    first = Path(arguments.source, "CMakeLists.txt").read_text()
    check("too old a CMake is refused", "cmake_minimum_required(VERSION 3.25)" in first)


def main():
    parser = argparse.ArgumentParser()
    for name in ["build", "source", "cmake", "compiler", "sanitize"]:
        parser.add_argument("--" + name, required=name != "sanitize", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        environment = dict(os.environ, DESTDIR=str(scratch / "dest"))
        run([arguments.cmake, "--install", arguments.build, "--prefix", "/opt/drama3"], env=environment)
        check("nothing outside the prefix", os.listdir(scratch / "dest") == ["opt"])
        prefix = scratch / "dest/opt/drama3"
        libdir = check_files(prefix)
        check_pages(prefix)
        check_bash_completion(prefix)
        check_voice(prefix, scratch)
        check_consumers(arguments, prefix, libdir, scratch)
    check_old_versions(arguments)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
