// Tells test support whether this build has a sanitizer: tests then take a sample of key kinds,
// thread counts and sizes, because a sanitizer makes them ten times slower.
#include "support/sanitized.hpp"

namespace th_test {

bool is_sanitized() { return TH_TEST_SANITIZED != 0; }

}  // namespace th_test
