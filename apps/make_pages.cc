// Writes one generated page to standard output at build time: make_pages KIND TOOL [DATE VERSION].
#include <iostream>
#include <string>

#include "apps/option_pages.h"

int main(int argc, char** argv) {
  using namespace drama3;
  const std::string kind = argc > 1 ? argv[1] : "";
  const std::string name = argc > 2 ? argv[2] : "";
  for (const ToolPage& page : tool_pages()) {
    if (name != page.name) continue;
    if (kind == "man" && argc == 5) std::cout << man_page(page.tool, argv[3], argv[4]);
    if (kind == "bash") std::cout << bash_completion(page.tool);
    if (kind == "zsh") std::cout << zsh_completion(page.tool);
    if (kind == "fish") std::cout << fish_completion(page.tool);
    return std::cout.flush() ? 0 : 1;
  }
  std::cerr << "usage: make_pages man|bash|zsh|fish TOOL [DATE VERSION]\n";
  return 2;
}
