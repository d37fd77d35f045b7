// The program `fovea`. Everything happens in run_program (program.cpp).
#include "program.h"

int main(int argc, char** argv) {
  return fovea::cli::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
