// A kernel from C++17. examples/cpp/CMakeLists.txt says how it is built.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <vector>

#include "rows.h"

// Keeps a row where cond is true, and fills it with -inf elsewhere.
std::vector<float> Mask(const std::vector<std::uint8_t>& cond, const std::vector<float>& rows) {
  const auto batch = static_cast<std::int64_t>(cond.size());
  const float masked = -std::numeric_limits<float>::infinity();
  std::vector<float> out(rows.size());
  if (te_select_float32_numpy_cbatchx1_tbatchx8_e_ha2ce577821(cond.data(), rows.data(), &masked,
                                                              out.data(), batch)) {
    throw std::runtime_error(te_select_error());
  }
  return out;
}

int main() {
  const std::vector<std::uint8_t> cond{1, 0, 0, 1};
  std::vector<float> rows(32);
  for (int i = 0; i < 32; ++i) rows[i] = static_cast<float>(i);
  try {
    const std::vector<float> out = Mask(cond, rows);
    for (int i = 0; i < 32; ++i) {
      if (out[i] != (cond[i / 8] ? rows[i] : -std::numeric_limits<float>::infinity())) return 1;
    }
    std::puts("32 elements selected from C++");
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
