// Whether this build has a sanitizer. tests/sanitized.cpp knows; support code is the same in every
// build.
#pragma once

namespace th_test {

bool is_sanitized();

}  // namespace th_test
