// The main of every test program. The libraries choose their kernels when they are loaded, so a program that lacks
// a setting starts itself anew with it, as the launcher starts theseus.

#include <unistd.h>

#include <gtest/gtest.h>

#include "theseus/machine/environment.h"

int main(int argc, char** argv) {
  using namespace theseus::machine;
  if (!missing(settings_here()).empty()) {
    set_missing();
    ::execv("/proc/self/exe", argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
